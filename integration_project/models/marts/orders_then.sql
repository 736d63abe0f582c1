{# Time travel: the orders of now beside those of an earlier moment. #}
{{ config(materialized='view') }}
{% set since = "timestamp'" ~ var('since') ~ "'" if var('since', none) else 'current_timestamp()' %}

select now.status, count(*) as orders, count_if(past.order_id is null) as added_since
from {{ ref('orders') }} now
left join {{ ref('orders') }} timestamp as of {{ since }} past
    on past.order_id = now.order_id
group by now.status
