"""Files that are added as they are: how their schemas match a table, their partitions, and values in their paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.ducklake.lake.added_file_partition import FilePartition, partition_of_file
from dbt.adapters.ducklake.lake.added_file_stats import added_file_stats, check_values
from dbt.adapters.ducklake.lake.added_files import FileMatch, MatchRules, match_file
from dbt.adapters.ducklake.lake.evolution import ColumnIds
from dbt.adapters.ducklake.lake.files import NameMapEntry
from dbt.adapters.ducklake.lake.partitions import PartitionField, PartitionSpec, parse_transform
from dbt.adapters.ducklake.lake.path_values import ParsedValue, parse_path_value, path_values
from dbt.adapters.ducklake.lake.types import Column

from ...lakes import columns

LENIENT = MatchRules(allow_missing=True, ignore_extra_columns=True)


def table(**kinds: Any) -> tuple[Column, ...]:
    ids = ColumnIds(1)
    return tuple(ids.assign(column) for column in columns(**kinds))


def footer(folder: Path, rows: pa.Table | Mapping[str, Any]) -> pq.FileMetaData:
    path = folder / "f.parquet"
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.table(dict(rows)), path)
    return pq.read_metadata(path)


def match(
    folder: Path,
    rows: Mapping[str, Any],
    to: tuple[Column, ...],
    rules: MatchRules | None = None,
    path: str = "f.parquet",
) -> FileMatch:
    return match_file(footer(folder, rows), to, path_values(path), rules or MatchRules())


def test_columns_are_matched_by_name_in_any_case(tmp_path: Path) -> None:
    found = match(tmp_path, {"V": ["x"], "Id": pa.array([1], pa.int32())}, table(id="int64", v="varchar"))
    assert found == FileMatch((NameMapEntry("Id", 1), NameMapEntry("V", 2)))


def test_parts_of_lists_and_maps_are_matched_by_position(tmp_path: Path) -> None:
    kind = pa.struct([pa.field("Y", pa.int32())])
    rows = {
        "l": pa.array([[{"Y": 1}]], pa.list_(pa.field("anything", kind))),
        "m": pa.array([[("k", {"Y": 1})]], pa.map_(pa.string(), kind)),
    }
    found = match(tmp_path, rows, table(l=[{"y": "int32"}], m=("varchar", {"y": "int32"})))
    assert not found.problems
    in_list, in_map = found.name_map
    assert in_list.children == (NameMapEntry("list", 2, False, (NameMapEntry("Y", 3),)),)
    assert in_map.children == (
        NameMapEntry("key", 5),
        NameMapEntry("value", 6, False, (NameMapEntry("Y", 7),)),
    )


def test_missing_and_extra_columns_are_problems_unless_they_are_allowed(tmp_path: Path) -> None:
    rows = {"s": [{"a": 1, "b": 2}], "x": [1]}
    to = table(id="int64", s={"a": "int64", "c": "int64"})
    assert [problem.partition(";")[0] for problem in match(tmp_path, rows, to).problems] == [
        "column id of the table is not in the file",
        "column s.c of the table is not in the file",
        "column s.b of the file is not in the table",
        "column x of the file is not in the table",
    ]
    found = match(tmp_path, rows, to, LENIENT)
    assert not found.problems
    assert (found.missing_names, found.ignored_names) == (("id", "s.c"), ("s.b", "x"))


@pytest.mark.parametrize(
    ("rows", "to", "problem"),
    [
        (
            {"v": pa.array([1], pa.int64())},
            {"v": "int32"},
            "column v is int64 in the file and int32 in the table, which",
        ),
        ({"v": [[1]]}, {"v": "int64"}, "column v is list in the file and int64 in the table"),
        ({"v": [1]}, {"v": ["int64"]}, "column v is int64 in the file and list<int64> in the table"),
        ({"v": [[True]]}, {"v": ["int64"]}, "column v.element is boolean in the file and int64 in the table"),
        ({"v": [{"a": "x"}]}, {"v": {"a": "date"}}, "column v.a is varchar in the file and date in the table"),
        ({"v": pa.array([1], pa.time32("ms"))}, {"v": "time"}, r"column v is INT32 \(Time, milliseconds\) in the file"),
        ({"v": [1.5]}, {"v": "int128"}, "column v is float64 in the file and int128 in the table, which takes no type"),
        ({"v": [1], "V": [2]}, {"v": "int64"}, "the file has the columns v and V, which Spark does not tell apart"),
        ({"x": [1]}, {"v": "int64"}, "the file has no column of the table"),
        ({"v": [{"x": 1}]}, {"v": {"a": "int64"}}, "column v has no field of that struct in the table"),
    ],
)
def test_a_problem_names_the_column_and_both_types(
    tmp_path: Path, rows: dict[str, Any], to: dict[str, Any], problem: str
) -> None:
    (found,) = match(tmp_path, rows, table(**to), LENIENT).problems
    assert found.startswith(problem.replace("\\", ""))


def test_a_value_in_the_path_comes_before_one_in_the_file(tmp_path: Path) -> None:
    rows = {"id": [1, 2], "region": ["x", "y"], "year": ["a", "b"]}
    to = table(id="int64", region="varchar", year="int32")
    found = match(tmp_path, rows, to, path="in/Region=EU%2Fb/year=2024/f.parquet")
    assert found.name_map[1:] == (NameMapEntry("Region", 2, True), NameMapEntry("year", 3, True))
    values = path_values("in/Region=EU%2Fb/year=2024/f.parquet")
    stats = added_file_stats(footer(tmp_path, rows), to, found, values)
    assert [(stats[i].min_value, stats[i].max_value, stats[i].value_count, stats[i].null_count) for i in (2, 3)] == [
        ("EU/b", "EU/b", 2, 0),
        ("2024", "2024", 2, 0),
    ]


def test_only_folders_with_one_equals_sign_have_values_and_the_first_counts() -> None:
    values = path_values("/a=1/b=2=3/c/A=4/d=5")
    assert {key: value.text for key, value in values.items()} == {"a": "1"}


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("007", "int32", ParsedValue("7", "7")),
        ("2147483648", "int32", None),
        ("-1", "uint8", None),
        ("1.50", "decimal(4,1)", ParsedValue("1.5", "1.5")),
        ("1.55", "decimal(4,1)", None),
        ("1234", "decimal(4,1)", None),
        ("TRUE", "boolean", ParsedValue("1", "true")),
        ("yes", "boolean", None),
        ("", "varchar", ParsedValue("", "")),
        ("", "int32", ParsedValue(None, None)),
        ("null", "varchar", ParsedValue(None, None)),
        ("__HIVE_DEFAULT_PARTITION__", "decimal(4,1)", ParsedValue(None, None)),
        ("a%20b+c", "varchar", ParsedValue("a b+c", "a b+c")),
        ("100%", "varchar", None),
        ("%FF", "varchar", None),
        ("2020-01-01", "date", ParsedValue("2020-01-01", "2020-01-01")),
        ("2020-1-1", "date", None),
        ("2020-01-01 10%3A30%3A00", "timestamp", ParsedValue("2020-01-01 10:30:00", "2020-01-01 10:30:00")),
        ("2020-01-01 10:30:00.5", "timestamp_s", None),
        ("2020-01-01 10:30:00", "timestamptz", None),
        ("1e3", "float64", ParsedValue("1000.0", "1000.0")),
        ("nan", "float64", None),
        ("x", "interval", None),
        ("NULL", "variant", None),
    ],
)
def test_a_text_in_a_path_is_taken_if_all_engines_read_the_same(
    text: str, kind: str, expected: ParsedValue | None
) -> None:
    assert parse_path_value(text, kind) == expected


def test_a_missing_column_has_statistics_of_its_default(tmp_path: Path) -> None:
    to = table(id="int64", n="int32", word="varchar", s={"a": "int32"})
    to = (*to[:2], replace(to[2], initial_default="dflt"), to[3])
    found = match(tmp_path, {"id": [1, 2]}, to, LENIENT)
    stats = added_file_stats(footer(tmp_path, {"id": [1, 2]}), to, found, {})
    assert (stats[2].value_count, stats[2].null_count, stats[2].min_value) == (0, 2, None)
    assert (stats[3].value_count, stats[3].null_count, stats[3].min_value) == (2, 0, "dflt")
    assert (stats[5].value_count, stats[5].null_count) == (0, 2)


@pytest.mark.parametrize(
    ("rows", "kind", "problem"),
    [
        ({"v": [1, None]}, "int64", "column v is NOT NULL, and 1 rows of the file have no value for it"),
        ({"v": [1, 2]}, "int64", None),
        ({"v": [{"a": 1}, {"a": 2}]}, {"a": "int64"}, None),
        ({"v": [{"a": 1}, {"a": None}]}, {"a": "int64"}, "does not tell whether it has NULLs there"),
        ({"v": [[1]]}, ["int64"], "does not tell whether it has NULLs there"),
    ],
)
def test_nulls_are_refused_where_none_may_be(tmp_path: Path, rows: dict[str, Any], kind: Any, problem: str) -> None:
    (column,) = table(v=kind)
    to = (replace(column, nulls_allowed=False),)
    metadata = footer(tmp_path, rows)
    found = match_file(metadata, to, {}, MatchRules())
    problems = check_values(metadata, to, found, added_file_stats(metadata, to, found, {}))
    assert len(problems) == (problem is not None)
    assert all(problem in text for text in problems)


def test_a_missing_column_that_is_not_null_is_refused(tmp_path: Path) -> None:
    (one, other) = table(id="int64", v="int32")
    found = match(tmp_path, {"id": [1]}, (one, replace(other, nulls_allowed=False)), LENIENT)
    assert found.problems == ("column v is NOT NULL, and the file does not have it",)


def test_decimals_of_more_digits_are_taken_while_the_values_fit(tmp_path: Path) -> None:
    from decimal import Decimal

    to = table(v="decimal(9,3)")
    for value, fits in (("999999", True), ("-1000000", False)):
        metadata = footer(tmp_path, {"v": pa.array([Decimal(value)], pa.decimal128(9, 0))})
        found = match_file(metadata, to, {}, MatchRules())
        problems = check_values(metadata, to, found, added_file_stats(metadata, to, found, {}))
        assert (not problems) is fits, problems


def partition(folder: Path, rows: dict[str, Any], path: str, *keys: tuple[str, str]) -> FilePartition:
    to = table(d="date", n="int64", s="varchar")
    ids = {column.name: column.id for column in to}
    fields = [PartitionField(i, ids[name], parse_transform(text)) for i, (name, text) in enumerate(keys)]
    metadata, values = footer(folder, rows), path_values(path)
    found = match_file(metadata, to, values, LENIENT)
    assert not found.problems
    stats = added_file_stats(metadata, to, found, values)
    return partition_of_file(PartitionSpec(1, tuple(fields)), to, values, stats)


def days(*texts: str) -> pa.Array:
    return pa.array(texts).cast(pa.date32())


def test_a_partition_value_is_in_the_path_or_proven_by_statistics(tmp_path: Path) -> None:
    may = {"d": days("2024-05-01", "2024-05-31"), "n": [7, 7]}
    assert partition(tmp_path, may, "s=a%20b/f", ("s", "identity")) == FilePartition(("a b",))
    assert partition(tmp_path, may, "s=NULL/f", ("s", "identity")) == FilePartition((None,))
    assert partition(tmp_path, may, "f", ("d", "year"), ("d", "month")) == FilePartition(("2024", "5"))
    assert partition(tmp_path, may, "f", ("n", "identity")) == FilePartition(("7",))
    bucket = partition(tmp_path, may, "f", ("n", "bucket(4)"))
    assert bucket.values is not None
    assert bucket.values[0] is not None


def test_a_file_of_several_partitions_is_refused(tmp_path: Path) -> None:
    # May of two years is one month, but not one partition for certain, as June may be between.
    two_years = {"d": days("2023-05-01", "2024-05-31"), "n": [1, 2]}
    for key in (("d", "month"), ("d", "year"), ("n", "identity"), ("n", "bucket(4)")):
        found = partition(tmp_path, two_years, "f", key)
        assert found.values is None
        assert found.problems
        assert found.problems[0].startswith("the table is partitioned by ")


def test_a_path_that_contradicts_the_rows_is_refused(tmp_path: Path) -> None:
    may = {"d": days("2024-05-01", "2024-05-31"), "n": [7, 7]}
    (problem,) = partition(tmp_path, may, "year=2023/f", ("d", "year")).problems
    assert problem == (
        "the file's path has year=2023, and column d of the file is of the partition 2024;"
        " it is no partition of the table"
    )


def test_a_folder_that_nothing_proves_gives_no_partition_value(tmp_path: Path) -> None:
    assert partition(tmp_path, {"n": [1, 2]}, "bucket=3/f", ("n", "bucket(4)")) == FilePartition(None)
