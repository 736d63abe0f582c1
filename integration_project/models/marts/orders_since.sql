{# Time travel: compares the current orders with those of an earlier version. #}
{{ config(materialized='view') }}
{% set since = "timestamp'" ~ var('since') ~ "'" if var('since', none) else 'current_timestamp()' %}

select newest.status, count(*) as orders, count_if(past.order_id is null) as added_since
from {{ ref('orders') }} newest
left join {{ ref('orders') }} timestamp as of {{ since }} past
    on past.order_id = newest.order_id
group by newest.status
