select s_name, count(*) as numwait
from {{ ref('supplier') }}
join {{ ref('lineitem') }} as l1 on s_suppkey = l1.l_suppkey
join {{ ref('orders') }} on o_orderkey = l1.l_orderkey
join {{ ref('nation') }} on s_nationkey = n_nationkey
where o_orderstatus = 'F' and l1.l_receiptdate > l1.l_commitdate and n_name = 'SAUDI ARABIA'
    and exists (
        select 1 from {{ ref('lineitem') }} as l2 where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey
    )
    and not exists (
        select 1
        from {{ ref('lineitem') }} as l3
        where l3.l_orderkey = l1.l_orderkey and l3.l_suppkey <> l1.l_suppkey and l3.l_receiptdate > l3.l_commitdate
    )
group by s_name
order by numwait desc, s_name
limit 100
