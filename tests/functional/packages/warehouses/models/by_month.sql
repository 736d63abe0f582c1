{{ config(
    materialized='table',
    partition_by={'field': 'day', 'data_type': 'date', 'granularity': 'month'},
    cluster_by=['region'],
    file_format='delta',
    tblproperties={'delta.columnMapping.mode': 'name'},
) }}
select id, 'eu' as region, date'2025-12-30' + cast(id as int) as day from range(4)
