select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
from {{ ref('part') }}
join {{ ref('partsupp') }} on p_partkey = ps_partkey
join {{ ref('supplier') }} on s_suppkey = ps_suppkey
join {{ ref('nation') }} on s_nationkey = n_nationkey
join {{ ref('region') }} on n_regionkey = r_regionkey
where p_size = 15 and p_type like '%BRASS' and r_name = 'EUROPE'
    and ps_supplycost = (
        select min(other.ps_supplycost)
        from {{ ref('partsupp') }} as other
        join {{ ref('supplier') }} as other_supplier on other_supplier.s_suppkey = other.ps_suppkey
        join {{ ref('nation') }} as other_nation on other_supplier.s_nationkey = other_nation.n_nationkey
        join {{ ref('region') }} as other_region on other_nation.n_regionkey = other_region.r_regionkey
        where other.ps_partkey = p_partkey and other_region.r_name = 'EUROPE'
    )
order by s_acctbal desc, n_name, s_name, p_partkey
limit 100
