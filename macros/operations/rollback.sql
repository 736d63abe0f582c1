{#- dbt run-operation ducklake_rollback --args '{relation: orders, version: 41}'; or relation: [orders, customers],
    schema: main, or whole_lake: true -#}
{% macro ducklake_rollback(relation=none, version=none, timestamp=none, schema=none, whole_lake=false) -%}
  {%- set names = [relation] if relation is string else relation or [] -%}
  {%- set relations = [] -%}
  {%- for name in names -%}
    {% do relations.append(ducklake_resolve_relation(name)) %}
  {%- endfor -%}
  {{ print(adapter.roll_back(relations, schema, whole_lake, version, timestamp)) }}
{%- endmacro %}
