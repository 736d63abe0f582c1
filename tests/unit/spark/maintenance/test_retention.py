"""Expiry and clean-up as procedures: their arguments and the options of the lake, without Spark."""

from __future__ import annotations

import datetime
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.errors import LakeError, NotFoundError, ReadOnlyError
from dbt.adapters.ducklake.lake.paths import new_uuid7

NOW = datetime.datetime.now(datetime.timezone.utc)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[LakeSession]:
    """A lake whose snapshot n was committed 10 - n days ago, and of whose two files the first is needed until 3."""
    with LakeSession(f"sqlite:{tmp_path}/c.sqlite", data_path=f"{tmp_path}/data/", data_inlining_row_limit=0) as lake:
        lake.execute("create table t (id bigint)")
        lake.insert("t", pa.table({"id": [1]}))
        lake.execute("truncate table t")
        lake.insert("t", pa.table({"id": [2]}))
        with lake.lake().catalog.write() as connection:
            for version in range(5):
                days = datetime.timedelta(days=10 - version)
                connection.execute(
                    sa.update(t.snapshot).where(t.snapshot.c.snapshot_id == version).values(snapshot_time=NOW - days)
                )
        yield lake
        assert not lake.spark_started


def _versions(rows: pa.Table) -> list[int]:
    return rows["snapshot_id"].to_pylist()


def _schedule_days_ago(lake: LakeSession, days: int) -> None:
    with lake.lake().catalog.write() as connection:
        start = NOW - datetime.timedelta(days=days)
        connection.execute(sa.update(t.files_scheduled_for_deletion).values(schedule_start=start))


def test_expiry_returns_the_rows_of_ducklake_snapshots(lake: LakeSession) -> None:
    rows = lake.execute("call ducklake_expire_snapshots(versions => [1, 2, 99], dry_run => true)").arrow()
    assert rows.column_names == [
        *("snapshot_id", "snapshot_time", "schema_version", "changes", "author", "commit_message", "commit_extra_info")
    ]
    assert _versions(rows) == [1, 2]
    assert rows["changes"].to_pylist()[0] == [("tables_created", ["main.t"])]
    assert _versions(lake.call("ducklake_expire_snapshots", versions=[1, 2])) == [1, 2]
    assert _versions(lake.call("ducklake_expire_snapshots", versions=[1, 2])) == []


@pytest.mark.parametrize(
    "older_than",
    ["7 days 12 hours", datetime.timedelta(days=7, hours=12), NOW - datetime.timedelta(days=7, hours=12)],
    ids=["text", "timedelta", "moment"],
)
def test_snapshots_older_than_a_duration_or_moment_expire(lake: LakeSession, older_than: object) -> None:
    assert _versions(lake.call("ducklake_expire_snapshots", older_than=older_than)) == [0, 1, 2]


def test_expiry_keeps_to_the_option_of_the_lake(lake: LakeSession) -> None:
    assert _versions(lake.call("ducklake_expire_snapshots")) == []
    lake.execute("call ducklake_set_option('expire_older_than', '8 days 12h')")
    assert _versions(lake.call("ducklake_expire_snapshots", dry_run=True)) == [0, 1]
    assert _versions(lake.call("ducklake_expire_snapshots", older_than="6 days 12 hours")) == [0, 1, 2, 3]


def test_clean_up_keeps_to_the_option_of_the_lake_or_two_days(lake: LakeSession) -> None:
    lake.call("ducklake_expire_snapshots", versions=[0, 1, 2, 3])
    _schedule_days_ago(lake, 1)
    assert lake.call("ducklake_cleanup_old_files", dry_run=True).num_rows == 0
    lake.execute("call ducklake_set_option('delete_older_than', '6h')")
    tried = lake.call("ducklake_cleanup_old_files", dry_run=True).to_pylist()
    assert [row["bytes"] for row in tried] == [os.path.getsize(tried[0]["path"])]
    lake.execute("call ducklake_set_option('delete_older_than', '3 days')")
    assert lake.call("ducklake_cleanup_old_files").num_rows == 0
    assert lake.call("ducklake_cleanup_old_files", older_than="2 days").num_rows == 0
    assert lake.call("ducklake_cleanup_old_files", cleanup_all=True).to_pylist() == [{"path": tried[0]["path"]}]
    lake.execute("call ducklake_set_option('delete_older_than', '')")
    with pytest.raises(LakeError, match="needs older_than or cleanup_all"):
        lake.call("ducklake_cleanup_old_files")


def test_orphan_files_are_deleted_by_their_age(lake: LakeSession) -> None:
    orphan = Path(lake.lake().catalog.data_path, "main/t", f"ducklake-{new_uuid7()}.parquet")
    orphan.write_text("12345")
    assert lake.call("ducklake_delete_orphaned_files").num_rows == 0
    tried = lake.call("ducklake_delete_orphaned_files", cleanup_all=True, dry_run=True).to_pylist()
    assert tried == [{"path": str(orphan), "bytes": 5}]
    three_days_ago = (NOW - datetime.timedelta(days=3)).timestamp()
    os.utime(orphan, (three_days_ago, three_days_ago))
    assert lake.call("ducklake_delete_orphaned_files").to_pylist() == [{"path": str(orphan)}]


def test_files_of_attached_lakes_are_no_orphans(lake: LakeSession, tmp_path: Path) -> None:
    lake.attach("inner", f"sqlite:{tmp_path}/inner.sqlite", data_path=f"{tmp_path}/data/inner/")
    lake.execute("create table inner.main.t (id bigint)")
    lake.insert("inner.main.t", pa.table({"id": [1]}))
    assert lake.call("ducklake_delete_orphaned_files", cleanup_all=True).num_rows == 0
    assert lake.call("ducklake_delete_orphaned_files", "inner", cleanup_all=True).num_rows == 0


def test_what_a_clean_up_leaves_is_said(lake: LakeSession, caplog: pytest.LogCaptureFixture) -> None:
    with lake.lake().catalog.write() as connection:
        row = {"data_file_id": 7, "path": "/elsewhere/x.parquet", "path_is_relative": False, "schedule_start": NOW}
        connection.execute(t.files_scheduled_for_deletion.insert(), row)
    with caplog.at_level(logging.WARNING):
        assert lake.call("ducklake_cleanup_old_files", cleanup_all=True).num_rows == 0
    assert "1 files outside of the data path are forgotten and not deleted: /elsewhere/x.parquet" in caplog.text


@pytest.mark.parametrize(
    ("procedure", "arguments", "message"),
    [
        ("ducklake_expire_snapshots", {"versions": [1], "older_than": "1 day"}, "either versions or older_than"),
        (
            "ducklake_cleanup_old_files",
            {"cleanup_all": True, "older_than": "1 day"},
            "either cleanup_all or older_than",
        ),
        ("ducklake_delete_orphaned_files", {"cleanup_all": True, "older_than": "1 day"}, "either cleanup_all or"),
    ],
)
def test_two_criteria_at_once_are_refused(
    lake: LakeSession, procedure: str, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(LakeError, match=f"{procedure} takes {message}"):
        lake.call(procedure, **arguments)


@pytest.mark.parametrize("name", ["expire_snapshots", "cleanup_old_files", "delete_orphaned_files"])
def test_a_read_only_session_is_refused(name: str, lake: LakeSession, tmp_path: Path) -> None:
    with (
        LakeSession(f"sqlite:{tmp_path}/c.sqlite", read_only=True) as reader,
        pytest.raises(ReadOnlyError, match="read-only"),
    ):
        reader.call(f"ducklake_{name}", older_than="1 day")


def test_a_transaction_that_reads_an_expired_snapshot_is_told_so(lake: LakeSession) -> None:
    with LakeSession(lake.lake().catalog.database.location) as other:
        lake.begin()
        before = lake.base_snapshot()
        other.insert("t", pa.table({"id": [3]}))
        other.call("ducklake_expire_snapshots", versions=[before.id])
        with pytest.raises(LakeError, match=f"snapshot {before.id}, which the transaction reads, was expired"):
            lake.lake().plan_scan(lake.state().table("main", "t"), before, lake.state())
        lake.rollback()
    with pytest.raises(NotFoundError, match="it was expired"):
        lake.lake().snapshot_at(version=before.id)
