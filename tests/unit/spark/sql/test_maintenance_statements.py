"""The statements of Delta and Iceberg that maintain tables: as they are parsed, and what is refused."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.ducklake.spark.sql.ddl import Passthrough
from dbt.adapters.ducklake.spark.sql.maintenance_statements import (
    Analyze,
    DescribeDetail,
    DescribeHistory,
    Optimize,
    Restore,
    UnreadStatement,
    Vacuum,
)
from dbt.adapters.ducklake.spark.sql.statements import DescribeTable, parse

from .helpers import message_of, parses, refuses

MAINTENANCE = (Analyze, DescribeDetail, DescribeHistory, Optimize, Restore, Vacuum)
TEXT = "the statement itself"


@parses(
    ("optimize t;", Optimize(("t",), TEXT)),
    ("optimize table", Optimize(("table",), TEXT)),
    ("OPTIMIZE TABLE a.b.`c d`", Optimize(("a", "b", "c d"), TEXT)),
    (
        "optimize t where d = 'zorder by' and (e > 3) zorder by (a, s.b)",
        Optimize(
            ("t",),
            TEXT,
            "d = 'zorder by' and (e > 3)",
            ("a", "s.b"),
        ),
    ),
    ("optimize t zorder by a, b", Optimize(("t",), TEXT, None, ("a", "b"))),
    ("optimize '/data/events'", Passthrough("optimize '/data/events'")),
    ("vacuum", Vacuum(None, TEXT)),
    ("vacuum dry run", Vacuum(None, TEXT, None, True)),
    ("vacuum retain 1.5 hours", Vacuum(None, TEXT, 1.5)),
    ("vacuum retain", Vacuum(("retain",), TEXT)),
    ("VACUUM TABLE lake.main.t RETAIN 0 HOURS DRY RUN", Vacuum(("lake", "main", "t"), TEXT, 0.0, True)),
    ("desc history t", DescribeHistory(("t",), TEXT)),
    ("describe history", DescribeTable(("history",))),
    ("describe history.t", DescribeTable(("history", "t"))),
    ("describe table history id", DescribeTable(("history",), column=("id",))),
    ("describe detail `a b`.c", DescribeDetail(("a b", "c"), TEXT)),
    ("restore t to version as of 3", Restore(("t",), TEXT, 3)),
    (
        "restore table t timestamp as of now() - interval 1 day",
        Restore(("t",), TEXT, None, "now() - interval 1 day"),
    ),
    ("restore schema s to version as of '7'", Restore(("s",), TEXT, 7, None, "schema")),
    ("analyze table t compute statistics", Analyze(("t",), TEXT)),
    ("analyze table t compute statistics for all columns", Analyze(("t",), TEXT)),
    ("analyze table t compute statistics for columns a, `b c` noscan", Analyze(("t",), TEXT, ("a", "b c"), True)),
    ("analyze tables in s compute statistics", Passthrough("analyze tables in s compute statistics")),
)
def test_statements_of_other_formats_are_read(sql: str, expected: object) -> None:
    statement = parse(sql)
    if isinstance(statement, MAINTENANCE):
        assert statement.text == sql.rstrip(";")
        statement = replace(statement, text=TEXT)
    assert statement == expected


@refuses(
    ("optimize t full", "OPTIMIZE t: expected the end of the statement, found full at 1:12"),
    ("optimize t where", "expected a predicate on partition columns, found the end"),
    ("optimize t zorder (a)", "expected BY, found ( at 1:19"),
    ("vacuum t full", "VACUUM t: FULL at 1:10 is not supported: the catalog knows the files of a lake"),
    ("vacuum t using inventory (select 1)", "USING at 1:10 is not supported"),
    ("vacuum t retain 'x' hours", "expected a number of hours, found 'x' at 1:17"),
    ("vacuum t retain 7 days", "expected HOURS, found days"),
    ("describe history t 5", "expected the end of the statement, found 5"),
    ("restore t", "RESTORE t: expected TO VERSION AS OF or TO TIMESTAMP AS OF, found the end of the statement"),
    ("restore t to version as of x", "expected the number of a snapshot, found x"),
    ("analyze table t partition (d = 1) compute statistics", "a lake's partitions are values of rows"),
    ("analyze table t calculate statistics", "expected COMPUTE STATISTICS, found calculate at 1:17"),
)
def test_what_a_lake_does_not_take_is_kept_for_spark_with_the_error(sql: str, message: str) -> None:
    statement = parse(sql)
    assert isinstance(statement, UnreadStatement)
    assert statement.text == sql
    assert message in str(statement.error)


@refuses(
    ("optimize", "OPTIMIZE: expected a table, found the end of the statement at 1:9"),
    ("vacuum 5", "VACUUM: expected a table or a lake, found 5"),
    ("restore", "expected a table"),
    ("vacuum retain 5", "VACUUM: expected HOURS"),
)
def test_a_statement_without_a_name_is_refused(sql: str, message: str) -> None:
    assert message in message_of(sql)
