{#- dbt run-operation ducklake_preview: what the last command with publish: run changed, or would have changed -#}
{% macro ducklake_preview() -%}
  {{ print(adapter.preview_report()) }}
{%- endmacro %}
