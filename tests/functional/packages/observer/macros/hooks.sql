{% macro on_run_start() -%}
  {%- if execute and flags.WHICH in ('build', 'test') -%}
    {% do adapter.create_schema(api.Relation.create(database=target.database, schema=target.schema ~ '_samples')) %}
  {%- endif -%}
{%- endmacro %}

{% macro on_run_end(results) -%}
  {%- if not execute or observer.table_of('node_runs') is none -%}{{ return('') }}{%- endif -%}
  {%- set runs, nodes = [], [] -%}
  {%- for result in results -%}
    {% do runs.append({
      'run_id': invocation_id, 'node_id': result.node.unique_id, 'status': result.status | string,
      'message': result.message, 'seconds': result.execution_time, 'finished_at': run_started_at | string,
      'thread': result.thread_id,
    }) %}
    {% do nodes.append({
      'node_id': result.node.unique_id, 'kind': result.node.resource_type | string, 'code': result.node.raw_code,
    }) %}
  {%- endfor -%}
  {% do observer.insert_rows(observer.table_of('node_runs'), runs) %}
  {% do observer.delete_and_insert(observer.table_of('known_nodes'), 'node_id', nodes) %}
  {% do observer.merge_status() %}
  {% do observer.collect_samples() %}
  {% do log('observed ' ~ run_query('select count(*) from ' ~ observer.table_of('node_runs')).rows[0][0], info=true) %}
{%- endmacro %}

{#- Merges a temporary view by the merge statement of the adapter. -#}
{% macro merge_status() -%}
  {%- set target_table = observer.table_of('last_status') -%}
  {%- set view = observer.temporary(target_table, '__tmp_') -%}
  {% do observer.create_as(true, view,
    'select node_id, max_by(status, finished_at) as status, count(*) as runs from ' ~ observer.table_of('node_runs')
    ~ ' group by node_id', drop_first=true
  ) %}
  {%- set columns = adapter.get_columns_in_relation(view) -%}
  {% do run_query(get_merge_sql(target_table, view, 'node_id', columns, none)) %}
  {% do drop_relation_if_exists(view) %}
{%- endmacro %}

{% macro collect_samples() -%}
  {%- set schema = api.Relation.create(database=target.database, schema=target.schema ~ '_samples') -%}
  {%- if not adapter.check_schema_exists(schema.database, schema.schema) -%}{{ return('') }}{%- endif -%}
  {%- set names = run_query(
    "select table_name from information_schema.tables where table_schema = '" ~ schema.schema ~ "' order by 1"
  ).columns[0].values() -%}
  {%- for name in names -%}
    {%- set sample = adapter.get_relation(schema.database, schema.schema, name) -%}
    {% do run_query(
      'insert into ' ~ observer.table_of('failed_rows') ~ ' select \'' ~ name ~ '\', to_json(struct(*)) from ' ~ sample
    ) %}
    {% do adapter.drop_relation(sample) %}
  {%- endfor -%}
{%- endmacro %}
