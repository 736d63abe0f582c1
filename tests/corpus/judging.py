"""Which engine is right where their change feeds differ: a feed must agree with itself, and with the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import duckdb
import pyarrow as pa

from .comparison import (
    DIFFERENT,
    DUCKDB_IS_WRONG,
    Finding,
    LakeFile,
    Question,
    difference,
    duckdb_answers,
    rows_of,
)

MAX_SNAPSHOTS = 60

_COMES = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


def judged(findings: Sequence[Finding], lakes: Mapping[str, LakeFile]) -> list[Finding]:
    """The findings. Where the feeds differ and only DuckDB's is impossible, DuckDB is wrong."""
    result = list(findings)
    for name, lake in lakes.items():
        places = [i for i, f in enumerate(findings) if f.question.lake == name and _can_be_judged(f)]
        if places:
            with lake.connect() as connection:
                for i in places:
                    if reason := _why_duckdb_is_wrong(connection, findings[i]):
                        result[i] = replace(findings[i], outcome=DUCKDB_IS_WRONG, detail=reason)
    return result


def _can_be_judged(finding: Finding) -> bool:
    return finding.outcome == DIFFERENT and finding.kind == "changes" and finding.spark is not None


def _why_duckdb_is_wrong(connection: duckdb.DuckDBPyConnection, finding: Finding) -> str | None:
    """The reason; None where DuckDB may be right."""
    question, ours = finding.question, finding.spark
    (theirs,) = duckdb_answers(connection, [question])
    assert isinstance(ours, pa.Table)
    if isinstance(theirs, Exception):
        return None
    alone = _asked_one_by_one(connection, question)
    if alone is not None and not difference(ours, alone):
        return "asked for one snapshot at a time, it answers as Spark does"
    if _pairs_versions(ours, theirs):
        return "of a row that one transaction updates several times, it tells each version with each"
    states = _rows_by_snapshot(connection, question)
    if states and _leads_from_state_to_state(states, ours) and not _leads_from_state_to_state(states, theirs):
        return "its changes do not lead from the rows of one snapshot to those of the next, and Spark's do"
    return None


def _pairs_versions(ours: pa.Table, theirs: pa.Table) -> bool:
    """Whether they differ just in rows that a snapshot updates n times: told n times by Spark, n * n by DuckDB."""
    told = [_changes_of_rows(table) for table in (ours, theirs)]
    if told[0].keys() != told[1].keys():
        return False
    differing = [(told[0][row], told[1][row]) for row in told[0] if told[0][row] != told[1][row]]
    return all(
        a.keys() == b.keys() and a.total() % 2 == 0 and a.total() > 2 and b.total() == a.total() ** 2 // 2
        for a, b in differing
    )


def _changes_of_rows(changes: pa.Table) -> dict[tuple[int, int], Counter[str]]:
    """What a feed tells of each row in each snapshot."""
    found: dict[tuple[int, int], Counter[str]] = {}
    for snapshot, row_id, *told in rows_of(changes):
        found.setdefault((snapshot, row_id), Counter())[repr(told)] += 1
    return found


def _asked_one_by_one(connection: duckdb.DuckDBPyConnection, question: Question) -> pa.Table | None:
    """DuckDB's changes of each snapshot together; None if columns changed, or if it is one snapshot alone."""
    snapshots = range(question.first, question.last + 1)
    if not 1 < len(snapshots) <= MAX_SNAPSHOTS:
        return None
    answers = duckdb_answers(connection, [replace(question, first=s, last=s) for s in snapshots])
    tables = [answer for answer in answers if isinstance(answer, pa.Table)]
    if len(tables) < len(snapshots) or any(table.schema != tables[-1].schema for table in tables):
        return None
    return pa.concat_tables(tables)


def _rows_by_snapshot(connection: duckdb.DuckDBPyConnection, question: Question) -> dict[int, pa.Table]:
    """The rows of the snapshot before, and of each that is asked for, as far as there are any."""
    at = replace(question, kind="rows", with_row_ids=True)
    kept = [row[0] for row in connection.execute("select snapshot_id from ducklake_snapshots('lake')").fetchall()]
    snapshots = [s for s in sorted(kept) if question.first - 1 <= s <= question.last]
    if len(snapshots) > MAX_SNAPSHOTS:
        snapshots = [snapshots[0], snapshots[-1]]
    answers = duckdb_answers(connection, [replace(at, last=snapshot) for snapshot in snapshots])
    found = {s: answer for s, answer in zip(snapshots, answers, strict=True) if isinstance(answer, pa.Table)}
    if question.last not in found:
        return {}
    # Before its first snapshot the table had no rows.
    return {question.first - 1: found[question.last].slice(0, 0), **found}


def _leads_from_state_to_state(states: Mapping[int, pa.Table], changes: pa.Table) -> bool:
    """Whether the first rows with the changes up to each snapshot are its rows: by values too if columns stayed."""
    first, *others = sorted(states)
    newest = states[others[-1]]
    columns = newest.column_names[2:] if all(rows.schema == newest.schema for rows in states.values()) else []
    before = _count(states[first], columns)
    snapshots = changes.column("snapshot_id").to_pylist()
    kinds = changes.column("change_type").to_pylist()
    told = list(zip(snapshots, kinds, _rows(changes, columns), strict=True))
    for snapshot in others:
        found = Counter(before)
        for at, kind, row in told:
            if at <= snapshot:
                found[row] += _COMES[kind]
        if {row: n for row, n in found.items() if n} != _count(states[snapshot], columns):
            return False
    return True


def _count(table: pa.Table, columns: Sequence[str]) -> Counter[str]:
    return Counter(_rows(table, columns))


def _rows(table: pa.Table, columns: Sequence[str]) -> list[str]:
    return [repr(row) for row in rows_of(table.select(["rowid", *columns]))]
