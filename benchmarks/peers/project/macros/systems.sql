{#- What the systems spell differently. Everything else of the project is the same text for all of them. -#}

{#- A folder of Parquet files that all systems load from. -#}
{% macro raw(name) -%}
  {%- set path = env_var('PEERS_DATA') ~ '/' ~ name ~ '.parquet' -%}
  {{ "read_parquet('" ~ path ~ "')" if target.type == 'duckdb' else 'parquet.`' ~ path ~ '`' }}
{%- endmacro %}

{#- A table as of a moment. -#}
{% macro as_of(relation, moment) -%}
  {%- if target.type == 'ducklake' -%} {{ ducklake_at(relation, timestamp=moment) }}
  {%- elif target.type == 'duckdb' -%} {{ relation }} at (timestamp => timestamptz '{{ moment }}')
  {%- else -%} {{ relation }} timestamp as of '{{ moment }}'
  {%- endif -%}
{%- endmacro %}

{#- The deletes of a refresh set: as in TPC-H, the orders of a range of keys. -#}
{% macro delete_old_orders() -%}
  {%- set number = env_var('PEERS_DELETE_BATCH') | int -%}
  {%- set width = env_var('PEERS_KEYS_PER_BATCH') | int -%}
  {%- if execute and number and is_incremental() -%}
    delete from {{ this }}
    where {{ 'o_orderkey' if this.identifier == 'orders' else 'l_orderkey' }}
    between {{ (number - 1) * width + 1 }} and {{ number * width }}
  {%- endif -%}
{%- endmacro %}

{#- dbt run-operation maintain: what each system brings, for the two tables that change. -#}
{% macro maintain() -%}
  {%- set system = env_var('PEERS_SYSTEM') -%}
  {%- for table in ['orders', 'lineitem'] -%}
    {%- if system == 'ducklake' -%}
      {%- do ducklake_call('ducklake_flush_inlined_data', table) -%}
      {%- do ducklake_call('ducklake_rewrite_data_files', table, none, {'delete_threshold': 0.01}) -%}
      {%- do ducklake_call('ducklake_merge_adjacent_files', table) -%}
    {%- elif system == 'duckdb' -%}
      {%- set name = "'" ~ target.database ~ "', '" ~ table ~ "', schema => '" ~ target.schema ~ "'" -%}
      {%- do run_query("call ducklake_flush_inlined_data('" ~ target.database ~ "', table_name => '" ~ table ~ "')") -%}
      {%- do run_query('call ducklake_rewrite_data_files(' ~ name ~ ', delete_threshold => 0.01)') -%}
      {%- do run_query('call ducklake_merge_adjacent_files(' ~ name ~ ')') -%}
    {%- elif system == 'iceberg' -%}
      {%- set name = "table => '" ~ target.schema ~ "." ~ table ~ "'" -%}
      {%- set options = "map('delete-ratio-threshold', '0.01', 'min-input-files', '2')" -%}
      {%- do run_query('call iceberg.system.rewrite_data_files(' ~ name ~ ', options => ' ~ options ~ ')') -%}
      {%- set now = modules.datetime.datetime.utcnow().strftime('%Y-%m-%d %H:%M:%S') -%}
      {%- do run_query("call iceberg.system.expire_snapshots(" ~ name ~ ", older_than => timestamp '" ~ now ~ "', retain_last => 1)") -%}
    {%- else -%}
      {%- do run_query('optimize ' ~ target.schema ~ '.' ~ table) -%}
      {%- do run_query('vacuum ' ~ target.schema ~ '.' ~ table ~ ' retain 0 hours') -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if system == 'ducklake' -%}
    {%- do ducklake_call('ducklake_expire_snapshots', none, none, {'older_than': '0 seconds'}) -%}
    {%- do ducklake_call('ducklake_cleanup_old_files', none, none, {'cleanup_all': true}) -%}
  {%- elif system == 'duckdb' -%}
    {%- do run_query("call ducklake_expire_snapshots('" ~ target.database ~ "', older_than => now())") -%}
    {%- do run_query("call ducklake_cleanup_old_files('" ~ target.database ~ "', cleanup_all => true)") -%}
  {%- endif -%}
{%- endmacro %}
