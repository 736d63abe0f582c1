"""Partition keys in Spark SQL: values equal those of the reference and those computed in Python."""

from __future__ import annotations

import datetime
import decimal
import math
import os
import random
import struct
import uuid
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from dbt.adapters.ducklake.lake.partition_values import encode_partition_value, partition_text_sql
from dbt.adapters.ducklake.lake.partitions import (
    Bucket,
    Day,
    Hour,
    Identity,
    Month,
    Transform,
    Year,
)
from dbt.adapters.ducklake.lake.values import float32

COUNT = 2000
EPOCH = datetime.datetime(1970, 1, 1)
random.seed(20)


def _double() -> float:
    while True:
        value = struct.unpack("<d", random.randbytes(8))[0]
        if not math.isnan(value):
            return float(value)


def _moment() -> datetime.datetime:
    moment = EPOCH + datetime.timedelta(days=random.randint(-700_000, 2_900_000), seconds=random.randint(0, 86_399))
    return moment.replace(microsecond=random.choice([0, 500_000, 123_000, 1, random.randint(0, 999_999)]))


def _text() -> str:
    alphabet = ["a", "Z", "0", " ", "é", "日", "😀", "/", "%", "\t"]
    return "".join(random.choices(alphabet, k=random.randint(0, 30)))


def _decimal(precision: int, scale: int) -> decimal.Decimal:
    number = random.randint(-(10**precision) + 1, 10**precision - 1) // 10 ** random.randint(0, precision)
    return decimal.Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))


def _many(make: Any, *edges: Any) -> list[Any]:
    return [None, *edges, *(make() for _ in range(COUNT))]


# DuckLake type -> (type of Spark, type of the reference, values)
CASES: dict[str, tuple[T.DataType, str, list[Any]]] = {
    "boolean": (T.BooleanType(), "boolean", [None, True, False]),
    "int8": (T.ByteType(), "tinyint", [None, *range(-128, 128)]),
    "int16": (T.ShortType(), "smallint", _many(lambda: random.randint(-(2**15), 2**15 - 1))),
    "int32": (T.IntegerType(), "integer", _many(lambda: random.randint(-(2**31), 2**31 - 1), 0, -1, 34)),
    "int64": (T.LongType(), "bigint", _many(lambda: random.randint(-(2**63), 2**63 - 1), 0, -1, 2**63 - 1)),
    "uint8": (T.ShortType(), "utinyint", [None, *range(256)]),
    "uint32": (T.LongType(), "uinteger", _many(lambda: random.randint(0, 2**32 - 1), 0, 2**32 - 1)),
    "uint64": (
        T.DecimalType(20, 0),
        "ubigint",
        [None, *(decimal.Decimal(random.randint(0, 2**64 - 1)) for _ in range(COUNT))],
    ),
    "date": (T.DateType(), "date", _many(lambda: _moment().date(), datetime.date(1969, 12, 31))),
    "timestamp": (T.TimestampNTZType(), "timestamp", _many(_moment, EPOCH)),
    "timestamp_ms": (
        T.TimestampNTZType(),
        "timestamp_ms",
        _many(lambda: _moment().replace(microsecond=random.randint(0, 999) * 1000)),
    ),
    "timestamp_s": (T.TimestampNTZType(), "timestamp_s", _many(lambda: _moment().replace(microsecond=0))),
    "timestamptz": (T.TimestampType(), "timestamptz", _many(_moment, EPOCH)),
    "decimal(4,1)": (T.DecimalType(4, 1), "decimal(4,1)", _many(lambda: _decimal(4, 1))),
    "decimal(18,18)": (T.DecimalType(18, 18), "decimal(18,18)", _many(lambda: _decimal(18, 18))),
    "decimal(20,20)": (
        T.DecimalType(20, 20),
        "decimal(20,20)",
        _many(lambda: _decimal(20, 20), decimal.Decimal(0)),
    ),
    "decimal(38,10)": (
        T.DecimalType(38, 10),
        "decimal(38,10)",
        _many(lambda: _decimal(38, 10), decimal.Decimal(0)),
    ),
    "float32": (
        T.FloatType(),
        "float",
        _many(lambda: struct.unpack("<f", struct.pack("<f", random.uniform(-1e6, 1e6)))[0], 0.0, -0.0, math.inf),
    ),
    "float64": (T.DoubleType(), "double", _many(_double, 0.0, -0.0, math.inf, -math.inf, 1e300, 0.1)),
    "varchar": (T.StringType(), "varchar", _many(_text, "", "iceberg", "a", "ab", "abc", "abcd")),
    "json": (T.StringType(), "json", _many(lambda: f'{{"a": {random.randint(0, 10**9)}}}')),
    "uuid": (T.StringType(), "uuid", _many(lambda: str(uuid.UUID(int=random.getrandbits(128))))),
    "blob": (T.BinaryType(), "blob", _many(lambda: random.randbytes(random.randint(0, 20)), b"", b"\xff")),
}
BUCKETS = (1, 7, 16, 2**31 - 1)


@pytest.fixture(scope="module")
def reference() -> Any:
    duckdb = pytest.importorskip("duckdb")
    extension = pytest.importorskip("duckdb_extension_ducklake")
    home = os.path.join(os.path.dirname(extension.__file__), "extensions", f"v{duckdb.__version__}")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute(f"LOAD '{home}/ducklake.duckdb_extension'")
    connection.execute("SET timezone = 'UTC'")
    yield connection
    connection.close()


def in_spark(spark: SparkSession, type_: str, *expressions: str) -> list[tuple[Any, ...]]:
    spark_type, _, values = CASES[type_]
    if isinstance(spark_type, T.TimestampType):
        values = [v and v.replace(tzinfo=datetime.timezone.utc) for v in values]
    frame = spark.createDataFrame(
        list(enumerate(values)), T.StructType().add("i", T.IntegerType()).add("c", spark_type)
    )
    rows = frame.selectExpr("i", *expressions).orderBy("i").collect()
    return [tuple(row)[1:] for row in rows]


def in_reference(connection: Any, type_: str, *expressions: str) -> list[tuple[Any, ...]]:
    spark_type, name, values = CASES[type_]
    arrow = {
        "uuid": pa.string(),
        "float32": pa.float32(),
        "float64": pa.float64(),
        "blob": pa.binary(),
    }.get(type_)
    if isinstance(spark_type, T.TimestampType):
        arrow = pa.timestamp("us", "UTC")
    rows = pa.table({"i": range(len(values)), "c": pa.array(values, arrow)})
    connection.register("given", rows)
    names = ", ".join(expressions)
    return list(
        connection.execute(f"SELECT {names} FROM (SELECT i, CAST(c AS {name}) AS c FROM given) ORDER BY i").fetchall()
    )


@pytest.mark.parametrize("type_", CASES)
def test_buckets_equal_those_of_the_reference(spark: SparkSession, reference: Any, type_: str) -> None:
    transforms = [Bucket(n) for n in BUCKETS]
    assert all(transform.applies_to(type_) for transform in transforms)
    ours = in_spark(spark, type_, *(t.spark_sql("c", type_) for t in transforms))
    theirs = in_reference(reference, type_, *(f"(murmur3_32(c) & 2147483647) % {n}" for n in BUCKETS))
    assert ours == theirs
    assert ours == [tuple(t.apply(v, type_) for t in transforms) for v in CASES[type_][2]]


@pytest.mark.parametrize("type_", ["date", "timestamp", "timestamp_ms", "timestamp_s", "timestamptz"])
def test_calendar_keys_equal_those_of_the_reference_in_utc(spark: SparkSession, reference: Any, type_: str) -> None:
    transforms: list[Transform] = [Year(), Month(), Day(), Hour()]
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        ours = in_spark(spark, type_, *(t.spark_sql("c", type_) for t in transforms))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert ours == in_reference(reference, type_, *(f"{t}(c)" for t in transforms))
    assert ours == [tuple(None if v is None else t.apply(v, type_) for t in transforms) for v in CASES[type_][2]]


@pytest.mark.parametrize("type_", [t for t in CASES if Identity().applies_to(t)])
def test_texts_equal_those_of_the_reference(spark: SparkSession, reference: Any, type_: str) -> None:
    ours = in_spark(spark, type_, partition_text_sql("c", type_))
    theirs = in_reference(reference, type_, "CAST(c AS VARCHAR)")
    if type_.startswith("float"):
        # Java does not always write the fewest digits, but they read back as the same number.
        number = float32 if type_ == "float32" else float
        assert [o and number(float(o)) for (o,) in ours] == [t and number(float(t)) for (t,) in theirs]
        assert sum(o == t for o, t in zip(ours, theirs, strict=True)) > 0.9 * len(ours)
        return
    assert ours == theirs
    assert ours == [(encode_partition_value(v, type_),) for v in CASES[type_][2]]


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ("1.0E20D", "1e+20"),
        ("1.0E15D", "1000000000000000.0"),
        ("1.0E16D", "1e+16"),
        ("1.2345678E7D", "12345678.0"),
        ("12345678.25D", "12345678.25"),
        ("0.0001D", "0.0001"),
        ("0.00001D", "1e-05"),
        ("1.5E-300D", "1.5e-300"),
        ("-100D", "-100.0"),
        ("-0.0D", "-0.0"),
        ("double('NaN')", "nan"),
        ("double('-Infinity')", "-inf"),
        ("DATE'+12000-01-01'", "12000-01-01"),
        ("make_date(-43, 3, 15)", "0044-03-15 (BC)"),
        ("make_timestamp_ntz(-43, 3, 15, 10, 0, 0.5)", "0044-03-15 (BC) 10:00:00.5"),
    ],
)
def test_texts_of_edge_values(spark: SparkSession, literal: str, text: str) -> None:
    kind = "timestamp" if "ntz" in literal else "date" if "date" in literal.lower() else "float64"
    assert spark.sql(f"SELECT {partition_text_sql('c', kind)} FROM (SELECT {literal} AS c)").first()[0] == text  # type: ignore[index]


def test_buckets_are_the_same_without_ansi_mode(spark: SparkSession) -> None:
    before = in_spark(spark, "varchar", Bucket(16).spark_sql("c", "varchar"))
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert in_spark(spark, "varchar", Bucket(16).spark_sql("c", "varchar")) == before
        decimals = in_spark(spark, "decimal(38,10)", Bucket(16).spark_sql("c", "decimal(38,10)"))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
    assert decimals == in_spark(spark, "decimal(38,10)", Bucket(16).spark_sql("c", "decimal(38,10)"))
