select * from {{ raw('base/customer') }}
