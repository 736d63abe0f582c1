{#- A table without rows: hooks fill it. -#}
{% macro empty_table(columns) -%}
  select {% for name, type in columns.items() -%}
    cast(null as {{ type }}) as {{ name }}{{ ', ' if not loop.last }}
  {%- endfor %}
  where 1 = 0
{%- endmacro %}

{% macro table_of(name) -%}
  {%- set node = graph.nodes['model.observer.' ~ name] -%}
  {% do return(adapter.get_relation(database=node.database, schema=node.schema, identifier=node.alias)) %}
{%- endmacro %}

{% macro temporary(relation, suffix) -%}
  {%- set stamp = modules.datetime.datetime.utcnow().strftime('%Y%m%d%H%M%S%f') -%}
  {% do return(relation.incorporate(path={'schema': none, 'identifier': relation.identifier ~ suffix ~ stamp})) %}
{%- endmacro %}

{% macro create_as(temporary, relation, query, drop_first=false, commit=false) -%}
  {%- if drop_first -%}{% do drop_relation_if_exists(relation) %}{%- endif -%}
  {% do run_query(
    ('create or replace temporary view ' if temporary else 'create table ') ~ relation ~ ' as ' ~ query
  ) %}
  {%- if commit -%}{% do adapter.commit() %}{%- endif -%}
{%- endmacro %}

{% macro literal(value) -%}
  {%- if value is none -%} null
  {%- elif value is number -%} {{ value }}
  {%- else -%} '{{ value | string | replace('\\', '\\\\') | replace("'", "\\'") | replace('\n', '\\n') }}'
  {%- endif -%}
{%- endmacro %}

{#- Rows are mappings. They are written a few at a time, since a statement has a length that engines accept. -#}
{% macro insert_rows(relation, rows, chunk=2) -%}
  {%- set columns = adapter.get_columns_in_relation(relation) -%}
  {%- for start in range(0, rows | length, chunk) -%}
    {%- set texts = [] -%}
    {%- for row in rows[start:start + chunk] -%}
      {%- set values = [] -%}
      {%- for column in columns -%}
        {%- set value = observer.literal(row.get(column.name)) | trim -%}
        {% do values.append('cast(' ~ value ~ ' as timestamp)' if column.data_type == 'timestamp' else value) %}
      {%- endfor -%}
      {% do texts.append('(' ~ values | join(', ') ~ ')') %}
    {%- endfor -%}
    {% do run_query(
      'insert into ' ~ relation ~ ' (' ~ columns | map(attribute='quoted') | join(', ') ~ ') values '
      ~ texts | join(', ')
    ) %}
  {%- endfor -%}
{%- endmacro %}

{#- A table of its own for rows, by a bare name: not every engine has temporary tables. -#}
{% macro intermediate(like, rows, suffix, columns='*') -%}
  {%- set relation = observer.temporary(like, suffix).incorporate(type='table') -%}
  {% do observer.create_as(false, relation, 'select ' ~ columns ~ ' from ' ~ like ~ ' where 1 = 0') %}
  {% do observer.insert_rows(relation, rows) %}
  {% do return(relation) %}
{%- endmacro %}

{% macro delete_and_insert(relation, key, rows) -%}
  {%- set deleted = observer.intermediate(relation, rows, '__deleted_', key) -%}
  {%- set inserted = observer.intermediate(relation, rows, '__inserted_') -%}
  {% do run_query(
    'merge into ' ~ relation ~ ' as kept using ' ~ deleted ~ ' as gone on kept.' ~ key ~ ' = gone.' ~ key
    ~ ' or (kept.' ~ key ~ ' is null and gone.' ~ key ~ ' is null) when matched then delete'
  ) %}
  {% do run_query('insert into ' ~ relation ~ ' select * from ' ~ inserted) %}
  {% do adapter.drop_relation(deleted) %}
  {% do adapter.drop_relation(inserted) %}
{%- endmacro %}
