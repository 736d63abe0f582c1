select * from {{ raw('base/supplier') }}
