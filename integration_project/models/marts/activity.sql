{# Each year is a batch with its own snapshot. A batch can be built again without the others. #}
{{ config(
    materialized='incremental',
    incremental_strategy='microbatch',
    event_time='happened_at',
    batch_size='year',
    begin='2025-01-01',
    partition_by=['year(happened_at)'],
) }}

select customer_id, cast(signed_up as timestamp_ntz) as happened_at, 'signed up' as kind
from {{ ref('stg_customers') }}
union all
select customer_id, ordered_at, 'ordered'
from {{ ref('orders') }}
