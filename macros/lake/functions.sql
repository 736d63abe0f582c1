{#- What tells of the lake: each is a table function that stands in FROM. -#}

{% macro ducklake_snapshots(database=none) -%}
  {{ return(adapter.lake_function('ducklake_snapshots', database)) }}
{%- endmacro %}

{% macro ducklake_table_info(database=none) -%}
  {{ return(adapter.lake_function('ducklake_table_info', database)) }}
{%- endmacro %}

{% macro ducklake_options(database=none) -%}
  {{ return(adapter.lake_function('ducklake_options', database)) }}
{%- endmacro %}

{% macro ducklake_settings(database=none) -%}
  {{ return(adapter.lake_function('ducklake_settings', database)) }}
{%- endmacro %}

{% macro ducklake_current_snapshot(database=none) -%}
  {{ return(adapter.lake_function('ducklake_current_snapshot', database)) }}
{%- endmacro %}

{% macro ducklake_last_committed_snapshot(database=none) -%}
  {{ return(adapter.lake_function('ducklake_last_committed_snapshot', database)) }}
{%- endmacro %}

{% macro ducklake_list_files(relation, version=none, timestamp=none) -%}
  {{ return(adapter.list_files(relation, version, timestamp)) }}
{%- endmacro %}
