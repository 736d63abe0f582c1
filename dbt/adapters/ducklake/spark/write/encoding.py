"""Encodes values for data files: types that Spark lacks are checked and converted to what other engines read."""

from __future__ import annotations

from ...lake.types import INTEGER_RANGES, Column
from ..sql.kept_text import TEXT_TYPES, type_of_text
from ..sql.quoting import string_literal
from ..sql.types import convert_leaves

END_OF_DAY = "_lake_end_of_day"
"""The column with the time 24:00:00, beside the columns of a table with times."""

_HEX = "[0-9a-fA-F]"
_CLOCK = "(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?|24:00:00)"
_OFFSET = "([+-](0[0-9]|1[0-5])(:[0-5][0-9]){0,2})?"
_MOMENT = "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?"
_UNIT = "(microsecond|millisecond|second|minute|hour|day|week|month|mon|quarter|year|decade|centur(y|ie))"
_INTERVAL_PART = f"-?[0-9]+ {_UNIT}s?"

_PATTERNS = {
    "uuid": f"{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}",
    "time_ns": _CLOCK,
    "timetz": _CLOCK + _OFFSET,
    "interval": f"(?i)({_INTERVAL_PART} )*({_INTERVAL_PART}|-?[0-9]+:[0-5][0-9]:[0-5][0-9]([.][0-9]{{1,6}})?)",
}
"""The regular expressions that strings of a type must match."""

_VALUE = "VALUE"
_IS_INFINITE = f"abs(timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', VALUE)) = {2**63 - 1}L"
_MICROSECONDS_BEYOND = "cast(date_part('SECOND', VALUE) % {} * 1000000 as int)"
_CONDITIONS = {
    **{kind: f"VALUE rlike '^{form}$'" for kind, form in _PATTERNS.items()},
    **{kind: f"VALUE between {low} and {high}" for kind, (low, high) in INTEGER_RANGES.items() if low == 0},
    "uint128": "VALUE rlike '^(0|[1-9][0-9]{0,38})$'"
    f" and (length(VALUE) < 39 or VALUE <= '{INTEGER_RANGES['uint128'][1]}')",
    TEXT_TYPES["int128"]: "VALUE rlike '^-?[0-9]{1,39}$'",
    TEXT_TYPES["timestamp_ns"]: f"VALUE rlike '^({_MOMENT}|-?infinity)$'",
    # One value in an array: not two keys of one name, nor a comma after the last, make it invalid for DuckDB.
    "json": "size(from_json(concat('[', regexp_replace(VALUE, ',[ \t\r\n]*(]|})', '$1'), ']'), 'array<string>',"
    " map('allowSingleQuotes', 'false'))) <=> 1",
    "timestamp_ns": "VALUE between timestamp_ntz'1677-09-22 00:00:00' and timestamp_ntz'2262-04-11 23:47:16.854775'",
}
"""The conditions for valid values of a type, in addition to those of its query type."""

_ENCODINGS = {
    "uuid": "lower(VALUE)",
    "time": f"case when VALUE = '24:00:00' then {END_OF_DAY} else cast(VALUE as time(6)) end",
    "geometry": "st_geomfromwkb(VALUE)",
    "timestamp_s": f"if({_IS_INFINITE}, VALUE, timestampadd(MICROSECOND, -{_MICROSECONDS_BEYOND.format('1')}, VALUE))",
    "timestamp_ms": (
        f"if({_IS_INFINITE}, VALUE, timestampadd(MICROSECOND, -{_MICROSECONDS_BEYOND.format('0.001')}, VALUE))"
    ),
}
"""The expressions that are written for a value, where it is not the value itself."""


def encode(sql: str, column: Column) -> str:
    """The Spark SQL for the stored value of a column, from its value in a query."""
    if not any(c.type in _CONDITIONS or c.type in _ENCODINGS for c in column.walk()):
        return sql
    return convert_leaves(sql, column, _encode_leaf)


def _encode_leaf(sql: str, column: Column) -> str:
    encoded = _ENCODINGS.get(column.type, _VALUE).replace(_VALUE, sql)
    if column.type not in _CONDITIONS:
        return encoded
    message = string_literal(f"a value for column {column.name} is no {type_of_text(column.type)}: ")
    error = f"raise_error(concat({message}, cast({sql} as string)))"
    is_valid = _CONDITIONS[column.type].replace(_VALUE, sql)
    return f"case when {sql} is null then null when {is_valid} then {encoded} else {error} end"
