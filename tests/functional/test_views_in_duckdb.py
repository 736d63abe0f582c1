"""Views of models, seen from DuckDB: dbt's cross-database macros mean the same there, and the rest says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from dbt.tests.util import run_dbt_and_capture
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession

from .. import reference
from ..interop.answers import differences, of_duckdb, of_spark

FACTS = """{{ config(materialized='table') }}
select * from values
    (1, 'a,b,c', 'a', true, date'2024-02-29', timestamp'2024-02-29 23:30:00.5', array(1, 2), '12'),
    (2, '', 'it''s', false, date'2023-12-31', timestamp'2024-01-01 00:00:00', array(), '-7'),
    (3, 'é,_😀', null, null, date'2020-01-31', timestamp'2021-06-30 12:00:00', array(null), null),
    (4, null, 'c', true, null, null, null, '0')
    as t (id, s, w, ok, day, moment, numbers, digits)
"""
MACROS = {
    **{f"plus_{unit}": f"dbt.dateadd('{unit}', 3, 'day')" for unit in ("day", "week", "month", "quarter", "year")},
    **{
        f"minus_{unit}": f"dbt.dateadd('{unit}', -2, 'moment')" for unit in ("day", "month", "hour", "minute", "second")
    },
    "plus_column": "dbt.dateadd('day', 'id', 'day')",
    **{f"days_in_{u}": f"dbt.datediff('day', 'moment', '{u}')" for u in ("day", "week", "month", "quarter", "year")},
    **{f"clock_in_{u}": f"dbt.datediff('day', 'moment', '{u}')" for u in ("hour", "minute", "second")},
    **{f"trunc_{u}": f"dbt.date_trunc('{u}', 'moment')" for u in ("year", "quarter", "month", "week", "day", "hour")},
    "trunc_date": "dbt.date_trunc('month', 'day')",
    "last_day_of_month": "dbt.last_day('day', 'month')",
    "last_day_of_quarter": "dbt.last_day('day', 'quarter')",
    "concatenated": "dbt.concat(['s', \"'-'\", 'w'])",
    "part": "dbt.split_part('s', \"','\", 1)",
    "hashed": "dbt.hash('s')",
    "hashed_number": "dbt.hash('id')",
    "surrogate": "dbt.hash(dbt.concat(["
    + ", \"'-'\", ".join(f"\"coalesce(cast({c} as string), '_null_')\"" for c in ("id", "s", "day", "ok"))
    + "]))",
    "safe": "dbt.safe_cast('digits', api.Column.translate_type('integer'))",
    "as_text": "dbt.cast('id', dbt.type_string())",
    "as_number": "dbt.cast('id', dbt.type_numeric())",
    "as_double": "dbt.cast('id', dbt.type_float())",
    "as_bigint": "dbt.cast('id', dbt.type_bigint())",
    "position_of_b": "dbt.position(\"'b'\", 's')",
    "replaced": "dbt.replace('s', \"','\", \"';'\")",
    "right_2": "dbt.right('s', 2)",
    "long": "dbt.length('s')",
    "literal": "dbt.string_literal('x')",
    "escaped": 'dbt.string_literal(dbt.escape_single_quotes("it\'s"))',
    "ok_as_text": "dbt.cast_bool_to_text('ok')",
    "array_of_two": "dbt.array_construct(['id', '2'])",
    "array_longer": "dbt.array_append('numbers', 'id')",
    "arrays": "dbt.array_concat('numbers', 'numbers')",
    "date_literal": "dbt.date(2024, 2, 29)",
}
MODELS = {
    "facts.sql": FACTS,
    "macros.sql": "select id, "
    + ", ".join(f"{{{{ {call} }}}} as {name}" for name, call in MACROS.items())
    + " from {{ ref('facts') }}",
    "aggregates.sql": "select ok, {{ dbt.any_value('1') }} as one, {{ dbt.bool_or('id > 1') }} as b,"
    " {{ dbt.listagg('s', \"'|'\", 'order by id') }} as l, {{ dbt.listagg('w', \"','\", 'order by id', 1) }} as m"
    " from {{ ref('facts') }} group by 1",
    "numbers.sql": "{{ dbt.generate_series(12) }}",
    "days.sql": "{{ dbt.date_spine('day', \"cast('2024-02-27' as date)\", \"cast('2024-03-02' as date)\") }}",
    "left_over.sql": "select id from {{ ref('facts') }} {{ dbt.except() }} select 1",
    "common.sql": "select id from {{ ref('facts') }} {{ dbt.intersect() }} select 1",
    "over_views.sql": "select m.id, n.generated_number as n from {{ ref('macros') }} m"
    " join {{ ref('numbers') }} n on m.id = n.generated_number",
    "only_spark.sql": "select id, hash(s) as h from {{ ref('facts') }}",
}
VIEWS = ("macros", "aggregates", "numbers", "days", "left_over", "common", "over_views")


class TestViewsInDuckDB:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    def test_views_with_dbts_macros_mean_the_same_in_duckdb(self, project: Any, lake_folder: Path) -> None:
        _, log = run_dbt_and_capture(["run"])
        reports = {
            name: next(line for line in log.splitlines() if f".{name} " in line and "OK" in line)
            for name in (*VIEWS, "only_spark")
        }
        assert [name for name, line in reports.items() if "Spark only" in line] == ["only_spark"]
        catalog, data_path = f"sqlite:{lake_folder}/metadata.sqlite", f"{lake_folder}/data/"
        spark = SparkSession.getActiveSession()
        with LakeSession(catalog, data_path=data_path, spark=spark) as lake:
            connection = reference.connect(catalog, data_path)
            for name in VIEWS:
                relation = f"{project.test_schema}.{name}"
                theirs = of_duckdb(connection, f"from {relation}")
                found = list(differences(name, of_spark(lake, f"select * from {relation}"), theirs))
                assert not found, "\n".join(found)
            with pytest.raises(duckdb.Error, match=f"view {project.test_schema}.only_spark is written in Spark SQL"):
                connection.execute(f"from {project.test_schema}.only_spark")
            connection.close()
