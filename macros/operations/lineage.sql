{#- The relation of a model's name or of a name in the lake, as users of run-operation write it. -#}
{% macro ducklake_resolve_relation(name) -%}
  {{ return(adapter.resolve_relation(name, graph.nodes.values() | list + graph.sources.values() | list)) }}
{%- endmacro %}

{#- dbt run-operation ducklake_lineage --args '{relation: orders}' -#}
{% macro ducklake_lineage(relation) -%}
  {{ print(adapter.lineage_report(ducklake_resolve_relation(relation))) }}
{%- endmacro %}

{#- dbt run-operation ducklake_stale -#}
{% macro ducklake_stale() -%}
  {{ print(adapter.stale_report()) }}
{%- endmacro %}
