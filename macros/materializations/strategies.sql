{#- The incremental strategies. Each is one statement that writes the model's rows, a temporary view, to its table. -#}

{% macro ducklake__get_incremental_append_sql(arg_dict) -%}
  {%- set columns = arg_dict['dest_columns'] | map(attribute='quoted') | join(', ') -%}
  insert into {{ arg_dict['target_relation'] }} ({{ columns }})
  select {{ columns }} from {{ arg_dict['temp_relation'] }}
{%- endmacro %}

{% macro ducklake__get_incremental_default_sql(arg_dict) -%}
  {%- if arg_dict['unique_key'] -%}
    {{ return(ducklake__get_incremental_merge_sql(arg_dict)) }}
  {%- endif -%}
  {{ return(ducklake__get_incremental_append_sql(arg_dict)) }}
{%- endmacro %}

{% macro ducklake__get_incremental_merge_sql(arg_dict) -%}
  {{ return(get_merge_sql(
    arg_dict['target_relation'], arg_dict['temp_relation'], arg_dict['unique_key'], arg_dict['dest_columns'],
    arg_dict['incremental_predicates']
  )) }}
{%- endmacro %}

{% macro ducklake__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates=none) -%}
  {%- set keys = adapter.key_columns(unique_key, dest_columns, target) -%}
  {%- set conditions = adapter.predicate_list(incremental_predicates) -%}
  {%- for key in keys -%}
    {% do conditions.append(equals('DBT_INTERNAL_SOURCE.' ~ key, 'DBT_INTERNAL_DEST.' ~ key) | trim) %}
  {%- endfor -%}
  {%- set updated = get_merge_update_columns(
    config.get('merge_update_columns'), config.get('merge_exclude_columns'), dest_columns
  ) -%}
  {%- set delete_condition = config.get('merge_with_delete_condition') -%}
  {%- set inserted = adapter.merge_insert_conditions(config) -%}
  merge into {{ target }} as DBT_INTERNAL_DEST
  using {{ source }} as DBT_INTERNAL_SOURCE
  on {% if keys %}({{ conditions | join(') and (') }}){% else %}false{% endif %}
  {%- if keys and delete_condition %}
  when matched and ({{ delete_condition }}) then delete
  {%- endif %}
  {%- if keys and updated %}
  when matched {%- if config.get('merge_update_condition') %} and ({{ config.get('merge_update_condition') }}){% endif %} then update set
    {% for column in updated -%}
      {{ column }} = DBT_INTERNAL_SOURCE.{{ column }} {%- if not loop.last %}, {% endif %}
    {%- endfor %}
  {%- endif %}
  when not matched {%- if inserted %} and ({{ inserted | join(') and (') }}){% endif %} then insert
    ({{ dest_columns | map(attribute='quoted') | join(', ') }})
    values (
    {%- for column in dest_columns -%}
      DBT_INTERNAL_SOURCE.{{ column.quoted }} {%- if not loop.last %}, {% endif %}
    {%- endfor -%}
    )
{%- endmacro %}

{% macro ducklake__get_merge_update_columns(merge_update_columns, merge_exclude_columns, dest_columns) -%}
  {{ return(adapter.merge_update_columns(merge_update_columns, merge_exclude_columns, dest_columns)) }}
{%- endmacro %}

{% macro ducklake__get_incremental_delete_insert_sql(arg_dict) -%}
  {%- set target, dest_columns = arg_dict['target_relation'], arg_dict['dest_columns'] -%}
  {%- set keys = adapter.key_columns(arg_dict['unique_key'], dest_columns, target) -%}
  {%- set conditions = adapter.predicate_list(arg_dict['incremental_predicates']) -%}
  {%- if not keys -%}
    {{ return(ducklake__get_incremental_append_sql(arg_dict)) }}
  {%- endif -%}
  {%- set columns = dest_columns | map(attribute='quoted') | join(', ') -%}
  insert into {{ target }} as DBT_INTERNAL_DEST ({{ columns }})
  replace using ({{ keys | join(', ') }})
  {%- if conditions %} where ({{ conditions | join(') and (') }}){% endif %}
  select {{ columns }} from {{ arg_dict['temp_relation'] }}
{%- endmacro %}

{% macro ducklake__get_incremental_insert_overwrite_sql(arg_dict) -%}
  {%- set columns = arg_dict['dest_columns'] | map(attribute='quoted') | join(', ') -%}
  {%- set condition = adapter.partitions_condition(config) -%}
  insert into {{ arg_dict['target_relation'] }} as DBT_INTERNAL_DEST ({{ columns }})
  {% if condition %}replace where {{ condition }}{% else %}replace partitions{% endif %}
  select {{ columns }} from {{ arg_dict['temp_relation'] }}
{%- endmacro %}

{#- Replaces the whole window of the batch, so that a batch may run again. -#}
{% macro ducklake__get_incremental_microbatch_sql(arg_dict) -%}
  {%- set columns = arg_dict['dest_columns'] | map(attribute='quoted') | join(', ') -%}
  {%- set conditions = adapter.predicate_list(arg_dict['incremental_predicates']) + adapter.microbatch_conditions(model, arg_dict['dest_columns']) -%}
  insert into {{ arg_dict['target_relation'] }} as DBT_INTERNAL_DEST ({{ columns }})
  replace where ({{ conditions | join(') and (') }})
  select {{ columns }} from {{ arg_dict['temp_relation'] }}
{%- endmacro %}
