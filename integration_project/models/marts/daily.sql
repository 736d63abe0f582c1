{{ config(
    materialized='incremental',
    post_hook="comment on column {{ this }}.visits is 'Events of the kind visit'",
) }}

with events as (
    select date(at) as day, count_if(kind = 'visit') as visits
    from {{ ref('events') }}
    group by date(at)
)

select day, visits, current_timestamp() as counted_at
from events
{% if is_incremental() %}
where day > (select max(day) from {{ this }})
{% endif %}
