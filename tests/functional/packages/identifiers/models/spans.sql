{{ config(materialized='table') }}
select 1 as id, 'jan' as start, 'feb' as {{ identifiers.quote_name('end') }}
union all select 2, 'mar', 'mar'
