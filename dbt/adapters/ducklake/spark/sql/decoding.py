"""Decodes what files hold to what queries see, for types that Spark does not have: SQL for a scan's columns.

`write/encoding.py` is the reverse.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...lake.types import TIMESTAMPS, Column, decimal_parts
from ...lake.values import nanoseconds_per_unit
from .kept_text import as_text, is_kept_as_text, type_of_text
from .quoting import string_literal
from .types import convert_leaves, initial_default_literal, is_encoded, is_missing, query_type


def decode(sql: str, column: Column, physical_types: Mapping[int, str]) -> str:
    """Returns the Spark SQL for a column as a query sees it, given the SQL for what a file holds.

    `physical_types` has the physical types of the file's columns by column id, where a query must know them: see
    `read.stored_columns`.

    >>> decode("n", Column(1, "n", "int64"), {})
    'n'
    >>> decode("n", Column(1, "n", "decimal(6,2)"), {1: "INT32:decimal(4,0)"})
    'cast(n as decimal(6,2))'
    """
    if not needs_decoding(column, physical_types):
        return sql

    def decode_leaf(leaf_sql: str, leaf: Column) -> str:
        if is_missing(leaf, physical_types):
            return initial_default_literal(leaf)
        return _decode_leaf(leaf_sql, leaf, physical_types) if is_encoded(leaf, physical_types) else leaf_sql

    return convert_leaves(sql, column, decode_leaf)


def decode_as_text(sql: str, column: Column, physical_types: Mapping[int, str]) -> str:
    """Returns the Spark SQL for a column as `kept_text` has it, given the SQL for what a file holds.

    Without physical types, it is the SQL for the values of a query.

    >>> decode_as_text("n", Column(1, "n", "int128"), {})
    'cast(n as string)'
    """
    return decode(sql, as_text(column), physical_types) if is_kept_as_text(column) else sql


def needs_decoding(column: Column, physical_types: Mapping[int, str]) -> bool:
    return any(is_encoded(c, physical_types) or is_missing(c, physical_types) for c in column.walk())


def _decode_leaf(sql: str, column: Column, physical_types: Mapping[int, str]) -> str:
    physical = physical_types.get(column.id, "")
    if type_of_text(column.type) == "int128" != column.type:
        return _integer_text(sql) if physical == "DOUBLE" else f"cast({sql} as string)"
    if type_of_text(column.type) == "timestamp_ns" != column.type:
        return _timestamp_ns_text(sql, physical)
    if column.type == "uuid":
        hexed = f"lower(hex({sql}))"
        dashed = "concat_ws('-', " + ", ".join(
            f"substr({hexed}, {start}, {length})" for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
        )
        return f"case when octet_length({sql}) = 16 then {dashed}) else cast({sql} as string) end"
    if column.type == "time":
        return _time_text(sql)
    if column.type in ("int128", "uint128"):
        if column.type == "uint128":
            return _integer_text(sql) if physical == "DOUBLE" else f"cast({sql} as string)"
        if physical == "BYTE_ARRAY":
            return int128_of_text(sql, column)
        small = f"cast(cast({sql} as bigint) as decimal(38,0))"
        return f"case when abs({sql}) < {2**63}D then {small} else {int128_of_text(_integer_text(sql), column)} end"
    if column.type == "uint64" or decimal_parts(column.type):
        return f"cast({sql} as {query_type(column).simpleString()})"
    if column.type == "timestamptz":
        return f"timestamp_micros({sql} div 1000)"
    if column.type in TIMESTAMPS:
        return _timestamp(sql, column.type, physical)
    if column.type == "time_ns":
        return _time_text(f"({sql} div 1000)")
    if column.type == "timetz":
        return f"concat({_time_text(sql)}, '+00')"
    return _interval_text(sql)


def int128_of_text(digits: str, column: Column) -> str:
    """Returns the decimal of an integer's digits. It is an error to read one with more digits than a decimal has."""
    message = f"a value of column {column.name} has more than the 38 digits of a decimal in Spark: "
    advice = "; read it in DuckDB, or store it there in a column of the type uhugeint or varchar"
    error = f"raise_error(concat({string_literal(message)}, {digits}, {string_literal(advice)}))"
    return (
        f"case when {digits} is null then null"
        f" else coalesce(try_cast({digits} as decimal(38,0)), cast({error} as decimal(38,0))) end"
    )


def _integer_text(sql: str) -> str:
    """Returns the digits of a double without a fraction: all of them, of which Spark shows the first 17."""
    size = f"abs({sql})"
    # Three parts of 32, 48 and 48 bits, which are exact as doubles and as integers.
    high = f"floor({size} / {2**96}D)"
    middle = f"floor(({size} - {high} * {2**96}D) / {2**48}D)"
    low = f"({size} - {high} * {2**96}D - {middle} * {2**48}D)"
    high_and_middle = f"(cast({high} as decimal(10,0)) * {2**48}BD + cast({middle} as decimal(15,0)))"
    # The product with 2^48 has up to 39 digits: those before and after the last six are computed apart.
    first, last = divmod(2**48, 10**6)
    rest = f"({high_and_middle} * {last}BD + cast({low} as decimal(15,0)))"
    head = f"cast({high_and_middle} * {first}BD + floor({rest} / 1000000BD) as string)"
    digits = f"concat({head}, lpad(cast({rest} % 1000000BD as string), 6, '0'))"
    sign = f"if({sql} < 0, '-', '')"
    return f"case when {size} < {2**63}D then cast(cast({sql} as bigint) as string) else concat({sign}, {digits}) end"


_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def _timestamp(sql: str, type_: str, physical: str) -> str:
    """Returns a timestamp in the column's resolution. Finer values are rounded as the reference rounds them."""
    if type_ == "timestamp_ns" and physical == "INT64:ns":
        return f"timestampadd(MICROSECOND, (({sql} - pmod({sql}, 1000)) div 1000), {_EPOCH})"
    if type_ == "timestamp_ns" and physical == "BYTE_ARRAY":
        return timestamp_ns_of_text(sql)
    if physical == "INT64:ns":
        return f"timestampadd(MICROSECOND, {sql} div 1000, {_EPOCH})"
    micros = f"unix_micros({sql})" if physical == "INT96" else f"timestampdiff(MICROSECOND, {_EPOCH}, {sql})"
    unit = nanoseconds_per_unit(type_) // 1000
    if unit <= 1:
        return f"timestampadd(MICROSECOND, {micros}, {_EPOCH})"
    rounded = f"if({micros} < 0, -1L, 1L) * ((abs({micros}) + {unit // 2}) div {unit}) * {unit}"
    is_infinite = f"abs({micros}) > {2**63 - 1 - unit}"
    return f"timestampadd(MICROSECOND, if({is_infinite}, {micros}, {rounded}), {_EPOCH})"


_INFINITY = 2**63 - 1
"""The nanoseconds of a `timestamp_ns` that is infinite."""


def timestamp_ns_of_text(sql: str) -> str:
    """Returns the timestamp of the text of a `timestamp_ns`, cut to microseconds as one that is not text."""
    micros = f"if(startswith({sql}, '-'), -{_INFINITY // 1000 + 1}L, {_INFINITY // 1000}L)"
    infinite = f"timestampadd(MICROSECOND, {micros}, {_EPOCH})"
    return f"if(endswith({sql}, 'infinity'), {infinite}, cast(substring({sql}, 1, 26) as timestamp_ntz))"


def nanoseconds_of_text(sql: str) -> str:
    """Returns the nanoseconds since 1970 of the text of a `timestamp_ns`."""
    infinite = f"if(startswith({sql}, '-'), -{_INFINITY}L, {_INFINITY}L)"
    micros = f"timestampdiff(MICROSECOND, {_EPOCH}, {timestamp_ns_of_text(sql)})"
    nanos = f"cast(rpad(substring({sql}, 27, 3), 3, '0') as bigint)"
    return f"if(endswith({sql}, 'infinity'), {infinite}, {micros} * 1000 + {nanos})"


def _timestamp_ns_text(sql: str, physical: str) -> str:
    """Returns the text of a `timestamp_ns`, with nine digits of seconds or those that the file has."""
    if physical == "BYTE_ARRAY":
        return sql
    if physical == "INT64:ns":
        count, per_day, digits = sql, 86_400 * 10**9, "%09d"
    else:
        count, per_day, digits = f"timestampdiff(MICROSECOND, {_EPOCH}, {sql})", 86_400 * 10**6, "%06d"
        if physical == "INT96":
            count = f"unix_micros({sql})"
    unit = per_day // 86_400
    clock = f"pmod({count}, {per_day}L)"
    days = f"({count} div {per_day}L - if({count} % {per_day}L < 0, 1, 0))"
    day = f"cast(date_add(date'1970-01-01', cast({days} as int)) as string)"
    time = (
        f"format_string(' %02d:%02d:%02d.{digits}', {clock} div {3600 * unit}L, ({clock} div {60 * unit}L) % 60,"
        f" ({clock} div {unit}L) % 60, {clock} % {unit}L)"
    )
    finite = f"concat({day}, {time})"
    if physical == "INT64:ns":
        is_infinite = f"abs({sql}) = {_INFINITY}L"
        finite = f"if({is_infinite}, if({sql} > 0, 'infinity', '-infinity'), {finite})"
    return f"case when {sql} is null then null else {finite} end"


def _time_text(micros: str) -> str:
    """Returns the time of day of microseconds since midnight as text, in DuckDB's format."""
    seconds = (
        f"format_string('%02d:%02d:%02d', {micros} div 3600000000, ({micros} div 60000000) % 60,"
        f" ({micros} div 1000000) % 60)"
    )
    fraction = f"rtrim('0', format_string('.%06d', {micros} % 1000000))"
    text = f"if({micros} % 1000000 = 0, {seconds}, concat({seconds}, {fraction}))"
    return f"case when {micros} is null then null else {text} end"


def _interval_text(sql: str) -> str:
    """Returns an interval as text, in DuckDB's format.

    A file has months, days and milliseconds, each in four bytes, little endian, without a sign.
    """

    def number(start: int) -> str:
        swapped = ", ".join(f"substring({sql}, {start + 4 - i}, 1)" for i in range(1, 5))
        return f"cast(conv(hex(concat({swapped})), 16, 10) as bigint)"

    def part(count: str, unit: str) -> str:
        return f"case when {count} = 0 then null else concat({count}, ' {unit}', if(abs({count}) = 1, '', 's')) end"

    months, days, millis = number(1), number(5), number(9)
    clock = _time_text(f"({millis} * 1000)")
    time = f"case when {millis} = 0 and ({months} <> 0 or {days} <> 0) then null else {clock} end"
    parts = (part(f"({months} div 12)", "year"), part(f"({months} % 12)", "month"), part(days, "day"), time)
    return f"case when {sql} is null then null else concat_ws(' ', {', '.join(parts)}) end"
