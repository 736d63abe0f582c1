{#- A clone is a view of the other relation: two tables on one set of files would lose them to each other's clean-up. -#}
{% macro ducklake__can_clone_table() -%}
  {{ return(False) }}
{%- endmacro %}

{#- A view in place of the relation that it reads would lose it. -#}
{% materialization clone, adapter='ducklake' %}
  {%- if defer_relation and defer_relation.render() | lower == this.render() | lower -%}
    {%- if load_cached_relation(this) is none -%}
      {{ exceptions.raise_compiler_error(this ~ " can not be cloned: the state names itself, and it is not there") }}
    {%- endif -%}
    {{ log("Target relation and defer relation are the same, skipping clone for relation: " ~ this) }}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {{ return(context['materialization_clone_default']()) }}
{% endmaterialization %}
