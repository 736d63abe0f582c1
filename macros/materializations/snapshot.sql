{% materialization snapshot, adapter='ducklake' %}
  {% do adapter.begin_node() %}
  {{ return(dbt.materialization_snapshot_default()) }}
{% endmaterialization %}

{% macro ducklake__post_snapshot(staging_relation) -%}
  {% do adapter.drop_relation(staging_relation) %}
{%- endmacro %}

{% macro ducklake__snapshot_merge_sql(target, source, insert_cols) -%}
  {{ return(default__snapshot_merge_sql(target, source, insert_cols)) }}
{%- endmacro %}

{#- Called of a table that is there, behind the hooks that stand outside of the transaction. -#}
{% macro ducklake__create_columns(relation, columns) -%}
  {% do default__create_columns(relation, columns) %}
  {% do adapter.evolve_layout(relation, config) %}
{%- endmacro %}
