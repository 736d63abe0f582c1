{{ config(materialized='table') }}

select count(*) as orders, sum(o_totalprice) as total
from {{ as_of(ref('orders'), env_var('PEERS_BEFORE') or '2000-01-01 00:00:00') }}
