"""Default values of columns: from Spark SQL to the text in the catalog, and back."""

from __future__ import annotations

import datetime
import re
from decimal import Context, Decimal, InvalidOperation

import sqlglot

from ...lake.errors import SchemaChangeError
from ...lake.partition_values import encode_partition_value
from ...lake.types import FLOATS, INTEGER_RANGES, TIMESTAMPS, Column, decimal_parts
from .literals import parse_literal
from .types import query_type, value_literal

_TYPED_LITERAL = re.compile(r"(?is)\s*(date|timestamp|timestamp_ntz|timestamp_ltz|time)\s*('[^'\\]*'|\"[^\"\\]*\")\s*")
_NOT_LITERAL = "it must be computed"


def literal_default(expression: str, column: Column) -> str | None:
    """Returns the catalog's text for a literal default of a column; None for NULL.

    Raises ValueError if the expression is no literal, or not one of the column's type.
    """
    typed = _TYPED_LITERAL.fullmatch(expression)
    if typed:
        value: object = typed[2][1:-1]
    else:
        literal = parse_literal(expression)
        if literal is None:
            raise ValueError(_NOT_LITERAL)
        value = literal.value
    if value is None:
        return None
    if column.children:
        raise ValueError("a nested column can have no default")
    return _catalog_text(value, column.type)


def _catalog_text(value: object, type_: str) -> str:
    not_of_type = ValueError(f"it is no {type_}")
    if type_ == "boolean":
        if isinstance(value, bool):
            return "true" if value else "false"
        raise not_of_type
    if type_ in ("varchar", "json", "uuid", "time", "timetz", "interval"):
        if isinstance(value, str):
            return value
        if isinstance(value, bool | bytes | tuple):
            raise not_of_type
        return str(value)
    if type_ == "blob":
        data = value.encode() if isinstance(value, str) else value
        if not isinstance(data, bytes):
            raise not_of_type
        return "".join(chr(b) if 32 <= b < 127 and b not in b"'\"\\" else f"\\x{b:02X}" for b in data)
    if isinstance(value, bool | bytes | tuple):
        raise not_of_type
    try:
        if type_ in INTEGER_RANGES:
            number = Decimal(str(value))
            low, high = INTEGER_RANGES[type_]
            if number != int(number) or not low <= number <= high:
                raise not_of_type
            return str(int(number))
        if type_ in FLOATS:
            return repr(float(str(value)))
        if decimal := decimal_parts(type_):
            number = Decimal(str(value)).quantize(Decimal(1).scaleb(-decimal[1]), context=Context(prec=76))
            if len(number.as_tuple().digits) > decimal[0]:
                raise not_of_type
            return f"{number:f}"
    except InvalidOperation:
        raise not_of_type from None
    if not isinstance(value, str):
        raise not_of_type
    if type_ == "date":
        return datetime.date.fromisoformat(value.strip()).isoformat()
    if type_ in TIMESTAMPS:
        timestamp = datetime.datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        if type_ == "timestamptz" and timestamp.tzinfo is None:
            timestamp = timestamp.replace(tzinfo=datetime.timezone.utc)
        if type_ != "timestamptz" and timestamp.tzinfo is not None:
            raise not_of_type
        return encode_partition_value(timestamp, type_) or ""
    raise not_of_type


def encode_default(expression: str, column: Column, table: str) -> tuple[str | None, str]:
    """Returns the catalog's text of a default for new rows, and its kind: `literal` or `expression`.

    An expression is stored in DuckDB's SQL, because every reader takes it for that.
    """
    try:
        return literal_default(expression, column), "literal"
    except ValueError as error:
        if str(error) != _NOT_LITERAL:
            raise _refused(expression, column, table, str(error)) from None
    try:
        duckdb = sqlglot.transpile(expression, read="spark", write="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE)
    except (sqlglot.errors.SqlglotError, ValueError) as error:
        raise _refused(expression, column, table, "it can not be said in DuckDB's SQL as well") from error
    return duckdb[0], "expression"


def encode_initial_default(expression: str, column: Column, table: str) -> str | None:
    """Returns the catalog's text of the value that existing rows get for a new column: always a literal."""
    try:
        return literal_default(expression, column)
    except ValueError as error:
        reason = str(error)
        if reason == _NOT_LITERAL:
            reason = (
                "rows from before the column would have no fixed value; add the column without it, then"
                " ALTER COLUMN ... SET DEFAULT for rows to come"
            )
        raise _refused(expression, column, table, reason) from None


def _refused(expression: str, column: Column, table: str, reason: str) -> SchemaChangeError:
    return SchemaChangeError(f"column {column.name} of table {table} can not have the default {expression}: {reason}")


def default_sql(column: Column) -> str:
    """Returns the Spark SQL for the value that a new row gets if the statement gives none."""
    if column.default_value is None:
        return f"cast(null as {query_type(column).simpleString()})"
    if column.default_value_type == "literal":
        return value_literal(column.default_value, column)
    return sqlglot.transpile(column.default_value, read=column.default_value_dialect or "duckdb", write="spark")[0]
