select * from {{ raw('base/partsupp') }}
