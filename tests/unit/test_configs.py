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
