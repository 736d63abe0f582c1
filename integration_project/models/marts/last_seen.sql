{# Reads only the new rows of events. Updates known customers, except the time of their first event. #}
{{ config(
    materialized='incremental',
    unique_key='customer_id',
    merge_exclude_columns=['first_seen'],
    partition_by=['bucket(4, customer_id)'],
) }}

select customer_id, min(at) as first_seen, max(at) as last_seen, max_by(kind, at) as last_event
from {{ ducklake_new_changes(ref('events')) }}
group by customer_id
