"""A model's configuration, checked before anything is started."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.ducklake import configs


@pytest.mark.parametrize(
    ("config", "clauses"),
    [
        ({}, ""),
        ({"partition_by": "day"}, "partitioned by (day)"),
        ({"partitioned_by": ["month(at)", "bucket(8, id)"]}, "partitioned by (month(at), bucket(8, id))"),
        ({"sorted_by": ["id desc nulls last", "at"]}, "sorted by (id desc nulls last, at)"),
        ({"sort_by": "id"}, "sorted by (id)"),
        ({"table_options": {"parquet_compression": "zstd"}}, "tblproperties ('parquet_compression' = 'zstd')"),
        (
            {"partition_by": ["a"], "sorted_by": ["b"], "table_options": {"target_file_size": "1MB"}},
            "partitioned by (a)\nsorted by (b)\ntblproperties ('target_file_size' = '1000000')",
        ),
    ],
)
def test_a_layout_becomes_clauses_of_create_table(config: dict[str, Any], clauses: str) -> None:
    configs.check(config)
    assert configs.layout_clauses(config) == clauses


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"partition_by": "a", "partitioned_by": "b"}, ["partition_by and partitioned_by"]),
        ({"sorted_by": {"a": 1}}, ["sorted_by takes", "{'a': 1}"]),
        ({"partition_by": ["week(at)"]}, ["partition_by", "week"]),
        ({"partition_by": ["a) as select 1 --"]}, ["partition_by"]),
        ({"table_options": {"compresion": "zstd"}}, ["table_options", "compresion"]),
        ({"table_options": {"parquet_compression": "rar"}}, ["table_options", "rar"]),
        ({"table_options": ["zstd"]}, ["table_options takes", "zstd"]),
        ({"commit_message": 3}, ["commit_message takes", "3"]),
        ({"commit_extra_info": "x"}, ["commit_extra_info takes", "'x'"]),
        ({"location_root": "/data"}, ["location_root", "data_path"]),
        ({"clustered_by": "id"}, ["clustered_by", "bucket(8, column)"]),
        ({"file_format": "delta"}, ["file_format", "'delta'", "Parquet"]),
    ],
)
def test_a_wrong_setting_is_named(config: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(CompilationError) as error:
        configs.check(config)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("kind", "start", "end"),
    [
        ("date", "date'2026-01-01'", "date'2026-01-02'"),
        ("timestamp", "timestamp'2026-01-01 00:00:00+00:00'", "timestamp'2026-01-02 00:00:00+00:00'"),
        ("timestamp_ntz", "timestamp_ntz'2026-01-01 00:00:00'", "timestamp_ntz'2026-01-02 00:00:00'"),
    ],
)
def test_the_window_of_a_batch_is_in_the_type_of_its_column(kind: str, start: str, end: str) -> None:
    window = configs.batch_conditions("At", {"id": "int", "at": kind}, "2026-01-01T00:00:00+00:00", "2026-01-02T00:00")
    assert window == [f"DBT_INTERNAL_DEST.`at` >= {start}", f"DBT_INTERNAL_DEST.`at` < {end}"]


def test_a_batch_needs_its_column() -> None:
    with pytest.raises(CompilationError, match="event_time is 'at', which is no column of the model: id"):
        configs.batch_conditions("at", {"id": "int"}, "2026-01-01", "2026-01-02")


def test_a_unique_key_names_columns() -> None:
    assert configs.named_columns("unique_key", ["ID", "`a b`"], ["id", "a b"], "main.t") == ["`id`", "`a b`"]
    with pytest.raises(CompilationError, match="unique_key names 'nothing', which is no column of main.t; it has id"):
        configs.named_columns("unique_key", "nothing", ["id"], "main.t")


def test_a_merge_updates_the_columns_that_are_named() -> None:
    columns = ["id", "full name", "at"]
    assert configs.updated_columns(None, None, columns) == ["`id`", "`full name`", "`at`"]
    assert configs.updated_columns(["Full Name"], None, columns) == ["`full name`"]
    assert configs.updated_columns(None, "AT", columns) == ["`id`", "`full name`"]
    for given in (("none", None), (None, ["none"])):
        with pytest.raises(CompilationError, match="columns names 'none', which is no column of the model; it has id"):
            configs.updated_columns(*given, columns)


def test_a_key_gives_way_where_its_column_is_still_to_come() -> None:
    changes = configs.layout_changes({"partition_by": "region", "table_options": {"target_file_size": "1MB"}}, "main.t")
    assert changes[:2] == [
        ("alter table main.t set partitioned by (region)", "alter table main.t reset partitioned by"),
        ("alter table main.t reset sorted by", "alter table main.t reset sorted by"),
    ]
    assert [instead for _, instead in changes[2:]] == [None]


def test_partitions_are_values_of_the_keys_without_a_transform() -> None:
    config = {"partition_by": ["region", "day(at)"], "partitions": ["'EU'", {"region": "null"}]}
    assert configs.partitions_condition(config) == "(`region` <=> 'EU') or (`region` <=> null)"
    for wrong in ([], "EU", [{"at": "1"}]):
        with pytest.raises(CompilationError, match="partitions"):
            configs.partitions_condition({**config, "partitions": wrong})


def test_a_new_row_that_asks_for_its_deletion_is_not_inserted() -> None:
    source = {"merge_with_delete_condition": "DBT_INTERNAL_SOURCE.op = 'D'", "merge_insert_condition": "true"}
    assert configs.merge_insert_conditions(source) == ["true", "not coalesce(DBT_INTERNAL_SOURCE.op = 'D', false)"]
    assert configs.merge_insert_conditions({"merge_with_delete_condition": "DBT_INTERNAL_DEST.old"}) == []
