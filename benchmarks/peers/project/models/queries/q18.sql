select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) as quantity
from {{ ref('customer') }}
join {{ ref('orders') }} on c_custkey = o_custkey
join {{ ref('lineitem') }} on o_orderkey = l_orderkey
where o_orderkey in (select l_orderkey from {{ ref('lineitem') }} group by l_orderkey having sum(l_quantity) > 300)
group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
order by o_totalprice desc, o_orderdate, o_orderkey
limit 100
