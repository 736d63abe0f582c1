select 1
from (select sum(amount) as amount from {{ ref('orders') }}) orders
cross join (
    select sum(payments.amount) as amount
    from {{ ref('stg_payments') }} payments
    join {{ ref('stg_orders') }} orders on orders.order_id = payments.order_id
) payments
where orders.amount <> payments.amount
