"""Connections that break around a commit: an append is never doubled, and nobody is told what is not known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake.lake import evolution
from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.commit import lost_answer, protocol, snapshot_writer
from dbt.adapters.ducklake.lake.commit.staged import CommitInfo
from dbt.adapters.ducklake.lake.databases import base
from dbt.adapters.ducklake.lake.errors import CatalogError, CommitUnknownError, LakeError
from dbt.adapters.ducklake.lake.retry import Retry
from dbt.adapters.ducklake.lake.transaction import Transaction

from ...conftest import LoseAnswer
from ...lakes import Lake
from ...proxy import COMMIT, Moment, Proxy, proxied
from ...workers import paper_file
from .catalogs import NewLake, every_catalog

INSERT = re.compile(b"INSERT INTO ducklake_snapshot ")
AFTER_INSERT = re.compile(b"INSERT INTO ducklake_snapshot_changes ")
QUICK = Retry(max_count=4, wait_ms=5)
ThroughProxy = Callable[[str], tuple[Lake, Lake, Proxy]]
"""Makes a lake with a table: as it is reached directly, as it is reached through a proxy, and the proxy."""

every_server = pytest.mark.parametrize("kind", ["postgres", "mysql"])


def an_append(lake: Lake, name: str = "new.parquet", **info: Any) -> Transaction:
    tx = lake.begin(**info)
    tx.append(tx.state.table("main", "t"), [paper_file(name, 3)])
    return tx


def append(lake: Lake, name: str = "new.parquet") -> int:
    return an_append(lake, name).commit().snapshot.id


def appended(lake: Lake) -> list[str]:
    return sorted(file["path"] for file in lake.rows(t.data_file))


# -- a connection that breaks, on a server


@pytest.fixture
def through_proxy(new_lake: NewLake) -> Iterator[ThroughProxy]:
    contexts = []

    def make(kind: str) -> tuple[Lake, Lake, Proxy]:
        address = new_lake(kind)
        direct = Lake(address)
        direct.create()
        contexts.append(proxied(address.catalog))
        catalog, proxy = contexts[-1].__enter__()
        return direct, Lake(replace(address, catalog=catalog), retry=QUICK), proxy

    yield make
    for context in contexts:
        context.__exit__(None, None, None)


@every_server
@pytest.mark.parametrize("moment", ["before", "during", "after"])
@pytest.mark.parametrize("statement", [COMMIT, INSERT], ids=["commit", "insert"])
def test_an_append_lands_once_wherever_the_connection_breaks(
    kind: str, statement: re.Pattern[bytes], moment: Moment, through_proxy: ThroughProxy
) -> None:
    direct, lake, proxy = through_proxy(kind)
    tx = an_append(lake, author="Ada", message="load")
    proxy.cut(statement, moment)
    assert tx.commit().snapshot.id == 2
    assert proxy.cuts == 1
    assert append(lake, "next.parquet") == 3
    assert (direct.latest, appended(direct)) == (3, ["new.parquet", "next.parquet"])


@every_server
@pytest.mark.parametrize("moment", ["before", "during"])
def test_a_server_that_does_not_come_back_leaves_the_commit_unknown(
    kind: str, moment: Moment, through_proxy: ThroughProxy
) -> None:
    direct, lake, proxy = through_proxy(kind)
    tx = an_append(lake)
    proxy.refuses = True
    proxy.cut(COMMIT, moment)
    with pytest.raises(CommitUnknownError, match="whether snapshot 2 was committed can not be found out") as raised:
        tx.commit()
    assert "nothing was changed" not in str(raised.value)
    assert raised.value.statement in str(raised.value)
    with direct.catalog.read() as connection:
        found = connection.exec_driver_sql(raised.value.statement).all()
    assert found == ([] if moment == "before" else [(2,)])
    assert len(appended(direct)) == len(found)


@every_server
def test_a_server_that_is_gone_before_the_commit_has_changed_nothing(kind: str, through_proxy: ThroughProxy) -> None:
    direct, lake, proxy = through_proxy(kind)
    tx = an_append(lake)
    proxy.refuses = True
    proxy.cut(INSERT, "before")
    with pytest.raises(LakeError, match=r"the commit failed in .*; nothing was changed") as raised:
        tx.commit()
    assert not isinstance(raised.value, CommitUnknownError)
    assert (direct.latest, appended(direct)) == (1, [])


@every_server
@pytest.mark.parametrize("statement", [COMMIT, AFTER_INSERT], ids=["commit", "insert"])
def test_a_transaction_that_the_server_still_holds_open_is_waited_for(
    kind: str,
    statement: re.Pattern[bytes],
    through_proxy: ThroughProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server has not noticed that the client is gone. Its transaction could still be committed."""
    monkeypatch.setattr(base, "LOCK_WAIT_SECONDS", 1)
    direct, lake, proxy = through_proxy(kind)
    tx = an_append(lake)
    lake.catalog.retry = Retry(max_count=1, wait_ms=1)
    monkeypatch.setattr(lost_answer, "_MIN_RETRIES", 1)
    proxy.cut(statement, "silently")
    with pytest.raises(LakeError, match="snapshot 2" if statement is COMMIT else "nothing was changed") as raised:
        tx.commit()
    assert isinstance(raised.value, CommitUnknownError) == (statement is COMMIT)
    proxy.release()
    assert append(direct, "other.parquet") == 2
    assert appended(direct) == ["other.parquet"]


@every_server
def test_a_connection_that_breaks_while_reading_is_an_error_of_the_catalog(
    kind: str, through_proxy: ThroughProxy
) -> None:
    _, lake, proxy = through_proxy(kind)
    proxy.cut(re.compile(b"FROM ducklake_snapshot"), "before")
    with pytest.raises(CatalogError, match=r"the catalog in .* can not be read: "):
        lake.begin()
    assert lake.begin().base.id == 1


# -- an error of COMMIT itself, on every catalog database


@every_catalog
def test_an_error_after_the_commit_is_no_error(kind: str, new_lake: NewLake, lose_answer: LoseAnswer) -> None:
    lake = Lake(new_lake(kind), retry=QUICK)
    lake.create()
    tx = an_append(lake, author="it's me", message='a "message" with 100 %')
    lose_answer(lake.catalog, commits=True)
    committed = tx.commit()
    assert (committed.snapshot.id, committed.attempts) == (2, 1)
    assert (lake.latest, appended(lake)) == (2, ["new.parquet"])


@every_catalog
def test_an_error_before_the_commit_has_changed_nothing(kind: str, new_lake: NewLake, lose_answer: LoseAnswer) -> None:
    lake = Lake(new_lake(kind), retry=QUICK)
    lake.create()
    tx = an_append(lake)
    lose_answer(lake.catalog, commits=False)
    with pytest.raises(LakeError, match="closed the connection unexpectedly; nothing was changed"):
        tx.commit()
    assert (lake.latest, appended(lake)) == (1, [])
    assert append(lake) == 2


@every_catalog
@pytest.mark.parametrize("rows", [True, False])
def test_a_twin_that_takes_the_same_snapshot_id_is_not_mistaken_for_it(
    kind: str, rows: bool, new_lake: NewLake
) -> None:
    """The other writer runs the same job, with the same message; it commits after ours was rolled back."""
    lake = Lake(new_lake(kind), retry=QUICK)
    lake.create()

    def change(tx: Transaction, name: str) -> None:
        table = tx.state.table("main", "t")
        if rows:
            tx.append(table, [paper_file(name, 3)])
        else:
            tx.alter_table(table, lambda x: evolution.set_column_comment(x, ("id",), name))

    tx = lake.begin("etl", "load")
    change(tx, "ours.parquet")
    written = _written(lake, tx)
    twin = lake.begin("etl", "load")
    change(twin, "theirs.parquet")
    twin.commit()
    with lake.catalog.read() as connection:
        assert written.find(connection, lake.catalog) is False
    assert lost_answer.took_place(lake.catalog, written, OSError()) is False


def _written(lake: Lake, tx: Transaction) -> lost_answer.WrittenCommit:
    """What a commit of the transaction writes; it is rolled back."""
    with lake.catalog.write() as connection:
        latest = lake.catalog.latest_snapshot(connection)
        written = snapshot_writer.write_snapshot(
            connection, lake.catalog, latest, tx.base, tx.base_state, tx.staged, tx.commit_info
        )
        transaction = connection.get_transaction()
        assert transaction is not None
        transaction.rollback()
    return written


def test_a_twin_of_the_same_microsecond_is_not_mistaken_for_an_append(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"), retry=QUICK)
    lake.create()
    tx, twin = lake.begin("etl", "load"), lake.begin("etl", "load")
    for transaction, name in ((tx, "ours.parquet"), (twin, "theirs.parquet")):
        transaction.append(transaction.state.table("main", "t"), [paper_file(name, 3)])
    written = _written(lake, tx)
    twin.commit()
    with lake.catalog.write() as connection:
        connection.execute(
            sa.update(t.snapshot).where(t.snapshot.c.snapshot_id == 2).values(snapshot_time=written.snapshot.time)
        )
    with lake.catalog.read() as connection:
        row = connection.execute(sa.select(t.snapshot).where(t.snapshot.c.snapshot_id == 2)).one()
        assert row.snapshot_time == written.snapshot.time
        assert written.find(connection, lake.catalog) is False


def test_a_commit_is_recognized_when_later_ones_merged_its_files_or_expired_it(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"), retry=QUICK)
    lake.create()
    written = []

    def remember(connection: Any, *arguments: Any) -> Any:
        written.append(original(connection, *arguments))
        return written[-1]

    original = protocol.write_snapshot
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "write_snapshot", remember)
        append(lake, "first.parquet")
    append(lake, "second.parquet")
    with lake.catalog.write() as connection:
        connection.execute(sa.delete(t.data_file).where(t.data_file.c.path == "first.parquet"))
    assert lost_answer.took_place(lake.catalog, written[0], OSError("lost"))
    with lake.catalog.write() as connection:
        for table in (t.snapshot, t.snapshot_changes):
            connection.execute(sa.delete(table).where(table.c.snapshot_id == 2))
    with pytest.raises(CommitUnknownError, match=r"\(lost\).*: snapshot 2 has been expired since"):
        lost_answer.took_place(lake.catalog, written[0], OSError("lost"))


@every_catalog
def test_options_are_simply_set_again(kind: str, new_lake: NewLake, lose_answer: LoseAnswer) -> None:
    lake = Lake(new_lake(kind), retry=QUICK)
    tx = lake.begin()
    tx.set_option("parquet_compression", "zstd")
    lose_answer(lake.catalog, commits=False)
    with pytest.raises(CommitUnknownError, match="set them again, or look with SELECT") as raised:
        tx.commit()
    with lake.catalog.read() as connection:
        assert connection.exec_driver_sql(raised.value.statement).all()
    tx.commit()
    with lake.catalog.read() as connection:
        assert lake.catalog.options(connection).values[None, None, "parquet_compression"] == "zstd"


@pytest.mark.catalogs
def test_the_statement_that_finds_out_names_the_schema_of_the_catalog(new_lake: NewLake) -> None:
    lake = Lake(new_lake("postgres"), metadata_schema="my lake", retry=QUICK)
    lake.create()
    tx = lake.begin()
    tx.commit_info = CommitInfo("me")
    tx.append(tx.state.table("main", "t"), [paper_file("new.parquet", 3)])
    written = _written(lake, tx)
    statement = written.statement(lake.catalog)
    assert '"my lake".ducklake_snapshot' in statement
    with lake.catalog.read() as connection:
        assert connection.exec_driver_sql(statement).all() == []
