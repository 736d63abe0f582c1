select id as customer_id, name, country, signed_up
from {{ ref('raw_customers') }}
