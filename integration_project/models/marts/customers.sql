select
    customers.*,
    count(orders.order_id) as orders,
    count_if({{ function('order_size') }}(orders.amount) = 'large') as large_orders,
    coalesce(sum(orders.amount), 0) as spent,
    max(orders.ordered_at) as last_order
from {{ ref('stg_customers') }} customers
left join {{ ref('orders') }} orders on orders.customer_id = customers.customer_id
group by all
