"""The comparison finds what differs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.ducklake.lake.errors import UnsupportedError

from ..workers import spawn
from . import comparison
from .comparison import DIFFERENT, EQUAL, NOT_COMPARABLE, REFUSED, LakeFile, Question, compare, duckdb_answers
from .judging import _leads_from_state_to_state, _pairs_versions

ROWS = Question("rows", "lake", "main", "t", 0, 3, with_row_ids=True)
CHANGES = Question("changes", "lake", "main", "t", 1, 3)
TABLE = pa.table({"rowid": [0, 1], "snapshot_id": [1, 1], "a": ["x", "y"]})


def outcomes(question: Question, ours: object, theirs: object) -> list[tuple[str, str]]:
    return [(f.kind, f.outcome) for f in compare([question], [ours], [theirs]).items]  # type: ignore[list-item]


def test_answers_are_multisets() -> None:
    assert outcomes(CHANGES, TABLE, TABLE.take([1, 0])) == [("changes", EQUAL)]
    assert outcomes(CHANGES, TABLE, TABLE.take([1, 0, 0])) == [("changes", DIFFERENT)]


@pytest.mark.parametrize("limit", [comparison.MAX_ROWS_IN_PYTHON, 0])
def test_row_ids_are_told_from_rows(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "MAX_ROWS_IN_PYTHON", limit)
    other_ids = TABLE.set_column(0, "rowid", [[1, 0]])
    other_rows = TABLE.set_column(2, "a", [["x", "z"]])
    assert outcomes(ROWS, TABLE, TABLE) == [("rows", EQUAL), ("row ids", EQUAL)]
    assert outcomes(ROWS, TABLE, other_ids) == [("rows", EQUAL), ("row ids", DIFFERENT)]
    assert outcomes(ROWS, TABLE, other_rows) == [("rows", DIFFERENT)]


@pytest.mark.processes
def test_duckdb_tells_a_change_feed_of_many_rows(tmp_path: Path) -> None:
    lake = LakeFile(f"duckdb:{tmp_path}/lake.db")
    with lake.connect() as connection:
        connection.execute("create table t as from range(500_000) r(i)")
    process = spawn.Process(target=_ask_for_changes, args=(lake, 500_000))
    process.start()
    process.join(60)
    process.kill()  # DuckDB hangs where no interrupt reaches it
    process.join()
    assert process.exitcode == 0


def _ask_for_changes(lake: LakeFile, rows: int) -> None:
    with lake.connect() as connection:
        (answer,) = duckdb_answers(connection, [Question("changes", "lake", "main", "t", 0, 1)])
    assert isinstance(answer, pa.Table)
    assert answer.num_rows == rows


def test_other_columns_differ() -> None:
    assert outcomes(CHANGES, TABLE, TABLE.rename_columns(["rowid", "snapshot_id", "b"])) == [("changes", DIFFERENT)]


def test_errors_are_refusals_only_where_they_say_why() -> None:
    assert outcomes(ROWS, UnsupportedError("not this"), TABLE) == [("rows", REFUSED)]
    assert outcomes(ROWS, ValueError("oops"), TABLE) == [("rows", DIFFERENT)]
    assert outcomes(ROWS, UnsupportedError("not this"), ValueError("nor DuckDB")) == [("rows", NOT_COMPARABLE)]


def changes(*rows: tuple[int, int, str, int]) -> pa.Table:
    names = ("snapshot_id", "rowid", "change_type", "a")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


@pytest.mark.parametrize(("told_at", "right"), [(3, True), (2, False)])
def test_the_judge_sees_in_which_snapshot_a_row_was_deleted(told_at: int, right: bool) -> None:
    rows = pa.table({"rowid": [0, 1], "snapshot_id": [2, 2], "a": [7, 8]})
    states = {1: rows.slice(0, 0), 2: rows, 3: rows.slice(1)}
    told = changes((2, 0, "insert", 7), (2, 1, "insert", 8), (told_at, 0, "delete", 7))
    assert _leads_from_state_to_state(states, told) == right


@pytest.mark.parametrize("times", [1, 2])
def test_the_judge_knows_versions_that_are_paired_with_each_other(times: int) -> None:
    ours = changes(*[(2, 0, kind, 7) for kind in ("update_preimage", "update_postimage")] * times)
    theirs = changes(*[(2, 0, kind, 7) for kind in ("update_preimage", "update_postimage")] * times**2)
    assert _pairs_versions(ours, theirs)
    assert not _pairs_versions(ours, changes((2, 0, "update_postimage", 7)))
    assert not _pairs_versions(ours, pa.concat_tables([theirs, theirs]))
