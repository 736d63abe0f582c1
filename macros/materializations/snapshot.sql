{% materialization snapshot, adapter='ducklake' %}
  {{ exceptions.raise_compiler_error(
    "dbt snapshots need MERGE, which this version of dbt-ducklake does not have yet. The lake keeps every version of"
    " a table: read an earlier one with `from " ~ model.name ~ " version as of <snapshot>`."
  ) }}
{% endmaterialization %}
