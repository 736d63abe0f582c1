{#- Table functions with information about the lake. For use in FROM. -#}

{% macro ducklake_snapshots(database=none) -%}
  {{ return(adapter.table_function_call('ducklake_snapshots', database)) }}
{%- endmacro %}

{% macro ducklake_table_info(database=none) -%}
  {{ return(adapter.table_function_call('ducklake_table_info', database)) }}
{%- endmacro %}

{% macro ducklake_options(database=none) -%}
  {{ return(adapter.table_function_call('ducklake_options', database)) }}
{%- endmacro %}

{% macro ducklake_settings(database=none) -%}
  {{ return(adapter.table_function_call('ducklake_settings', database)) }}
{%- endmacro %}

{% macro ducklake_current_snapshot(database=none) -%}
  {{ return(adapter.table_function_call('ducklake_current_snapshot', database)) }}
{%- endmacro %}

{% macro ducklake_last_committed_snapshot(database=none) -%}
  {{ return(adapter.table_function_call('ducklake_last_committed_snapshot', database)) }}
{%- endmacro %}

{% macro ducklake_list_files(relation, version=none, timestamp=none) -%}
  {{ return(adapter.list_files_call(relation, version, timestamp)) }}
{%- endmacro %}
