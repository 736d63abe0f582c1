"""Files that ducklake_add_data_files adds: DuckDB takes the same ones, and both engines read them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.ducklake.lake.added_files import MatchRules, match_file
from dbt.adapters.ducklake.lake.errors import LakeError

from .engines import CATALOGS, Both
from .test_added_file_types import SOURCES as READ_TYPES

SOURCES = {**READ_TYPES, "interval": ("3 days", "14 months")}
ONLY_TARGETS = ("hugeint", "uhugeint", "timetz", "time_ns", "variant")


def add(lake: Both, table: str, *files: str, **arguments: Any) -> None:
    lake.lake.call("ducklake_add_data_files", table, list(files), **arguments)


def theirs(lake: Both, table: str, file: str, **arguments: Any) -> bool:
    """Whether DuckDB adds a file."""
    named = "".join(f", {name} => {value}" for name, value in arguments.items())
    with lake.connection() as connection, suppress(duckdb.InvalidInputException):
        connection.execute(f"call ducklake_add_data_files('lake', '{table}', '{file}'{named})")
        return True
    return False


def test_each_pair_of_types_is_taken_or_refused_as_in_duckdb(open_lake: Callable[..., Both], tmp_path: Path) -> None:
    lake = open_lake("sqlite")
    files = {source: f"{tmp_path}/{number}.parquet" for number, source in enumerate(SOURCES)}
    targets = (*SOURCES, *ONLY_TARGETS)
    accepted: dict[str, list[str]] = {target: [] for target in targets}
    with lake.connection() as connection:
        for source, texts in SOURCES.items():
            rows = ", ".join(f"('{text}'::{source})" for text in texts)
            nested = "{'x': v, 'l': [v, null]} as s"
            connection.execute(f"copy (select v, {nested} from (values {rows}, (null)) r(v)) to '{files[source]}'")
        for number, target in enumerate(targets):
            for table in ("ours", "theirs"):
                nested = f"s struct(x {target}, l {target}[])"
                connection.execute(f"create table {table}{number} (v {target}, {nested})")
            for source, file in files.items():
                with suppress(duckdb.InvalidInputException):
                    connection.execute(f"call ducklake_add_data_files('lake', 'theirs{number}', '{file}')")
                    accepted[target].append(source)
    state = lake.lake.lake().begin().state
    footers = {source: pq.read_metadata(file) for source, file in files.items()}
    for number, target in enumerate(targets):
        columns = state.table("main", f"ours{number}").columns
        ours = [s for s, footer in footers.items() if not match_file(footer, columns, {}, MatchRules()).problems]
        assert ours == accepted[target], target
        if ours:
            add(lake, f"ours{number}", *(files[source] for source in ours), allow_duplicates=True)
    with lake.connection() as connection:
        for number, target in enumerate(targets):
            _compare_answers(connection, f"ours{number}", f"theirs{number}", target)
    # Spark has microseconds, and nested intervals are not compared.
    not_read = ("timestamp_ns", "interval")
    read = [number for number, target in enumerate(targets) if accepted[target] and target not in not_read]
    with lake.connection() as connection:
        for number in range(len(targets)):
            connection.execute(f"drop table theirs{number}")
            if number not in read:
                connection.execute(f"drop table ours{number}")
    last = lake.duckdb_rows("select max(snapshot_id) from ducklake_snapshots('lake')")[0][0]
    assert lake.compare(first=last) == len(read)


def _compare_answers(connection: duckdb.DuckDBPyConnection, ours: str, theirs: str, target: str) -> None:
    """DuckDB reads the same of both tables, and its answers from statistics are those of the rows themselves."""
    connection.execute(f"create or replace table memory.truth as from {theirs}")
    rows = connection.execute("select v::varchar, s::varchar from memory.truth order by all").fetchall()
    assert connection.execute(f"select v::varchar, s::varchar from {ours} order by all").fetchall() == rows, target
    if target == "variant":
        return
    summary = "select min(v)::varchar, max(v)::varchar, count(v), count(*), min(s.x)::varchar from {}"
    for where in ("", " where v is null", " where v is not null"):
        asked = connection.execute(summary.format(ours) + where).fetchall()
        assert asked == connection.execute(summary.format("memory.truth") + where).fetchall(), target
    # No value is lost. DuckDB takes a number for the nearest float where a file has floats, and so finds more.
    values = "select distinct v::varchar from memory.truth where v is not null"
    for (value,) in connection.execute(values).fetchall():
        found = connection.execute(f"select v::varchar from {ours} where v = '{value}'::{target}").fetchall()
        assert (value,) in found, (target, value)


@pytest.mark.parametrize("kind", [kind for kind in CATALOGS if kind != "sqlite"])
def test_files_are_added_on_each_catalog(open_lake: Callable[..., Both], tmp_path: Path, kind: str) -> None:
    lake = open_lake(kind)
    for number in (1, 2):
        (tmp_path / f"in/y={number}").mkdir(parents=True)
        rows = {"ID": pa.array([number, None], pa.int16()), "l": [[{"a": number}], None]}
        pq.write_table(pa.table(rows), f"{tmp_path}/in/y={number}/f.parquet")
    lake.duckdb("create table t (id int, y int, l struct(a bigint)[], n int default 5)")
    add(lake, "main.t", f"{tmp_path}/in", allow_missing=True)
    with pytest.raises(LakeError, match="already in table main.t"):
        add(lake, "main.t", f"{tmp_path}/in/y=1/f.parquet", allow_missing=True)
    lake.agree("select rowid, snapshot_id, * from t")
    assert lake.duckdb_rows("select min(id), max(id), min(y), count(*), min(n) from t") == [(1, 2, 1, 4, 5)]
    lake.duckdb("delete from t where id = 2")
    lake.agree("select rowid, id from t where y = 2")


def test_added_rows_are_changed_by_both_engines(open_lake: Callable[..., Both], tmp_path: Path) -> None:
    lake = open_lake("sqlite")
    struct = pa.struct([("a", pa.int32()), ("more", pa.string())])
    for number, folder in enumerate(("Region=eu%20w/y=2024", "Region=a+b/y=", "Region=NULL/y=007", "Region=/y=NULL")):
        folder += f"/a b=%3{number}"  # a key is as it stands in the path, and a value is decoded
        (tmp_path / "in" / folder).mkdir(parents=True)
        first = 10 * number
        file = {
            "ID": pa.array([first, first + 1, None], pa.int16()),
            "s": pa.array([{"a": first, "more": "x"}, None, {"a": None, "more": "y"}], struct),
            "l": pa.array([[{"a": first, "more": "x"}, None], [], None], pa.list_(struct)),
            "m": pa.array([[("k", {"a": first, "more": "x"})], [], None], pa.map_(pa.string(), struct)),
            "extra": [True, False, None],
        }
        pq.write_table(pa.table(file), f"{tmp_path}/in/{folder}/f.parquet")
    parts = "struct(a bigint, b int)"
    lake.duckdb(
        "create table t (id int, region varchar, \"a b\" int, y int, word varchar default 'none', n int,"
        f" s {parts}, l {parts}[], m map(varchar, {parts}))"
    )
    add(lake, "main.t", f"{tmp_path}/in", allow_missing=True, ignore_extra_columns=True)
    lake.compare()
    lake.agree("select rowid, snapshot_id, id, region, y from t")
    for where in (
        "y = 7",
        "y is null",
        "region is null",
        "region = 'a+b'",
        "word = 'none'",
        "n is null",
        "s.b is null",
    ):
        assert lake.agree(f"select count(*) from t where {where}") != [(0,)], where
    lake.agree("select min(y), max(y), min(id), max(id), count(*), count(n), min(word) from t")
    lake.spark("alter table t rename column id to k", "alter table t alter column k type bigint")
    lake.duckdb(
        "alter table t rename region to place", "alter table t rename s.a to aa", "alter table t add column id int"
    )
    lake.spark("delete from t where k = 0", "update t set word = 'spark' where k in (10, 20)")
    lake.duckdb("delete from t where k = 11", "update t set word = 'duck', y = 3 where k in (21, 30)")
    lake.spark("merge into t using (select 31 as k) s on t.k = s.k when matched then update set place = 'merged'")
    lake.compare()
    lake.agree("select rowid, k, place, y, word, id from t")


def test_a_file_without_a_column_has_nulls_in_the_tables_statistics(
    open_lake: Callable[..., Both], tmp_path: Path
) -> None:
    """DuckDB's own function forgets them, and then finds no NULL."""
    lake = open_lake("sqlite")
    pq.write_table(pa.table({"id": [1], "n": [1]}), f"{tmp_path}/1.parquet")
    pq.write_table(pa.table({"id": [2]}), f"{tmp_path}/2.parquet")
    lake.duckdb("create table t (id bigint, n bigint)")
    add(lake, "t", f"{tmp_path}/?.parquet", allow_missing=True)
    assert lake.duckdb_rows("select id from t where n is null") == [(2,)]


LAYOUTS: Sequence[tuple[str, bool, tuple[str, ...]]] = (
    ("year=2024/month=2/day=10", True, ("2024", "2", "10")),
    ("day=10/year=2024/month=2", True, ("2024", "2", "10")),
    ("year=2024/month=3/day=10", False, ()),
)


def test_files_of_partitioned_tables(open_lake: Callable[..., Both], tmp_path: Path) -> None:
    lake = open_lake("sqlite")
    lake.duckdb(
        "create table t (id int, dt date)",
        "alter table t set partitioned by (year(dt), month(dt), day(dt))",
        "create table h (id int, region varchar, n decimal(6,2))",
        "alter table h set partitioned by (region, n)",
    )
    for number, (folder, _, _) in enumerate(LAYOUTS):
        (tmp_path / "t" / folder).mkdir(parents=True)
        day = pa.array(["2024-02-10"]).cast(pa.date32())
        pq.write_table(
            pa.table({"id": pa.array([number], pa.int32()), "dt": day}), f"{tmp_path}/t/{folder}/{number}.parquet"
        )
    expected = []
    for folder, fits, values in LAYOUTS:
        if fits:
            add(lake, "t", f"{tmp_path}/t/{folder}")
            expected += [(index, value) for index, value in enumerate(values)]
        else:
            with pytest.raises(LakeError, match="it is no partition of the table"):
                add(lake, "t", f"{tmp_path}/t/{folder}")
    partition_values = "select partition_key_index, partition_value from {m}.ducklake_file_partition_value"
    assert sorted(lake.catalog_rows(partition_values)) == sorted(expected)
    for number, folder in enumerate(("region=eu/n=1.50", "region=NULL/n=2", "n=3.00/region=a%2Fb")):
        (tmp_path / "h" / folder).mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array([number], pa.int32())}), f"{tmp_path}/h/{folder}/f.parquet")
    add(lake, "h", f"{tmp_path}/h")
    (tmp_path / "h2/region=eu").mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), f"{tmp_path}/h2/region=eu/f.parquet")
    for table, file in (("h", f"{tmp_path}/h2/region=eu/f.parquet"),):
        assert not theirs(lake, table, file, allow_missing=True)
        with pytest.raises(LakeError, match="column n of the table is not in the file"):
            add(lake, table, file)
    lake.spark("insert into h values (9, 'eu', 1.5)", "insert into t values (9, date'2024-02-10')")
    lake.compare()
    for where in ("region = 'eu'", "region is null", "n = 1.5", "n > 2.5", "region = 'a/b'"):
        assert lake.agree(f"select id from h where {where}"), where
    assert len(lake.agree("select id from t where dt = date'2024-02-10'")) == 3
