{#- The operations that maintain a lake. Arguments and results are those of the procedures that CALL runs. -#}
{#- A macro prints the procedure's rows. `table_name` is the name of a model, a source, or a table of the lake. -#}
{% macro ducklake_call(procedure, table_name=none, schema=none, arguments={}, as_json=false) -%}
  {%- set relation = ducklake_resolve_relation(table_name if schema is none else schema ~ '.' ~ table_name) if table_name is not none else none -%}
  {{ print(adapter.call_procedure(procedure, relation, none if relation else schema, arguments, as_json)) }}
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

{#- dbt run-operation ducklake_merge_adjacent_files --args '{table_name: orders}': merges small files -#}
{% macro ducklake_merge_adjacent_files(table_name=none, schema=none, min_file_size=none, max_file_size=none,
    max_compacted_files=none, target_file_size=none, where=none, zorder_by=none, dry_run=false) -%}
  {{ ducklake_call('ducklake_merge_adjacent_files', table_name, schema, {
      'min_file_size': min_file_size, 'max_file_size': max_file_size, 'max_compacted_files': max_compacted_files,
      'target_file_size': target_file_size, 'where': where, 'zorder_by': zorder_by, 'dry_run': dry_run}) }}
{%- endmacro %}

{#- dbt run-operation ducklake_rewrite_data_files --args '{table_name: orders, delete_threshold: 0.3}' -#}
{% macro ducklake_rewrite_data_files(table_name=none, schema=none, delete_threshold=none, where=none, dry_run=false) -%}
  {{ ducklake_call('ducklake_rewrite_data_files', table_name, schema, {
      'delete_threshold': delete_threshold, 'where': where, 'dry_run': dry_run}) }}
{%- endmacro %}

{#- dbt run-operation ducklake_flush_inlined_data: inlined rows and deletes become files -#}
{% macro ducklake_flush_inlined_data(table_name=none, schema=none, dry_run=false) -%}
  {{ ducklake_call('ducklake_flush_inlined_data', table_name, schema, {'dry_run': dry_run}) }}
{%- endmacro %}

{#- dbt run-operation ducklake_migrate_partitioning --args '{table_name: orders, max_steps: 10}' -#}
{% macro ducklake_migrate_partitioning(table_name=none, schema=none, max_steps=none, dry_run=false) -%}
  {{ ducklake_call('ducklake_migrate_partitioning', table_name, schema, {'max_steps': max_steps, 'dry_run': dry_run}) }}
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

{#- dbt run-operation ducklake_maintain --args '{table_name: orders}': flushes, rewrites and merges where it is worth it -#}
{% macro ducklake_maintain(table_name=none, schema=none, small_files=none, deleted_share=none, inlined_rows=none,
    max_seconds=none) -%}
  {{ ducklake_call('ducklake_maintain', table_name, schema, {
      'small_files': small_files, 'deleted_share': deleted_share, 'inlined_rows': inlined_rows,
      'max_seconds': max_seconds}) }}
{%- endmacro %}

{#- dbt run-operation ducklake_checkpoint, or on-run-end: "{{ ducklake_checkpoint() }}" -#}
{% macro ducklake_checkpoint(dry_run=false) -%}
  {#- dbt renders hooks also when it only compiles, as for docs generate. -#}
  {% if execute and flags.WHICH in ['run', 'build', 'seed', 'snapshot', 'test', 'clone', 'run-operation'] %}{{ ducklake_call('ducklake_checkpoint', arguments={'dry_run': dry_run}) }}{% endif %}
{%- endmacro %}

{#- dbt run-operation ducklake_health, or with --args '{as_json: true}': what tables need, and what would mend it -#}
{% macro ducklake_health(table_name=none, schema=none, small_files=none, deleted_share=none, inlined_rows=none,
    orphans=true, as_json=false) -%}
  {{ ducklake_call('ducklake_health', table_name, schema, {
      'small_files': small_files, 'deleted_share': deleted_share, 'inlined_rows': inlined_rows,
      'orphans': orphans}, as_json) }}
{%- endmacro %}

{#- dbt run-operation ducklake_analyze --args '{table_name: orders}' -#}
{% macro ducklake_analyze(table_name, schema=none, columns=none, noscan=false) -%}
  {{ ducklake_call('ducklake_analyze', table_name, schema, {'columns': columns, 'noscan': noscan}) }}
{%- endmacro %}
