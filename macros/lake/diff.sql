{#- The rows that were added, removed or changed, by a key, between two versions of a table. For use in FROM; or prints
    them: dbt run-operation ducklake_diff --args '{relation: orders, from: 3, to: 7, key: id}' -#}
{% macro ducklake_diff(relation, from, to, key=none) -%}
  {%- if relation is string -%}
    {{ print(adapter.diff_report(ducklake_resolve_relation(relation), from, to, key)) }}
  {%- else -%}
    {{ return(adapter.diff_call(relation, from, to, key)) }}
  {%- endif -%}
{%- endmacro %}
