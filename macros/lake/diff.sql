{#- The rows that differ between two versions of a table: added, removed, changed, by a key. In a model it stands in
    FROM; dbt run-operation ducklake_diff --args '{relation: orders, from: 3, to: 7, key: id}' prints them. -#}
{% macro ducklake_diff(relation, from, to, key=none) -%}
  {%- if relation is string -%}
    {{ print(adapter.diff_text(ducklake_named(relation), from, to, key)) }}
  {%- else -%}
    {{ return(adapter.diff(relation, from, to, key)) }}
  {%- endif -%}
{%- endmacro %}
