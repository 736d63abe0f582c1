{#- dbt run-operation ducklake_plan: which nodes with `reuse` would be computed, and why -#}
{% macro ducklake_plan() -%}
  {{ print(adapter.plan_report()) }}
{%- endmacro %}
