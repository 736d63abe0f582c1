"""Added files whose types are narrower than the columns', or others: each pair that DuckDB accepts."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .engines import Both

_AROUND_1970 = ("2020-02-03 12:23:34.{}", "1969-12-31 23:59:58.{}")


def _moments(*fractions: str) -> tuple[str, ...]:
    return tuple(moment.format(fraction) for moment in _AROUND_1970 for fraction in fractions)


SOURCES: dict[str, tuple[str, ...]] = {
    "tinyint": ("-128", "127"),
    "smallint": ("-32768", "32767"),
    "integer": ("-2147483648", "2147483647"),
    "bigint": ("-9223372036854775808", "9223372036854775807"),
    "utinyint": ("0", "128", "255"),
    "usmallint": ("0", "32768", "65535"),
    "uinteger": ("0", "2147483648", "4294967295"),
    "ubigint": ("0", "9223372036854775808", "18446744073709551615"),
    "float": ("0.1", "-1.5"),
    "double": ("0.1", "-1e300"),
    "decimal(4,2)": ("99.99", "-99.99", "0.01"),
    "decimal(9,0)": ("999999999", "-5"),
    "decimal(12,3)": ("12345678.125", "-0.001"),
    "decimal(20,5)": ("123456789012345.12345",),
    "decimal(38,4)": ("-1234567890.1234",),
    "boolean": ("true", "false"),
    "varchar": ("x", ""),
    "blob": ("x",),
    "date": ("2020-01-01", "1969-12-31"),
    "time": ("12:34:56.123456",),
    "timestamp_s": _moments("0"),
    "timestamp_ms": _moments("999", "5", "499", "501"),
    "timestamp": _moments("999999", "5", "0005", "000499", "501501", "4995"),
    "timestamp_ns": _moments("999999999", "0000005", "000000499", "5015015"),
    "timestamptz": tuple(m + "+00" for m in _moments("999999")),
    "uuid": ("7fffffff-0000-4000-8000-00000000000a",),
    "json": ('{"a": 1}',),
}


def test_each_pair_of_types_is_read_as_duckdb_reads_it(open_lake: Callable[..., Both], tmp_path: Path) -> None:
    lake = open_lake("sqlite")
    accepted = []
    with lake.connection() as connection:
        for number, (source, texts) in enumerate(SOURCES.items()):
            rows = ", ".join(f"('{text}'::{source})" for text in texts)
            nested = "{'x': v, 'l': [v, null]} as s"
            connection.execute(
                f"copy (select v, {nested} from (values {rows}, (null)) r(v)) to '{tmp_path}/{number}.parquet'"
            )
        # One table for each type, so that a table has files of several types.
        for target in SOURCES:
            table = f"t{len(accepted)}"
            connection.execute(f"create table {table} (v {target}, s struct(x {target}, l {target}[]))")
            sources = []
            for number, source in enumerate(SOURCES):
                if source == target == "timestamp_ns":
                    continue  # Spark has microseconds
                with suppress(duckdb.InvalidInputException):
                    connection.execute(
                        f"call ducklake_add_data_files('lake', '{table}', '{tmp_path}/{number}.parquet')"
                    )
                    sources.append(source)
            connection.execute(f"alter table {table} rename v to w")
            connection.execute(f"alter table {table} rename s.x to y")
            accepted.append((target, sources))
    assert sum(len(sources) for _, sources in accepted) >= 60
    last = lake.duckdb_rows("select max(snapshot_id) from ducklake_snapshots('lake')")[0][0]
    lake.compare(first=last)


def test_types_of_other_writers(open_lake: Callable[..., Both], tmp_path: Path) -> None:
    lake = open_lake("sqlite")
    moments = [datetime.datetime(2020, 2, 3, 12, 23, 34, 999999), datetime.datetime(1969, 12, 31, 23, 59, 58, 500001)]
    utc = pa.timestamp("ns", "UTC")
    table = pa.table(
        {
            "t": pa.array(moments, pa.timestamp("us")),
            "s": pa.array(moments, pa.timestamp("us")),
            "ms": pa.array(moments, pa.timestamp("us")),
            "f": pa.array([0.1, -1.5], pa.float32()),
        }
    )
    pq.write_table(table, f"{tmp_path}/int96.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(pa.table({"z": pa.array([1, -1_500, None], utc)}), f"{tmp_path}/zoned.parquet")
    pq.write_table(pa.table({"z": pa.array(moments, pa.timestamp("ms", "UTC"), safe=False)}), f"{tmp_path}/ms.parquet")
    lake.duckdb(
        "create table t (t timestamp, s timestamp_s, ms timestamp_ms, f double)",
        f"call ducklake_add_data_files('lake', 't', '{tmp_path}/int96.parquet')",
        "create table z (z timestamptz)",
        f"call ducklake_add_data_files('lake', 'z', '{tmp_path}/zoned.parquet')",
        f"call ducklake_add_data_files('lake', 'z', '{tmp_path}/ms.parquet')",
    )
    lake.compare()


def test_rounded_values_are_found(open_lake: Callable[..., Both], tmp_path: Path) -> None:
    lake = open_lake("sqlite")
    finer = [datetime.datetime(2020, 1, 1, 0, 0, 1, 600000), datetime.datetime(2020, 1, 1, 0, 0, 3, 400000)]
    pq.write_table(pa.table({"s": pa.array(finer, pa.timestamp("us"))}), f"{tmp_path}/s.parquet")
    lake.duckdb("create table t (s timestamp_s)", f"call ducklake_add_data_files('lake', 't', '{tmp_path}/s.parquet')")
    for literal, count in (("00:00:02", 1), ("00:00:03", 1), ("00:00:01", 0), ("00:00:04", 0)):
        found = lake.spark_rows(f"select count(*) from t where s = timestamp_ntz'2020-01-01 {literal}'")
        assert found == [(count,)], literal


@pytest.mark.parametrize("kind", ["time", "uuid", "decimal(6,2)", "timestamp", "timestamp_s", "ubigint", "date"])
def test_a_value_in_a_files_path_is_of_any_type(open_lake: Callable[..., Both], tmp_path: Path, kind: str) -> None:
    lake = open_lake("sqlite")
    values = {
        "time": "12:34:56.5",
        "uuid": "7fffffff-0000-4000-8000-00000000000a",
        "decimal(6,2)": "12.5",
        "timestamp": "2020-01-01 12:34:56.5",
        "timestamp_s": "2020-01-01 12:34:56",
        "ubigint": "18446744073709551615",
        "date": "2020-01-01",
    }
    folder = tmp_path / ("v=" + values[kind].replace(":", "%3A"))
    folder.mkdir()
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), f"{folder}/f.parquet")
    default = {"uuid": " default '00000000-0000-0000-0000-000000000000'"}.get(kind, "")
    lake.duckdb(
        f"create table t (id int, v {kind}{default})",
        f"call ducklake_add_data_files('lake', 't', '{folder}/f.parquet', hive_partitioning => true)",
    )
    lake.compare()
