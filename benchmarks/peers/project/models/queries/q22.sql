with prefixed as (
    select substring(c_phone, 1, 2) as cntrycode, c_acctbal, c_custkey
    from {{ ref('customer') }}
    where substring(c_phone, 1, 2) in ('13', '31', '23', '29', '30', '18', '17')
)
select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal
from prefixed
where cast(c_acctbal as double) > (select avg(cast(c_acctbal as double)) from prefixed where c_acctbal > 0)
    and not exists (select 1 from {{ ref('orders') }} where o_custkey = c_custkey)
group by cntrycode
