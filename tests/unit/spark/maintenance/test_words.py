"""VACUUM, ANALYZE, DESCRIBE HISTORY and DETAIL on a session whose Spark never starts."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.errors import LakeError, NotFoundError, ReadOnlyError
from dbt.adapters.ducklake.lake.paths import new_uuid7

LONG_AGO = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=10)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[LakeSession]:
    """Two tables, whose old snapshots are ten days old."""
    other = {"name": "other", "catalog": f"sqlite:{tmp_path}/o.sqlite", "data_path": f"{tmp_path}/o/"}
    files = {"data_path": f"{tmp_path}/data/", "data_inlining_row_limit": 0}
    with LakeSession(f"sqlite:{tmp_path}/c.sqlite", **files, author="us", attach=[other]) as lake:
        lake.execute("create schema `odd s`")
        lake.execute("create table orders (id bigint) comment 'sold'")  # snapshot 2
        lake.insert("orders", pa.table({"id": [1, 2]}))
        lake.execute("create table `odd s`.`a.b` (id bigint)")
        lake.insert("`odd s`.`a.b`", pa.table({"id": [1]}))
        lake.execute("truncate table orders")
        lake.execute("truncate table `odd s`.`a.b`")  # 7
        with lake.lake().catalog.write() as connection:
            connection.execute(sa.update(t.snapshot).values(snapshot_time=LONG_AGO))
        lake.execute("alter table orders rename to sales")  # 8
        yield lake
        assert not lake.spark_started


def rows(lake: LakeSession, statement: str) -> list[dict[str, Any]]:
    return lake.execute(statement).arrow().to_pylist()


def _operations(lake: LakeSession, statement: str) -> list[str]:
    return [row["operation"] for row in rows(lake, statement)]


def _orphan(lake: LakeSession, table: str) -> str:
    path = f"{rows(lake, f'describe detail {table}')[0]['location']}ducklake-{new_uuid7()}.parquet"
    Path(path).write_bytes(b"PAR1")
    os.utime(path, (LONG_AGO.timestamp(), LONG_AGO.timestamp()))
    return path


def test_a_renamed_table_keeps_its_history(lake: LakeSession) -> None:
    with lake.transaction(message="more"):
        lake.insert("sales", pa.table({"id": [7]}))
    history = rows(lake, "describe history lake.main.sales")
    assert [(row["version"], row["operation"], row["author"]) for row in history] == [
        *((9, "insert", "us"), (8, "rename", "us"), (6, "delete", "us"), (3, "insert", "us"), (2, "create", "us"))
    ]
    assert [row["message"] for row in history][:2] == ["more", None]
    assert history[-1]["timestamp"] == LONG_AGO


def test_history_tells_the_rows_of_a_commit_that_changed_one_table(lake: LakeSession) -> None:
    counts = {"rows": {"inserted": 1, "updated": 2, "deleted": 0}}
    with lake.transaction(extra_info=json.dumps(counts)):
        lake.insert("sales", pa.table({"id": [7]}))
    with lake.transaction(extra_info=json.dumps(counts)):
        lake.insert("sales", pa.table({"id": [7]}))
        lake.insert("`odd s`.`a.b`", pa.table({"id": [7]}))
    both, one, *_ = rows(lake, "desc history sales")
    assert (one["operation"], one["rows_inserted"], one["rows_updated"]) == ("insert, update", 1, 2)
    assert (both["operation"], both["rows_inserted"]) == ("insert", None)
    assert json.loads(one["extra_info"]) == counts


def test_history_tells_the_rows_of_a_node_in_a_run_that_changed_one_table(lake: LakeSession) -> None:
    sales, other = (lake.state().table(*name).id for name in (("main", "sales"), ("odd s", "a.b")))

    def node(inserted: int, *changed: int) -> dict[str, Any]:
        return {"rows": {"inserted": inserted, "updated": 0, "deleted": 0}, "changed": changed}

    by_nodes: list[tuple[Any, int | None]] = [
        ([node(1, sales), node(2, other)], 1),
        ([node(1, sales, other)], None),
        ([node(1, sales), node(2, sales)], None),
        ([], None),
        # What others write under these names says nothing.
        ([node(1, sales), {"changed": None}, {"changed": [{}]}, {"changed": 7}, "text"], 1),
        ([{"changed": [sales]}], None),
    ]
    for nodes, _ in by_nodes:
        with lake.transaction(extra_info=json.dumps({"nodes": nodes})):
            lake.insert("sales", pa.table({"id": [7]}))
            lake.insert("`odd s`.`a.b`", pa.table({"id": [7]}))
    history = rows(lake, "desc history sales")[: len(by_nodes)]
    assert [row["rows_inserted"] for row in reversed(history)] == [inserted for _, inserted in by_nodes]


def test_detail_is_one_row_about_the_table(lake: LakeSession) -> None:
    lake.insert("sales", pa.table({"id": [7, 8]}))
    lake.execute("call ducklake_set_option('target_file_size', '1MB', table_name => 'sales')")
    [row] = rows(lake, "describe detail sales")
    wanted = ("name", "comment", "num_files", "num_rows", "deleted_rows", "inlined_rows", "created_at", "options")
    assert {name: row[name] for name in wanted} == {
        "name": "lake.main.sales",
        "comment": "sold",
        "num_files": 1,
        "num_rows": 2,
        "deleted_rows": 0,
        "inlined_rows": 0,
        "created_at": LONG_AGO,
        "options": [("target_file_size", "1000000")],
    }
    assert row["last_modified"] > LONG_AGO
    assert row["size_in_bytes"] > 0
    assert row["location"].endswith("/data/main/orders/")


def test_vacuum_expires_and_cleans_up_the_whole_lake(lake: LakeSession) -> None:
    orphan = _orphan(lake, "sales")
    assert _operations(lake, "vacuum") == ["delete orphan file"]
    assert not os.path.exists(orphan)
    expected = [f"expire snapshot {version}" for version in range(8)]
    assert _operations(lake, "vacuum lake retain 24 hours dry run") == expected
    assert _operations(lake, "vacuum retain 24 hours") == expected  # whose files readers may need for two days more
    lake.execute("call ducklake_set_option('delete_older_than', '0 seconds')")
    found = rows(lake, "vacuum dry run")
    assert [row["operation"] for row in found] == ["delete old file"] * 2
    assert all(row["bytes"] > 0 and os.path.exists(row["path"]) for row in found)
    assert [row["path"] for row in rows(lake, "vacuum")] == [row["path"] for row in found]
    assert not any(os.path.exists(row["path"]) for row in found)


def test_vacuum_of_a_table_expires_nothing_and_cleans_up_its_folder(lake: LakeSession) -> None:
    own, other = _orphan(lake, "`odd s`.`a.b`"), _orphan(lake, "sales")
    assert rows(lake, "vacuum `odd s`.`a.b` retain 720 hours") == []
    assert [row["path"] for row in rows(lake, "vacuum lake.`odd s`.`a.b` retain 0 hours")] == [own]
    assert (os.path.exists(own), os.path.exists(other)) == (False, True)
    lake.execute("vacuum retain 0 hours")
    lake.execute("call ducklake_set_option('delete_older_than', '0 seconds')")
    [row] = rows(lake, "vacuum sales")
    assert "/main/orders/" in row["path"]
    assert len(rows(lake, "vacuum")) == 1


def test_an_attached_lake_is_vacuumed_by_its_name(lake: LakeSession) -> None:
    lake.execute("create table other.main.t (id bigint)")
    assert _operations(lake, "vacuum other retain 0 hours") == ["expire snapshot 0"]
    assert [row["version"] for row in rows(lake, "describe history other.main.t")] == [1]


def test_analyze_restores_lost_statistics(lake: LakeSession) -> None:
    lake.insert("sales", pa.table({"id": [7]}))
    with lake.lake().catalog.write() as connection:
        connection.execute(sa.delete(t.file_column_stats))
    result = {"schema_name": "main", "table_name": "sales"}
    assert rows(lake, "analyze table sales compute statistics noscan") == [{**result, "files_analyzed": 0}]
    assert rows(lake, "analyze table sales compute statistics for columns ID") == [{**result, "files_analyzed": 1}]
    assert lake.call("ducklake_analyze", "sales").to_pylist() == [{**result, "files_analyzed": 0}]
    with pytest.raises(NotFoundError, match="table sales has no column nope; its columns are id"):
        lake.execute("analyze table sales compute statistics for columns nope")


@pytest.mark.parametrize(
    "statement", ["vacuum", "vacuum sales", "optimize sales", "analyze table sales compute statistics"]
)
def test_what_works_on_the_lake_is_no_part_of_a_transaction(lake: LakeSession, statement: str) -> None:
    lake.begin()
    with pytest.raises(LakeError, match=f"{statement.split()[0].upper()} can not be part of a transaction; COMMIT"):
        lake.execute(statement)
    lake.rollback()


def test_a_read_only_lake_is_described_and_not_changed(lake: LakeSession, tmp_path: Path) -> None:
    with LakeSession(f"sqlite:{tmp_path}/c.sqlite", read_only=True) as reader:
        assert len(rows(reader, "describe history sales")) == 4
        assert rows(reader, "vacuum dry run") == []
        for statement in ("vacuum", "optimize sales", "analyze table sales compute statistics"):
            with pytest.raises(ReadOnlyError, match="read_only: false"):
                reader.execute(statement)
        assert not reader.spark_started


def test_what_a_lake_does_not_take_is_an_error_of_the_lake(lake: LakeSession) -> None:
    with pytest.raises(LakeError, match="VACUUM sales: FULL at 1:14 is not supported"):
        lake.execute("vacuum sales full")
    with pytest.raises(NotFoundError, match="there is no lake nope"):
        lake.execute("restore schema nope.main to version as of 1")
