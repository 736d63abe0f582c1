"""Errors: names that do not exist, and messages in the words of the query's author."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import NotFoundError
from dbt.adapters.ducklake.spark.engine.errors import message_of

from .helpers import files, rows, run, snapshots

SETUP = (
    "create schema raw",
    "create table orders (id int, name string)",
    "insert into orders values (1, 'a')",
    "create table raw.payments as select 1 as id, 'x' as note",
    "create table `odd name` as select 1 as id",
)


@pytest.mark.parametrize("query", ["select * from orders", "select count(*) from orders", "delete from orders"])
def test_a_file_that_is_gone_is_named(lake: LakeSession, query: str) -> None:
    run(lake, "create table orders as select id from range(11)")
    ((file, _),) = files(lake, "orders")
    Path(file.removeprefix("file://")).unlink()
    with pytest.raises(NotFoundError, match=re.escape(f"the file {file.removeprefix('file://')} is gone, though")):
        lake.execute(f"{query} where id > 3").arrow()


MISSING_NAMES = [
    ("select * from ordrs", "there is no table or view main.ordrs HERE; did you mean main.orders?"),
    ("select * from main.ordrs", "there is no table or view main.ordrs HERE; did you mean main.orders?"),
    ("select * from lake.main.ordrs", "there is no table or view main.ordrs HERE; did you mean main.orders?"),
    ("select * from `lake`.`MAIN`.`Odd names`", "no table or view main.Odd names HERE; did you mean main.odd name"),
    ("with c as (select 1) select * from c join payments", "main.payments HERE; did you mean raw.payments?"),
    ("select 1 where exists (select 1 from lake.raw.orders)", "raw.orders HERE; did you mean main.orders?"),
    (
        "select * from rw.payments",
        "no table or view rw.payments HERE, and no schema rw; did you mean raw.payments?",
    ),
    ("select * from lake.rw.zebra", "no table or view rw.zebra HERE, and no schema rw; did you mean raw?"),
    ("select * from default.orders", "default.orders HERE nor in Spark's database default, and no schema default"),
    ("select * from lak.main.orders", "there is no lake lak (the lakes here: lake); did you mean lake?"),
    ("select * from warehouse.main.orders", "there is no lake warehouse (the lakes here: lake); attach it first"),
    ("select * from warehouse.main.orders version as of 1", "there is no lake warehouse"),
    ("select * from lake.main.orders.x", "lake.main.orders.x is no name of a table or view"),
    ("select lake.main.twice(1)", "there is no function main.twice HERE"),
    ("create or replace temp view x as select * from ordrs", "there is no table or view main.ordrs HERE"),
    ("create table x as select * from ordrs", "there is no table or view main.ordrs HERE"),
    ("insert into ordrs values (1, 'a')", "there is no table or view main.ordrs HERE; did you mean main.orders?"),
    ("insert into orders select * from ordrs", "there is no table or view main.ordrs HERE"),
    ("update ordrs set id = 1", "there is no table or view main.ordrs HERE"),
    ("delete from lake.main.ordrs", "there is no table or view main.ordrs HERE"),
    ("delete from orders where id in (select id from ordrs)", "there is no table or view main.ordrs HERE"),
    (
        "merge into ordrs o using orders s on o.id = s.id when matched then delete",
        "no table or view main.ordrs HERE",
    ),
    (
        "merge into orders o using ordrs s on o.id = s.id when matched then delete",
        "no table or view main.ordrs HERE",
    ),
    ("describe ordrs", "there is no table or view main.ordrs HERE; did you mean main.orders?"),
    ("show columns in rw.payments", "no table or view rw.payments HERE, and no schema rw"),
    ("show tables in rw", "there is no schema rw HERE; did you mean raw?"),
    ("drop table ordrs", "there is no table or view main.ordrs HERE; did you mean main.orders?"),
    ("use rw", "there is no schema rw HERE; did you mean raw?"),
    ("use lak.main", "there is no lake lak (the lakes here: lake); did you mean lake?"),
    ("create table rw.x (a int)", "there is no schema rw HERE; did you mean raw?"),
    ("select * from ordrs version as of 2", "no table main.ordrs at snapshot 2 of"),
    ("select * from ducklake_list_files('ordrs')", "did you mean main.orders?"),
]


def test_a_missing_name_is_told_with_the_nearest_ones(lake: LakeSession) -> None:
    run(lake, *SETUP)
    here = f" in lake lake at snapshot {snapshots(lake)}"
    for statement, message in MISSING_NAMES:
        with pytest.raises(NotFoundError) as raised:
            lake.execute(statement)
        assert message.replace(" HERE", here) in str(raised.value), statement
        assert "\n" not in str(raised.value)


def test_a_view_says_which_of_its_tables_is_missing(lake: LakeSession) -> None:
    run(lake, *SETUP, "create view v as select * from raw.payments", "drop table raw.payments")
    with pytest.raises(NotFoundError, match=r"view main\.v can not be read: there is no table or view raw\.payments"):
        lake.execute("select * from v")


def test_errors_about_what_belongs_to_spark_stay_its_own(lake: LakeSession) -> None:
    run(lake, *SETUP)
    for query, condition in [
        ("select * from parquet.`/nowhere`", "PATH_NOT_FOUND"),
        ("select * from spark_catalog.default.nope", "TABLE_OR_VIEW_NOT_FOUND"),
        ("select * from global_temp.nope", "TABLE_OR_VIEW_NOT_FOUND"),
        ("select nope from orders", "UNRESOLVED_COLUMN"),
        ("select * from orders o, lateral (select nope(1))", "UNRESOLVED_ROUTINE"),
    ]:
        with pytest.raises(PySparkException, match=condition):
            lake.execute(query)


def test_names_that_spark_knows_keep_working(lake: LakeSession, spark: SparkSession, tmp_path: Path) -> None:
    run(lake, *SETUP)
    spark.range(3).createOrReplaceTempView("of_spark")
    spark.range(4).createOrReplaceGlobalTempView("of_all")
    spark.range(5).write.parquet(f"{tmp_path}/five")
    spark.sql("create database if not exists warehouse")
    spark.sql("create table if not exists warehouse.six using parquet as select * from range(6)")
    for catalog in ("catalog_of_spark", "lake"):  # a catalog of Spark may have the name of a lake
        spark.conf.set(f"spark.sql.catalog.{catalog}", "a.class.that.is.not.Here")
    try:
        for name, count in [
            ("of_spark", 3),
            ("global_temp.of_all", 4),
            (f"parquet.`{tmp_path}/five`", 5),
            ("warehouse.six", 6),
            ("spark_catalog.warehouse.six", 6),
        ]:
            assert rows(lake, f"select count(*) from {name}, orders") == [(count,)], name
        for name in ("catalog_of_spark.main.orders", "lake.db.orders"):
            with pytest.raises(Exception, match="CANNOT_LOAD_CATALOG"):
                lake.execute(f"select * from {name}")
    finally:
        spark.conf.unset("spark.sql.catalog.catalog_of_spark")
        spark.conf.unset("spark.sql.catalog.lake")
        spark.sql("drop database warehouse cascade")
        spark.catalog.dropGlobalTempView("of_all")
        spark.catalog.dropTempView("of_spark")


TYPICAL_ERRORS = [
    (
        "select nope from orders",
        "`nope` cannot be resolved. Did you mean",
        "[`id`, `name`]. SQLSTATE: 42703; line 1 pos 7",
    ),
    ("select name\nfrom main.orders where nope = 1", "[`id`, `name`]. SQLSTATE: 42703; line 2 pos 23"),
    ("select id from orders join raw.payments on true", "could be: [`orders`.`id`, `payments`.`id`]", "; line 1 pos 7"),
    ("select 1 +\nfrom orders ====", "Syntax error", "\n\n== SQL ==\nselect 1 +\nfrom orders ====\n"),
    (
        "select main.orders.id / 0 as x from lake.main.orders",
        "DIVIDE_BY_ZERO",
        "(line 1, position 8) ==\nselect main.orders.id / 0 as x from lake.main.orders\n       ^^^^^^^^^^^^^^^^^^",
    ),
    (
        "select o.name,\n  cast(o.name as int) as n from raw.payments join orders o using (id)",
        "The value 'a' of the type \"STRING\"",
        "(line 2, position 3) ==\n  cast(o.name as int) as n from raw.payments join ord...\n  ^^^^^^^^^^^^^^^^^^^",
    ),
    ("insert into orders select name, id from orders", 'Column or field `id` is of type "STRING'),
    (
        "insert into orders select id / 0, 'x' from orders",
        "== SQL (line 1, position 8) ==\nselect id / 0, 'x' from orders\n       ^^^^^^",
    ),
    (
        "update orders set id = nope",
        "[`orders`.`id`, `orders`.`name`]|[`id`, `name`]",
        "SQLSTATE: 42703; line 1 pos 23",
    ),
    ("update orders set id = 1 +", "Syntax error at or near end of input", "update orders set id = 1 +\n---------"),
    (
        "update orders set\n id = id / 0 where name = 'a'",
        "== SQL (line 2, position 7) ==\n id = id / 0 where name = 'a'\n      ^^^^^^",
    ),
    (
        "delete from orders where cast(name as int) = 1",
        "== SQL (line 1, position 26) ==\ndelete from orders where cast(name as int) = 1\n",
    ),
    (
        "merge into orders using (select 1 as id, 'x' as note) on orders.id = nope when matched then delete",
        "[`orders`.`id`, `orders`.`name`, `id`, `note`]|[`orders`.`name`, `orders`.`id`, `note`, `id`]",
        "SQLSTATE: 42703; line 1 pos 69",
    ),
    (
        "merge into orders o using raw.payments p on o.id = p.id when matched then update set id = cast(p.note as int)",
        "== SQL (line 1, position 91) ==\n...en matched then update set id = cast(p.note as int)\n",
    ),
    (
        "merge into orders o using raw.payments p on o.id = -p.id when not matched then insert (id) values (p.id / 0)",
        "== SQL (line 1, position 100) ==\n...atched then insert (id) values (p.id / 0)\n",
    ),
    (
        "merge into orders o using raw.payments p on o.id = p.id when matched then update set id = p.note",
        'Column or field `id` is of type "STRING" while it\'s required to be "INT"',
    ),
    (
        "insert into orders replace where id / 0 > 3 select 1, 'a'",
        "position 34) ==\n...nsert into orders replace where id / 0 > 3 select",
    ),
    ("with x as (select 1 as i) insert into orders select nope, 'a' from x", "[`i`]. SQLSTATE: 42703; line 1 pos 52"),
]


def test_errors_quote_what_their_author_wrote(lake: LakeSession) -> None:
    run(lake, *SETUP)
    for statement, *parts in TYPICAL_ERRORS:
        with pytest.raises(PySparkException) as raised:
            lake.execute(statement).arrow()
        _check_words(statement, message_of(raised.value), parts)
        assert "_lake_" not in str(raised.value).split(";\n")[0]  # a query plan may follow


def _check_words(statement: str, message: str, parts: list[str]) -> None:
    for part in parts:
        assert any(variant in message for variant in part.split("|")), (statement, message)
    assert "_lake_" not in message
    assert "was called from" not in message


def test_what_runs_later_is_told_in_the_authors_words(lake: LakeSession) -> None:
    run(lake, *SETUP)
    result = lake.sql("select 1/0 as x from main.orders")
    lake.sql("select * from orders").collect()
    with pytest.raises(PySparkException) as raised:
        result.collect()
    assert "\nselect 1/0 as x from main.orders\n       ^^^" in message_of(raised.value)


CONNECT_SCRIPT = """
import json, sys
from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import NotFoundError
from dbt.adapters.ducklake.spark.engine.errors import message_of

settings = {"remote": "local[2]", "config": {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}}
given = json.load(sys.stdin)
with LakeSession("sqlite:catalog.sqlite", data_path="data/", spark=settings) as lake:
    for statement in given["setup"]:
        lake.execute(statement)
    lake.spark.range(3).createOrReplaceTempView("of_spark")
    for statement in given["statements"]:
        try:
            print(json.dumps(["rows", lake.execute(statement).arrow().num_rows]))
        except Exception as error:
            print(json.dumps([type(error).__name__, message_of(error)]))
"""


@pytest.mark.usefixtures("connect_port")
def test_errors_over_spark_connect_are_the_same(tmp_path: Path) -> None:
    statements = [
        "select * from of_spark, orders",
        "select * from ordrs",
        "create table x as select * from rw.payments",
        "merge into orders o using ordrs s on o.id = s.id when matched then delete",
        "select * from lak.main.orders",
        "insert into orders values ('7', 'b'), (null, 'c')",
        "insert into orders select 'seven', 'd'",
    ]
    typical = TYPICAL_ERRORS[::2]
    given = {"setup": SETUP, "statements": [*statements, *(statement for statement, *_ in typical)]}
    done = subprocess.run(
        [sys.executable, "-c", CONNECT_SCRIPT],
        cwd=tmp_path,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert found[0] == ["rows", 3]
    assert [kind for kind, _ in found[1:5]] == ["NotFoundError"] * 4
    assert found[1][1].endswith("did you mean main.orders?")
    assert found[5] == ["rows", 0]
    assert "column id of table orders: the value 'seven' can not be cast to int" in found[6][1]
    for (statement, *parts), (_, message) in zip(typical, found[len(statements) :], strict=True):
        _check_words(statement, message, parts)
