"""Names in double quotes, in a session with `spark.sql.ansi.doubleQuotedIdentifiers`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.spark.sql.statements import double_quoted_as_names

from .helpers import content, rows, run

SETTING = "spark.sql.ansi.doubleQuotedIdentifiers"


@pytest.fixture
def names_in_double_quotes(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(SETTING, "true")
    yield
    spark.conf.unset(SETTING)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ('select "end" from "a b"."t"', "select `end` from `a b`.`t`"),
        ("""select 'say "hi"', "it's" from t""", """select 'say "hi"', `it's` from t"""),
        ('select "a""b`c", `x"y`, r"z" from t -- "no"', 'select `a"b``c`, `x"y`, r"z" from t -- "no"'),
        ('select 1 /* "no" */ as "one"', 'select 1 /* "no" */ as `one`'),
        ('select "never closed', 'select "never closed'),
    ],
)
def test_double_quotes_become_backquotes(sql: str, expected: str) -> None:
    assert double_quoted_as_names(sql) == expected


@pytest.mark.usefixtures("names_in_double_quotes")
def test_statements_take_names_in_double_quotes(lake: LakeSession) -> None:
    run(lake, 'create table "t" ("start" string, "end" string)', "insert into t values ('a', 'b')")
    run(lake, 'insert into "main"."t" ("end", "start") values (\'end\', \'end\')')
    # Files are skipped by literals only: the second file alone has the text.
    assert rows(lake, 'select "end" from t where start = "end"') == [("end",)]
    assert rows(lake, 'select start from "t" where "end" = \'b\'') == [("a",)]
    run(lake, 'update t set "end" = "start" where "end" = \'b\'')
    run(lake, 'merge into t using (select \'a\' as "end") as s on t."end" = s."end" when matched then delete')
    assert content(lake) == [("end", "end")]


@pytest.mark.usefixtures("names_in_double_quotes")
def test_a_view_means_the_same_in_other_sessions(lake: LakeSession, spark: SparkSession) -> None:
    run(lake, "create table t as select 'a' as v, 'b' as `end`", 'create view w as select v, "end" from t')
    spark.conf.unset(SETTING)
    assert rows(lake, "select * from w") == [("a", "b")]
    (view,) = lake.state().views.values()
    assert '"end"' in view.sql
    assert "'end'" not in view.sql


def test_without_the_setting_they_are_strings(lake: LakeSession) -> None:
    run(lake, "create table t as select 'a' as `end`")
    assert rows(lake, 'select "end" from t where `end` = "a"') == [("end",)]
