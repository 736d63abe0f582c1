"""Deletion vectors by both engines: what one writes the other reads, at every snapshot and in the change feed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dbt.adapters.ducklake.spark.change import row_positions
from dbt.adapters.ducklake.spark.read import deletion_masks

from .engines import Both, both, each
from .test_change_feed import agree_on_feed, first_of, newest

READERS = ("driver", "Spark")

FIRST_DELETES = [
    each(
        "create table t as select id, concat('v', id) as v, id % 4 as g from range(0, 400, 1, 1)",
        "create table t as select i as id, 'v' || i as v, i % 4 as g from range(400) r(i)",
    ),
    each(
        "insert into t select id, 'x', 9 from range(400, 500, 1, 1)",
        "insert into t from range(400, 500), (select 'x', 9)",
    ),
    both("delete from t where id % 10 = 3"),
    each(
        "insert into t select id, 'y', 8 from range(500, 600, 1, 1)",
        "insert into t from range(500, 600), (select 'y', 8)",
    ),
    both("update t set v = 'up' where id between 520 and 540"),
]
"""One delete for each data file at most."""
MORE_DELETES = [
    both("delete from t where id % 10 = 4"),
    both("update t set v = v || '!' where g = 1"),
    both(
        "merge into t using (select 7 as k union all select 8 union all select 1000) as s on t.id = s.k"
        " when matched then update set v = 'merged'"
        " when not matched then insert (id, v, g) values (s.k, 'new', 0)"
    ),
    both("delete from t where id < 50"),
]


def use(lake: Both, vectors: bool = True, inlining: int = 0) -> None:
    lake.duckdb(
        f"call lake.set_option('write_deletion_vectors', {vectors})",
        f"call lake.set_option('data_inlining_row_limit', {inlining})",
    )


def formats(lake: Both) -> set[str]:
    return {row[0] for row in lake.catalog_rows("select distinct format from {m}.ducklake_delete_file")}


def agree(lake: Both, feed: bool = True) -> None:
    """Asserts that both engines read the same rows, row ids and changes."""
    lake.compare()
    lake.agree("select rowid, id, v from t")
    if feed:
        first, last = first_of(lake), newest(lake)
        for start, end in ((first, last), ((first + last) // 2, last)):
            agree_on_feed(lake, start, end)


@pytest.fixture
def on_sqlite(open_lake: Callable[..., Both]) -> Both:
    """A lake for what does not depend on the catalog database."""
    return open_lake("sqlite")


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who reads and writes the deletes."""
    if request.param == "Spark":
        monkeypatch.setattr(deletion_masks, "MAX_BLOCKS", 0)
        monkeypatch.setattr(deletion_masks, "MAX_FILES", 0)
        monkeypatch.setattr(row_positions, "MAX_DRIVER_ROWS", 0)
        monkeypatch.setattr(row_positions, "MAX_DRIVER_POSITIONS", 0)
    return str(request.param)


def test_vectors_of_one_engine_are_read_by_the_other(lake: Both, writer: str, reader: str) -> None:
    use(lake)
    lake.write(writer, *FIRST_DELETES)
    assert formats(lake) == {"puffin"}
    agree(lake)
    use(lake, vectors=False)
    lake.write(writer, *MORE_DELETES)
    assert "parquet" in formats(lake)
    agree(lake)


def test_a_file_with_a_vector_gets_its_next_deletes_in_a_parquet_file_that_keeps_the_history(
    on_sqlite: Both, reader: str
) -> None:
    use(on_sqlite)
    on_sqlite.write("spark", *FIRST_DELETES, *MORE_DELETES)
    assert formats(on_sqlite) == {"parquet", "puffin"}
    agree(on_sqlite)
    versions = range(first_of(on_sqlite), newest(on_sqlite) + 1)
    counts = [on_sqlite.spark_rows(f"select count(*) from t version as of {version}")[0][0] for version in versions]
    assert counts == [400, 500, 450, 550, 550, 490, 490, 491, 451]


def test_both_engines_read_vectors_that_duckdb_replaces(on_sqlite: Both, reader: str) -> None:
    """DuckDB 1.5 merges all positions into a new vector of the newest snapshot."""
    use(on_sqlite)
    on_sqlite.write("duckdb", *FIRST_DELETES, *MORE_DELETES)
    assert formats(on_sqlite) == {"puffin"}
    agree(on_sqlite)


@pytest.mark.parametrize(("kind", "inlining"), [("sqlite", 0), ("sqlite", 10), ("postgres", 10), ("duckdb", 10)])
def test_vectors_mix_with_parquet_and_inlined_deletes(open_lake: Callable[..., Both], kind: str, inlining: int) -> None:
    lake = open_lake(kind)
    use(lake, inlining=inlining)
    lake.write("spark", *FIRST_DELETES)
    lake.duckdb("delete from t where id in (1, 2)")
    lake.spark("delete from t where id in (5, 521, 6)")
    agree(lake)
    use(lake, vectors=False, inlining=inlining)
    lake.duckdb("delete from t where id between 100 and 150")
    lake.spark("update t set v = 'mixed' where id between 110 and 160", "delete from t where id = 420")
    agree(lake)
    use(lake, inlining=inlining)
    lake.spark("delete from t where id between 200 and 220", "delete from t where id between 550 and 560")
    agree(lake)


@pytest.mark.parametrize(
    "maintenance",
    [
        "call ducklake_flush_inlined_data('lake')",
        "call ducklake_rewrite_data_files('lake', delete_threshold => 0.0)",
        "call ducklake_merge_adjacent_files('lake')",
    ],
)
def test_duckdb_maintains_tables_with_vectors(on_sqlite: Both, maintenance: str) -> None:
    use(on_sqlite, inlining=10)
    on_sqlite.write("spark", *FIRST_DELETES)
    on_sqlite.spark("delete from t where id in (5, 521)", "insert into t values (1000, 'inlined', 1)")
    if "rewrite" in maintenance:
        on_sqlite.duckdb("call ducklake_flush_inlined_data('lake')")
    on_sqlite.duckdb(maintenance)
    agree(on_sqlite, feed=False)
    on_sqlite.spark("delete from t where id between 300 and 350", "update t set v = 'after' where id in (399, 450)")
    on_sqlite.duckdb("delete from t where id between 360 and 380")
    agree(on_sqlite, feed=False)


def test_a_rollback_restores_rows_that_a_vector_deleted(on_sqlite: Both) -> None:
    use(on_sqlite)
    on_sqlite.write("spark", *FIRST_DELETES)
    on_sqlite.spark(f"call ducklake_rollback('t', version => {first_of(on_sqlite) + 1})")
    assert on_sqlite.agree("select count(*) from t") == [(500,)]
    agree(on_sqlite)


@pytest.mark.parametrize("scope", ["lake", "schema", "table"])
def test_the_option_is_obeyed_in_each_scope(on_sqlite: Both, scope: str) -> None:
    use(on_sqlite, vectors=False)
    on_sqlite.spark("create schema s", "create table s.a as select id from range(0, 100, 1, 1)")
    on_sqlite.spark("create table b as select id from range(0, 100, 1, 1)")
    where = {"lake": "", "schema": ", schema => 's'", "table": ", schema => 's', table_name => 'a'"}[scope]
    on_sqlite.spark(f"call ducklake_set_option('write_deletion_vectors', true{where})")
    on_sqlite.spark("delete from s.a where id < 30", "delete from b where id < 30")
    found = on_sqlite.catalog_rows(
        "select table_name, format from {m}.ducklake_delete_file join {m}.ducklake_table using (table_id)"
    )
    assert sorted(found) == [("a", "puffin"), ("b", "puffin" if scope == "lake" else "parquet")]
    on_sqlite.compare()


def test_deletes_of_rows_of_the_same_transaction_are_one_vector(on_sqlite: Both) -> None:
    use(on_sqlite)
    on_sqlite.spark(
        "create table t as select id, 'v' as v, 0 as g from range(0, 100, 1, 1)",
        "begin",
        "insert into t select id, 'w', 0 from range(100, 200, 1, 1)",
        "delete from t where id % 10 = 1",
        "delete from t where id % 10 = 2",
        "update t set v = 'u' where id % 10 = 3",
        "commit",
    )
    found = on_sqlite.catalog_rows("select format, delete_count, partial_max from {m}.ducklake_delete_file")
    assert found == [("puffin", 30, None), ("puffin", 30, None)]
    agree(on_sqlite)


def test_a_truncated_table_with_a_vector_has_its_history(on_sqlite: Both) -> None:
    use(on_sqlite)
    on_sqlite.write("spark", *FIRST_DELETES)
    on_sqlite.spark("delete from t where id >= 300", "insert overwrite t values (1, 'one', 1)")
    agree(on_sqlite)
