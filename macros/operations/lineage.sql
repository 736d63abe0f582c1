{#- A relation as a user of run-operation names it: by a model's name, or by its name in the lake. -#}
{% macro ducklake_named(given) -%}
  {{ return(adapter.named_relation(given, graph.nodes.values() | list + graph.sources.values() | list)) }}
{%- endmacro %}

{#- dbt run-operation ducklake_lineage --args '{relation: orders}' -#}
{% macro ducklake_lineage(relation) -%}
  {{ print(adapter.lineage_text(ducklake_named(relation))) }}
{%- endmacro %}

{#- dbt run-operation ducklake_stale -#}
{% macro ducklake_stale() -%}
  {{ print(adapter.stale_text()) }}
{%- endmacro %}
