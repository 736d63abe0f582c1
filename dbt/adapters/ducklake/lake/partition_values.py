"""Partition values as text: in the catalog, in Spark SQL, and in the folders of data files."""

from __future__ import annotations

import decimal
from typing import Any
from urllib.parse import quote, unquote

from .types import FLOATS, TIMESTAMPS, decimal_parts
from .values import comparable_value, render_value

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

EPOCH_SQL = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


def encode_partition_value(value: Any, type_: str) -> str | None:
    """The text of a partition value in `ducklake_file_partition_value`; None for NULL."""
    if value is None:
        return None
    if type_ == "boolean":
        return "true" if value else "false"
    comparable = comparable_value(value, type_)
    if isinstance(comparable, int) and decimal_parts(type_):
        comparable = decimal.Decimal(comparable)
    return render_value(comparable, type_)


def partition_text_sql(column: str, type_: str) -> str:
    """The Spark SQL expression for the text of `encode_partition_value`, for a column of the type."""
    if type_ in FLOATS:
        return _float_text_sql(column)
    if type_ == "timestamptz":
        return f"concat({_dated_text_sql(utc_sql(column))}, '+00')"
    if type_ == "date" or type_ in TIMESTAMPS:
        return _dated_text_sql(column)
    if type_ == "time":
        clock = f"substring(CAST(timestampadd(MICROSECOND, {column}, {EPOCH_SQL}) AS STRING), 12)"
        return f"IF({column} = 86400000000L, '24:00:00', {clock})"
    if type_ == "uuid":
        return f"lower(CAST({column} AS STRING))"
    if decimal_parts(type_):
        # Depending on the session, a cast to STRING returns 0E-10.
        return f"format_number({column}, '{render_value(decimal.Decimal(0), type_)}')"
    return f"CAST({column} AS STRING)"


def hive_folder(key: str, value: str | None) -> str:
    """A folder in the path of a partitioned file: `region=EU%2Fx%20y`."""
    return f"{_escape(key)}={HIVE_NULL if value is None else _escape(value)}"


def parse_hive_folder(folder: str) -> tuple[str, str | None]:
    """The partition key and value in the name of a folder."""
    key, _, value = folder.partition("=")
    return unquote(key), None if value == HIVE_NULL else unquote(value)


def _escape(text: str) -> str:
    return quote(text, safe="")


def utc_sql(column: str) -> str:
    """A timestamp with time zone as local time in UTC, whatever the time zone of the session."""
    return f"timestampadd(MICROSECOND, unix_micros({column}), {EPOCH_SQL})"


def _dated_text_sql(column: str) -> str:
    # Spark writes +12000-01-01 and -0043-03-15, the reference 12000-01-01 and 0044-03-15 (BC).
    text = f"ltrim('+', CAST({column} AS STRING))"
    past = f"CAST({column} AS STRING)"
    year = f"lpad(CAST(1 - year({column}) AS STRING), 4, '0')"
    start = f"locate('-', {past}, 2)"
    before_christ = f"concat({year}, substring({past}, {start}, 6), ' (BC)', substring({past}, {start} + 6))"
    return f"IF(year({column}) > 0, {text}, {before_christ})"


def _float_text_sql(column: str) -> str:
    # Spark writes 1.0E20, Infinity and NaN, the reference 1e+20, inf and nan. Spark uses exponents from 10^7 on, the
    # reference from 10^16 on.
    text = f"CAST({column} AS STRING)"
    exponent = f"CAST(substring_index({text}, 'E', -1) AS INT)"
    mantissa = rf"regexp_replace(substring_index({text}, 'E', 1), '[.]0$', '')"
    plain = rf"regexp_replace(CAST(CAST({text} AS DECIMAL(38, 21)) AS STRING), '0+$', '')"
    return (
        f"CASE WHEN isnan({column}) THEN 'nan'"
        f" WHEN {column} = CAST('inf' AS DOUBLE) THEN 'inf'"
        f" WHEN {column} = CAST('-inf' AS DOUBLE) THEN '-inf'"
        f" WHEN NOT contains({text}, 'E') THEN {text}"
        f" WHEN abs({column}) >= 1e-4 AND abs({column}) < 1e16"
        f" THEN IF(endswith({plain}, '.'), concat({plain}, '0'), {plain})"
        f" ELSE concat({mantissa}, IF({exponent} < 0, 'e-', 'e+'),"
        f" IF(abs({exponent}) < 10, '0', ''), CAST(abs({exponent}) AS STRING)) END"
    )
