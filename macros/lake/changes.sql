{#- The change feed of a table between two snapshots or timestamps, both included. For use in FROM. -#}

{% macro ducklake_table_changes(relation, start, end) -%}
  {{ return(adapter.change_feed_call('ducklake_table_changes', relation, start, end)) }}
{%- endmacro %}

{% macro ducklake_table_insertions(relation, start, end) -%}
  {{ return(adapter.change_feed_call('ducklake_table_insertions', relation, start, end)) }}
{%- endmacro %}

{% macro ducklake_table_deletions(relation, start, end) -%}
  {{ return(adapter.change_feed_call('ducklake_table_deletions', relation, start, end)) }}
{%- endmacro %}

{#- The changes of a table that this incremental model has not consumed yet; in its first run, all rows of the table. -#}
{% macro ducklake_new_changes(relation, if_expired='error') -%}
  {%- if not execute -%}{{ return('(select 1)') }}{%- endif -%}
  {{ return(adapter.new_changes_call(relation, this, model.unique_id, not is_incremental(), if_expired)) }}
{%- endmacro %}
