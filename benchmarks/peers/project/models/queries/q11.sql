with german as (
    select ps_partkey, ps_supplycost * ps_availqty as worth
    from {{ ref('partsupp') }}
    join {{ ref('supplier') }} on ps_suppkey = s_suppkey
    join {{ ref('nation') }} on s_nationkey = n_nationkey
    where n_name = 'GERMANY'
)
select ps_partkey, sum(worth) as worth
from german
group by ps_partkey
having cast(sum(worth) as double) > (select cast(sum(worth) as double) * 0.0001 / {{ env_var('PEERS_SCALE') }} from german)
