"""Model configuration: validation and the SQL clauses that follow from it."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.ducklake import incremental
from dbt.adapters.ducklake.configs import check_model_config
from dbt.adapters.ducklake.table_layout import LayoutChange, PartitionBy, SortedBy, TableLayout, TableOptions


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
    check_model_config(config)
    assert TableLayout.from_config(config).create_clauses() == clauses


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
        ({"cluster_by": ["id"]}, ["cluster_by", "sorted_by"]),
        ({"liquid_clustered_by": "id"}, ["liquid_clustered_by", "sorted_by"]),
        ({"order_by": "id"}, ["order_by", "sorted_by"]),
        ({"tblproperties": {"a": 1}}, ["tblproperties", "table_options"]),
        ({"transient": True}, ["transient", "leave it out"]),
        ({"file_format": "delta"}, ["file_format", "'delta'", "Parquet"]),
        (
            {"partition_by": {"field": "day", "data_type": "date", "granularity": "month"}},
            ["partition_by", "BigQuery's", "write partition_by: ['year(day)', 'month(day)']"],
        ),
        ({"partition_by": {"field": "id", "data_type": "int64", "range": {"end": 9}}}, ["BigQuery's", "int64"]),
    ],
)
def test_a_wrong_setting_is_named(config: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(CompilationError) as error:
        check_model_config(config)
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
    window = incremental.microbatch_conditions(
        "At", {"id": "int", "at": kind}, "2026-01-01T00:00:00+00:00", "2026-01-02T00:00"
    )
    assert window == [f"DBT_INTERNAL_DEST.`at` >= {start}", f"DBT_INTERNAL_DEST.`at` < {end}"]


def test_a_batch_needs_its_column() -> None:
    with pytest.raises(CompilationError, match="event_time is 'at', which is no column of the model: id"):
        incremental.microbatch_conditions("at", {"id": "int"}, "2026-01-01", "2026-01-02")


def test_a_unique_key_names_columns() -> None:
    assert incremental.quoted_columns("unique_key", ["ID", "`a b`"], ["id", "a b"], "main.t") == ["`id`", "`a b`"]
    with pytest.raises(CompilationError, match="unique_key names 'nothing', which is no column of main.t; it has id"):
        incremental.quoted_columns("unique_key", "nothing", ["id"], "main.t")


def test_a_merge_updates_the_columns_that_are_named() -> None:
    columns = ["id", "full name", "at"]
    assert incremental.merge_update_columns(None, None, columns) == ["`id`", "`full name`", "`at`"]
    assert incremental.merge_update_columns(["Full Name"], None, columns) == ["`full name`"]
    assert incremental.merge_update_columns(None, "AT", columns) == ["`id`", "`full name`"]
    for given in (("none", None), (None, ["none"])):
        with pytest.raises(CompilationError, match="columns names 'none', which is no column of the model; it has id"):
            incremental.merge_update_columns(*given, columns)


def test_a_layout_is_a_value() -> None:
    layout = TableLayout.from_config({"partitioned_by": ["month(at)", "region"], "sort_by": "id"})
    assert layout == TableLayout(PartitionBy(("month(at)", "region")), SortedBy(("id",)), TableOptions())
    assert [(key.transform, key.column) for key in layout.partition_by.parsed_keys()] == [
        ("month", "at"),
        ("identity", "region"),
    ]
    assert TableLayout.from_config({}) == TableLayout()


def test_a_layout_change_has_a_fallback_for_columns_that_do_not_exist_yet() -> None:
    layout = TableLayout.from_config({"partition_by": "region", "table_options": {"target_file_size": "1MB"}})
    assert list(layout.changes("main.t")) == [
        LayoutChange("alter table main.t set partitioned by (region)", "alter table main.t reset partitioned by"),
        LayoutChange("alter table main.t reset sorted by", "alter table main.t reset sorted by"),
        LayoutChange("alter table main.t set tblproperties ('target_file_size' = '1000000')", None),
    ]


def test_options_that_a_model_does_not_set_stay() -> None:
    assert [change.statement for change in TableLayout.from_config({}).changes("main.t")] == [
        "alter table main.t reset partitioned by",
        "alter table main.t reset sorted by",
    ]


@pytest.mark.parametrize(
    ("config", "strategy"),
    [
        ({}, "append"),
        ({"unique_key": "id"}, "merge"),
        ({"unique_key": "id", "incremental_strategy": "delete+insert"}, "delete+insert"),
    ],
)
def test_the_default_strategy_follows_from_the_unique_key(config: dict[str, Any], strategy: str) -> None:
    assert incremental.strategy_of(config) == strategy


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"incremental_strategy": "merge"}, ["needs a unique_key"]),
        ({"merge_update_condition": "true"}, ["merge_update_condition is for the strategy merge", "'append'"]),
        ({"unique_key": "id", "merge_insert_condition": 1}, ["merge_insert_condition takes a condition", "1"]),
        ({"unique_key": "id", "merge_update_columns": "a", "merge_exclude_columns": "b"}, ["exclude each other"]),
        ({"incremental_predicates": [""]}, ["incremental_predicates takes conditions"]),
        ({"partitions": ["1"]}, ["partitions is for insert_overwrite", "'append'"]),
    ],
)
def test_settings_must_fit_the_incremental_strategy(config: dict[str, Any], words: list[str]) -> None:
    check_model_config({**config, "materialized": "table"})
    with pytest.raises(CompilationError) as error:
        check_model_config({**config, "materialized": "incremental"})
    for word in words:
        assert word in str(error.value)


def test_partitions_are_values_of_the_keys_without_a_transform() -> None:
    config = {"partition_by": ["region", "day(at)"], "partitions": ["'EU'", {"region": "null"}]}
    assert incremental.partitions_condition(config) == "(`region` <=> 'EU') or (`region` <=> null)"
    for wrong in ([], "EU", [{"at": "1"}]):
        with pytest.raises(CompilationError, match="partitions"):
            incremental.partitions_condition({**config, "partitions": wrong})


def test_a_new_row_that_asks_for_its_deletion_is_not_inserted() -> None:
    source = {"merge_with_delete_condition": "DBT_INTERNAL_SOURCE.op = 'D'", "merge_insert_condition": "true"}
    assert incremental.merge_insert_conditions(source) == ["true", "not coalesce(DBT_INTERNAL_SOURCE.op = 'D', false)"]
    assert incremental.merge_insert_conditions({"merge_with_delete_condition": "DBT_INTERNAL_DEST.old"}) == []
