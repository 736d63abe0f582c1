{#- A clone is a view of the other relation. With two tables on the same files, the cleanup of one would delete the
    files of the other. -#}
{% macro ducklake__can_clone_table() -%}
  {{ return(False) }}
{%- endmacro %}

{#- Skips a relation that is its own source: a view in its place would replace the relation that it reads. -#}
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
