select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
from {{ ref('customer') }}
join {{ ref('orders') }} on c_custkey = o_custkey
join {{ ref('lineitem') }} on l_orderkey = o_orderkey
join {{ ref('supplier') }} on l_suppkey = s_suppkey and c_nationkey = s_nationkey
join {{ ref('nation') }} on s_nationkey = n_nationkey
join {{ ref('region') }} on n_regionkey = r_regionkey
where r_name = 'ASIA' and o_orderdate >= date '1994-01-01' and o_orderdate < date '1995-01-01'
group by n_name
