{% macro day_name(day) -%}{{ return(adapter.dispatch('day_name', 'dialects')(day)) }}{%- endmacro %}
{% macro spark__day_name(day) -%} date_format({{ day }}, 'EEEE') {%- endmacro %}
{% macro snowflake__day_name(day) -%} dayname({{ day }}) {%- endmacro %}

{% macro json_text(json, path) -%}{{ return(adapter.dispatch('json_text', 'dialects')(json, path)) }}{%- endmacro %}
{% macro databricks__json_text(json, path) -%} get_json_object({{ json }}, '$.{{ path }}') {%- endmacro %}
{% macro bigquery__json_text(json, path) -%} json_value({{ json }}, '$.{{ path }}') {%- endmacro %}
{% macro default__json_text(json, path) -%}
  {{ exceptions.raise_compiler_error('json_text is not known for ' ~ target.type) }}
{%- endmacro %}
