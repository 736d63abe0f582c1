select id as order_id, customer_id, status, ordered_at
from {{ ref('raw_orders') }}
where ordered_at < timestamp_ntz'{{ var("today") }}'
