{% materialization function, adapter='ducklake', supported_languages=['sql', 'python', 'javascript'] %}
  {{ exceptions.raise_compiler_error(
    "dbt functions can not be kept in a lake by this version of dbt-ducklake. Write " ~ model.name ~ " as a macro, or"
    " create a temporary function of Spark's in on-run-start: create or replace temporary function f(x int) returns int"
    " return x + 1"
  ) }}
{% endmaterialization %}
