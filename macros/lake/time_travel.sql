{#- A relation as it was at a version, the number of a snapshot, or at a moment. It stands in FROM. -#}
{% macro ducklake_at(relation, version=none, timestamp=none) -%}
  {{ return(adapter.at(relation, version, timestamp)) }}
{%- endmacro %}
