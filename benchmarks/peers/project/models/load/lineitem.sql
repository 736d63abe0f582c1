{{ config(materialized='incremental', incremental_strategy='merge', unique_key=['l_orderkey', 'l_linenumber'], post_hook="{{ delete_old_orders() }}") }}

{% if is_incremental() -%}
select * from {{ raw(env_var('PEERS_LINEITEM_BATCH') ~ '/lineitem') }}
{%- else -%}
select * from {{ raw('base/lineitem') }}
{%- endif %}
