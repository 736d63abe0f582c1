select * from {{ raw('base/part') }}
