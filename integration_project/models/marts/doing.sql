{# Kept by what changed in last_seen, whose own runs look at what is new in events: such a chain costs what changed. #}
{{ config(materialized='incremental', unique_key='did') }}

with changes as (
    select did, sum(if(change_type in ('insert', 'update_postimage'), 1, -1)) as customers
    from {{ ducklake_new_changes(ref('last_seen')) }}
    group by did
)

{% if is_incremental() -%}
select changes.did, coalesce(known.customers, 0) + changes.customers as customers
from changes
left join {{ this }} known on known.did = changes.did
{%- else -%}
select * from changes
{%- endif %}
