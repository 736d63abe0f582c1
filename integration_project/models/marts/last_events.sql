{# Reads only the changes of last_seen, whose runs read only the new rows of events: each run costs what changed. #}
{{ config(materialized='incremental', unique_key='last_event') }}

with changes as (
    select last_event, sum(if(change_type in ('insert', 'update_postimage'), 1, -1)) as customers
    from {{ ducklake_new_changes(ref('last_seen')) }}
    group by last_event
)

{% if is_incremental() -%}
select changes.last_event, coalesce(totals.customers, 0) + changes.customers as customers
from changes
left join {{ this }} totals on totals.last_event = changes.last_event
{%- else -%}
select * from changes
{%- endif %}
