"""Decoding of inlined values: DuckDB's text notation, or values of the catalog database's own types.

The reference stores a value as text if the catalog database has no type for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from .errors import UnsupportedError
from .types import INTEGER_RANGES, TIMESTAMPS, Column, decimal_parts
from .values import comparable_value, render_value
from .variant_values import encode_variant

_DECIMAL_CONTEXT = Context(prec=76)  # the default precision, 28 digits, is too small for decimal(38, s)


def decode(value: Any, column: Column, structs_are_sql: bool = False) -> Any:
    """The Python value of a column's stored value, which is text in DuckDB's notation or a database value.

    With `structs_are_sql`, fields of structs are SQL literals (`'it''s'`, `CAST('...' AS DATE)`). The reference
    writes them so if the database has no structs. Values inside lists and maps are never SQL literals.
    """
    return decoder(column, structs_are_sql)(value)


def decoder(column: Column, structs_are_sql: bool = False) -> Callable[[Any], Any]:
    """The function that decodes each stored value of a column: see `decode`."""
    if has_variant(column):
        return lambda value: _native(value, column)
    if not column.children:
        return lambda value: None if value is None else _scalar(value, column.type)

    def parse(value: Any) -> Any:
        text = value if isinstance(value, str) else bytes(value).decode()
        return _Parser(text).parse(column, structs_are_sql)

    return lambda value: None if value is None else parse(value)


def has_variant(column: Column) -> bool:
    """Whether the column is or holds variants. Only DuckDB stores such inlined values, in its own types."""
    return any(field.type == "variant" for field in column.walk())


def _native(value: Any, column: Column) -> Any:
    """A value of DuckDB's own types, as the driver returns it."""
    if value is None:
        return None
    if column.type == "variant":
        return encode_variant(value)
    if column.type == "struct":
        return {child.name: _native(value[child.name], child) for child in column.children}
    if column.type == "list":
        return [_native(item, column.children[0]) for item in value]
    if column.type == "map":
        key, item = column.children
        return [(_native(k, key), _native(v, item)) for k, v in value.items()]
    if column.type in ("interval", "timestamp_ns", "float32"):
        raise ValueError("beside variants in a nested column, its driver returns such values changed")
    return _scalar(value, column.type)


def _scalar(value: Any, type_: str) -> Any:
    if type_ == "blob":
        return parse_blob(value) if isinstance(value, str) else bytes(value)
    if isinstance(value, bytes | bytearray | memoryview):
        value = bytes(value).decode()
    if type_ == "boolean":
        return value.lower() in ("true", "1", "t") if isinstance(value, str) else bool(value)
    if type_ in INTEGER_RANGES:
        if type_ in ("int128", "uint128"):
            return str(int(value))  # no Arrow type that Spark knows has so many digits
        return Decimal(value) if type_ == "uint64" else int(value)
    if type_ in ("float32", "float64"):
        return float(value)
    if decimal := decimal_parts(type_):
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-decimal[1]), context=_DECIMAL_CONTEXT)
    if type_ == "timestamp_ns":
        return _nanosecond_text(value)  # no Arrow type that Spark knows has nanoseconds
    if type_ == "date" or type_ in TIMESTAMPS:
        return _moment(value, type_)
    if type_ == "interval":
        return _interval_text(str(value))
    return str(value)


def _nanosecond_text(value: Any) -> str:
    """A `timestamp_ns` as DuckDB writes it."""
    found = comparable_value(value, "timestamp_ns")
    if found is None:
        raise ValueError(f"{value!r} is no timestamp_ns")
    return render_value(found, "timestamp_ns")


def _moment(value: Any, type_: str) -> Any:
    """A date or timestamp, as the number that Arrow and Spark have for it: Python's own end with the year 9999."""
    found = comparable_value(value, type_)
    if found is None:
        raise ValueError(f"{value!r} is no {type_}")
    if isinstance(found, float):  # infinite
        largest = 2**31 - 1 if type_ == "date" else 2**63 - 1
        return largest if found > 0 else -largest
    return found if type_ == "date" else found // 1000


def parse_blob(text: str) -> bytes:
    r"""The bytes of a blob in DuckDB's notation, where `\xAB` is a byte without a printable character."""
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


_INTERVAL_PART = re.compile(
    r"([+-]?\d+) (year|mon|day|hour|minute|second|millisecond|microsecond)(?:th)?s?"
    r"|([+-]?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?"
)
_INTERVAL_UNITS = {
    "year": (12, 0, 0),
    "mon": (1, 0, 0),
    "day": (0, 1, 0),
    "hour": (0, 0, 3_600_000_000),
    "minute": (0, 0, 60_000_000),
    "second": (0, 0, 1_000_000),
    "millisecond": (0, 0, 1000),
    "microsecond": (0, 0, 1),
}


def _interval_text(text: str) -> str:
    """An interval in DuckDB's notation, `1 year 2 days 00:00:03.5`, from that of any catalog database."""
    months = days = micros = 0
    for match in _INTERVAL_PART.finditer(text):
        if match[2]:
            count, unit = int(match[1]), _INTERVAL_UNITS[match[2]]
            months, days, micros = months + count * unit[0], days + count * unit[1], micros + count * unit[2]
        else:
            clock = (int(match[4]) * 60 + int(match[5])) * 60 + int(match[6])
            clock = clock * 1_000_000 + int((match[7] or "").ljust(6, "0"))
            micros += -clock if match[3] == "-" else clock
    years, months = (abs(months) // 12, abs(months) % 12) if months >= 0 else (-(-months // 12), -(-months % 12))
    parts = [
        f"{count} {word}{'' if abs(count) == 1 else 's'}"
        for count, word in ((years, "year"), (months, "month"), (days, "day"))
        if count
    ]
    if micros or not parts:
        seconds, fraction = divmod(abs(micros), 1_000_000)
        sign, tail = "-" if micros < 0 else "", f".{fraction:06d}".rstrip("0") if fraction else ""
        parts.append(f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}")
    return " ".join(parts)


_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_SQL_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_SQL_CAST = re.compile(r"CAST\('(.*?)' AS [A-Z_ ]+\)", re.DOTALL)


class _Parser:
    """Parses nested values in DuckDB's text notation: `[1, NULL]`, `{'a': x, 'b': 'y z'}`, `{k=1}`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def parse(self, column: Column, sql_literals: bool) -> Any:
        result = self._value(column, "", sql_literals)
        if self._position != len(self._text):
            raise self._error("the end")
        return result

    def _value(self, column: Column, ends: str, sql_literals: bool = False) -> Any:
        if self._skip_null(ends):
            return None
        if column.type == "list":
            return self._sequence("[", "]", lambda: self._value(column.children[0], ",]"))
        if column.type == "map":
            return self._sequence("{", "}", lambda: self._map_entry(column))
        if column.type == "struct":
            return dict(self._sequence("{", "}", lambda: self._struct_field(column, sql_literals)))
        if column.type in ("json", "variant"):
            return self._json(ends, sql_literals)
        if sql_literals and self._text.startswith("CAST('", self._position):
            return _scalar(self._cast(), column.type)
        return _scalar(self._quoted_or_bare(ends, sql_literals), column.type)

    def _skip_null(self, ends: str) -> bool:
        after = self._text[self._position + 4 : self._position + 5]
        if self._text.startswith("NULL", self._position) and (not after or after in ends):
            self._position += 4
            return True
        return False

    def _sequence(self, opening: str, closing: str, item: Callable[[], Any]) -> list[Any]:
        self._expect(opening)
        items: list[Any] = []
        while not self._text.startswith(closing, self._position):
            if items:
                self._expect(", ")
            items.append(item())
        self._expect(closing)
        return items

    def _map_entry(self, column: Column) -> tuple[Any, Any]:
        key = self._value(column.children[0], "=")
        self._expect("=")
        return key, self._value(column.children[1], ",}")

    def _struct_field(self, column: Column, sql_literals: bool) -> tuple[str, Any]:
        name = self._quoted_or_bare(":", sql_literals)
        self._expect(": ")
        field = column.child(name)
        if field is None:
            raise self._error(f"a field of {column.type_text()}")
        return field.name, self._value(field, ",}", sql_literals)

    def _quoted_or_bare(self, ends: str, sql_literals: bool = False) -> str:
        """A quoted text, or the text up to one of the characters `ends`."""
        if not self._text.startswith("'", self._position):
            return self._read_until(ends)
        match = (_SQL_LITERAL if sql_literals else _QUOTED).match(self._text, self._position)
        if not match:
            raise self._error("a closing quote")
        self._position = match.end()
        return match[1].replace("''", "'") if sql_literals else re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL)

    def _cast(self) -> str:
        """The text inside `CAST('...' AS ...)`. Quotes in it are not doubled."""
        match = _SQL_CAST.match(self._text, self._position)
        if not match:
            raise self._error("the type of a CAST")
        self._position = match.end()
        return match[1]

    def _read_until(self, ends: str) -> str:
        start = self._position
        while self._position < len(self._text) and self._text[self._position] not in ends:
            self._position += 1
        return self._text[start : self._position]

    def _json(self, ends: str, sql_literals: bool) -> str:
        """A JSON text, which has no quotes around it."""
        if self._text.startswith("'", self._position):
            return self._quoted_or_bare(ends, sql_literals)
        start, depth, quoted = self._position, 0, False
        while self._position < len(self._text):
            character = self._text[self._position]
            if quoted:
                self._position += 1 if character == "\\" else 0
                quoted = character != '"'
            elif character == '"':
                quoted = True
            elif depth == 0 and character in ends:
                break
            elif character in "[{":
                depth += 1
            elif character in "]}":
                depth -= 1
            self._position += 1
        return self._text[start : self._position]

    def _expect(self, text: str) -> None:
        if not self._text.startswith(text, self._position):
            raise self._error(repr(text))
        self._position += len(text)

    def _error(self, expected: str) -> UnsupportedError:
        return UnsupportedError(
            f"an inlined value can not be read: {expected} was expected at character {self._position + 1}"
            f" of {self._text[:80]!r}; flush the inlined rows with ducklake_flush_inlined_data in DuckDB"
        )
