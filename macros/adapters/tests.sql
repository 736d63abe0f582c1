{#- A test that passed on the same versions of what it reads, or that statistics prove, is not run. -#}
{% macro ducklake__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) -%}
  {%- if not should_store_failures() and adapter.is_passed_test(config) -%}
    {{ adapter.passed_test_query() }}
  {%- else -%}
    {{ default__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) }}
  {%- endif -%}
{%- endmacro %}
