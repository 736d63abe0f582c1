{% materialization seed, adapter='ducklake' %}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- if existing_relation is not none and existing_relation.is_view -%}
    {{ exceptions.raise_compiler_error("Cannot seed to '" ~ existing_relation.render() ~ "', it is a view") }}
  {%- endif -%}
  {%- if ducklake_is_reused(none) -%}
    {%- do store_result('agate_table', response='OK', agate_table=adapter.no_rows()) -%}
    {{ return({'relations': [target_relation]}) }}
  {%- endif -%}
  {%- set agate_table = load_agate_table() -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {%- set sql = ducklake_create_seed_table(target_relation, agate_table) -%}
  {%- call statement('main') -%}{{ sql }}{%- endcall -%}
  {%- set rows = agate_table.limit(0) if flags.EMPTY else agate_table -%}
  {%- do store_result('main', response=adapter.load_seed(target_relation, rows)) -%}
  {% do ducklake_finish_node(target_relation, existing_relation) %}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

{% macro ducklake_create_seed_table(relation, agate_table) -%}
  {%- set column_types = model['config'].get('column_types', {}) -%}
  {%- set quote = model['config'].get('quote_columns', none) -%}
  create or replace table {{ relation }} (
    {%- for name in agate_table.column_names %}
    {{ adapter.quote_seed_column(name, quote) }} {{ column_types.get(name, adapter.convert_type(agate_table, loop.index0)) }}
    {%- if not loop.last %},{% endif %}
    {%- endfor %}
  )
  {{ adapter.layout_clauses(config) }}
{%- endmacro %}
