{% materialization snapshot, adapter='ducklake' %}
  {%- if ducklake_is_reused(model['compiled_code']) -%}
    {{ return({'relations': [this.incorporate(type='table')]}) }}
  {%- endif -%}
  {% do adapter.begin_node_transaction() %}
  {{ return(dbt.materialization_snapshot_default()) }}
{% endmaterialization %}

{#- Finds the changes since the last run with one join of the source and the current versions. dbt's default macro
    computes the source several times, which is slow, and wrong if the source is not deterministic. Each joined row
    lists its changes, and explode() makes a row of each. The version of a key that left the source ends. With
    new_record another version begins, which is marked as deleted. -#}
{% macro ducklake__snapshot_staging_table(strategy, source_sql, target_relation) -%}
  {%- set names = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set valid_to_current = config.get('dbt_valid_to_current') -%}
  {%- set key, hard_deletes, now = strategy.unique_key, strategy.hard_deletes, snapshot_get_time() -%}
  {%- set new_record = hard_deletes == 'new_record' -%}
  {%- set tracks_deletes = new_record or hard_deletes == 'invalidate' -%}
  {%- set changed = strategy.row_changed -%}
  {%- set not_yet_deleted = 'true' -%}
  {%- if new_record -%}
    {%- set changed -%} {{ changed }} or snapshotted_data.{{ names.dbt_is_deleted }} = 'True' {%- endset -%}
    {%- set not_yet_deleted -%} snapshotted_data.{{ names.dbt_is_deleted }} != 'True' {%- endset -%}
    {%- set target_columns = adapter.get_columns_in_relation(target_relation) | map(attribute='name') | list -%}
    {%- set source_columns = get_columns_in_query(source_sql) -%}
  {%- endif -%}
with snapshot_query as (
{{ source_sql }}
),
snapshotted_data as (
  select *, {{ unique_key_fields(key) }} from {{ target_relation }}
  where {{ names.dbt_valid_to }} is null {%- if valid_to_current %} or {{ equals(names.dbt_valid_to, valid_to_current) }} {%- endif %}
),
source_data as (
  select *, {{ unique_key_fields(key) }}, true as _dbt_in_source from snapshot_query
),
compared as (
  select
    source_data.*,
    snapshotted_data.{{ names.dbt_scd_id }},
    {%- if new_record %}
    snapshotted_data.{{ names.dbt_is_deleted }},
    snapshotted_data.{{ names.dbt_valid_to }},
    {%- for name in source_columns if name in target_columns %}
    snapshotted_data.{{ adapter.quote(name) }} as {{ adapter.quote('_dbt_kept_' ~ name) }},
    {%- endfor %}
    {%- endif %}
    case
      when snapshotted_data.{{ names.dbt_scd_id }} is null then array('insert')
      {%- if tracks_deletes %}
      when source_data._dbt_in_source is null then
        case when {{ not_yet_deleted }} then array('delete' {%- if new_record %}, 'deleted' {%- endif %}) end
      {%- endif %}
      when {{ changed }} then array('insert', 'update')
    end as _dbt_changes
  from source_data
  {{ 'full' if tracks_deletes else 'left' }} outer join snapshotted_data
    on {{ unique_key_join_on(key, 'snapshotted_data', 'source_data') }}
),
changes as (
  select * from compared lateral view explode(_dbt_changes) exploded as _dbt_change
)
select
  case _dbt_change when 'deleted' then 'insert' else _dbt_change end as dbt_change_type,
  {%- if new_record %}
  {%- for name in source_columns %}
  {%- set quoted = adapter.quote(name) %}
  {% if name in target_columns -%}
  case _dbt_change when 'deleted' then {{ adapter.quote('_dbt_kept_' ~ name) }} else {{ quoted }} end as {{ quoted }},
  {%- else -%} {{ quoted }}, {%- endif %}
  {%- endfor %}
  {%- else %}
  changes.* except ({{ names.dbt_scd_id }}, _dbt_in_source, _dbt_changes, _dbt_change),
  {%- endif %}
  {%- for name in (names.dbt_updated_at, names.dbt_valid_from) %}
  {%- if tracks_deletes %}
  case when _dbt_change in ('insert', 'update') then {{ strategy.updated_at }} else {{ now }} end as {{ name }},
  {%- else %}
  {{ strategy.updated_at }} as {{ name }},
  {%- endif %}
  {%- endfor %}
  case _dbt_change
    when 'insert' then {{ valid_to_current or 'null' }}
    when 'update' then {{ strategy.updated_at }}
    {%- if tracks_deletes %}
    when 'delete' then {{ now }}
    {%- endif %}
    {%- if new_record %}
    when 'deleted' then {{ names.dbt_valid_to }}
    {%- endif %}
  end as {{ names.dbt_valid_to }},
  case _dbt_change
    when 'insert' then {{ strategy.scd_id }}
    {%- if new_record %}
    when 'deleted' then {{ snapshot_hash_arguments([names.dbt_scd_id, now]) }}
    {%- endif %}
    else {{ names.dbt_scd_id }}
  end as {{ names.dbt_scd_id }}
  {%- if new_record %},
  case _dbt_change
    when 'insert' then 'False' when 'deleted' then 'True' else {{ names.dbt_is_deleted }}
  end as {{ names.dbt_is_deleted }}
  {%- endif %}
from changes
{%- endmacro %}

{% macro ducklake__post_snapshot(staging_relation) -%}
  {% do adapter.drop_relation(staging_relation) %}
{%- endmacro %}

{% macro ducklake__snapshot_merge_sql(target, source, insert_cols) -%}
  {{ return(default__snapshot_merge_sql(target, source, insert_cols)) }}
{%- endmacro %}

{#- dbt calls this for an existing table, after the hooks that run outside of the transaction. -#}
{% macro ducklake__create_columns(relation, columns) -%}
  {% do default__create_columns(relation, columns) %}
  {% do adapter.evolve_layout(relation, config) %}
{%- endmacro %}
