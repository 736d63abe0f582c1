{#- The operations that maintain a lake. Arguments and results are those of the procedures that CALL runs. -#}
{#- A macro prints the procedure's rows. `table_name` is the name of a model, a source, or a table of the lake. -#}
{% macro ducklake_call(procedure, table_name=none, schema=none, arguments={}) -%}
  {%- set relation = ducklake_resolve_relation(table_name if schema is none else schema ~ '.' ~ table_name) if table_name is not none -%}
  {{ print(adapter.call_procedure(procedure, relation, none if relation else schema, arguments)) }}
{%- endmacro %}

{#- dbt run-operation ducklake_add_data_files --args '{table_name: orders, files: [archive/2024, "archive/2025/*.parquet"]}' -#}
{% macro ducklake_add_data_files(table_name, files, schema=none, allow_missing=false, ignore_extra_columns=false, hive_partitioning=true, allow_duplicates=false, dry_run=false) -%}
  {{ ducklake_call('ducklake_add_data_files', table_name, schema, {
      'files': files,
      'allow_missing': allow_missing,
      'ignore_extra_columns': ignore_extra_columns,
      'hive_partitioning': hive_partitioning,
      'allow_duplicates': allow_duplicates,
      'dry_run': dry_run,
  }) }}
{%- endmacro %}
