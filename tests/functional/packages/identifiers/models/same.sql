{{ config(materialized='view') }}
select id, {{ identifiers.quote_name('end') }} from {{ ref('spans') }} where start = {{ identifiers.quote_name('end') }}
