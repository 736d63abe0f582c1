{# Time travel: compares the current orders with those of an earlier version. #}
{{ config(materialized='view') }}
{% set as_of = "timestamp as of timestamp'" ~ var('since') ~ "'" if var('since', none) else '' %}

select newest.status, count(*) as orders, count_if(past.order_id is null) as added_since
from {{ ref('orders') }} newest
left join {{ ref('orders') }} {{ as_of }} past
    on past.order_id = newest.order_id
group by newest.status
