"""Partition keys: transforms of Python values, key names and partition folders."""

from __future__ import annotations

import datetime
import decimal
import math
import os
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.ducklake.lake.errors import CatalogError
from dbt.adapters.ducklake.lake.murmur3 import murmur3
from dbt.adapters.ducklake.lake.partition_values import (
    HIVE_NULL,
    encode_partition_value,
    hive_folder,
    parse_hive_folder,
)
from dbt.adapters.ducklake.lake.partitions import (
    Bucket,
    Day,
    Hour,
    Identity,
    Month,
    Transform,
    Year,
    hashed_bytes,
    parse_transform,
)

MOMENT = datetime.datetime(2017, 11, 16, 22, 31, 8)
UTC = datetime.timezone.utc

# Results of murmur3_32 in the reference.
HASHES = [
    ("int32", 34, 2017239379),
    ("int8", 34, 2017239379),
    ("uint32", 34, -427558391),
    ("int128", 34, -427558391),
    ("uint64", 2**64 - 1, -556781685),
    ("date", MOMENT.date(), -653330422),
    ("timestamp", MOMENT, -2047944441),
    ("timestamptz", MOMENT.replace(tzinfo=UTC), -2047944441),
    ("timestamp_s", MOMENT, -243262269),
    ("timestamp_ms", MOMENT, -1171784138),
    ("timestamp_ns", MOMENT, -737750069),
    ("time", MOMENT.time(), -662762989),
    ("boolean", True, 1392991556),
    ("boolean", False, 1669671676),
    ("decimal(4,2)", decimal.Decimal("14.20"), -622427183),
    ("decimal(38,2)", decimal.Decimal("14.20"), -1660625346),
    ("float32", 1.0, -142385009),
    ("float64", 1.0, -142385009),
    ("float64", -0.0, 1669671676),
    ("float64", math.nan, 1428788237),
    ("float64", math.inf, 420913893),
    ("varchar", "iceberg", 1210000089),
    ("varchar", "", 0),
    ("json", '{"a": 1}', -1141425819),
    ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", 980414783),
    ("uuid", uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), 980414783),
    ("blob", b"\x00\x01\x02\x03", -188683207),
]


@pytest.mark.parametrize(("type_", "value", "expected"), HASHES)
def test_hashes_equal_those_of_the_reference(type_: str, value: Any, expected: int) -> None:
    assert murmur3(hashed_bytes(value, type_)) == expected
    assert Bucket(16).apply(value, type_) == (expected & 0x7FFFFFFF) % 16


def test_null_has_no_bucket() -> None:
    assert Bucket(4).apply(None, "int32") is None


@pytest.mark.parametrize("text", ["identity", "year", "month", "day", "hour", "bucket(8)"])
def test_a_transform_reads_back_from_its_text(text: str) -> None:
    assert str(parse_transform(text)) == text


@pytest.mark.parametrize("text", ["bucket(0)", "bucket(-1)", "bucket", "truncate(4)", "", "YEAR(x)"])
def test_an_unknown_transform_is_named(text: str) -> None:
    with pytest.raises(CatalogError, match="known are identity"):
        parse_transform(text)


def test_transforms_of_one_kind_are_equal() -> None:
    assert Year() == parse_transform("year") != Month()
    assert len({Bucket(3), Bucket(3), Bucket(4), Identity()}) == 3


def test_calendar_keys_are_calendar_values() -> None:
    transforms: list[Transform] = [Year(), Month(), Day(), Hour()]
    assert [t.apply(MOMENT, "timestamp") for t in transforms] == [2017, 11, 16, 22]
    assert [t.apply(MOMENT.date(), "date") for t in transforms] == [2017, 11, 16, 0]
    zoned = MOMENT.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-5)))
    assert [t.apply(zoned, "timestamptz") for t in transforms] == [2017, 11, 17, 3]
    assert Year().apply("0044-03-15 (BC)", "date") == -43
    assert Year().apply("infinity", "date") is None


def test_transforms_apply_to_certain_types_only() -> None:
    assert Year().applies_to("timestamp_ns")
    assert Hour().applies_to("date")
    assert not Month().applies_to("varchar")
    assert Bucket(2).applies_to("blob")
    assert not Identity().applies_to("blob")
    assert not any(t.applies_to("list") for t in (Identity(), Bucket(2), Year()))


def test_result_types() -> None:
    assert [t.result_type("date") for t in (Identity(), Year(), Bucket(2))] == ["date", "int64", "int32"]


def test_partition_folders_have_the_key_names_of_the_reference() -> None:
    used: list[str] = []
    keys: list[tuple[Transform, str]] = [
        (Identity(), "year"),
        (Year(), "ts"),
        (Bucket(4), "year"),
        (Identity(), "Bucket"),
    ]
    for transform, column in keys:
        used.append(transform.hive_key(column, used))
    assert used == ["year", "year_ts", "bucket", "Bucket_Bucket"]


@pytest.mark.parametrize(
    ("key", "value", "folder"),
    [
        ("region", "EU/x y", "region=EU%2Fx%20y"),
        ("a b/c=é", "1", "a%20b%2Fc%3D%C3%A9=1"),
        ("x", None, f"x={HIVE_NULL}"),
        ("x", "", "x="),
        ("x", "a+b&c~d-e_f.g,h;i", "x=a%2Bb%26c~d-e_f.g%2Ch%3Bi"),
        ("x", "x\n\x01\x7f", "x=x%0A%01%7F"),
        ("x", "{}[]!#$^()@`'  ", "x=%7B%7D%5B%5D%21%23%24%5E%28%29%40%60%27%20%20"),
    ],
)
def test_partition_folders_are_encoded_as_by_the_reference(key: str, value: str | None, folder: str) -> None:
    assert hive_folder(key, value) == folder


@given(st.text(), st.none() | st.text().filter(lambda text: text != HIVE_NULL))
def test_a_folder_reads_back(key: str, value: str | None) -> None:
    folder = hive_folder(key, value)
    assert "/" not in folder
    assert parse_hive_folder(folder) == (key, value)


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        ("boolean", True, "true"),
        ("decimal(10,2)", decimal.Decimal("-3.1"), "-3.10"),
        ("decimal(10,2)", 3, "3.00"),
        ("date", datetime.date(1969, 12, 31), "1969-12-31"),
        ("timestamp", datetime.datetime(2024, 1, 15, 12, 30, 0, 500_000), "2024-01-15 12:30:00.5"),
        ("timestamptz", datetime.datetime(2024, 1, 15, 12, 30, tzinfo=UTC), "2024-01-15 12:30:00+00"),
        ("time", datetime.time(12, 30, 0, 500_000), "12:30:00.5"),
        ("float64", 1e20, "1e+20"),
        ("float64", math.nan, "nan"),
        ("varchar", "", ""),
        ("int32", None, None),
    ],
)
def test_partition_values_have_the_text_of_the_reference(type_: str, value: Any, text: str | None) -> None:
    assert encode_partition_value(value, type_) == text


def test_the_reference_lays_out_the_same_folders(tmp_path: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    extension = pytest.importorskip("duckdb_extension_ducklake")
    home = os.path.join(os.path.dirname(extension.__file__), "extensions", f"v{duckdb.__version__}")
    lake = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    lake.execute(f"LOAD '{home}/ducklake.duckdb_extension'")
    lake.execute("SET timezone = 'UTC'")
    lake.execute(f"ATTACH 'ducklake:{tmp_path}/lake.db' AS lake (DATA_PATH '{tmp_path}/d/', DATA_INLINING_ROW_LIMIT 0)")
    lake.execute("USE lake")
    lake.execute('CREATE TABLE t (year INTEGER, ts TIMESTAMP, "a b" VARCHAR)')
    lake.execute('ALTER TABLE t SET PARTITIONED BY (year, year(ts), hour(ts), bucket(7, "a b"), "a b")')
    lake.execute("INSERT INTO t VALUES (1, '2020-03-04 05:06:07', 'EU/x y')")
    (path,) = lake.execute("SELECT path FROM __ducklake_metadata_lake.ducklake_data_file").fetchone()
    values = lake.execute(
        "SELECT partition_value FROM __ducklake_metadata_lake.ducklake_file_partition_value"
        " ORDER BY partition_key_index"
    ).fetchall()
    lake.close()

    row = {"year": 1, "ts": datetime.datetime(2020, 3, 4, 5, 6, 7), "a b": "EU/x y"}
    types = {"year": "int32", "ts": "timestamp", "a b": "varchar"}
    keys = [(Identity(), "year"), (Year(), "ts"), (Hour(), "ts"), (Bucket(7), "a b"), (Identity(), "a b")]
    used: list[str] = []
    folders, texts = [], []
    for transform, column in keys:
        type_ = types[column]
        used.append(transform.hive_key(column, used))
        texts.append(encode_partition_value(transform.apply(row[column], type_), transform.result_type(type_)))
        folders.append(hive_folder(used[-1], texts[-1]))
    assert [(text,) for text in texts] == values
    assert path.rsplit("/", 1)[0] == "/".join(folders)
