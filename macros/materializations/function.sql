{#- One transaction with the node's hooks, as for every node. dbt's own materialization commits before the post hooks. -#}
{% materialization function, adapter='ducklake', supported_languages=['sql', 'python', 'javascript'] %}
  {%- set target_relation = this.incorporate(type=this.Function) -%}
  {%- set function_config = this.get_function_config(model) -%}
  {%- if function_config.language != 'sql' or function_config.type == 'aggregate' -%}
    {{ exceptions.raise_compiler_error(
      "A lake keeps functions in SQL that give one value for a row, and " ~ model.name ~ " is one of type "
      ~ function_config.type ~ " in " ~ function_config.language ~ ". Write it as a scalar function in SQL, as a"
      " macro, or as a model"
    ) }}
  {%- endif -%}
  {#- Through a variable: dbt parses direct calls of adapter.dispatch, and cannot resolve a computed macro name. -#}
  {%- set dispatch = adapter.dispatch -%}
  {%- set build = dispatch(this.get_function_macro_name(function_config), 'dbt') -%}

  {%- if ducklake_is_reused(model.get('compiled_code')) -%}
    {{ return({'relations': [target_relation]}) }}
  {%- endif -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {%- call statement('main') -%}{{ build(target_relation) }}{%- endcall -%}
  {% do ducklake_finish_node(target_relation, none) %}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

{% macro ducklake__scalar_function_create_replace_signature_sql(target_relation) -%}
  CREATE OR REPLACE FUNCTION {{ target_relation.render() }} ({{ formatted_scalar_function_args_sql() }})
  RETURNS {{ model.returns.data_type }}
  {{ scalar_function_volatility_sql() }}
  {%- if model.description and config.persist_relation_docs() %}
  COMMENT {{ adapter.string_literal(model.description) }}
  {%- endif %}
{%- endmacro %}

{% macro ducklake__scalar_function_body_sql() -%}
  RETURN {{ model.compiled_code }}
{%- endmacro %}

{% macro ducklake__formatted_scalar_function_args_sql() -%}
  {%- for argument in model.arguments -%}
    {{ adapter.quote(argument.name) }} {{ argument.data_type }}
    {%- if argument.get('default_value') is not none %} DEFAULT {{ argument.default_value }}{% endif %}
    {%- if not loop.last %}, {% endif %}
  {%- endfor -%}
{%- endmacro %}

{% macro ducklake__scalar_function_volatility_sql() -%}
  {%- set volatility = model.config.get('volatility') -%}
  {%- if volatility == 'deterministic' -%}
    DETERMINISTIC
  {%- elif volatility == 'non-deterministic' -%}
    NOT DETERMINISTIC
  {%- elif volatility is not none -%}
    {% do unsupported_volatility_warning(volatility) %}
  {%- endif -%}
{%- endmacro %}
