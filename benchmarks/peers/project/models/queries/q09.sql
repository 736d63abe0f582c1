select nation, o_year, sum(amount) as sum_profit
from (
    select n_name as nation, extract(year from o_orderdate) as o_year,
        l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount
    from {{ ref('part') }}
    join {{ ref('lineitem') }} on p_partkey = l_partkey
    join {{ ref('supplier') }} on s_suppkey = l_suppkey
    join {{ ref('partsupp') }} on ps_suppkey = l_suppkey and ps_partkey = l_partkey
    join {{ ref('orders') }} on o_orderkey = l_orderkey
    join {{ ref('nation') }} on s_nationkey = n_nationkey
    where p_name like '%green%'
) as profit
group by nation, o_year
