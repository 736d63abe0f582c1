"""File pruning keeps every file that may hold a matching row and drops the others."""

from __future__ import annotations

import datetime
import decimal
import io
import math
import operator
import time
from collections.abc import Callable, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.ducklake.lake.parquet_footer import file_stats
from dbt.adapters.ducklake.lake.partition_values import encode_partition_value
from dbt.adapters.ducklake.lake.partitions import (
    Bucket,
    Identity,
    PartitionField,
    PartitionSpec,
    Transform,
    Year,
)
from dbt.adapters.ducklake.lake.predicates import (
    And,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)
from dbt.adapters.ducklake.lake.pruning import FileStats, compile_predicate, may_match, needed_column_ids
from dbt.adapters.ducklake.lake.stats import ColumnStats
from dbt.adapters.ducklake.lake.types import Column
from dbt.adapters.ducklake.lake.values import float32

D = decimal.Decimal
UTC = datetime.timezone.utc
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

few_days = st.dates(datetime.date(1969, 12, 28), datetime.date(1970, 1, 4))
few_moments = st.datetimes(datetime.datetime(1969, 12, 31), datetime.datetime(1970, 1, 1, 6)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 250_000 * 250_000)
)
few_floats = st.sampled_from([0.0, -0.0, 0.1, 0.5, -1.5, 3.0, 1e20, math.inf, -math.inf, math.nan])
few_texts = st.text(alphabet="abé\U0001f600", max_size=3)

COLUMNS: dict[str, tuple[Column, pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (Column(1, "i", "int32"), pa.int32(), st.integers(-6, 6)),
    "u": (Column(2, "u", "uint64"), pa.uint64(), st.integers(0, 6)),
    "f": (Column(3, "f", "float64"), pa.float64(), few_floats),
    "g": (Column(4, "g", "float32"), pa.float32(), few_floats.map(float32)),
    "n": (
        Column(5, "n", "decimal(6,2)"),
        pa.decimal128(6, 2),
        st.integers(-300, 300).map(lambda n: D(n) / 100),
    ),
    "s": (Column(6, "s", "varchar"), pa.string(), few_texts),
    "d": (Column(7, "d", "date"), pa.date32(), few_days),
    "t": (Column(8, "t", "timestamp"), pa.timestamp("us"), few_moments),
    "z": (
        Column(9, "z", "timestamptz"),
        pa.timestamp("us", "UTC"),
        few_moments.map(lambda moment: moment.replace(tzinfo=UTC)),
    ),
    "b": (Column(10, "b", "boolean"), pa.bool_(), st.booleans()),
    "x": (Column(11, "x", "blob"), pa.binary(), st.binary(max_size=2)),
}
TABLE = tuple(column for column, _, _ in COLUMNS.values())
KEYS: list[tuple[str, Transform]] = [
    ("i", Identity()),
    ("i", Bucket(3)),
    ("s", Identity()),
    ("s", Bucket(2)),
    ("f", Identity()),
    ("f", Bucket(2)),
    ("g", Bucket(3)),
    ("n", Bucket(3)),
    ("d", Identity()),
    ("d", Bucket(2)),
    ("t", Year()),
    ("z", Identity()),
    ("t", Bucket(2)),
    ("x", Bucket(2)),
    ("b", Identity()),
    ("u", Bucket(2)),
]


def literals(name: str) -> st.SearchStrategy[Any]:
    values = COLUMNS[name][2]
    if name in "iufgn":
        return values | st.integers(-6, 6) | few_floats | st.just(D("0.50")) | st.sampled_from(["3", "0.5", "x"])
    if name in "dt":
        return values | few_days | few_moments | few_days.map(str)
    if name == "z":
        return values | few_moments
    return values


@st.composite
def comparisons(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(list(COLUMNS)))
    kind = draw(st.sampled_from(["compare", "in", "null", "not null", "starts"]))
    if kind == "null":
        return IsNull((name,))
    if kind == "not null":
        return IsNotNull((name,))
    if kind == "starts":
        return StartsWith(("s",), draw(few_texts))
    if kind == "in":
        return In((name,), tuple(draw(st.lists(literals(name), min_size=1, max_size=3))))
    return Comparison((name,), draw(st.sampled_from(list(OPERATORS))), draw(literals(name)))  # type: ignore[arg-type]


predicates: st.SearchStrategy[Predicate] = st.recursive(
    comparisons() | st.just(Unknown()),
    lambda part: (
        st.lists(part, max_size=3).map(lambda parts: And(tuple(parts)))
        | st.lists(part, min_size=1, max_size=3).map(lambda parts: Or(tuple(parts)))
    ),
    max_leaves=5,
)


def compare(sign: str, value: Any, literal: Any) -> bool | None:
    """Compares as Spark does, None for NULL. Returns True if this test does not know the answer."""
    if value is None:
        return None
    if isinstance(literal, str) and not isinstance(value, str):
        try:
            literal = datetime.date.fromisoformat(literal) if isinstance(value, datetime.date) else float(literal)
        except ValueError:
            return True
    if isinstance(value, datetime.date) and isinstance(literal, datetime.date):
        value, literal = moment(value), moment(literal)
    if isinstance(value, float) or isinstance(literal, float):
        value, literal = float(value), float(literal)
        if math.isnan(value) or math.isnan(literal):  # NaN is the greatest value and equals itself
            value, literal = ((math.isnan(n), 0.0 if math.isnan(n) else n) for n in (value, literal))
    return OPERATORS[sign](value, literal)


def moment(value: datetime.date) -> datetime.datetime:
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def holds(predicate: Predicate, row: dict[str, Any]) -> bool:
    """Whether the predicate is true for the row. Predicates have no NOT, so NULL counts as false."""
    if isinstance(predicate, And):
        return all(holds(part, row) for part in predicate.parts)
    if isinstance(predicate, Or):
        return any(holds(part, row) for part in predicate.parts)
    if isinstance(predicate, Unknown):
        return True
    value = row[predicate.column[0]]
    if isinstance(predicate, IsNull):
        return value is None
    if isinstance(predicate, IsNotNull):
        return value is not None
    if isinstance(predicate, StartsWith):
        return value is not None and value.startswith(predicate.prefix)
    if isinstance(predicate, In):
        return any(compare("=", value, literal) is True for literal in predicate.values)
    return compare(predicate.operator, value, predicate.value) is True


rows = st.fixed_dictionaries({name: st.none() | values for name, (_, _, values) in COLUMNS.items()})


def stats_of(part: Sequence[dict[str, Any]], without: set[int] = frozenset()) -> dict[int, ColumnStats]:  # type: ignore[assignment]
    table = pa.table({name: pa.array([r[name] for r in part], type_) for name, (_, type_, _) in COLUMNS.items()})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return {k: s for k, s in file_stats(pq.read_metadata(buffer), TABLE).items() if k not in without}


@settings(max_examples=400, deadline=None)
@given(
    data=st.lists(rows, min_size=1, max_size=12),
    predicate=predicates,
    key=st.none() | st.sampled_from(KEYS),
    without=st.sets(st.integers(1, 11)),
)
def test_a_file_with_a_matching_row_is_kept(
    data: list[dict[str, Any]], predicate: Predicate, key: tuple[str, Transform] | None, without: set[int]
) -> None:
    files: dict[str | None, list[dict[str, Any]]] = {}
    specs = {}
    if key is None:
        files = {str(i): data[i : i + 3] for i in range(0, len(data), 3)}
    else:
        column, transform = COLUMNS[key[0]][0], key[1]
        specs[7] = PartitionSpec(7, (PartitionField(0, column.id, transform),))
        for row in data:
            value = None if row[key[0]] is None else transform.apply(row[key[0]], column.type)
            files.setdefault(encode_partition_value(value, transform.result_type(column.type)), []).append(row)
    test = compile_predicate(predicate, TABLE, specs, "UTC")
    for value, part in files.items():
        file = FileStats(stats_of(part, without), 7, (value,)) if key else FileStats(stats_of(part, without))
        if any(holds(predicate, row) for row in part):
            assert test(file)


def stats(low: str | None, high: str | None, values: int | None = 5, nulls: int | None = 0, **more: Any) -> ColumnStats:
    return ColumnStats(0, values, nulls, low, high, more.get("nan"))


def keeps(type_: str, sign: str, value: Any, file: ColumnStats | FileStats, **more: Any) -> bool:
    if isinstance(file, ColumnStats):
        file = FileStats({1: file})
    return may_match(Comparison(("c",), sign, value), file, [Column(1, "c", type_)], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type_", "sign", "value", "low", "high", "kept"),
    [
        ("int32", "=", 10, "9", "11", True),
        ("int32", "=", 10, "100", "200", False),
        ("int32", "<>", 10, "10", "10", False),
        ("int32", "=", "10", "11", "20", False),
        ("int32", "=", "10.5", "11", "20", True),
        ("int32", "=", 10.5, "11", "20", False),
        ("int32", ">", D("10.5"), "1", "10", False),
        ("int32", "=", True, "11", "20", True),
        ("varchar", "<", "b", "b", "c", False),
        ("varchar", "=", 5, "b", "c", True),
        ("varchar", ">", "\U0001f600", "a", "\uffff", False),
        ("date", "=", "2024-01-15", "2024-01-16", "2024-02-01", False),
        ("date", "=", "2024-1-15", "2024-01-16", "2024-02-01", True),
        ("date", ">", datetime.datetime(2024, 1, 15, 12), "2024-01-01", "2024-01-15", False),
        ("date", ">=", datetime.date(2024, 1, 15), "-infinity", "infinity", True),
        ("timestamp", "<", "2024-01-15 12:30:00", "2024-01-15 12:30:00", "2024-01-16 00:00:00", False),
        ("timestamp", ">", datetime.date(2024, 1, 17), "2024-01-15 12:30:00", "2024-01-16 00:00:00", False),
        ("timestamp_ns", "=", "2024-01-15 12:30:00.000001", *["2024-01-15 12:30:00.000001999"] * 2, True),
        ("decimal(6,2)", "=", "1.5", "1.51", "1.60", False),
        ("decimal(38,30)", "=", 123456789, "1.0", "2.0", True),
        ("boolean", "=", True, "0", "0", False),
        ("boolean", "=", 1, "0", "0", True),
        ("blob", "=", b"\x10", "11", "FF", False),
        (
            "uuid",
            "=",
            "550e8400-e29b-41d4-a716-446655440000",
            *["650e8400-e29b-41d4-a716-446655440000"] * 2,
            False,
        ),
        ("float64", "=", -0.0, "0.0", "1.0", True),
        ("float64", "=", math.nan, "0.0", "1.0", True),
        ("float64", "=", 0.1, "0.2", "1.0", False),
        # Bounds of a float32 column, read after the column became float64.
        ("float64", "=", 0.10000000149011612, "0.1", "0.1", True),
        ("float32", "=", 0.1, "0.1", "0.1", True),
        ("interval", "=", "1 day", None, None, True),
    ],
)
def test_literals_are_compared_in_the_type_of_the_column(
    type_: str, sign: str, value: Any, low: str | None, high: str | None, kept: bool
) -> None:
    assert keeps(type_, sign, value, stats(low, high, nan=False)) is kept


def test_a_nan_is_greater_than_everything() -> None:
    for nan in (True, None):
        assert keeps("float64", ">", 5.0, stats("0.0", "1.0", nan=nan))
        assert keeps("float64", "<>", 1.0, stats("1.0", "1.0", nan=nan))
        assert not keeps("float64", "<", 0.0, stats("0.0", "1.0", nan=nan))
        assert not keeps("float64", "=", 5.0, stats("0.0", "1.0", nan=nan))
    assert not keeps("float64", ">", 5.0, stats("0.0", "1.0", nan=False))


def test_open_bounds_and_missing_statistics_keep_the_file() -> None:
    assert keeps("int32", "=", 5, stats(None, None))
    assert keeps("int32", "=", 5, stats(None, "9"))
    assert not keeps("int32", "=", 10, stats(None, "9"))
    assert keeps("int32", "=", 5, FileStats())
    assert keeps("int32", "=", 5, stats("not a number", "9"))


def test_nulls_are_counted() -> None:
    column = [Column(1, "c", "int32")]
    all_null = FileStats({1: stats(None, None, values=0, nulls=3)})
    no_null = FileStats({1: stats("1", "2")})
    uncounted = FileStats({1: stats(None, None, values=0, nulls=0)})
    unknown = FileStats({1: stats(None, None, values=None, nulls=None)})
    assert [may_match(IsNull(("c",)), f, column) for f in (all_null, no_null, uncounted, unknown)] == [
        True,
        False,
        True,
        True,
    ]
    assert [may_match(IsNotNull(("c",)), f, column) for f in (all_null, no_null, uncounted, unknown)] == [
        False,
        True,
        True,
        True,
    ]
    assert not keeps("int32", "<>", 5, all_null)


def test_a_prefix_lies_between_the_bounds() -> None:
    column = [Column(1, "c", "varchar")]

    def starts(prefix: str, low: str, high: str) -> bool:
        return may_match(StartsWith(("c",), prefix), FileStats({1: stats(low, high)}), column)

    assert starts("ab", "aa", "abc")
    assert starts("ab", "abz", "c")
    assert not starts("ab", "ac", "b")
    assert not starts("ab", "a", "aa")


def test_fields_of_structs_are_pruned_and_those_in_lists_are_not() -> None:
    leaf = Column(2, "a", "int32")
    struct = Column(1, "s", "struct", children=(leaf,))
    listed = Column(3, "l", "list", children=(Column(4, "element", "struct", children=(Column(5, "a", "int32"),)),))
    file = FileStats({2: stats("1", "2"), 5: stats("1", "2")})
    assert not may_match(Comparison(("S", "A"), "=", 3), file, [struct, listed])
    assert may_match(Comparison(("l", "element", "a"), "=", 3), file, [struct, listed])
    assert may_match(IsNull(("s",)), file, [struct, listed])
    assert may_match(Comparison(("nowhere",), "=", 3), file, [struct, listed])
    both = And((Comparison(("s", "a"), "=", 3), IsNull(("nowhere",))))
    assert needed_column_ids(both, [struct, listed]) == {2}


def test_or_prunes_only_where_every_part_does() -> None:
    file = FileStats({1: stats("1", "2")})
    column = [Column(1, "c", "int32")]
    never = Comparison(("c",), "=", 9)
    assert not may_match(Or((never, IsNull(("c",)))), file, column)
    assert may_match(Or((never, Unknown())), file, column)
    assert not may_match(And((never, Unknown())), file, column)


def test_partition_values_prune_where_statistics_are_missing() -> None:
    specs = {
        1: PartitionSpec(1, (PartitionField(0, 1, Identity()),)),
        2: PartitionSpec(2, (PartitionField(0, 9, Identity()), PartitionField(1, 1, Bucket(16)))),
    }
    in_bucket = str(Bucket(16).apply(5, "int32"))
    assert keeps("int32", "=", 5, FileStats({}, 1, ("5",)), specs=specs)
    assert not keeps("int32", "=", 5, FileStats({}, 1, ("6",)), specs=specs)
    assert not keeps("int32", "=", 5, FileStats({}, 1, (None,)), specs=specs)
    assert keeps("int32", "=", 5, FileStats({}, 2, ("x", in_bucket)), specs=specs)
    assert not keeps("int32", "=", 5, FileStats({}, 2, ("x", str(int(in_bucket) ^ 1))), specs=specs)
    assert keeps("int32", "<", 5, FileStats({}, 2, ("x", str(int(in_bucket) ^ 1))), specs=specs)
    assert keeps("int32", "=", 5, FileStats({}, 3, ("6",)), specs=specs)


def test_a_local_time_meets_an_instant_in_the_sessions_zone() -> None:
    file = stats("2024-07-01 10:00:00+00", "2024-07-01 11:00:00+00")
    local = datetime.datetime(2024, 7, 1, 12, 30)
    assert keeps("timestamptz", "=", local, file, time_zone="Europe/Berlin")
    assert not keeps("timestamptz", "=", local, file, time_zone="UTC")
    assert keeps("timestamptz", "=", local, file, time_zone="+02:00")
    assert keeps("timestamptz", "=", local, file, time_zone="Nowhere/Land")
    assert not keeps("timestamptz", "=", local.replace(tzinfo=UTC), file, time_zone="Europe/Berlin")


@given(
    st.datetimes(datetime.datetime(2024, 10, 26, 22), datetime.datetime(2024, 10, 27, 4)),
    st.booleans(),
    st.sampled_from(["=", "<=", ">="]),
)
def test_a_local_hour_that_occurs_twice_matches_both_instants(local: datetime.datetime, fold: bool, sign: str) -> None:
    instant = local.replace(tzinfo=ZoneInfo("Europe/Berlin"), fold=fold).astimezone(UTC)
    text = encode_partition_value(instant, "timestamptz")
    assert keeps("timestamptz", sign, local, stats(text, text), time_zone="Europe/Berlin")


@pytest.mark.large
def test_a_hundred_thousand_files_take_a_moment() -> None:
    files = [FileStats({1: stats(str(i), str(i + 9))}) for i in range(100_000)]
    test = compile_predicate(Comparison(("c",), "=", 50_000), [Column(1, "c", "int64")])
    start = time.monotonic()
    assert sum(map(test, files)) == 10
    assert time.monotonic() - start < 3
