{#- The operations that maintain a lake. Arguments and results are those of the procedures that CALL runs. -#}
{#- A macro prints the procedure's rows. `table_name` is the name of a model, a source, or a table of the lake. -#}
{% macro ducklake_call(procedure, table_name=none, schema=none, arguments={}) -%}
  {%- set relation = ducklake_resolve_relation(table_name if schema is none else schema ~ '.' ~ table_name) if table_name is not none else none -%}
  {{ print(adapter.call_procedure(procedure, relation, none if relation else schema, arguments)) }}
{%- endmacro %}

{#- dbt run-operation ducklake_expire_snapshots --args '{older_than: "7 days", dry_run: true}'; or versions: [2, 3] -#}
{% macro ducklake_expire_snapshots(versions=none, older_than=none, dry_run=false) -%}
  {{ ducklake_call('ducklake_expire_snapshots', arguments={'versions': versions, 'older_than': older_than, 'dry_run': dry_run}) }}
{%- endmacro %}

{#- dbt run-operation ducklake_cleanup_old_files --args '{older_than: "7 days"}' -#}
{% macro ducklake_cleanup_old_files(older_than=none, cleanup_all=false, dry_run=false) -%}
  {{ ducklake_call('ducklake_cleanup_old_files', arguments={'older_than': older_than, 'cleanup_all': cleanup_all, 'dry_run': dry_run}) }}
{%- endmacro %}

{#- dbt run-operation ducklake_delete_orphaned_files --args '{older_than: "7 days", dry_run: true}' -#}
{% macro ducklake_delete_orphaned_files(older_than=none, cleanup_all=false, dry_run=false) -%}
  {{ ducklake_call('ducklake_delete_orphaned_files', arguments={'older_than': older_than, 'cleanup_all': cleanup_all, 'dry_run': dry_run}) }}
{%- endmacro %}

{#- dbt run-operation ducklake_analyze --args '{table_name: orders}' -#}
{% macro ducklake_analyze(table_name, schema=none, columns=none, noscan=false) -%}
  {{ ducklake_call('ducklake_analyze', table_name, schema, {'columns': columns, 'noscan': noscan}) }}
{%- endmacro %}
