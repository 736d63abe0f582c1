"""What macros of packages build on: dispatch by way of Spark's, and what they ask of the adapter."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

MACROS = """
{% macro greet() %}{{ return(adapter.dispatch('greet', 'test')()) }}{% endmacro %}
{% macro default__greet() %}'nobody in particular'{% endmacro %}
{% macro spark__greet() %}'somebody on Spark'{% endmacro %}

{% macro all_but(relation, but) %}
  {%- set names = adapter.get_columns_in_relation(relation) | map(attribute='name') | reject('in', but) | list -%}
  {%- for name in names %}{{ adapter.quote(name) }}{{ ', ' if not loop.last }}{% endfor -%}
{% endmacro %}

{% macro values_of(relation, column) %}
  {%- set query = 'select distinct ' ~ column ~ ' from ' ~ relation ~ ' order by 1' -%}
  {{ return(run_query(query).columns[0].values() if execute else []) }}
{% endmacro %}

{% macro on_top_of_each_other(relations) %}
  {%- set names = {} -%}
  {%- for relation in relations -%}
    {%- for column in adapter.get_columns_in_relation(relation) -%}
      {% do names.update({column.name: column.data_type}) %}
    {%- endfor -%}
  {%- endfor -%}
  {%- for relation in relations -%}
    {%- set there = adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
    select {% for name, type in names.items() -%}
      {{ adapter.quote(name) if name in there else 'cast(null as ' ~ type ~ ')' }} as {{ adapter.quote(name) }}
      {{- ', ' if not loop.last }}
    {%- endfor %}
    from {{ relation }}
    {% if not loop.last %} union all {% endif %}
  {%- endfor -%}
{% endmacro %}

{% macro clean(name) %}
  {% do run_query('create table ' ~ target.schema ~ '.' ~ name ~ ' as select 1 as id') %}
  {% do run_query('drop table ' ~ target.schema ~ '.' ~ name) %}
  {{ log('rows: ' ~ run_query('select count(*) from ' ~ ref('facts')).rows[0][0], info=True) }}
{% endmacro %}
"""

FACTS = """
{{ config(materialized='table') }}
select 1 as id, 'a' as kind, date'2026-01-30' as day, cast(1.5 as decimal(5, 2)) as amount
union all select 2, 'b', date'2026-02-01', 2.5
union all select 3, 'b', date'2026-02-01', null
"""

PIVOT = """
{{ config(materialized='table') }}
-- depends_on: {{ ref('facts') }}
select day
  {% for kind in values_of(ref('facts'), 'kind') %}
  , sum(case when kind = '{{ kind }}' then 1 else 0 end) as {{ adapter.quote('kind ' ~ kind) }}
  {% endfor %}
from {{ ref('facts') }} group by day
"""

DATES = """
{{ config(materialized='table') }}
select
    id,
    {{ dbt.dateadd('month', 1, 'day') }} as next_month,
    {{ dbt.datediff("date'2026-01-31'", 'cast(null as date)', 'day') }} as unknown,
    {{ dbt.date_trunc('month', 'day') }} as month,
    {{ dbt.hash("concat_ws('-', id, kind)") }} as key,
    {{ dbt.safe_cast("'x'", type_string()) }} as text,
    {{ greet() }} as greeting
from {{ ref('facts') }}
where {{ dbt.datediff("date'2026-01-30'", 'day', 'day') }} >= 0
"""


class TestPackages:
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"package.sql": MACROS}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "facts.sql": FACTS,
            "star.sql": "select {{ all_but(ref('facts'), ['amount']) }} from {{ ref('facts') }}",
            "pivot.sql": PIVOT,
            "dates.sql": DATES,
            "stack.sql": "{{ on_top_of_each_other([ref('facts'), ref('star')]) }}",
        }

    def test_models_on_such_macros_are_built(self, project: Any) -> None:
        run_dbt(["run"])
        ask = lambda sql: project.run_sql(sql, fetch="all")  # noqa: E731
        assert ask("select * from {schema}.star where id = 1")[0][:2] == (1, "a")
        assert ask("select `kind a`, `kind b` from {schema}.pivot order by day") == [(1, 0), (0, 2)]
        assert ask("select count(*), count(amount) from {schema}.stack") == [(6, 2)]
        greeting, month, unknown = ask("select greeting, month, unknown from {schema}.dates where id = 2")[0]
        assert (greeting, str(month)[:10], unknown) == ("somebody on Spark", "2026-02-01", None)
        assert ask("select length(key) from {schema}.dates where id = 1") == [(32,)]

    def test_an_operation_lasts_without_a_commit(self, project: Any) -> None:
        run_dbt(["run", "-s", "facts"])
        _, log = run_dbt_and_capture(["run-operation", "clean", "--args", "{name: gone}"])
        assert "rows: 3" in log
        messages = project.run_sql(
            "select commit_message from ducklake_snapshots() order by snapshot_id desc limit 2", fetch="all"
        )
        assert messages == [("dbt run-operation: macro_clean",)] * 2
