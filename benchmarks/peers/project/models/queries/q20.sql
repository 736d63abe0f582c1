select s_name, s_address
from {{ ref('supplier') }}
join {{ ref('nation') }} on s_nationkey = n_nationkey
where n_name = 'CANADA' and s_suppkey in (
    select ps_suppkey
    from {{ ref('partsupp') }}
    where ps_partkey in (select p_partkey from {{ ref('part') }} where p_name like 'forest%')
        and ps_availqty > (
            select 0.5 * sum(l_quantity)
            from {{ ref('lineitem') }}
            where l_partkey = ps_partkey and l_suppkey = ps_suppkey
                and l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
        )
)
