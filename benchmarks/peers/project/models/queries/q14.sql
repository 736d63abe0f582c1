select 100.0 * cast(sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end) as double)
    / cast(sum(l_extendedprice * (1 - l_discount)) as double) as promo_revenue
from {{ ref('lineitem') }}
join {{ ref('part') }} on l_partkey = p_partkey
where l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-10-01'
