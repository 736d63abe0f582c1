{#- dbt run-operation ducklake_migrate --args '{version: "1.1", dry_run: true}': brings the lake to a later format version -#}
{% macro ducklake_migrate(version=none, dry_run=false) -%}
  {{ print(adapter.migrate(version, dry_run)) }}
{%- endmacro %}
