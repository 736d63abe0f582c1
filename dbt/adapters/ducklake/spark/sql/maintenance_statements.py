"""The statements of Delta and Iceberg that maintain a table: OPTIMIZE, VACUUM, RESTORE, ANALYZE, DESCRIBE HISTORY.

Spark has some of these words itself, and other table formats bring theirs. So each statement keeps its text, for Spark
to run where the table is not of a lake. What a lake does not take after the name is an `UnreadStatement` until then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias, TypeVar

from .ddl import SCHEMA_KEYWORDS, Passthrough
from .literals import parse_literal
from .tokens import Cursor, Name, StatementError


@dataclass(frozen=True)
class Optimize:
    """OPTIMIZE of a table: its data files become fewer."""

    name: Name
    text: str
    where: str | None = None
    """A predicate on partition columns."""
    zorder_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Vacuum:
    """VACUUM of a table or of a lake: files that nobody needs are deleted."""

    name: Name | None
    """None for the current lake."""
    text: str
    retain_hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class DescribeHistory:
    """DESCRIBE HISTORY: the snapshots that changed a table."""

    name: Name
    text: str


@dataclass(frozen=True)
class DescribeDetail:
    """DESCRIBE DETAIL: a table as a whole, in one row."""

    name: Name
    text: str


@dataclass(frozen=True)
class Restore:
    """RESTORE of a table or schema to an earlier snapshot."""

    name: Name
    text: str
    version: int | None = None
    timestamp: str | None = None
    """An expression, if the snapshot is given by a time."""
    kind: Literal["table", "schema"] = "table"


@dataclass(frozen=True)
class Analyze:
    """ANALYZE TABLE: statistics that the catalog lacks are computed."""

    name: Name
    text: str
    columns: tuple[str, ...] | None = None
    """None for all columns."""
    noscan: bool = False


@dataclass(frozen=True)
class UnreadStatement:
    """One of these statements with something that a lake does not take."""

    name: Name
    text: str
    error: StatementError
    """What to say if the table is one of a lake."""


MaintenanceStatement: TypeAlias = (
    Optimize | Vacuum | DescribeHistory | DescribeDetail | Restore | Analyze | UnreadStatement
)
T = TypeVar("T")


def parse_optimize(cursor: Cursor) -> Optimize | UnreadStatement | Passthrough:
    cursor.begin("OPTIMIZE")
    if cursor.at_string():  # the path of a Delta table
        return Passthrough(cursor.whole_text())
    if cursor.peek(1).kind in ("word", "quoted") and cursor.peek(1).key not in ("WHERE", "ZORDER"):
        cursor.take("TABLE")
    return _of_relation(cursor, _read_optimize)


def _read_optimize(cursor: Cursor, name: Name, text: str) -> Optimize:
    where = cursor.expression("a predicate on partition columns", "ZORDER") if cursor.take("WHERE") else None
    columns: tuple[str, ...] = ()
    if cursor.take("ZORDER"):
        cursor.expect("BY")
        columns = cursor.parenthesized(lambda: _column(cursor)) if cursor.at("(") else _columns(cursor)
    return Optimize(name, text, where, columns)


def parse_vacuum(cursor: Cursor) -> Vacuum | UnreadStatement | Passthrough:
    cursor.begin("VACUUM")
    if cursor.at_string():
        return Passthrough(cursor.whole_text())
    has_no_name = (
        cursor.at_end() or (cursor.at("RETAIN") and cursor.peek(1).kind == "number") or cursor.at("DRY", "RUN")
    )
    if has_no_name:
        vacuum = _read_vacuum(cursor, None, _text(cursor))
        cursor.finish()
        return vacuum
    if cursor.peek(1).kind in ("word", "quoted") and cursor.peek(1).key not in ("RETAIN", "DRY"):
        cursor.take("TABLE")
    return _of_relation(cursor, _read_vacuum, "a table or a lake")


def _read_vacuum(cursor: Cursor, name: Name | None, text: str) -> Vacuum:
    if cursor.at_any("FULL", "LITE", "USING"):
        raise cursor.refused(cursor.token.key, "the catalog knows the files of a lake. Leave it out")
    hours = None
    if cursor.take("RETAIN"):
        if cursor.token.kind != "number":
            raise cursor.unexpected("a number of hours")
        literal = parse_literal(cursor.sql[cursor.token.start : cursor.token.end])
        assert literal is not None
        assert isinstance(literal.value, int | float | Decimal)
        hours, cursor.index = float(literal.value), cursor.index + 1
        if not cursor.take_any("HOURS", "HOUR"):
            raise cursor.unexpected("HOURS")
    dry_run = cursor.take("DRY", "RUN")
    return Vacuum(name, text, hours, dry_run)


def at_table_description(cursor: Cursor) -> bool:
    """Whether HISTORY or DETAIL and a name come next, after DESCRIBE. A table may be called `history` itself."""
    return cursor.at_any("HISTORY", "DETAIL") and cursor.peek(1).kind in ("word", "quoted", "string")


def parse_table_description(cursor: Cursor) -> DescribeHistory | DescribeDetail | UnreadStatement | Passthrough:
    is_history = cursor.at("HISTORY")
    cursor.begin(cursor.token.key)
    if cursor.at_string():
        return Passthrough(cursor.whole_text())
    if cursor.peek(1).kind in ("word", "quoted"):
        cursor.take("TABLE")
    if is_history:
        return _of_relation(cursor, lambda cursor, name, text: DescribeHistory(name, text))
    return _of_relation(cursor, lambda cursor, name, text: DescribeDetail(name, text))


def parse_restore(cursor: Cursor) -> Restore | UnreadStatement | Passthrough:
    cursor.begin("RESTORE")
    kind: Literal["table", "schema"] = "table"
    if cursor.peek(1).kind in ("word", "quoted", "string") and cursor.peek(1).key != "TO":
        word = cursor.take_any("TABLE", *SCHEMA_KEYWORDS)
        kind = "schema" if word in SCHEMA_KEYWORDS else "table"
    if cursor.at_string():
        return Passthrough(cursor.whole_text())

    def read(cursor: Cursor, name: Name, text: str) -> Restore:
        cursor.take("TO")
        if cursor.take("VERSION", "AS", "OF"):
            number = cursor.expression("the number of a snapshot")
            literal = parse_literal(number)
            version = literal.value if literal is not None else None
            if isinstance(version, bool) or not str(version).isdigit():
                raise cursor.error(f"expected the number of a snapshot, found {number}")
            return Restore(name, text, version=int(str(version)), kind=kind)
        if cursor.take("TIMESTAMP", "AS", "OF"):
            return Restore(name, text, timestamp=cursor.expression("a timestamp"), kind=kind)
        raise cursor.unexpected("TO VERSION AS OF or TO TIMESTAMP AS OF")

    return _of_relation(cursor, read, "a schema" if kind == "schema" else "a table")


def parse_analyze(cursor: Cursor) -> Analyze | UnreadStatement | Passthrough:
    cursor.begin("ANALYZE")
    if not cursor.at("TABLE"):  # TABLES, which is about the tables of Spark's own catalog
        return Passthrough(cursor.whole_text())
    cursor.begin("TABLE")
    return _of_relation(cursor, _read_analyze)


def _read_analyze(cursor: Cursor, name: Name, text: str) -> Analyze:
    if cursor.at("PARTITION"):
        raise cursor.refused("PARTITION", "a lake's partitions are values of rows. Leave it out")
    cursor.expect("COMPUTE", "STATISTICS")
    columns = None
    if cursor.take("FOR", "COLUMNS"):
        columns = _columns(cursor)
    else:
        cursor.take("FOR", "ALL", "COLUMNS")
    return Analyze(name, text, columns, cursor.take("NOSCAN"))


def _of_relation(cursor: Cursor, read: Callable[[Cursor, Name, str], T], what: str = "a table") -> T | UnreadStatement:
    """Parses a name, and with `read` what follows it up to the end of the statement."""
    text, name = _text(cursor), cursor.subject(what)
    try:
        statement = read(cursor, name, text)
        cursor.finish()
    except StatementError as error:
        return UnreadStatement(name, text, error)
    return statement


def _text(cursor: Cursor) -> str:
    return cursor.sql[cursor.tokens[0].start : cursor.tokens[-1].end]


def _column(cursor: Cursor) -> str:
    return ".".join(cursor.name("a column"))


def _columns(cursor: Cursor) -> tuple[str, ...]:
    return cursor.comma_separated(lambda: _column(cursor))
