{{ config(
    materialized='table',
    partition_by={'field': 'id', 'data_type': 'int64', 'range': {'start': 0, 'end': 100, 'interval': 10}},
    clustered_by=['id'], buckets=4, liquid_clustered_by='id',
    dist='id', sort=['id'], transient=true, engine='MergeTree()', order_by='id',
) }}
select * from {{ ref('by_month') }}
