{% macro quote_name(name) -%}
  {%- if target.type in ('bigquery', 'spark', 'databricks') -%} `{{ name }}` {%- else -%} "{{ name }}" {%- endif -%}
{%- endmacro %}
