{#- dbt run-operation ducklake_lineage --args '{relation: orders}' -#}
{% macro ducklake_lineage(relation) -%}
  {%- set nodes = graph.nodes.values() | list + graph.sources.values() | list -%}
  {{ print(adapter.lineage_text(relation, nodes)) }}
{%- endmacro %}

{#- dbt run-operation ducklake_stale -#}
{% macro ducklake_stale() -%}
  {{ print(adapter.stale_text()) }}
{%- endmacro %}
