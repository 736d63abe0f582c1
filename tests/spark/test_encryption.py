"""How Spark reads and writes encrypted lakes; what both engines read is in tests/interop/test_encryption.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession

from ..lakes import LakeAddress
from .helpers import run, value


@pytest.fixture
def lake(spark: SparkSession, new_lake: Callable[[str], LakeAddress]) -> Iterator[LakeSession]:
    address = new_lake("sqlite")
    session = LakeSession(address.catalog, data_path=address.data_path, spark=spark, encrypted=True)
    yield session
    session.close()


def bytes_read(spark: Any) -> int:
    """What this process has read from the local disk, as Hadoop counts it."""
    statistics = spark._jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
    return sum(s.getBytesRead() for s in statistics if s.getScheme() == "file")


def test_a_query_reads_only_the_columns_that_it_names(lake: LakeSession, spark: SparkSession) -> None:
    columns = ", ".join(f"rand({i}) as c{i}" for i in range(30))
    run(lake, f"create table t as select {columns} from range(0, 100000, 1, 1)")
    size = value(lake, "select sum(data_file_size_bytes) from ducklake_list_files('t')")
    before = bytes_read(spark)
    assert value(lake, "select count(distinct c2) + count(distinct c28) from t") > 190_000
    assert 2 * size / 30 < bytes_read(spark) - before < 5 * size / 30


def test_files_of_no_rows_of_many_row_groups_and_of_wide_values(lake: LakeSession) -> None:
    run(
        lake,
        "call ducklake_set_option('parquet_row_group_size', 1000)",
        "create table t as select id, repeat(cast(id as string), 500) as s from range(0, 20000, 1, 1)",
        "create table none as select id from t where id < 0",
    )
    assert value(lake, "select sum(length(s)) from t where id % 3 = 0") == sum(
        500 * len(str(i)) for i in range(0, 20000, 3)
    )
    assert value(lake, "select count(*) from none") == 0


def test_a_write_that_fails_leaves_no_file(lake: LakeSession) -> None:
    run(lake, "create table t (id int)")
    with pytest.raises(Exception, match="too large"):
        lake.execute("insert into t select if(id = 900, raise_error('too large'), id) from range(0, 1000, 1, 4)")
    assert value(lake, "select count(*) from t") == 0


def test_a_damaged_file_is_an_error_that_names_it(lake: LakeSession) -> None:
    run(lake, "create table t as select id from range(0, 1000, 1, 1)")
    path = value(lake, "select data_file from ducklake_list_files('t')")
    with open(path, "r+b") as file:
        file.seek(100)
        byte = file.read(1)
        file.seek(100)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(Exception, match=f"encrypted Parquet file .*{path.rsplit('/', 1)[1]} is damaged"):
        lake.sql("select sum(id) from t").collect()
