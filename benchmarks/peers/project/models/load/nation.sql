select * from {{ raw('base/nation') }}
