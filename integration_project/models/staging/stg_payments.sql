select id as payment_id, order_id, method, cast(amount_cents / 100 as decimal(10, 2)) as amount
from {{ ref('raw_payments') }}
