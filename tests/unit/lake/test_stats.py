"""Statistics of files and tables: read from Parquet footers, and equal to those of the reference."""

from __future__ import annotations

import datetime
import decimal
import io
import math
import os
import uuid
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.parquet_footer import file_stats
from dbt.adapters.ducklake.lake.stats import (
    ColumnStats,
    TableColumnStats,
    merge_column_stats,
    widen_table_stats,
    widest_bounds,
)
from dbt.adapters.ducklake.lake.types import Column
from dbt.adapters.ducklake.lake.values import (
    NANOSECONDS_PER_DAY,
    civil_from_days,
    days_from_civil,
    float32,
    parse_value,
    render_value,
)

from ...lakes import Lake
from .catalogs import NewLake, every_reference_catalog

D = decimal.Decimal
EPOCH = datetime.datetime(1970, 1, 1)
WIDE = datetime.datetime.max - datetime.timedelta(days=1)

integers = st.integers
naive = st.datetimes(datetime.datetime(1, 1, 2), WIDE)


def decimals(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    limit = 10**precision - 1
    return integers(-limit, limit).map(lambda n: D((n < 0, tuple(map(int, str(abs(n)))), -scale)))


def nanoseconds(moment: datetime.datetime) -> int:
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


# type -> (arrow type, values, the value as `parse` gives it)
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any], Any]] = {
    "boolean": (pa.bool_(), st.booleans(), None),
    "int8": (pa.int8(), integers(-(2**7), 2**7 - 1), None),
    "int16": (pa.int16(), integers(-(2**15), 2**15 - 1), None),
    "int32": (pa.int32(), integers(-(2**31), 2**31 - 1), None),
    "int64": (pa.int64(), integers(-(2**63), 2**63 - 1), None),
    "uint8": (pa.uint8(), integers(0, 2**8 - 1), None),
    "uint16": (pa.uint16(), integers(0, 2**16 - 1), None),
    "uint32": (pa.uint32(), integers(0, 2**32 - 1), None),
    "uint64": (pa.uint64(), integers(0, 2**64 - 1), None),
    "float32": (pa.float32(), st.floats(width=32), None),
    "float64": (pa.float64(), st.floats(), None),
    "decimal(4,1)": (pa.decimal128(4, 1), decimals(4, 1), None),
    "decimal(18,3)": (pa.decimal128(18, 3), decimals(18, 3), None),
    "decimal(38,10)": (pa.decimal128(38, 10), decimals(38, 10), None),
    "decimal(3,3)": (pa.decimal128(3, 3), decimals(3, 3), None),
    "date": (pa.date32(), st.dates(), lambda d: (d - EPOCH.date()).days),
    "timestamp": (pa.timestamp("us"), naive, nanoseconds),
    "timestamptz": (pa.timestamp("us", "UTC"), naive, nanoseconds),
    "timestamp_ms": (pa.timestamp("ms"), naive.map(lambda t: t.replace(microsecond=0)), nanoseconds),
    "timestamp_ns": (pa.timestamp("ns"), integers(-(2**62), 2**62), lambda n: n),
    "time": (pa.time64("us"), integers(0, 86_399_999_999), lambda n: n * 1000),
    "varchar": (pa.string(), st.text(max_size=40), None),
    "json": (pa.string(), st.text(max_size=8), None),
    "blob": (pa.binary(), st.binary(max_size=40), None),
    "uuid": (pa.binary(16), st.uuids().map(lambda u: u.bytes), lambda b: str(uuid.UUID(bytes=b))),
}


def footer(table: pa.Table, **options: Any) -> pq.FileMetaData:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return pq.read_metadata(buffer)


def stats_of(type_: str, values: list[Any], **options: Any) -> ColumnStats:
    table = pa.table({"c": pa.array(values, TYPES[type_][0])})
    return file_stats(footer(table, **options), [Column(1, "c", type_)])[1]


def true_values(type_: str, values: list[Any]) -> list[Any]:
    convert = TYPES[type_][2]
    there = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
    return [convert(v) for v in there] if convert else there


@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_bounds_hold_every_value_and_exact_bounds_are_values(type_: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | TYPES[type_][1], max_size=12))
    stats = stats_of(type_, values, row_group_size=data.draw(st.integers(1, 8)))
    there = true_values(type_, values)
    assert stats.null_count == sum(v is None for v in values)
    assert stats.value_count == len(values) - stats.null_count
    low = None if stats.min_value is None else parse_value(stats.min_value, type_)
    high = None if stats.max_value is None else parse_value(stats.max_value, type_)
    assert all((low is None or low <= v) and (high is None or v <= high) for v in there)
    if stats.exact and there:
        assert (low, high) == (min(there), max(there))
    if any(isinstance(v, float) and math.isnan(v) for v in values):
        assert stats.contains_nan is not False


@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_merged_statistics_are_those_of_all_rows(type_: str, data: st.DataObject) -> None:
    lists = st.lists(st.none() | TYPES[type_][1], max_size=8)
    first, second = data.draw(lists), data.draw(lists)
    merged = merge_column_stats(stats_of(type_, first), stats_of(type_, second), type_)
    together = stats_of(type_, first + second)

    def bounds(stats: ColumnStats) -> tuple[Any, Any]:
        texts = (stats.min_value, stats.max_value)
        return tuple(None if text is None else parse_value(text, type_) for text in texts)  # type: ignore[return-value]

    assert (merged.value_count, merged.null_count) == (together.value_count, together.null_count)
    if merged.exact:
        assert together.exact
        assert bounds(merged) == bounds(together)


@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_value_reads_back_from_its_text(type_: str, data: st.DataObject) -> None:
    for value in true_values(type_, [data.draw(TYPES[type_][1])]):
        value = float32(value) if type_ == "float32" else value
        assert parse_value(render_value(value, type_), type_) == value


@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_widest_bounds_hold_every_value(type_: str, data: st.DataObject) -> None:
    low, high = (parse_value(text or "", type_) for text in widest_bounds(type_))
    for value in true_values(type_, [data.draw(TYPES[type_][1])]):
        assert low <= value <= high  # type: ignore[operator]


@given(integers(-3_000_000, 4_000_000))
def test_the_calendar_goes_both_ways(days: int) -> None:
    assert days_from_civil(*civil_from_days(days)) == days


@given(st.dates())
def test_the_calendar_is_pythons(date: datetime.date) -> None:
    assert civil_from_days((date - EPOCH.date()).days) == (date.year, date.month, date.day)


def test_a_float_has_the_text_of_its_four_bytes() -> None:
    assert render_value(float32(0.1), "float32") == "0.1"
    assert render_value(123456789.0, "float64") == "123456789.0"
    assert render_value(float32(123456789.0), "float32") == "123456790.0"
    assert render_value(1e20, "float64") == "1e+20"


def test_moments_have_the_references_text() -> None:
    assert render_value(-1, "timestamp_ns") == "1969-12-31 23:59:59.999999999"
    assert render_value(500_000_000, "timestamptz") == "1970-01-01 00:00:00.5+00"
    assert render_value(-735160, "date") == "0044-03-15 (BC)"
    assert render_value(-735160 * NANOSECONDS_PER_DAY, "timestamp") == "0044-03-15 (BC) 00:00:00"
    assert render_value(math.inf, "timestamp") == "infinity"
    ten_hours = NANOSECONDS_PER_DAY // 24 * 10
    assert parse_value("0044-03-15 (BC) 10:00:00", "timestamp") == -735160 * NANOSECONDS_PER_DAY + ten_hours
    instant = parse_value("2024-01-15 18:00:00.5+00", "timestamptz")
    assert parse_value("2024-01-15 12:30:00.5-05:30", "timestamptz") == instant
    assert parse_value("no date", "date") is None


def test_nested_fields_are_found_by_name_and_place() -> None:
    table = pa.table(
        {
            "l": pa.array([[1, None], []], pa.list_(pa.int32())),
            "s": pa.array([{"a.b": 1, "x": None}, None], pa.struct({"a.b": pa.int32(), "x": pa.string()})),
            "m": pa.array([[("k", 7)], []], pa.map_(pa.string(), pa.int64())),
        }
    )
    columns = (
        Column(1, "l", "list", children=(Column(2, "element", "int32"),)),
        Column(3, "S", "struct", children=(Column(4, "a.b", "int32"), Column(5, "x", "varchar"))),
        Column(6, "m", "map", children=(Column(7, "key", "varchar"), Column(8, "value", "int64"))),
        Column(9, "later", "int32"),
    )
    stats = file_stats(footer(table), columns)
    assert {i: (s.value_count, s.null_count, s.min_value, s.max_value) for i, s in stats.items()} == {
        2: (1, 2, "1", "1"),
        4: (1, 1, "1", "1"),
        5: (0, 2, None, None),
        7: (1, 1, "k", "k"),
        8: (1, 1, "7", "7"),
    }


def test_field_ids_go_before_names() -> None:
    field = pa.field("old_name", pa.int32(), metadata={"PARQUET:field_id": "3"})
    other = pa.field("new_name", pa.int32(), metadata={"PARQUET:field_id": "4"})
    table = pa.table([[1], [2]], schema=pa.schema([field, other]))
    stats = file_stats(footer(table), [Column(3, "new_name", "int32")])
    assert (stats[3].min_value, len(stats)) == ("1", 1)


def test_strings_too_long_for_the_footer_have_no_bounds() -> None:
    stats = stats_of("varchar", ["x" * 5000, "y"])
    assert (stats.min_value, stats.max_value, stats.value_count, stats.exact) == (None, None, 2, False)


def test_a_writer_that_cuts_strings_is_not_exact() -> None:
    table = pa.table({"c": ["x" * 10]})
    columns = [Column(1, "c", "varchar")]
    assert file_stats(footer(table), columns)[1].exact
    assert not file_stats(footer(table), columns, truncated_at=10)[1].exact


def test_a_text_with_a_nul_is_no_bound() -> None:
    stats = stats_of("varchar", ["a\0b", "b"])
    assert (stats.min_value, stats.max_value, stats.exact) == (None, "b", False)


def test_int96_has_counts_only() -> None:
    table = pa.table({"c": pa.array([EPOCH, None], pa.timestamp("us"))})
    stats = file_stats(footer(table, use_deprecated_int96_timestamps=True), [Column(1, "c", "timestamp")])[1]
    assert (stats.min_value, stats.max_value, stats.exact) == (None, None, False)


def test_a_finer_unit_than_the_columns_is_rounded_outwards() -> None:
    table = pa.table({"c": pa.array([-1, 1], pa.timestamp("ns"))})
    stats = file_stats(footer(table), [Column(1, "c", "timestamp")])[1]
    assert (stats.min_value, stats.max_value) == ("1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.000001")
    assert not stats.exact


# -- statistics of a table


def stats(low: str | None, high: str | None, values: int | None = 1, exact: bool = True, **more: Any) -> ColumnStats:
    return ColumnStats(0, values, 0, low, high, more.get("contains_nan"), exact=exact)


def test_the_table_takes_the_first_files_bounds_and_widens_them_by_value() -> None:
    table = widen_table_stats(None, stats("9", "9"), "int32")
    table = widen_table_stats(table, stats("10", "10"), "int32")
    assert table == TableColumnStats(False, None, "9", "10")
    assert table.exact


def test_unknown_bounds_become_the_widest_and_are_not_exact() -> None:
    table = widen_table_stats(None, stats(None, None, exact=False), "int8")
    assert (table.min_value, table.max_value, table.exact) == ("-128", "127", False)


def test_no_values_leave_the_bounds_open() -> None:
    table = widen_table_stats(None, stats(None, None, values=0), "varchar")
    assert (table.min_value, table.max_value, table.exact) == (None, None, True)


def test_inexact_bounds_within_those_of_the_table_keep_it_exact() -> None:
    table = TableColumnStats(False, None, "a", "z")
    assert widen_table_stats(table, stats("b", "y", exact=False), "varchar").exact
    assert not widen_table_stats(table, stats("b", "zz", exact=False), "varchar").exact


def test_a_bound_that_the_reference_left_open_stays_open() -> None:
    table = widen_table_stats(TableColumnStats(False, None, None, "m"), stats("b", "c"), "varchar")
    assert (table.min_value, table.max_value, table.exact) == ("", "m", False)


def test_an_empty_text_is_a_bound() -> None:
    table = widen_table_stats(None, stats("", ""), "varchar")
    table = widen_table_stats(table, stats("", ""), "varchar")
    assert (table.min_value, table.max_value, table.exact) == ("", "", True)
    table = widen_table_stats(table, stats("a", "b"), "varchar")
    assert (table.min_value, table.max_value, table.exact) == ("", "b", True)


@every_reference_catalog
def test_a_table_of_empty_texts_keeps_exact_statistics(kind: str, new_lake: NewLake) -> None:
    """An empty text counted as no bound, so the next file made the bounds the widest that there are."""
    lake = Lake(new_lake(kind))
    lake.create(label="varchar")
    for values in ([""], ["", ""], ["b", "a"]):
        lake.append({"label": values})
    (row,) = lake.rows(t.table_column_stats)
    assert (row["min_value"], row["max_value"]) == ("", "b")
    assert [r["record_count"] for r in lake.rows(t.table_stats)] == [5]  # one more if the bounds were not exact
    with lake.duckdb() as connection:
        assert connection.execute("SELECT min(label), max(label), count(*) FROM t").fetchone() == ("", "b", 5)
        connection.execute("INSERT INTO t VALUES ('c')")
        assert connection.execute("SELECT min(label), max(label), count(*) FROM t").fetchone() == ("", "c", 6)


def test_contains_nan_is_kept_and_unknown_is_not_false() -> None:
    one = stats("1.0", "1.0", contains_nan=False)
    table = widen_table_stats(None, one, "float64")
    assert table.contains_nan is False
    assert widen_table_stats(table, replace(one, contains_nan=None), "float64").contains_nan is None
    assert widen_table_stats(table, replace(one, contains_nan=True), "float64").contains_nan is True


@pytest.mark.parametrize("type_", ["interval", "timetz", "int128", "uint128", "variant", "geometry", "list"])
def test_types_without_bounds_get_none(type_: str) -> None:
    table = widen_table_stats(None, stats(None, None, exact=False), type_)
    assert (table.min_value, table.max_value, table.exact) == (None, None, True)


# -- the reference


CASES = [
    ("boolean", "true", "null"),
    ("boolean", "null"),
    ("tinyint", "-128", "127"),
    ("bigint", "-9223372036854775808", "9"),
    ("utinyint", "0", "255"),
    ("uinteger", "4294967295", "3"),
    ("ubigint", "18446744073709551615", "8"),
    ("hugeint", "5", "null"),
    ("float", "16777216", "0.1"),
    ("float", "'inf'", "'-inf'"),
    ("double", "0.0", "'-0.0'"),
    ("double", "'-0.0'"),
    ("double", "1e300", "5e-324"),
    ("double", "123456789012345678", "0.1"),
    ("double", "null"),
    ("decimal(4,1)", "-0.1", "null"),
    ("decimal(2,2)", "-0.5", "0"),
    ("decimal(38,38)", "-0.5", "0.01"),
    ("decimal(9,0)", "-12", "12"),
    ("decimal(18,3)", "-5.123", "99999.999"),
    ("decimal(38,0)", "-12", "12"),
    ("decimal(38,10)", "12345678901234567890.1234567891", "0"),
    ("date", "'infinity'", "'-infinity'"),
    ("date", "'0044-03-15 (BC)'", "'12000-01-01'"),
    ("timestamp", "'infinity'", "'-infinity'"),
    ("timestamp", "'0044-03-15 (BC) 01:00:00'", "'1969-12-31 23:59:59.000001'"),
    ("timestamptz", "'infinity'", "'12000-01-01 00:00:00+00'"),
    ("timestamptz", "'1969-12-31 23:59:59.5+00'", "'2024-01-15 12:30:00+02'"),
    ("timestamp_s", "'1969-01-15 12:30:00'", "'2024-01-15 12:30:00'"),
    ("timestamp_ms", "'2024-01-15 12:30:00.5'", "'2024-01-15 12:30:00.12'"),
    ("timestamp_ns", "'1969-12-31 23:59:59.999999999'", "'1960-12-31 23:59:59.1234'"),
    ("timestamp_ns", "'infinity'", "'-infinity'"),
    ("time", "'00:00:00.000001'", "'24:00:00'"),
    ("varchar", "''", "'héllo'", "null"),
    ("varchar", "repeat('y', 257)", "repeat('a', 300)"),
    ("varchar", "repeat('é', 5000)", "'zz'"),
    ("blob", r"'\x00\xFFab'::blob", "'a'::blob"),
    ("blob", "repeat('x', 300)::blob", "''::blob"),
    ("json", """'{"a":1}'""", "null"),
    ("uuid", "'ffffffff-e29b-41d4-a716-446655440000'", "'00000000-0000-0000-0000-000000000000'"),
    ("int[]", "[1, null, 2]", "[]", "null"),
    ("int[][]", "[[1, null], [], null]", "[]"),
    ("map(varchar, struct(a int, b double))", "map{'k': {'a': 1, 'b': null}}", "map{}"),
    ('struct("a.b" int, c struct(d varchar, e int[]))', "{'a.b': 1, 'c': null}", "{'a.b': null, 'c': null}"),
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Any:
    duckdb = pytest.importorskip("duckdb")
    extension = pytest.importorskip("duckdb_extension_ducklake")
    folder = tmp_path_factory.mktemp("lake")
    home = os.path.join(os.path.dirname(extension.__file__), "extensions", f"v{duckdb.__version__}")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute(f"LOAD '{home}/ducklake.duckdb_extension'")
    connection.execute(
        f"ATTACH 'ducklake:{folder}/lake.db' AS lake (DATA_PATH '{folder}/data/', DATA_INLINING_ROW_LIMIT 0)"
    )
    connection.execute("USE lake")
    yield connection
    connection.close()


def written(lake: Any, type_: str, *values: str) -> tuple[dict[int, ColumnStats], dict[int, tuple[Any, ...]]]:
    """Returns our statistics of a file that the reference wrote, and those of the reference."""
    lake.execute(f"CREATE OR REPLACE TABLE t (x {type_})")
    lake.execute("INSERT INTO t VALUES " + ", ".join(f"({value})" for value in values))
    path = lake.execute("SELECT data_file FROM ducklake_list_files('lake', 't')").fetchone()[0]
    catalog = "__ducklake_metadata_lake"
    rows = lake.execute(
        f"SELECT column_id, column_name, column_type, parent_column FROM {catalog}.ducklake_column"
        f" WHERE table_id = (SELECT max(table_id) FROM {catalog}.ducklake_table) ORDER BY column_order"
    ).fetchall()

    def level(parent: int | None) -> tuple[Column, ...]:
        return tuple(Column(i, n, t, children=level(i)) for i, n, t, p in rows if p == parent)

    theirs = lake.execute(
        "SELECT column_id, column_size_bytes, value_count, null_count, min_value, max_value, contains_nan"
        f" FROM {catalog}.ducklake_file_column_stats"
        f" WHERE data_file_id = (SELECT max(data_file_id) FROM {catalog}.ducklake_data_file)"
    ).fetchall()
    return file_stats(pq.read_metadata(path), level(None)), {r[0]: r[1:] for r in theirs}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}: {case[1][:20]}")
def test_the_reference_records_the_same(lake: Any, case: tuple[str, ...]) -> None:
    ours, theirs = written(lake, *case)
    assert {
        i: (s.column_size_bytes, s.value_count, s.null_count, s.min_value, s.max_value, s.contains_nan)
        for i, s in ours.items()
    } == theirs


def test_a_nan_hides_the_bounds_in_the_references_footer(lake: Any) -> None:
    ours, theirs = written(lake, "double", "'nan'", "1.5")
    assert theirs[1][3:] == ("1.5", "1.5", True)
    assert (ours[1].min_value, ours[1].max_value, ours[1].contains_nan) == (None, None, None)


@pytest.mark.parametrize("type_", ["interval", "timetz"])
def test_what_the_reference_does_not_count_has_unknown_counts(lake: Any, type_: str) -> None:
    value = "INTERVAL '1 day'" if type_ == "interval" else "'12:30:00+02'"
    ours, theirs = written(lake, type_, value, "null")
    assert theirs[1][1:3] == (0, 0)
    assert (ours[1].value_count, ours[1].null_count) == (None, None)


@pytest.mark.parametrize("type_", sorted({case[0] for case in CASES if "(" not in case[0] and "[" not in case[0]}))
def test_the_reference_reads_the_widest_bounds(lake: Any, type_: str) -> None:
    names = {
        "tinyint": "int8",
        "bigint": "int64",
        "utinyint": "uint8",
        "uinteger": "uint32",
        "ubigint": "uint64",
        "hugeint": "int128",
        "float": "float32",
        "double": "float64",
    }
    for text in widest_bounds(names.get(type_, type_)):
        if text is not None and type_ not in ("blob", "json"):  # the reference compares these as text
            assert lake.execute(f"SELECT CAST(? AS {type_}) IS NOT NULL", [text]).fetchone()[0]
