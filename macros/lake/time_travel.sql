{#- A relation as of a version, which is the number of a snapshot, or as of a timestamp. For use in FROM. -#}
{% macro ducklake_at(relation, version=none, timestamp=none) -%}
  {{ return(adapter.relation_at(relation, version, timestamp)) }}
{%- endmacro %}
