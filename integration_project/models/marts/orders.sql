{{ config(
    partition_by=['month(ordered_at)'],
    sorted_by=['ordered_at'],
    event_time='ordered_at',
    contract={'enforced': true},
) }}

select
    orders.order_id,
    orders.customer_id,
    orders.status,
    orders.ordered_at,
    cast(coalesce(sum(payments.amount), 0) as decimal(12, 2)) as amount
from {{ ref('stg_orders') }} orders
left join {{ ref('stg_payments') }} payments on payments.order_id = orders.order_id
group by all
