"""What a user of the catalog database may not do is an error before any work."""

from __future__ import annotations

import os
from typing import Any

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import ReadOnlyError

from .catalogs import NewLake

pytestmark = pytest.mark.catalogs

READER = ("grant usage on schema public to {role}", "grant select on all tables in schema public to {role}")
WRITER = (
    *READER,
    "grant create on schema public to {role}",
    "grant insert, update, delete on all tables in schema public to {role}",
)


@pytest.fixture
def lake_of(new_lake: NewLake, request: pytest.FixtureRequest) -> Any:
    """Opens a lake as a new role with some privileges."""
    import psycopg

    address = new_lake("postgres")
    LakeSession(address.catalog, data_path=address.data_path).close()
    words = address.catalog.removeprefix("postgres:")
    roles = []

    def open_as(role: str, *grants: str) -> LakeSession:
        with psycopg.connect(words, autocommit=True) as connection:
            connection.execute(f"create role {role} login")
            for grant in grants:
                connection.execute(grant.format(role=role))
        roles.append(role)
        kept = " ".join(word for word in words.split() if not word.startswith("user="))
        return LakeSession(f"postgres:{kept} user={role}", data_path=address.data_path)

    yield open_as
    with psycopg.connect(words, autocommit=True) as connection:
        for role in roles:
            connection.execute(f"drop owned by {role}")
            connection.execute(f"drop role {role}")


def test_a_reader_reads_and_is_told_at_the_first_change_what_it_lacks(lake_of: Any) -> None:
    with lake_of(f"reader_{os.getpid()}", *READER) as lake:
        assert lake.execute("show tables").table.num_rows == 0
        with pytest.raises(ReadOnlyError, match=r"may not write to the lake, for lack of INSERT on ducklake_snapshot"):
            lake.execute("create table t (id int)")
        with pytest.raises(ReadOnlyError, match=r"may not write to the lake"):
            lake.call("ducklake_expire_snapshots", versions=[0])


def test_a_writer_may_be_kept_from_deleting_snapshots(lake_of: Any) -> None:
    no_delete = "revoke delete on ducklake_snapshot from {role}"
    with lake_of(f"writer_{os.getpid()}", *WRITER, no_delete) as lake:
        lake.execute("create table t (id int)")
        assert lake.execute("show tables").table.num_rows == 1
        with pytest.raises(ReadOnlyError, match=r"may not maintain the lake, for lack of DELETE on ducklake_snapshot;"):
            lake.call("ducklake_expire_snapshots", versions=[0])
        assert lake.call("ducklake_expire_snapshots", versions=[0], dry_run=True).num_rows == 1


def test_a_data_path_that_may_not_be_written_is_told_before_any_work(
    new_lake: NewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = new_lake("sqlite")
    LakeSession(address.catalog, data_path=address.data_path).close()
    os.makedirs(address.data_path, exist_ok=True)
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith(address.data_path.rstrip("/")))
    with LakeSession(address.catalog) as lake, pytest.raises(ReadOnlyError, match="may not write into the data path"):
        lake.execute("create table t (id int)")
