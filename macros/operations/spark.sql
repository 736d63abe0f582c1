{#- dbt run-operation ducklake_stop_spark: stops the Spark that spark.keep_alive keeps -#}
{% macro ducklake_stop_spark() -%}
  {{ print(adapter.stop_spark()) }}
{%- endmacro %}
