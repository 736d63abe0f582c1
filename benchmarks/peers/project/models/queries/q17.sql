select cast(sum(l_extendedprice) as double) / 7.0 as avg_yearly
from {{ ref('lineitem') }} as line
join {{ ref('part') }} on p_partkey = line.l_partkey
where p_brand = 'Brand#23' and p_container = 'MED BOX'
    and cast(line.l_quantity as double) < (
        select 0.2 * avg(cast(other.l_quantity as double)) from {{ ref('lineitem') }} as other where other.l_partkey = p_partkey
    )
