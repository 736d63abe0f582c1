{#- A clone is a view of the other relation: two tables on one set of files would lose them to each other's clean-up. -#}
{% macro ducklake__can_clone_table() -%}
  {{ return(False) }}
{%- endmacro %}

{#- A view in place of the relation that it reads would lose it. -#}
{% materialization clone, adapter='ducklake' %}
  {%- if defer_relation and defer_relation.render() | lower == this.render() | lower -%}
    {{ log("Target relation and defer relation are the same, skipping clone for relation: " ~ this) }}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {{ return(context['materialization_clone_default']()) }}
{% endmaterialization %}
