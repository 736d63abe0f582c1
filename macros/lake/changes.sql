{#- What changed in a table from a snapshot or a moment to another one, both included. It stands in FROM. -#}

{% macro ducklake_table_changes(relation, start, end) -%}
  {{ return(adapter.changes('ducklake_table_changes', relation, start, end)) }}
{%- endmacro %}

{% macro ducklake_table_insertions(relation, start, end) -%}
  {{ return(adapter.changes('ducklake_table_insertions', relation, start, end)) }}
{%- endmacro %}

{% macro ducklake_table_deletions(relation, start, end) -%}
  {{ return(adapter.changes('ducklake_table_deletions', relation, start, end)) }}
{%- endmacro %}

{#- What changed in a table since this incremental model last consumed it; all of its rows, if it never did. -#}
{% macro ducklake_new_changes(relation, if_expired='error') -%}
  {%- if not execute -%}{{ return('(select 1)') }}{%- endif -%}
  {{ return(adapter.new_changes(relation, this, model.unique_id, not is_incremental(), if_expired)) }}
{%- endmacro %}
