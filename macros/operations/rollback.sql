{#- dbt run-operation ducklake_rollback --args '{relation: orders, version: 41}'; or relation: [orders, customers],
    schema: main, or whole_lake: true -#}
{% macro ducklake_rollback(relation=none, version=none, timestamp=none, schema=none, whole_lake=false) -%}
  {%- set given = [relation] if relation is string else relation or [] -%}
  {%- set relations = [] -%}
  {%- for one in given -%}
    {% do relations.append(ducklake_named(one)) %}
  {%- endfor -%}
  {{ print(adapter.rollback_text(relations, schema, whole_lake, version, timestamp)) }}
{%- endmacro %}
