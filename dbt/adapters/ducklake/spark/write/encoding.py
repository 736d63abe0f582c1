"""Values on their way into files, of types that Spark has not: made what other engines read, or refused."""

from __future__ import annotations

from ...lake.types import INTEGER_BITS, Column
from ..sql.types import convert, string_literal

_HEX = "[0-9a-fA-F]"
_CLOCK = "(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?|24:00:00)"
_OFFSET = "([+-](0[0-9]|1[0-5])(:[0-5][0-9]){0,2})?"
_UNIT = "(microsecond|millisecond|second|minute|hour|day|week|month|mon|quarter|year|decade|centur(y|ie))"
PARTITION_PREFIX = f"-?[0-9]+ {_UNIT}s?"

_FORMS = {
    "uuid": f"{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}",
    "time_ns": _CLOCK,
    "timetz": _CLOCK + _OFFSET,
    "interval": f"(?i)({PARTITION_PREFIX} )*({PARTITION_PREFIX}|-?[0-9]+:[0-5][0-9]:[0-5][0-9]([.][0-9]{{1,6}})?)",
}
"""What a text looks like that is a value of a type."""

_VALUE = "VALUE"
_CONDITIONS = {
    **{kind: f"VALUE rlike '^{form}$'" for kind, form in _FORMS.items()},
    **{kind: f"VALUE between {low} and {high}" for kind, (low, high) in INTEGER_BITS.items() if low == 0},
    "uint128": "VALUE >= 0",  # Spark's decimals end before its upper bound
    # One value in an array: not two keys of one name, nor a comma after the last, make it invalid for DuckDB.
    "json": "size(from_json(concat('[', regexp_replace(VALUE, ',[ \t\r\n]*(]|})', '$1'), ']'), 'array<string>',"
    " map('allowSingleQuotes', 'false'))) <=> 1",
    "timestamp_ns": "VALUE between timestamp_ntz'1677-09-22 00:00:00' and timestamp_ntz'2262-04-11 23:47:16.854775'",
}
"""What holds for the values of a type, beyond that of Spark's in which they come."""

_WRITTEN = {
    "uuid": "lower(VALUE)",
    "time": "cast(VALUE as time(6))",
    "timestamp_s": "timestampadd(MICROSECOND, -cast(date_part('SECOND', VALUE) % 1 * 1000000 as int), VALUE)",
    "timestamp_ms": "timestampadd(MICROSECOND, -cast(date_part('SECOND', VALUE) % 0.001 * 1000000 as int), VALUE)",
}
"""What is written of a value, where it is not the value itself."""


def to_file(sql: str, column: Column) -> str:
    """The Spark SQL for what is written of a column, from what a query gives."""
    if not any(c.type in _CONDITIONS or c.type in _WRITTEN for c in column.walk()):
        return sql
    return convert(sql, column, _leaf)


def _leaf(sql: str, column: Column) -> str:
    written = _WRITTEN.get(column.type, _VALUE).replace(_VALUE, sql)
    if column.type not in _CONDITIONS:
        return written
    message = string_literal(f"a value for column {column.name} is no {column.type}: ")
    refused = f"raise_error(concat({message}, cast({sql} as string)))"
    holds = _CONDITIONS[column.type].replace(_VALUE, sql)
    return f"case when {sql} is null then null when {holds} then {written} else {refused} end"
