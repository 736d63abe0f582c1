{#- The operations that maintain a lake. Arguments and results are those of the procedures that CALL runs. -#}
{#- A macro prints the procedure's rows. `table_name` is the name of a model, a source, or a table of the lake. -#}
{% macro ducklake_call(procedure, table_name=none, schema=none, arguments={}) -%}
  {%- set relation = ducklake_resolve_relation(table_name if schema is none else schema ~ '.' ~ table_name) if table_name is not none -%}
  {{ print(adapter.call_procedure(procedure, relation, none if relation else schema, arguments)) }}
{%- endmacro %}
