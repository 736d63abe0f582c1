{% macro ducklake__generate_database_name(custom_database_name=none, node=none) -%}
  {% do return(default__generate_database_name(custom_database_name, node)) %}
{%- endmacro %}

{#- A replaced table keeps its id and its history. A view of the same name is dropped in the same snapshot. -#}
{% macro ducklake__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if temporary -%}
    create or replace temporary view {{ relation }} as
    {{ compiled_code }}
  {%- else -%}
    create or replace table {{ relation }}
    {%- if config.get('contract').enforced %}
      {{ get_assert_columns_equivalent(compiled_code) }}
      {{ get_table_columns_and_constraints() }}
      {%- set compiled_code = get_select_subquery(compiled_code) %}
    {%- endif %}
    {{ adapter.layout_clauses(config) }}
    as
    {{ compiled_code }}
  {%- endif -%}
{%- endmacro %}

{% macro ducklake__create_view_as(relation, sql) -%}
  create or replace view {{ relation }}
  {%- if config.get('contract').enforced %}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif %}
  as
  {{ sql }}
{%- endmacro %}

{% macro ducklake__create_schema(relation) -%}
  {%- call statement('create_schema') -%}
    create schema if not exists {{ relation.without_identifier() }}
  {%- endcall -%}
{%- endmacro %}

{% macro ducklake__drop_schema(relation) -%}
  {%- call statement('drop_schema') -%}
    drop schema if exists {{ relation.without_identifier() }} cascade
  {%- endcall -%}
{%- endmacro %}

{% macro ducklake__drop_relation(relation) -%}
  {%- call statement('drop_relation') -%}
    drop {{ relation.type }} if exists {{ relation.render() }}
  {%- endcall -%}
{%- endmacro %}

{% macro ducklake__truncate_relation(relation) -%}
  {%- call statement('truncate_relation') -%}
    truncate table {{ relation.render() }}
  {%- endcall -%}
{%- endmacro %}

{% macro ducklake__rename_relation(from_relation, to_relation) -%}
  {%- call statement('rename_relation') -%}
    alter {{ from_relation.type }} {{ from_relation.render() }} rename to {{ to_relation.render() }}
  {%- endcall -%}
{%- endmacro %}

{#- A temporary view of the SparkSession. Threads share the session, so the name contains the model's schema. -#}
{% macro ducklake__make_temp_relation(base_relation, suffix) -%}
  {%- set name = [base_relation.schema, base_relation.identifier ~ suffix, invocation_id] | join('__') -%}
  {% do return(api.Relation.create(identifier=name | replace('-', '_'), type='view')) %}
{%- endmacro %}

{% macro ducklake__apply_grants(relation, grant_config, should_revoke=True) -%}
  {%- if grant_config -%}
    {% do exceptions.warn(
      "grants of " ~ relation ~ " are ignored: a lake has no users. Grant rights on its catalog database and its storage."
    ) %}
  {%- endif -%}
{%- endmacro %}
