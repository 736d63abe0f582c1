{% materialization snapshot, adapter='ducklake' %}
  {% do adapter.begin_node() %}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- if existing_relation is not none and existing_relation.is_table -%}
    {% do adapter.evolve_layout(this, config) %}
  {%- endif -%}
  {{ return(dbt.materialization_snapshot_default()) }}
{% endmaterialization %}

{% macro ducklake__post_snapshot(staging_relation) -%}
  {% do adapter.drop_relation(staging_relation) %}
{%- endmacro %}

{% macro ducklake__snapshot_merge_sql(target, source, insert_cols) -%}
  {{ return(default__snapshot_merge_sql(target, source, insert_cols)) }}
{%- endmacro %}

{% macro ducklake__create_columns(relation, columns) -%}
  {{ return(default__create_columns(relation, columns)) }}
{%- endmacro %}
