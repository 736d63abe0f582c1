{% materialization view, adapter='ducklake' %}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- set existing_relation = load_cached_relation(this) -%}

  {%- if ducklake_is_reused(sql) -%}
    {{ return({'relations': [target_relation]}) }}
  {%- endif -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% do ducklake_run_header() %}
  {%- call statement('main') -%}
    {{ get_create_view_as_sql(target_relation, sql) }}
  {%- endcall -%}
  {% do ducklake_finish_node(target_relation, existing_relation) %}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
