"""A commit of which nobody can say whether it took place: no file is deleted that its snapshot may have."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import CommitUnknownError, ConflictError
from dbt.adapters.ducklake.lake.transaction import Transaction

from .... import reference

NO_ANSWER = CommitUnknownError("the server did not answer", "select 1")


@pytest.fixture
def unknown_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits take place, and end with an error all the same."""
    commit = Transaction.commit

    def without_answer(transaction: Transaction) -> None:
        commit(transaction)
        raise NO_ANSWER

    monkeypatch.setattr(Transaction, "commit", without_answer)


def _rows(folder: Path) -> list[tuple[int]]:
    duckdb = reference.connect(f"sqlite:{folder}/c.sqlite")
    try:
        return duckdb.execute("from lake.t order by all").fetchall()
    finally:
        duckdb.close()


@pytest.fixture
def address(tmp_path: Path) -> str:
    duckdb = reference.connect(f"sqlite:{tmp_path}/c.sqlite", f"{tmp_path}/data/")
    duckdb.execute("create table lake.t (id bigint)")
    duckdb.execute("insert into lake.t select * from range(5)")  # inlined
    duckdb.close()
    return f"sqlite:{tmp_path}/c.sqlite"


def test_a_flush_keeps_its_files(address: str, tmp_path: Path, unknown_commit: None) -> None:
    with LakeSession(address) as lake, pytest.raises(CommitUnknownError):
        lake.call("ducklake_flush_inlined_data")
    assert _rows(tmp_path) == [(i,) for i in range(5)]


def test_a_shared_transaction_keeps_its_files(address: str, tmp_path: Path, unknown_commit: None) -> None:
    with LakeSession(address) as lake:
        shared = lake.begin_shared()
        lake.insert("t", pa.table({"id": [7]}))
        with pytest.raises(CommitUnknownError):
            lake.publish(shared.transaction("lake").commit_info, shared.folds)
    assert _rows(tmp_path) == [(i,) for i in (0, 1, 2, 3, 4, 7)]


def test_a_shared_transaction_that_conflicts_deletes_them(address: str, tmp_path: Path) -> None:
    with (
        LakeSession(address, data_inlining_row_limit=0) as lake,
        LakeSession(address, data_inlining_row_limit=0) as other,
    ):
        shared = lake.begin_shared()
        lake.insert("t", pa.table({"id": [7]}))
        assert list(tmp_path.rglob("*.parquet"))
        other.execute("drop table t")
        with pytest.raises(ConflictError):
            lake.publish(shared.transaction("lake").commit_info, shared.folds)
        assert not list(tmp_path.rglob("*.parquet"))
        assert lake.shared is None
