{% materialization table, adapter='ducklake', supported_languages=['sql', 'python'] %}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing_relation = load_cached_relation(this) -%}

  {%- if ducklake_is_reused(compiled_code) -%}
    {{ return({'relations': [target_relation]}) }}
  {%- endif -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% do ducklake_build_table(target_relation) %}
  {% do ducklake_finish_node(target_relation, existing_relation) %}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

{#- Whether the node's relation is what building it would make. Then that is the node's result. -#}
{% macro ducklake_is_reused(code) -%}
  {%- set response = adapter.reused(config, code) -%}
  {%- if response is not none -%}
    {%- do store_result('main', response=response) -%}
  {%- endif -%}
  {{ return(response is not none) }}
{%- endmacro %}

{#- Creates or replaces the table with the model's rows. -#}
{% macro ducklake_build_table(relation) -%}
  {% do adapter.begin_node_transaction() %}
  {% do ducklake_run_header() %}
  {%- set query = adapter.python_model_query(model, compiled_code) if model.language == 'python' else compiled_code -%}
  {%- call statement('main') -%}
    {{ create_table_as(False, relation, query) }}
  {%- endcall -%}
{%- endmacro %}

{% macro ducklake_run_header() -%}
  {%- if config.get('sql_header') -%}
    {%- call statement() -%}{{ config.get('sql_header') }}{%- endcall -%}
  {%- endif -%}
{%- endmacro %}

{#- Ends every node: comments, post hooks, and the commit of its one snapshot. -#}
{% macro ducklake_finish_node(relation, existing_relation) -%}
  {% do apply_grants(relation, config.get('grants')) %}
  {% do persist_docs(relation, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {% do adapter.commit() %}
  {%- if existing_relation is not none and existing_relation.type != relation.type -%}
    {% do adapter.cache_dropped(existing_relation) %}
  {%- endif -%}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
{%- endmacro %}
