"""Text that a script writes into a column of another type: Spark and DuckDB make the same value of it."""

from __future__ import annotations

from .engines import Both

LITERALS = {
    "boolean": ("true", "False", "t", "0"),
    "tinyint": ("-128", "127"),
    "smallint": ("-32768",),
    "int": ("7", " 8 ", "+9", "-0"),
    "bigint": ("9223372036854775807",),
    "uint8": ("255",),
    "uint16": ("65535",),
    "uint32": ("4294967295",),
    "uint64": ("18446744073709551615",),
    "float": ("1.5", "1e3", "NaN", "-Infinity"),
    "double": ("0.1", "5e-324", "inf"),
    "decimal(5,2)": ("1.5", "-999.99", "1.005", "1e2"),
    "decimal(38,10)": ("9999999999999999999999999999.0000000001",),
    "string": ("it is text", ""),
    "binary": ("abc", ""),
    "date": ("2026-01-01", "2026-1-2", "0001-01-01", " 2024-02-29 "),
    "timestamp_ntz": ("2026-01-01 10:00:00", "2026-01-01T10:00:00.123456", "2026-01-01"),
    "timestamp": ("2026-01-01 10:00:00+02:00", "2026-01-01T10:00:00Z", "2026-01-01 10:00:00"),
    "timestamp_s": ("2026-01-01 10:00:00",),
    "timestamp_ms": ("2026-01-01 10:00:00.123",),
    "timestamp_ns": ("2026-01-01 10:00:00.123456",),
    "json": ('{"a": 1}',),
    "uuid": ("5D1C0FD1-9B0A-4C5C-A5BA-6D9D24B3A3A1",),
    "time": ("12:30:00.5",),
}
"""Texts for each type. DuckDB makes something else of `2026-01-01 10:00:00+02:00` in a timestamp, and of int128."""


def test_texts_become_the_values_that_duckdb_makes_of_them(lake: Both) -> None:
    columns = ", ".join(f"c{i} {type_}" for i, type_ in enumerate(LITERALS))
    longest = max(len(texts) for texts in LITERALS.values())
    rows = ", ".join(
        f"('{n}', {', '.join(repr(texts[n]) if n < len(texts) else 'null' for texts in LITERALS.values())})"
        for n in range(longest)
    )
    lake.spark(
        f"create table of_spark (n int, {columns})",
        "create table of_duckdb like of_spark",
        f"insert into of_spark values {rows}",
    )
    lake.duckdb(f"insert into lake.main.of_duckdb values {rows}")
    written = [lake.agree(f"select * from {name} order by n") for name in ("of_spark", "of_duckdb")]
    for by_spark, by_duckdb in zip(*written, strict=True):
        for (type_, texts), value, expected in zip(LITERALS.items(), by_spark[1:], by_duckdb[1:], strict=True):
            assert value == expected, (type_, by_spark[0])
            assert (value is None) == (by_spark[0] >= len(texts)), (type_, by_spark[0])
