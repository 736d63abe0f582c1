{% macro upload(results) -%}
  {%- if not execute or flags.WHICH not in ('run', 'build') -%}{{ return('') }}{%- endif -%}
  {%- set models = results | selectattr('node.resource_type', 'equalto', 'model') | list -%}
  {%- set content -%}
    values
    {%- for result in models %}
    (
      '{{ invocation_id }}',
      '{{ result.node.unique_id }}',
      '{{ run_started_at }}',
      {{ flags.FULL_REFRESH or false }},
      {{ result.execution_time }},
      {{ result.adapter_response.get('rows_affected') or 'null' }},
      '{{ tojson(result.adapter_response) | replace("\\", "\\\\") | replace("'", "\\'") | replace('"', '\\"') }}'
    ){{ ',' if not loop.last }}
    {%- endfor -%}
  {%- endset -%}
  {%- set target_table = api.Relation.create(
    database=target.database, schema=target.schema, identifier='model_executions', type='table'
  ) -%}
  {% do run_query(
    'insert into ' ~ target_table ~ ' (command_invocation_id, node_id, run_started_at, was_full_refresh,'
    ~ ' total_node_runtime, rows_affected, adapter_response) ' ~ content
  ) %}
{%- endmacro %}
