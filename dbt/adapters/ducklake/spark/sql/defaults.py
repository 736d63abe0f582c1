"""Default values: from Spark's SQL to what the catalog keeps, and back."""

from __future__ import annotations

import datetime
import re
from decimal import Context, Decimal, InvalidOperation

import sqlglot

from ...lake.errors import SchemaChangeError
from ...lake.partitions import encode_partition_value
from ...lake.types import FLOATS, INTEGER_BITS, TIMESTAMPS, Column, decimal_parts
from .definitions import parse_literal
from .types import query_type, value_literal

_TYPED = re.compile(r"(?is)\s*(date|timestamp|timestamp_ntz|timestamp_ltz|time)\s*('[^'\\]*'|\"[^\"\\]*\")\s*")


def literal_default(expression: str, column: Column) -> str | None:
    """The text by which the catalog keeps a literal default of a column; None for NULL.

    Raises ValueError where the expression is no literal, or not one of the column's type.
    """
    typed = _TYPED.fullmatch(expression)
    if typed:
        value: object = typed[2][1:-1]
    else:
        literal = parse_literal(expression)
        if literal is None:
            raise ValueError("it must be computed")
        value = literal.value
    if value is None:
        return None
    if column.children:
        raise ValueError("a nested column can have no default")
    return _as_text(value, column.type)


def _as_text(value: object, kind: str) -> str:
    wrong = ValueError(f"it is no {kind}")
    if kind == "boolean":
        if isinstance(value, bool):
            return "true" if value else "false"
        raise wrong
    if kind in ("varchar", "json", "uuid", "time", "timetz", "interval"):
        if isinstance(value, str):
            return value
        if isinstance(value, bool | bytes | tuple):
            raise wrong
        return str(value)
    if kind == "blob":
        data = value.encode() if isinstance(value, str) else value
        if not isinstance(data, bytes):
            raise wrong
        return "".join(chr(b) if 32 <= b < 127 and b not in b"'\"\\" else f"\\x{b:02X}" for b in data)
    if isinstance(value, bool | bytes | tuple):
        raise wrong
    try:
        if kind in INTEGER_BITS:
            number = Decimal(str(value))
            low, high = INTEGER_BITS[kind]
            if number != int(number) or not low <= number <= high:
                raise wrong
            return str(int(number))
        if kind in FLOATS:
            return repr(float(str(value)))
        if decimal := decimal_parts(kind):
            number = Decimal(str(value)).quantize(Decimal(1).scaleb(-decimal[1]), context=Context(prec=76))
            if len(number.as_tuple().digits) > decimal[0]:
                raise wrong
            return f"{number:f}"
    except InvalidOperation:
        raise wrong from None
    if not isinstance(value, str):
        raise wrong
    if kind == "date":
        return datetime.date.fromisoformat(value.strip()).isoformat()
    if kind in TIMESTAMPS:
        moment = datetime.datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        if kind == "timestamptz" and moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.timezone.utc)
        if kind != "timestamptz" and moment.tzinfo is not None:
            raise wrong
        return encode_partition_value(moment, kind) or ""
    raise wrong


def default_of(expression: str, column: Column, table: str) -> tuple[str | None, str]:
    """A default for rows to come, as the catalog keeps it: its text, and whether it is computed.

    What is computed is kept in DuckDB's words, since every reader takes it for those.
    """
    try:
        return literal_default(expression, column), "literal"
    except ValueError as error:
        if str(error) != "it must be computed":
            raise _refused(expression, column, table, str(error)) from None
    try:
        words = sqlglot.transpile(expression, read="spark", write="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE)[
            0
        ]
    except (sqlglot.errors.SqlglotError, ValueError) as error:
        raise _refused(expression, column, table, "it can not be said in DuckDB's SQL as well") from error
    return words, "expression"


def initial_default_of(expression: str, column: Column, table: str) -> str | None:
    """The value that rows from before a column get for it: always a literal."""
    try:
        return literal_default(expression, column)
    except ValueError as error:
        reason = str(error)
        if reason == "it must be computed":
            reason = (
                "rows from before the column would have no fixed value; add the column without it, then"
                " ALTER COLUMN ... SET DEFAULT for rows to come"
            )
        raise _refused(expression, column, table, reason) from None


def _refused(expression: str, column: Column, table: str, reason: str) -> SchemaChangeError:
    return SchemaChangeError(f"column {column.name} of table {table} can not have the default {expression}: {reason}")


def default_sql(column: Column) -> str:
    """The Spark SQL for the value that a new row gets where none is given."""
    if column.default_value is None:
        return f"cast(null as {query_type(column).simpleString()})"
    if column.default_value_type == "literal":
        return value_literal(column.default_value, column)
    return sqlglot.transpile(column.default_value, read=column.default_value_dialect or "duckdb", write="spark")[0]
