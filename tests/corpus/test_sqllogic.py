"""The interpreter of DuckDB's test files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .sqllogic import Course, Runner

Run = Callable[[str], Course]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run_text(text: str) -> Course:
        (tmp_path / "some.test").write_text(text)
        return Runner(tmp_path / "some.test", tmp_path).run()

    return run_text


def written(folder: Path) -> str:
    return (folder / "out.csv").read_text()


def test_loops_nest_and_fill_in_their_variables(run: Run, tmp_path: Path) -> None:
    course = run("""
statement ok
create table t (a int, b varchar)

loop i 1 4

foreach word x y

skipif i=2
query I
insert into t values (${i}, '{word}')
----
1

endloop

endloop

statement ok
copy (from t order by all) to '__TEST_DIR__/out.csv' (header false)
""")
    assert written(tmp_path) == "1,x\n1,y\n3,x\n3,y\n"
    assert (course.executed, course.surprises, course.stopped) == (6, [], None)


def test_statements_that_end_unlike_the_file_says_are_told(run: Run) -> None:
    course = run("""
statement error
select 1
----
some message

statement ok
select nothing

statement error
select nothing
----
some message

statement maybe
select nothing
""")
    first, second = course.surprises
    assert first == "line 2: select 1: it was to fail"
    assert second.startswith("line 7: select nothing: Binder Error")
    assert course.executed == 4


def test_connections_have_names_and_transactions_of_their_own(run: Run, tmp_path: Path) -> None:
    course = run("""
statement ok
create table t (a int)

statement ok con1
begin

query I con1
insert into t values (1)
----
1

query I rowsort
insert into t select count(*) + 10 from t
----
1

statement ok con1
rollback

statement ok
copy t to '{TEST_DIR}/out.csv' (header false)
""")
    assert course.surprises == []
    assert written(tmp_path) == "10\n"


def test_what_is_not_run_is_counted_or_ends_the_test_with_its_reason(run: Run) -> None:
    course = run("""
mode skip

statement ok
select 1

mode unskip

concurrentloop i 0 2

statement ok
select ${i}

endloop

frobnicate

require no_such_extension

statement ok
select 2
""")
    assert course.left_out == {
        "after `mode skip`": 1,
        "concurrentloop: its turns run one after the other": 1,
        "unknown command 'frobnicate'": 1,
    }
    assert course.executed == 2
    assert course.stopped == "require no_such_extension: pip install duckdb-extension-no_such_extension==1.5.5"


def test_a_restart_keeps_a_loaded_database(run: Run, tmp_path: Path) -> None:
    course = run("""
test-env NAME rows

load __TEST_DIR__/some.db

statement ok
create table ${NAME} as select 5 as a

restart

statement ok
copy rows to '__TEST_DIR__/out.csv' (header false)
""")
    assert (course.surprises, written(tmp_path)) == ([], "5\n")
