"""Every type of the format, with the values at its edges, written by either engine and read by both."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import pytest
from pyspark.errors import PySparkException

from .engines import Both


@dataclass(frozen=True)
class Kind:
    """A type in both engines' words, with values as literals of each."""

    name: str
    spark: str
    duckdb: str
    values: tuple[tuple[str, str], ...]
    """Pairs of literals: Spark's, DuckDB's."""


def _same(*literals: str) -> tuple[tuple[str, str], ...]:
    return tuple((text, text) for text in literals)


def _texts(*texts: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        ("'" + t.replace("\\", "\\\\").replace("'", "\\'") + "'", "'" + t.replace("'", "''") + "'") for t in texts
    )


def _cast(spark: str, duckdb: str, *texts: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"cast('{t}' as {spark})", f"cast('{t}' as {duckdb})") for t in texts)


def _integers(spark: str, bits: int) -> tuple[tuple[str, str], ...]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return _cast(spark, spark, str(low), str(high), "0", "-1")


ALL_BYTES = bytes(range(256))
DATES = ("1969-12-31", "1970-01-01", "0001-01-01", "9999-12-31", "2024-02-29", "1582-10-10")
MOMENTS = (
    "1969-12-31 23:59:59.999999",
    "1969-12-31 23:59:59.000001",
    "1900-01-01 00:00:00.5",
    "0001-01-01 00:00:00",
    "9999-12-31 23:59:59.999999",
    "2024-03-10 02:30:00.123456",
)
TEXTS = (
    "",
    " ",
    "NULL",
    "null",
    "'",
    '"',
    "a'b\"c",
    "\\",
    "\\x41",
    "%",
    "日本語",
    "😀",
    "é",
    "a\nb\tc",
    "x" * 5000,
    "{a",
    "[",
)

KINDS = (
    Kind("boolean", "boolean", "boolean", _same("true", "false")),
    Kind("int8", "tinyint", "tinyint", _integers("tinyint", 8)),
    Kind("int16", "smallint", "smallint", _integers("smallint", 16)),
    Kind("int32", "int", "int", _integers("int", 32)),
    Kind("int64", "bigint", "bigint", _integers("bigint", 64)),
    Kind("uint8", "uint8", "utinyint", _same("0", "255", "128")),
    Kind("uint16", "uint16", "usmallint", _same("0", "65535", "32768")),
    Kind("uint32", "uint32", "uinteger", _same("0", "4294967295", "2147483648")),
    Kind("uint64", "uint64", "ubigint", _same("0", "18446744073709551615", "9223372036854775808")),
    Kind(
        "float32", "float", "float", _cast("float", "float", "1.5", "-0.0", "0.1", "NaN", "inf", "-inf", "3.4028235e38")
    ),
    Kind(
        "float64", "double", "double", _cast("double", "double", "1.5", "-0.0", "0.1", "NaN", "inf", "-inf", "5e-324")
    ),
    Kind("decimal4", "decimal(4,2)", "decimal(4,2)", _same("99.99", "-99.99", "0.00", "0.01")),
    Kind("decimal18", "decimal(18,4)", "decimal(18,4)", _same("99999999999999.9999", "-99999999999999.9999", "0.0001")),
    Kind(
        "decimal38",
        "decimal(38,10)",
        "decimal(38,10)",
        _cast(
            "decimal(38,10)",
            "decimal(38,10)",
            "9" * 28 + "." + "9" * 10,
            "-" + "9" * 28 + "." + "9" * 10,
            "0.0000000001",
        ),
    ),
    Kind("varchar", "string", "varchar", _texts(*TEXTS)),
    Kind(
        "blob",
        "binary",
        "blob",
        tuple(
            (f"X'{data.hex()}'", f"from_hex('{data.hex()}')")
            for data in (b"", b"\x00", b"abc", b"\\", b"'", b"\\x41", ALL_BYTES, "é".encode())
        ),
    ),
    Kind("date", "date", "date", _cast("date", "date", *DATES)),
    Kind("timestamp", "timestamp_ntz", "timestamp", _cast("timestamp_ntz", "timestamp", *MOMENTS)),
    Kind("timestamptz", "timestamp", "timestamptz", _cast("timestamp", "timestamptz", *(m + "+00" for m in MOMENTS))),
    Kind(
        "timestamp_s",
        "timestamp_s",
        "timestamp_s",
        _cast("timestamp_ntz", "timestamp_s", "1969-12-31 23:59:59", "2024-01-01 00:00:00"),
    ),
    Kind(
        "timestamp_ms",
        "timestamp_ms",
        "timestamp_ms",
        _cast("timestamp_ntz", "timestamp_ms", "1969-12-31 23:59:59.999", "2024-01-01 00:00:00.001"),
    ),
    Kind(
        "timestamp_ns",
        "timestamp_ns",
        "timestamp_ns",
        _cast("timestamp_ntz", "timestamp_ns", "1969-12-31 23:59:59.999999", "2024-01-01 00:00:00.000001"),
    ),
    Kind(
        "time", "time", "time", _cast("string", "time", "00:00:00", "23:59:59.999999", "12:30:00.5", "01:02:03.000004")
    ),
    Kind(
        "uuid",
        "uuid",
        "uuid",
        _cast(
            "string",
            "uuid",
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "7fffffff-0000-4000-8000-00000000000a",
        ),
    ),
    Kind("json", "json", "json", _texts("{}", '{"a": [1, null, "x\'y"]}', "null", "1", '"text"', "[]")),
)
# What DuckDB keeps in a way of its own; what Spark writes of it is another physical type.
OWN_WAYS = (
    Kind("int128", "int128", "hugeint", _same("0", "-1", "123456789012345", "-1152921504606846977", "9" * 37)),
    Kind(
        "uint128",
        "uint128",
        "uhugeint",
        _texts("0", "1", "123456789012345", "1152921504606846977", "340282366920938000000000000000000000000"),
    ),
    Kind("timetz", "timetz", "timetz", _cast("string", "timetz", "00:00:00+00", "23:59:59.999999+00", "12:30:00.5+00")),
    Kind(
        "interval",
        "interval",
        "interval",
        _cast("string", "interval", "1 year 2 months", "3 days", "04:05:06.789", "1 month 2 days 00:00:03"),
    ),
)


def _rows(kinds: tuple[Kind, ...], engine: int) -> list[str]:
    """Rows as long as the longest list of values, NULL where a type has no more of them."""
    count = max(len(k.values) for k in kinds)
    return [
        f"({index}, " + ", ".join(k.values[index][engine] if index < len(k.values) else "NULL" for k in kinds) + ")"
        for index in range(count)
    ]


def _create(kinds: tuple[Kind, ...], writer: str, table: str) -> str:
    return f"create table {table} (id int, " + ", ".join(f"c_{k.name} {getattr(k, writer)}" for k in kinds) + ")"


def _load(lake: Both, writer: str, kinds: tuple[Kind, ...], table: str) -> None:
    """All values at once, then each row by itself, so that rows are kept in files and in the catalog."""
    engine = 0 if writer == "spark" else 1
    rows = _rows(kinds, engine)
    run = lake.spark if writer == "spark" else lake.duckdb
    run(f"insert into {table} values {', '.join(rows)}")
    run(f"insert into {table} values {', '.join(rows[:3])}")
    nulls = ", ".join(["NULL"] * (len(kinds) + 1))
    run(f"insert into {table} values ({nulls}), ({nulls})")


@pytest.mark.parametrize("creator", ["spark", "duckdb"])
def test_every_value_of_every_type_is_read_as_it_was_written(lake: Both, creator: str) -> None:
    run = lake.spark if creator == "spark" else lake.duckdb
    run(_create(KINDS, creator, "t"))
    for writer in (creator, "duckdb" if creator == "spark" else "spark"):
        _load(lake, writer, KINDS, "t")
    lake.compare()
    assert len(lake.agree("select * from t")) == 2 * (max(len(k.values) for k in KINDS) + 3 + 2)


@pytest.mark.parametrize("kind", OWN_WAYS, ids=lambda k: k.name)
def test_types_of_duckdbs_own_are_read_and_written_back(open_lake, kind: Kind) -> None:
    lake = open_lake("sqlite")
    lake.duckdb(_create((kind,), "duckdb", "t"), "call lake.set_option('data_inlining_row_limit', 0)")
    _load(lake, "duckdb", (kind,), "t")
    lake.compare()
    _load(lake, "spark", (kind,), "t")
    lake.compare()


@pytest.mark.parametrize("kind", OWN_WAYS, ids=lambda k: k.name)
def test_types_of_duckdbs_own_are_read_from_the_catalog(lake: Both, kind: Kind) -> None:
    lake.duckdb(_create((kind,), "duckdb", "t"))
    _load(lake, "duckdb", (kind,), "t")
    lake.compare()


@pytest.mark.parametrize(
    ("kind", "taken", "refused"),
    [
        (
            "json",
            (
                *("{}", "[]", "null", " 1 ", "1e400", '{"a": 1, "a": 2}', '{"a": [1, ], }', "[NaN]", "-Infinity"),
                *('"\\u00e9"', '"a,]"', "9" * 45, "[[[[]]]]"),
            ),
            (
                *("", " ", "x", "{", "'a'", "{'a': 1}", "{a: 1}", "01", "1.", "[1 2]", "1, 2", '{"a": 1} b', "tru"),
                *('"a\tb"', '"', "\\"),
            ),
        ),
        (
            "interval",
            ("1 year", "-1 years 3 mons -2 days", "1 day -100:02:03.5", "3 weeks 5 microseconds", "00:00:00", "1 DAY"),
            ("", "x", "1 fortnight", "1 day 2", "1:99:00", "1 day ago 3", "P1D", "1 days, 2 hours"),
        ),
        (
            "timetz",
            ("24:00:00", "00:00:00", "23:59:59.999999", "12:00:00-15:59", "12:00:00+05:30", "12:00:00+00:00:30"),
            ("", "x", "25:00:00", "24:00:01", "12:60:00", "12:00:60", "12:00:00+16", "12:00:00 Uhr"),
        ),
        (
            "uuid",
            ("7FFFFFFF-0000-4000-8000-00000000000a",),
            ("", "x", "00000000-0000-0000-0000-00000000000"),
        ),
    ],
)
def test_a_text_is_refused_where_duckdb_could_not_read_it(
    open_lake, kind: str, taken: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    lake = open_lake("sqlite")
    lake.spark(f"create table t (id int, v {kind}, l array<struct<x: {kind}>>)")

    def insert(texts: tuple[str, ...], values: str = "v, l") -> None:
        rows = [(index, text, [(text,)]) for index, text in enumerate(texts)]
        given = lake.lake.spark.createDataFrame(rows, "id int, v string, l array<struct<x: string>>")
        given.createOrReplaceTempView("given")
        lake.spark(f"insert into t select id, {values} from given")

    insert(taken)
    for turn, text in enumerate(refused):
        with pytest.raises(duckdb.Error):
            duckdb.execute(f"select cast(? as {kind})", [text])
        with pytest.raises(PySparkException, match=f"is no {kind}"):
            insert((text,), ("v, null", "null, l")[turn % 2])
    lake.spark("update t set id = id + 100")
    found = lake.duckdb_rows("select id, v::varchar, l::varchar from t")
    assert sorted(row[0] for row in found) == [100 + index for index in range(len(taken))]


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [
        ("uint8", ("0S", "255S"), ("-1S", "256S")),
        ("uint16", ("0", "65535"), ("-1", "65536")),
        ("uint32", ("0L", "4294967295L"), ("-1L", "4294967296L")),
        ("uint64", ("0BD", "18446744073709551615BD"), ("-1BD", "18446744073709551616BD")),
        ("uint128", ("0BD", f"'{2**128 - 1}'"), ("-1BD", "'007'", f"'{2**128}'")),
        (
            "timestamp_ns",
            ("timestamp_ntz'1677-09-22 00:00:00'", "timestamp_ntz'2262-04-11 23:47:16.854775'"),
            ("timestamp_ntz'1677-01-01'", "timestamp_ntz'2262-04-12'"),
        ),
    ],
)
def test_a_value_beyond_a_type_that_spark_has_not_is_refused(
    open_lake, kind: str, inside: tuple[str, ...], outside: tuple[str, ...]
) -> None:
    lake = open_lake("sqlite")
    lake.spark(f"create table t (v {kind}, s struct<m: map<string, {kind}>>)")
    for value in inside:
        lake.spark(f"insert into t select {value}, named_struct('m', map('k', {value}))")
    for value in outside:
        for row in (f"{value}, null", f"null, named_struct('m', map('k', {value}))"):
            with pytest.raises(PySparkException, match=f"is no {kind}"):
                lake.spark(f"insert into t select {row}")
    lake.spark("insert into t values (null, null)")
    if kind == "uint128":  # Arrow has no type for one in a struct
        text = "select v, cast(s.m['k'] as {}) as k from t"
        lake.agree(text.format("string"), text.format("varchar"))
    else:
        lake.compare()
    assert len(lake.duckdb_rows("select v from t")) == len(inside) + 1


def test_moments_lose_what_their_type_does_not_hold(open_lake) -> None:
    lake = open_lake("sqlite")
    lake.spark(
        "create table t (id int, s timestamp_s, m timestamp_ms)",
        "insert into t select id, t, t from values (1, timestamp_ntz'2024-03-31 02:30:59.999999'),"
        " (2, timestamp_ntz'1969-12-31 23:59:59.123456'), (3, timestamp_ntz'0001-01-01 00:00:00.001') as r(id, t)",
    )
    lake.compare()
    found = lake.spark_rows("select id, cast(s as string), cast(m as string) from t order by id")
    assert sorted(found) == [
        (1, "2024-03-31 02:30:59", "2024-03-31 02:30:59.999"),
        (2, "1969-12-31 23:59:59", "1969-12-31 23:59:59.123"),
        (3, "0001-01-01 00:00:00", "0001-01-01 00:00:00.001"),
    ]


@pytest.mark.parametrize("inlined", [0, 10])
def test_an_integer_of_39_digits_loses_no_other_column(open_lake, inlined: int) -> None:
    lake = open_lake("sqlite")
    lake.duckdb(
        f"call lake.set_option('data_inlining_row_limit', {inlined})",
        "create table t (id int, h hugeint, s struct(h hugeint), u uhugeint)",
        f"insert into t values (1, {10**38 + 2**80}, {{'h': {-(10**38) * 1.5:.0f}}}, {10**38 * 3}), (2, 2, null, 2)",
    )
    lake.agree("select id, u from t", "select id, u::varchar as u from t")
    assert lake.spark_rows("select count(*) from t") == [(2,)]
    for column in ("h", "s"):
        with pytest.raises(PySparkException, match="a value of column h has more than the 38 digits"):
            lake.spark_rows(f"select {column} from t")
    lake.spark("delete from t where u = '2'", "insert into t (id, u) select 3, u from t")
    lake.agree("select id, u from t", "select id, u::varchar as u from t")


@pytest.mark.parametrize("partition", ["u", "bucket(4, u)"])
def test_a_table_is_partitioned_by_an_integer_of_39_digits(open_lake, partition: str) -> None:
    lake = open_lake("sqlite")
    values = [0, 7, 2**64 + 1, 3 * 10**38]
    lake.spark(f"create table t (id int, u uint128) partitioned by ({partition})")
    lake.spark("insert into t values " + ", ".join(f"({i}, '{v}')" for i, v in enumerate(values)))
    lake.duckdb("insert into t values " + ", ".join(f"({i + 10}, {v})" for i, v in enumerate(values)))
    for value in values:
        lake.agree(f"select id from t where u = '{value}'")
