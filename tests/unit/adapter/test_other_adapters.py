"""Settings for other adapters, in the models of installed packages."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dbt.adapters.ducklake.configs import check_model_config
from dbt.adapters.ducklake.other_adapters import IgnoredSettings, PackageConfig, bigquery_partition_keys
from dbt.adapters.ducklake.table_layout import TableLayout


@pytest.mark.parametrize(
    ("partition_by", "keys"),
    [
        ({"field": "d"}, ["year(`d`)", "month(`d`)", "day(`d`)"]),
        ({"field": "d", "data_type": "date", "granularity": "year"}, ["year(`d`)"]),
        ({"field": "d", "data_type": "date", "granularity": "month"}, ["year(`d`)", "month(`d`)"]),
        ({"field": "d", "data_type": "DATETIME", "granularity": "DAY"}, ["year(`d`)", "month(`d`)", "day(`d`)"]),
        (
            {"field": "created at", "data_type": "timestamp", "granularity": "hour"},
            ["year(`created at`)", "month(`created at`)", "day(`created at`)", "hour(`created at`)"],
        ),
        ({"field": "id", "data_type": "int64", "range": {"start": 0, "end": 9, "interval": 1}}, None),
        ({"field": "d", "granularity": "fortnight"}, None),
        ({"field": "_PARTITIONTIME", "data_type": "timestamp", "time_ingestion_partitioning": True}, None),
        ({"granularity": "day"}, None),
    ],
)
def test_a_bigquery_partition_is_read_as_what_it_means(partition_by: dict[str, Any], keys: list[str] | None) -> None:
    assert bigquery_partition_keys(partition_by) == keys
    config = PackageConfig.read({"partition_by": partition_by, "materialized": "table"})
    check_model_config(config)
    assert list(TableLayout.from_config(config).partition_by.keys) == (keys or [])
    assert config.ignored == (() if keys else ("partition_by",))


@pytest.mark.parametrize(
    ("settings", "ignored"),
    [
        ({"file_format": ""}, ()),  # dbt_artifacts
        ({"file_format": "delta", "location_root": "/mnt/lake"}, ("file_format", "location_root")),
        ({"clustered_by": ["id"], "buckets": 8}, ("buckets", "clustered_by")),  # Fivetran's
        ({"tblproperties": {"delta.columnMapping.mode": "name"}, "options": {"a": "b"}}, ("options", "tblproperties")),
        ({"dist": "even", "sort": ["at"], "sort_type": "interleaved"}, ()),  # Redshift's, which are ignored everywhere
        ({"transient": False, "cluster_by": [], "liquid_clustered_by": None, "engine": ""}, ()),
        ({"partition_by": ["truncate(4, name)"]}, ("partition_by",)),  # Iceberg's
        ({"partitioned_by": [{"field": "at"}]}, ("partitioned_by",)),
        ({"partition_by": ["month(at)", "region"]}, ()),
    ],
)
def test_what_is_for_other_adapters_has_no_effect(settings: dict[str, Any], ignored: tuple[str, ...]) -> None:
    config = PackageConfig.read({"materialized": "incremental", "unique_key": "id", **settings})
    check_model_config(config)
    assert config.ignored == ignored
    assert not any(config.get(name) for name in ignored)
    assert (config.get("unique_key"), config.get("missing", 3)) == ("id", 3)


@pytest.mark.parametrize("settings", [{"file_format": ""}, {"transient": False}, {"cluster_by": []}])
def test_empty_settings_are_no_error_in_the_users_own_project(settings: dict[str, Any]) -> None:
    check_model_config(settings)


def test_one_warning_lists_the_settings_of_all_threads() -> None:
    settings = IgnoredSettings()
    assert settings.take_warning() is None
    with ThreadPoolExecutor(8) as pool:
        for number in range(200):
            pool.submit(settings.add, "github", f"model.github.m{number % 20}", ("clustered_by", "buckets"))
        pool.submit(settings.add, "artifacts", "model.artifacts.runs", ("file_format",))
    assert settings.take_warning() == (
        "Installed packages have settings that are meant for other adapters. They were ignored:\n"
        "  artifacts: file_format (1 model)\n"
        "  github: buckets (20 models), clustered_by (20 models)"
    )
    assert settings.take_warning() is None
