{% macro ducklake__alter_column_type(relation, column_name, new_column_type) -%}
  {%- call statement('alter_column_type') -%}
    alter table {{ relation.render() }} alter column {{ adapter.quote(column_name) }} type {{ new_column_type }}
  {%- endcall -%}
{%- endmacro %}

{% macro ducklake__alter_relation_add_remove_columns(relation, add_columns, remove_columns) -%}
  {%- for column in add_columns or [] -%}
    {%- call statement() -%}
      alter table {{ relation.render() }} add column {{ column.quoted }} {{ column.data_type }}
    {%- endcall -%}
  {%- endfor -%}
  {%- for column in remove_columns or [] -%}
    {%- call statement() -%}
      alter table {{ relation.render() }} drop column {{ column.quoted }}
    {%- endcall -%}
  {%- endfor -%}
{%- endmacro %}

{% macro ducklake__persist_docs(relation, model, for_relation, for_columns) -%}
  {#- CREATE FUNCTION has set the comment of a function. -#}
  {%- if relation.is_function -%}{{ return('') }}{%- endif -%}
  {%- set comment = model.description if for_relation and config.persist_relation_docs() else none -%}
  {%- set columns = model.columns if for_columns and config.persist_column_docs() else none -%}
  {%- if comment or columns -%}
    {%- set missing = adapter.set_comments(relation, comment, columns) -%}
    {%- if missing -%}
      {% do exceptions.warn(
        "In relation " ~ relation ~ ": The following columns are specified in the schema but are not present in the"
        " database: " ~ missing | join(", ")
      ) %}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

{% macro ducklake__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}
