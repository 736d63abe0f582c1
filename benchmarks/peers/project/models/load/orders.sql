{{ config(materialized='incremental', incremental_strategy='merge', unique_key='o_orderkey', post_hook="{{ delete_old_orders() }}") }}

{% if is_incremental() -%}
select * from {{ raw(env_var('PEERS_ORDERS_BATCH') ~ '/orders') }}
{%- else -%}
select * from {{ raw('base/orders') }}
{%- endif %}
