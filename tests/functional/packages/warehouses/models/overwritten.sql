{{ config(
    materialized='incremental', incremental_strategy='insert_overwrite',
    partition_by={'field': 'day', 'data_type': 'date'}, file_format='delta', location_root='/mnt/warehouse',
) }}
{% if is_incremental() -%}
select 9 as id, date'2026-01-31' as day
{%- else -%}
select 1 as id, date'2026-01-31' as day union all select 2, date'2025-01-31' union all select 3, date'2025-12-31'
{%- endif %}
