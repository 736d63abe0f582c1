{# Generated events in place of an event stream. Each run adds the days since the last run. #}
{{ config(
    materialized='incremental',
    partition_by=['day(at)'],
    sorted_by=['customer_id', 'at'],
    table_options={'parquet_compression': 'zstd'},
    commit_message="events up to " ~ var('today'),
) }}

select
    id,
    1 + id * 7 % 12 as customer_id,
    element_at(array('visit', 'search', 'basket', 'order'), cast(1 + id * 5 % 4 as int)) as kind,
    timestamp_ntz'2026-02-01 00:00:00' + make_interval(0, 0, 0, 0, 0, cast(id * 17 as int)) as at
from range(4000)
where timestamp_ntz'2026-02-01 00:00:00' + make_interval(0, 0, 0, 0, 0, cast(id * 17 as int))
        < timestamp_ntz'{{ var("today") }}'
{% if is_incremental() %}
    and id > (select max(id) from {{ this }})
{% endif %}
