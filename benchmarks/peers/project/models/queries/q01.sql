select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price,
    sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
    sum(cast(l_extendedprice * (1 - l_discount) as double) * (1 + cast(l_tax as double))) as sum_charge,
    avg(cast(l_quantity as double)) as avg_qty, avg(cast(l_extendedprice as double)) as avg_price,
    avg(cast(l_discount as double)) as avg_disc, count(*) as count_order
from {{ ref('lineitem') }}
where l_shipdate <= date '1998-09-02'
group by l_returnflag, l_linestatus
