{% materialization incremental, adapter='ducklake', supported_languages=['sql', 'python'] %}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set full_refresh = should_full_refresh() or existing_relation is none or not existing_relation.is_table -%}
  {%- set strategy = adapter.incremental_strategy(config) -%}
  {%- set strategy_macro = adapter.get_incremental_strategy_macro(context, strategy) -%}

  {%- if ducklake_is_reused(compiled_code) -%}
    {{ return({'relations': [target_relation]}) }}
  {%- endif -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {%- if full_refresh -%}
    {% do ducklake_build_table(target_relation) %}
  {%- else -%}
    {% do ducklake_apply_increment(target_relation, strategy_macro) %}
  {%- endif -%}
  {% do ducklake_finish_node(target_relation, existing_relation) %}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

{#- Plans the model's rows as a temporary view and writes them to the table with the statement of the strategy. -#}
{% macro ducklake_apply_increment(relation, strategy_macro) -%}
  {% do adapter.begin_node_transaction() %}
  {% do adapter.evolve_layout(relation, config, before_schema_change=true) %}
  {% do ducklake_run_header() %}
  {%- set query = adapter.python_model_query(model, compiled_code) if model.language == 'python' else compiled_code -%}
  {%- set temp_relation = make_temp_relation(relation) -%}
  {%- call statement() -%}{{ create_table_as(True, temp_relation, query) }}{%- endcall -%}
  {%- set on_schema_change = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {%- set dest_columns = process_schema_changes(on_schema_change, temp_relation, relation) -%}
  {% do adapter.evolve_layout(relation, config) %}
  {%- if not dest_columns -%}
    {%- set dest_columns = adapter.get_columns_in_relation(relation) -%}
  {%- endif -%}
  {%- set arguments = {
    'target_relation': relation,
    'temp_relation': temp_relation,
    'unique_key': config.get('unique_key'),
    'dest_columns': dest_columns,
    'incremental_predicates': config.get('predicates') or config.get('incremental_predicates'),
  } -%}
  {%- call statement('main') -%}{{ strategy_macro(arguments) }}{%- endcall -%}
  {% do adapter.drop_relation(temp_relation) %}
{%- endmacro %}

{#- append_new_columns also appends new fields of structs. -#}
{% macro ducklake__sync_column_schemas(on_schema_change, target_relation, schema_changes_dict) -%}
  {% do default__sync_column_schemas(on_schema_change, target_relation, schema_changes_dict) %}
  {%- if on_schema_change == 'append_new_columns' -%}
    {%- for column in adapter.columns_with_new_fields(
      schema_changes_dict['source_columns'], schema_changes_dict['target_columns']
    ) -%}
      {% do alter_column_type(target_relation, column.name, column.data_type) %}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro %}
