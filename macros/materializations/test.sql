{#- A test that passed on the same versions of what it reads, or that statistics prove, is not run. -#}
{% materialization test, adapter='ducklake' %}
  {%- set response = none if should_store_failures() else adapter.reused_test(config, sql) -%}
  {%- if response is not none -%}
    {%- do store_result('main', response=response, agate_table=adapter.result_of_passed_test()) -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- set result = dbt.materialization_test_default() -%}
  {%- if not should_store_failures() -%}
    {% do adapter.note_test(config, sql) %}
  {%- endif -%}
  {{ return(result) }}
{% endmaterialization %}
