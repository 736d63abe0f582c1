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
    if _leads_to_the_rows(connection, question, ours) and not _leads_to_the_rows(connection, question, theirs):
        return "its changes do not lead from the rows before to the rows after, and Spark's do"
    return None


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


def _leads_to_the_rows(connection: duckdb.DuckDBPyConnection, question: Question, changes: pa.Table) -> bool:
    """Whether the rows before, with the changes, are the rows after: by row ids, and by values if columns stayed."""
    at = replace(question, kind="rows", with_row_ids=True)
    before, after = duckdb_answers(connection, [replace(at, last=question.first - 1), at])
    if isinstance(after, Exception):
        return False
    if isinstance(before, Exception):  # there was no table
        before = after.slice(0, 0)
    columns = after.column_names[2:] if before.schema == after.schema else []
    found = _count(before, columns)
    for row, kind in zip(_rows(changes, columns), changes.column("change_type").to_pylist(), strict=True):
        found[row] += _COMES[kind]
    return {row: n for row, n in found.items() if n} == _count(after, columns)


def _count(table: pa.Table, columns: Sequence[str]) -> Counter[str]:
    return Counter(_rows(table, columns))


def _rows(table: pa.Table, columns: Sequence[str]) -> list[str]:
    return [repr(row) for row in rows_of(table.select(["rowid", *columns]))]
