"""Rows that live in the catalog database instead of in files.

The reference keeps a table of them for each schema version of a table, and writes values that the
database has no type for as text, in DuckDB's own notation.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog
from .databases.base import Database
from .errors import UnsupportedError
from .snapshot import Table, build_columns
from .types import INTEGER_BITS, Column, decimal_parts
from .values import interval_text

SYSTEM_COLUMNS = ("row_id", "begin_snapshot", "end_snapshot")
_LONGEST_NAME = 63


@dataclass(frozen=True)
class InlinedRows:
    """The inlined rows of a table: its columns in their order, then `row_id` and `begin_snapshot`."""

    rows: pa.Table

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def without(self, row_ids: Collection[int]) -> InlinedRows:
        gone = pc.is_in(self.rows.column("row_id"), pa.array(sorted(row_ids), pa.int64()))
        return InlinedRows(self.rows.filter(pc.invert(gone)))


def can_inline(database: Database, columns: Sequence[Column]) -> bool:
    """Whether the database can hold rows of these columns."""
    kinds = {field.type for column in columns for field in column.walk()}
    return (
        database.supports_inlining
        and all(c.name.lower() not in SYSTEM_COLUMNS and len(c.name.encode()) <= _LONGEST_NAME for c in columns)
        and "geometry" not in kinds
        and ("variant" not in kinds or database.name == "duckdb")
    )


def create_table(connection: sa.Connection, catalog: Catalog, name: str, columns: Sequence[Column]) -> None:
    quote = catalog.database.quote
    definitions = [f"{column} BIGINT" for column in SYSTEM_COLUMNS]
    database = catalog.database
    definitions += [f"{quote(database.inlined_name(c.name))} {database.inlined_type(c)}" for c in columns]
    # DDL takes no parameters: names are quoted, types are ours.
    statement = f"CREATE TABLE IF NOT EXISTS {quote(name)} ({', '.join(definitions)})"
    connection.execute(sa.DDL(statement.replace("%", "%%")))  # type: ignore[no-untyped-call]


def create_delete_table(connection: sa.Connection, catalog: Catalog, table_id: int) -> sa.TableClause:
    """The table of positions deleted from a table's data files, which is made when it is first needed."""
    source = t.inlined_delete(table_id)
    columns = ", ".join(f"{column.name} BIGINT" for column in source.columns)
    statement = f"CREATE TABLE IF NOT EXISTS {catalog.database.quote(source.name)} ({columns})"
    connection.execute(sa.DDL(statement))  # type: ignore[no-untyped-call]
    return source


def tables_of(connection: sa.Connection, table_id: int) -> dict[int, str]:
    """The tables that hold a table's inlined rows, by the schema version of the rows in them."""
    registry = t.inlined_data_tables
    query = sa.select(registry.c.schema_version, registry.c.table_name).where(registry.c.table_id == table_id)
    return {r.schema_version: r.table_name for r in connection.execute(query.order_by(registry.c.schema_version))}


def any_since(connection: sa.Connection, table_id: int, base: int) -> bool:
    """Whether a table has inlined rows that came after a snapshot."""
    for name in tables_of(connection, table_id).values():
        rows = t.inlined_data(name, ())
        late = sa.select(rows.c.row_id).where(rows.c.begin_snapshot > base, rows.c.end_snapshot.is_(None)).limit(1)
        if connection.execute(late).first() is not None:
            return True
    return False


Which: TypeAlias = Callable[[sa.TableClause], sa.ColumnElement[bool]]


def read(connection: sa.Connection, catalog: Catalog, table: Table, at: int) -> InlinedRows | None:
    """The inlined rows that a table has at a snapshot, with its columns of then; None if there are none."""
    return _read(connection, catalog, table, lambda rows: t.alive(rows, at))


def read_begun(connection: sa.Connection, catalog: Catalog, table: Table, start: int, end: int) -> InlinedRows | None:
    """The inlined rows that came in some snapshots, whatever became of them."""
    return _read(connection, catalog, table, lambda rows: rows.c.begin_snapshot.between(start, end))


def read_ended(
    connection: sa.Connection, catalog: Catalog, table: Table, start: int, end: int, born: int | None = None
) -> InlinedRows | None:
    """The inlined rows that went in some snapshots; their `begin_snapshot` is the one in which they went.

    With `born`, those of them that were there at that snapshot.
    """

    def which(rows: sa.TableClause) -> sa.ColumnElement[bool]:
        there = sa.true() if born is None else rows.c.begin_snapshot <= born
        return sa.and_(rows.c.end_snapshot.between(start, end), there)

    return _read(connection, catalog, table, which, moment="end_snapshot")


def _read(
    connection: sa.Connection, catalog: Catalog, table: Table, which: Which, moment: str = "begin_snapshot"
) -> InlinedRows | None:
    found = []
    for version, name in tables_of(connection, table.id).items():
        old = _columns_at(connection, table.id, version)
        names = [catalog.database.inlined_name(c.name) for c in old]
        source = t.inlined_data(name, names)
        values = [
            catalog.database.readable(source.c[n], c.type).label(f"c{i}")
            for i, (n, c) in enumerate(zip(names, old, strict=True))
        ]
        query = sa.select(source.c.row_id, source.c[moment].label("moment"), *values).where(which(source))
        rows = connection.execute(query.order_by(source.c.row_id)).all()
        if rows:
            found.append(_as_arrow(rows, old, table, catalog.database.inlined_structs_are_sql))
    return InlinedRows(pa.concat_tables(found)) if found else None


def _columns_at(connection: sa.Connection, table_id: int, version: int) -> tuple[Column, ...]:
    """The columns that a table had in a schema version."""
    versions, snapshots = t.schema_versions, t.snapshot
    begin = connection.scalar(
        sa.select(versions.c.begin_snapshot).where(
            versions.c.table_id == table_id, versions.c.schema_version == version
        )
    )
    if begin is None:
        begin = connection.scalar(
            sa.select(sa.func.min(snapshots.c.snapshot_id)).where(snapshots.c.schema_version == version)
        )
    if begin is None:
        begin = connection.scalar(
            sa.select(sa.func.max(versions.c.begin_snapshot)).where(
                versions.c.table_id == table_id, versions.c.schema_version <= version
            )
        )
    rows = connection.execute(
        sa.select(t.column)
        .where(t.column.c.table_id == table_id, t.alive(t.column, begin or 0))
        .order_by(t.column.c.column_order)
    )
    return build_columns(rows)


def _as_arrow(rows: Sequence[Any], old: Sequence[Column], table: Table, as_sql: bool) -> pa.Table:
    by_id = {c.id: (i, c) for i, c in enumerate(old)}
    arrays, names = [], []
    for column in table.columns:
        kind = arrow_type(column)
        try:
            if column.id in by_id:
                index, was = by_id[column.id]
                values = [reshape(decode(row[index + 2], was, as_sql), was, column) for row in rows]
            else:
                values = [decode(column.initial_default, column)] * len(rows)
            arrays.append(pa.array(values, type=kind))
        except (ArithmeticError, ValueError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise UnsupportedError(
                f"column {column.name} of table {table.name} holds an inlined value that Spark has no"
                f" {column.type_text()} for ({error}); flush the inlined rows with ducklake_flush_inlined_data"
                " in DuckDB"
            ) from error
        names.append(column.name)
    arrays += [pa.array([r[0] for r in rows], pa.int64()), pa.array([r[1] for r in rows], pa.int64())]
    return pa.Table.from_arrays(arrays, names=[*names, "row_id", "begin_snapshot"])


def reshape(value: Any, old: Column, new: Column) -> Any:
    """A nested value of one version of a column in the shape of a later one; fields are followed by id."""
    if value is None or not old.children:
        return value
    if old.type == "list":
        return [reshape(item, old.children[0], new.children[0]) for item in value]
    if old.type == "map":
        return [
            (reshape(k, old.children[0], new.children[0]), reshape(v, old.children[1], new.children[1]))
            for k, v in value
        ]
    by_id = {child.id: child for child in old.children}
    return {
        child.name: reshape(value.get(by_id[child.id].name), by_id[child.id], child) if child.id in by_id else None
        for child in new.children
    }


def arrow_type(column: Column) -> pa.DataType:
    """The Arrow type whose Spark counterpart a column of a lake has."""
    kind = column.type
    if kind == "list":
        return pa.list_(arrow_type(column.children[0]))
    if kind == "map":
        return pa.map_(arrow_type(column.children[0]), arrow_type(column.children[1]))
    if kind == "struct":
        return pa.struct([pa.field(c.name, arrow_type(c)) for c in column.children])
    if decimal := decimal_parts(kind):
        return pa.decimal128(*decimal)
    return _ARROW.get(kind, pa.string())


_ARROW = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.int16(),
    "uint16": pa.int32(),
    "uint32": pa.int64(),
    "uint64": pa.decimal128(20, 0),
    "int128": pa.decimal128(38, 0),
    "uint128": pa.decimal128(38, 0),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "blob": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_us": pa.timestamp("us"),
    "timestamp_s": pa.timestamp("us"),
    "timestamp_ms": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
}


_EXACT = Context(prec=76)


def decode(value: Any, column: Column, as_sql: bool = False) -> Any:
    """The Python value of what the catalog holds for a column: a text in DuckDB's notation, or a value.

    `as_sql` says that a struct's fields are SQL literals (`'it''s'`, `CAST('...' AS DATE)`), as the
    reference writes them where the database has no structs; inside lists and maps they never are.
    """
    if value is None:
        return None
    if column.children:
        if not isinstance(value, str):
            value = bytes(value).decode()
        return _Notation(value).value(column, as_sql)
    return _scalar(value, column.type)


def _scalar(value: Any, kind: str) -> Any:
    if kind == "blob":
        return parse_blob(value) if isinstance(value, str) else bytes(value)
    if isinstance(value, bytes | bytearray | memoryview):
        value = bytes(value).decode()
    if kind == "boolean":
        return value.lower() in ("true", "1", "t") if isinstance(value, str) else bool(value)
    if kind in INTEGER_BITS:
        return Decimal(value) if ("64" in kind and kind[0] == "u") or "128" in kind else int(value)
    if kind in ("float32", "float64"):
        return float(value)
    if decimal := decimal_parts(kind):
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-decimal[1]), context=_EXACT)
    if kind == "date":
        return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(value)
    if kind == "timestamptz":
        return t.parse_instant(_microseconds(value)) if isinstance(value, str) else value
    if kind.startswith("timestamp"):
        return t.parse_instant(_microseconds(value)).replace(tzinfo=None) if isinstance(value, str) else value
    if kind == "interval":
        return interval_text(str(value))
    return str(value)


def _microseconds(text: str) -> str:
    """A moment's text without what is beyond microseconds."""
    return re.sub(r"(\.\d{6})\d+", r"\1", text)


def parse_blob(text: str) -> bytes:
    r"""Bytes from DuckDB's text for them, in which `\xAB` stands for a byte that has no letter."""
    result = bytearray()
    position = 0
    while position < len(text):
        if text.startswith("\\x", position):
            result.append(int(text[position + 2 : position + 4], 16))
            position += 4
        else:
            result += text[position].encode()
            position += 1
    return bytes(result)


_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_SQL_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_SQL_CAST = re.compile(r"CAST\('(.*?)' AS [A-Z_ ]+\)", re.DOTALL)


class _Notation:
    """Reads DuckDB's text for nested values: `[1, NULL]`, `{'a': x, 'b': 'y z'}`, `{k=1}`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def value(self, column: Column, as_sql: bool) -> Any:
        result = self._item(column, "", as_sql)
        if self.at != len(self.text):
            raise self._failure("the end")
        return result

    def _item(self, column: Column, ends: str, as_sql: bool = False) -> Any:
        if self._null(ends):
            return None
        if column.type == "list":
            return self._sequence("[", "]", lambda: self._item(column.children[0], ",]"))
        if column.type == "map":
            return self._sequence("{", "}", lambda: self._entry(column))
        if column.type == "struct":
            return dict(self._sequence("{", "}", lambda: self._field(column, as_sql)))
        if column.type in ("json", "variant"):
            return self._raw(ends, as_sql)
        if as_sql and self.text.startswith("CAST('", self.at):
            return _scalar(self._cast(), column.type)
        return _scalar(self._word(ends, as_sql), column.type)

    def _null(self, ends: str) -> bool:
        after = self.text[self.at + 4 : self.at + 5]
        if self.text.startswith("NULL", self.at) and (not after or after in ends):
            self.at += 4
            return True
        return False

    def _sequence(self, opening: str, closing: str, item: Callable[[], Any]) -> list[Any]:
        self._take(opening)
        items: list[Any] = []
        while not self.text.startswith(closing, self.at):
            if items:
                self._take(", ")
            items.append(item())
        self._take(closing)
        return items

    def _entry(self, column: Column) -> tuple[Any, Any]:
        key = self._item(column.children[0], "=")
        self._take("=")
        return key, self._item(column.children[1], ",}")

    def _field(self, column: Column, as_sql: bool) -> tuple[str, Any]:
        name = self._word(":", as_sql)
        self._take(": ")
        field = column.child(name)
        if field is None:
            raise self._failure(f"a field of {column.type_text()}")
        return field.name, self._item(field, ",}", as_sql)

    def _word(self, ends: str, as_sql: bool = False) -> str:
        if not self.text.startswith("'", self.at):
            return self._until(ends)
        match = (_SQL_LITERAL if as_sql else _QUOTED).match(self.text, self.at)
        if not match:
            raise self._failure("a closing quote")
        self.at = match.end()
        return match[1].replace("''", "'") if as_sql else re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL)

    def _cast(self) -> str:
        """The text in `CAST('...' AS ...)`, whose quotes are not doubled."""
        match = _SQL_CAST.match(self.text, self.at)
        if not match:
            raise self._failure("the type of a CAST")
        self.at = match.end()
        return match[1]

    def _until(self, ends: str) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in ends:
            self.at += 1
        return self.text[start : self.at]

    def _raw(self, ends: str, as_sql: bool) -> str:
        """A JSON text, which stands there without quotes of its own."""
        if self.text.startswith("'", self.at):
            return self._word(ends, as_sql)
        start, depth, quoted = self.at, 0, False
        while self.at < len(self.text):
            character = self.text[self.at]
            if quoted:
                self.at += 1 if character == "\\" else 0
                quoted = character != '"'
            elif character == '"':
                quoted = True
            elif depth == 0 and character in ends:
                break
            elif character in "[{":
                depth += 1
            elif character in "]}":
                depth -= 1
            self.at += 1
        return self.text[start : self.at]

    def _take(self, text: str) -> None:
        if not self.text.startswith(text, self.at):
            raise self._failure(repr(text))
        self.at += len(text)

    def _failure(self, expected: str) -> UnsupportedError:
        return UnsupportedError(
            f"an inlined value can not be read: {expected} was expected at character {self.at + 1}"
            f" of {self.text[:80]!r}; flush the inlined rows with ducklake_flush_inlined_data in DuckDB"
        )
