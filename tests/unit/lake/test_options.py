"""Options: accepted values, stored form, and which scope wins."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dbt.adapters.ducklake.lake.errors import OptionError
from dbt.adapters.ducklake.lake.options import (
    OPTIONS,
    Options,
    parse_option,
    parse_size,
)
from dbt.adapters.ducklake.lake.tables import ducklake_metadata

from ...lakes import Lake, LakeAddress, attached


@pytest.mark.parametrize(
    ("name", "given", "stored"),
    [
        ("target_file_size", "512MB", "512000000"),
        ("TARGET_FILE_SIZE", "1.5 GiB", "1610612736"),
        ("target_file_size", 1000, "1000"),
        ("parquet_compression", "ZSTD", "zstd"),
        ("parquet_compression_level", " 3 ", "3"),
        ("parquet_version", 2, "V2"),
        ("parquet_version", "v1", "V1"),
        ("auto_compact", False, "false"),
        ("auto_compact", "YES", "true"),
        ("rewrite_delete_threshold", 0.5, "0.500000"),
        ("data_inlining_row_limit", 0, "0"),
    ],
)
def test_a_value_is_stored_as_the_reference_stores_it(name: str, given: object, stored: str) -> None:
    assert parse_option(name, given) == stored


def test_durations_are_for_the_whole_lake() -> None:
    assert parse_option("expire_older_than", "1 week 2 days") == "1 week 2 days"
    assert parse_option("delete_older_than", "") == ""
    with pytest.raises(OptionError, match="can not be set for one table"):
        parse_option("expire_older_than", "7 days", "table")
    with pytest.raises(OptionError, match="can not be set for one schema"):
        parse_option("require_commit_message", True, "schema")


@pytest.mark.parametrize(
    ("name", "given", "takes"),
    [
        ("target_file_size", "big", "a size such as 512MB"),
        ("target_file_size", "0", "a size above zero"),
        ("target_file_size", "-1MB", "a size such as"),
        ("target_file_size", "1 parsec", "a size such as"),
        ("parquet_compression", "rar", "one of uncompressed, snappy"),
        ("parquet_version", "3", "1 or 2"),
        ("auto_compact", "maybe", "true or false"),
        ("rewrite_delete_threshold", "1.5", "between 0 and 1"),
        ("rewrite_delete_threshold", "nan", "between 0 and 1"),
        ("data_inlining_row_limit", "-1", "at least 0"),
        ("data_inlining_row_limit", "1.5", "at least 0"),
        ("parquet_row_group_size", "0", "at least 1"),
        ("expire_older_than", "soon", "a duration such as 7 days"),
    ],
)
def test_a_refused_value_is_named_with_what_is_accepted(name: str, given: object, takes: str) -> None:
    with pytest.raises(OptionError, match=rf"option {name} takes .*{takes}.*, not '{given}'"):
        parse_option(name, given)


def test_an_option_that_does_not_exist_names_those_that_do() -> None:
    with pytest.raises(OptionError, match="no option 'compression'; there are auto_compact, .*write_deletion_vectors"):
        parse_option("compression", "zstd")


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("2kb", 2000), ("2 KiB", 2048), ("0.5GB", 500_000_000), ("1T", 10**12)]
)
def test_sizes_are_read_with_their_units(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_the_nearest_scope_wins() -> None:
    options = Options(
        {
            (None, None, "target_file_size"): "1",
            ("schema", 3, "target_file_size"): "2",
            ("table", 7, "target_file_size"): "3",
        }
    )
    assert options.number("target_file_size") == 1
    assert options.number("target_file_size", 3) == 2
    assert options.number("target_file_size", 3, 7) == 3
    assert options.number("target_file_size", 4, 8) == 1
    assert options.with_values({("table", 7, "target_file_size"): None}).number("target_file_size", 3, 7) == 2
    assert Options().number("target_file_size") == 512_000_000
    assert Options().number("parquet_row_group_size") is None
    assert Options({(None, None, "auto_compact"): "FALSE"}).flag("auto_compact") is False


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "duckdb"])
def test_options_go_to_the_reference_and_back(kind: str, new_lake: Callable[[str], LakeAddress]) -> None:
    address = new_lake(kind)
    with attached(address) as connection:
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.t (a INT)")
        connection.execute("CALL lake.set_option('target_file_size', '5MB')")
        connection.execute("CALL lake.set_option('parquet_compression', 'zstd', schema => 's')")
        connection.execute("CALL lake.set_option('parquet_version', 2, schema => 's', table_name => 't')")
        connection.execute("CALL lake.set_option('auto_compact', false)")
        connection.execute("CALL lake.set_option('rewrite_delete_threshold', 0.5)")
    lake = Lake(address)
    tx = lake.begin()
    table = tx.state.table("s", "t")
    assert tx.options.number("target_file_size") == 5_000_000
    assert tx.options.get("parquet_compression", table.schema_id, table.id) == "zstd"
    assert tx.options.get("parquet_version", table.schema_id, table.id) == parse_option("parquet_version", 2)
    assert tx.options.flag("auto_compact") is False
    assert tx.options.get("rewrite_delete_threshold") == parse_option("rewrite_delete_threshold", 0.5)
    values = {
        "auto_compact": True,
        "data_inlining_row_limit": 3,
        "delete_older_than": "2 days",
        "expire_older_than": "1 week",
        "hive_file_pattern": False,
        "parquet_compression": "gzip",
        "parquet_compression_level": 4,
        "parquet_row_group_size": 1000,
        "parquet_row_group_size_bytes": "1MB",
        "parquet_version": 1,
        "per_thread_output": True,
        "require_commit_message": False,
        "rewrite_delete_threshold": 0.25,
        "sort_on_insert": False,
        "target_file_size": "7MB",
        "write_deletion_vectors": False,
    }
    assert set(values) == set(OPTIONS)
    for name, value in values.items():
        tx.set_option(name, value)
    tx.commit()
    ours = {r["key"]: r["value"] for r in lake.rows(ducklake_metadata) if r["scope"] is None and r["key"] in values}
    with lake.duckdb() as connection:
        connection.execute("SET preserve_insertion_order = false")  # parquet_row_group_size_bytes demands it
        connection.execute("INSERT INTO s.t SELECT range FROM range(100)")
        for name, value in values.items():
            connection.execute(f"CALL lake.set_option('{name}', {value!r})")
    theirs = {r["key"]: r["value"] for r in lake.rows(ducklake_metadata) if r["scope"] is None and r["key"] in values}
    assert ours == theirs
