{#- Keeps rows of a failed test: a table that is made while the test's own statement has begun a transaction. -#}
{% materialization test, default %}
  {%- set result = dbt.materialization_test_default() -%}
  {%- set sample = api.Relation.create(
    database=target.database, schema=target.schema ~ '_samples', identifier=model.name, type='table'
  ) -%}
  {% do observer.create_as(false, sample, 'select * from (' ~ sql ~ ') limit 2', drop_first=true, commit=true) %}
  {% do return(result) %}
{% endmaterialization %}
