"""SQL functions of a lake: CREATE FUNCTION, DROP FUNCTION, and calls in queries."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import AlreadyExistsError, LakeError, NotFoundError, UnsupportedError

from ..lakes import LakeAddress
from .helpers import rows, run, snapshots, value

TWICE = "create function main.twice(x int) returns int return x * 2"


@pytest.fixture
def numbers(lake: LakeSession) -> LakeSession:
    run(lake, TWICE, "create schema s", "create table s.t as select cast(id as int) as id from range(4)")
    return lake


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select main.twice(21)", [(42,)]),
        ("select lake.main.twice(x => 21)", [(42,)]),
        ("select `LAKE`.main.`Twice` (21)", [(42,)]),
        ("select main.twice(main.twice(1)) + main.twice(1)", [(6,)]),
        ("select id from s.t where main.twice(id) > 4", [(3,)]),
        ("select sum(main.twice(id)) as s from s.t group by main.twice(id) % 4 order by s", [(4,), (8,)]),
        ("with a as (select main.twice(id) as d from s.t) select max(d) from a", [(6,)]),
        ("select a.id from s.t a join s.t b on a.id = main.twice(b.id) where b.id = 1", [(2,)]),
        ("select main.twice(-id) as d from s.t order by d limit 1", [(-6,)]),
        ("select case when exists (select 1 from s.t where id = main.twice(1)) then 'there' end", [("there",)]),
    ],
)
def test_a_function_is_called_wherever_spark_calls_one(
    numbers: LakeSession, query: str, expected: list[tuple[object, ...]]
) -> None:
    assert rows(numbers, query) == expected


def test_columns_are_named_after_the_function(numbers: LakeSession) -> None:
    assert numbers.sql("select main.twice(id), id from s.t").columns == ["twice(id)", "id"]


def test_tables_and_views_are_made_with_functions(numbers: LakeSession) -> None:
    run(
        numbers,
        "create view main.v as select main.twice(id) as d from s.t",
        "create table made as select max(d) as d, max(main.twice(d)) from v",
        "insert into made select main.twice(50), main.twice(main.twice(50))",
    )
    assert rows(numbers, "select * from made order by d") == [(6, 12), (100, 200)]
    assert numbers.sql("select * from made").columns == ["d", "max(twice(d))"]


def test_temporary_views_keep_their_functions(numbers: LakeSession) -> None:
    numbers.execute("create function s.highest() returns int return select max(id) from t")
    numbers.execute("create or replace temporary view with_functions as select main.twice(s.highest()) as d")
    assert rows(numbers, "select d from with_functions") == [(6,)]
    numbers.spark.catalog.dropTempView("with_functions")


def test_a_dataframe_outlives_the_function_that_it_calls(numbers: LakeSession) -> None:
    numbers.execute("create function s.highest() returns int return select max(id) from t")
    kept = numbers.sql("select main.twice(id) as d, s.highest() as h from s.t")
    run(numbers, "drop function main.twice", "drop function s.highest")
    assert [tuple(r) for r in kept.where("d > 4").collect()] == [(6, 3)]


def test_a_body_reads_the_snapshot_that_its_query_reads(numbers: LakeSession) -> None:
    numbers.execute("create function s.below(x int) returns bigint return select count(*) from t where id < x")
    below = "select id, s.below(id) + s.below(0) as n from s.t order by id"
    assert rows(numbers, below) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    with pytest.raises(ZeroDivisionError), numbers.transaction():
        numbers.execute("insert into s.t values (-1)")
        assert value(numbers, "select s.below(0)") == 1
        raise ZeroDivisionError
    assert value(numbers, "select s.below(0)") == 0
    left = {f.name for f in numbers.spark.catalog.listFunctions() if f.name.startswith("_lake_function_below")}
    assert left == set()


def test_tables_that_a_body_reads_are_inputs(numbers: LakeSession) -> None:
    numbers.execute("create function s.highest() returns int return select max(id) from t")
    with numbers.transaction():
        numbers.execute("create table made as select s.highest() as h")
        assert [i.name for i in numbers.inputs()] == ["lake.s.t"]


def test_a_body_calls_functions_of_its_schema(numbers: LakeSession) -> None:
    run(
        numbers,
        "create function s.highest() returns int return select max(id) from t",
        "create function s.next(x int default main.twice(5)) returns int return x + s.highest()",
        "create function s.after(x int) returns int return s.next(s.next(x))",
    )
    assert rows(numbers, "select s.after(1), s.next()") == [(7, 13)]


def test_functions_and_parameters_may_have_odd_names(lake: LakeSession) -> None:
    for i, name in enumerate(("`it's`", '`a "b" c`', "`dots.in.it`", "`日本`", "`select`", "`tick``s`", "UPPER")):
        lake.execute(f"create function main.{name}({name} int, other string) returns int return {name} + {i}")
        assert value(lake, f"select main.{name}(1, 'x')") == 1 + i


def test_parameters_may_have_defaults(lake: LakeSession) -> None:
    lake.execute("create function main.f(x int, y int default 1 + 1, z string default 'it''s') return concat(x, y, z)")
    assert rows(lake, "select main.f(1), main.f(1, 3), main.f(1, z => '')") == [("12it's", "13it's", "12")]


def test_determinism_is_as_in_spark(lake: LakeSession) -> None:
    run(
        lake,
        "create function main.same() returns double not deterministic return rand()",
        "create function main.one() returns int deterministic comment 'always 1' return 1",
    )
    assert 0 <= value(lake, "select main.same()") < 1
    assert value(lake, "select main.one()") == 1


def test_or_replace_replaces_a_function_and_if_not_exists_keeps_it(lake: LakeSession) -> None:
    lake.execute(TWICE)
    with pytest.raises(AlreadyExistsError, match=r"main.twice already exists; use CREATE OR REPLACE FUNCTION"):
        lake.execute(TWICE)
    lake.execute("create function if not exists main.twice(x int) returns int return 0")
    assert value(lake, "select main.twice(4)") == 8
    before = snapshots(lake)
    assert lake.execute(TWICE.replace("create", "create or replace")).snapshot_id is None
    lake.execute("create or replace function main.Twice(x string) return concat(x, x)")
    assert snapshots(lake) == before + 1
    assert value(lake, "select main.twice('ab')") == "abab"


def test_a_dropped_function_is_left_to_spark(lake: LakeSession) -> None:
    run(
        lake,
        TWICE,
        "drop function main.twice",
        "drop function if exists lake.main.twice",
        "drop function if exists no.f",
    )
    with pytest.raises(NotFoundError, match=r"no function main.twice"):
        lake.execute("drop function main.twice")
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE.*`main`.`twice`"):
        lake.sql("select main.twice(1)")
    assert value(lake, "select system.builtin.abs(-1)") == 1


def test_a_function_is_part_of_its_transaction(lake: LakeSession) -> None:
    with pytest.raises(ZeroDivisionError), lake.transaction():
        lake.execute(TWICE)
        assert value(lake, "select main.twice(1)") == 2
        raise ZeroDivisionError
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        lake.sql("select main.twice(1)")


@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [
        ("create function main.f(x int) returns int return y", AnalysisException, "UNRESOLVED_COLUMN"),
        ("create function main.f(x int) returns int return sum(x)", AnalysisException, "aggregate"),
        ("create function main.f(x int, x int) returns int return x", AnalysisException, "DUPLICATE"),
        ("create function main.f() returns int return select a from nowhere", NotFoundError, "no table or view main"),
        ("create function main.f(x int) returns int return main.f(x - 1)", AnalysisException, "`main`"),
        ("create function nowhere.f() returns int return 1", NotFoundError, "nowhere"),
        ("create or replace function if not exists main.f() returns int return 1", LakeError, "exclude each other"),
        ("create function main.f() returns table (a int) return select 1", LakeError, "Write a view"),
    ],
)
def test_a_mistake_is_reported_when_the_function_is_created(
    lake: LakeSession, statement: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        lake.execute(statement)
    assert snapshots(lake) == 0


def test_a_function_in_from_is_refused(lake: LakeSession) -> None:
    lake.execute(TWICE)
    with pytest.raises(UnsupportedError, match=r"main.twice gives no rows in Spark"):
        lake.sql("select * from main.twice(1)")


def test_functions_of_an_attached_lake(
    lake: LakeSession, spark: SparkSession, new_lake: Callable[[str], LakeAddress]
) -> None:
    address = new_lake("sqlite")
    other = LakeSession(address.catalog, data_path=address.data_path, spark=spark)
    run(other, "create table t as select 7 as a", "create view v as select a from t")
    run(other, "create function main.seven() returns int return select a from t", TWICE)
    other.close()
    lake.attach("Other", address.catalog, data_path=address.data_path)
    assert rows(lake, "select Other.main.seven(), other.twice(2), v.a from other.main.v") == [(7, 4, 7)]
    lake.execute("create function other.main.eight() returns int return main.seven() + 1")
    assert value(lake, "select other.main.eight()") == 8


def test_threads_call_functions_side_by_side(numbers: LakeSession) -> None:
    numbers.execute("create function s.below(x int) returns bigint return select count(*) from t where id < x")
    numbers.execute("create view s.v as select main.twice(id) as d, s.below(id) as b from s.t")
    found, errors = [], []

    def work() -> None:
        try:
            found.extend(rows(numbers, "select sum(main.twice(d)), sum(b) from s.v") for _ in range(3))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert found == [[(24, 6)]] * 18
