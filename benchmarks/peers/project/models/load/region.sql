select * from {{ raw('base/region') }}
