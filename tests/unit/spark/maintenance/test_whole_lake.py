"""Compaction of a whole lake: the tables that it finds, and what it asks about the others. Without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from dbt.adapters.ducklake import LakeSession

from .... import reference


def test_a_lake_is_not_asked_about_each_table_and_no_table_is_forgotten(tmp_path: Path) -> None:
    catalog, statements = f"sqlite:{tmp_path}/c.sqlite", []
    with LakeSession(catalog, data_path=f"{tmp_path}/data/", data_inlining_row_limit=0) as lake:
        with lake.transaction():
            for i in range(40):
                lake.execute(f"create table t{i} (id bigint)")
                lake.insert(f"t{i}", pa.table({"id": [1, 2, 3]}))
        lake.insert("t7", pa.table({"id": [4]}))
        with reference.connect(catalog) as duckdb:
            duckdb.execute("delete from t1 where id = 2")
            duckdb.execute("insert into t8 values (5)")
            duckdb.execute("insert into t9 values (6)")
            duckdb.execute("delete from t9 where id = 6")
        for statement in (
            "alter table t2 set partitioned by (id)",
            "alter table t3 set sorted by (id)",
            "alter table t4 set partitioned by (id)",
            "alter table t4 reset partitioned by",
        ):
            lake.execute(statement)
        found = {
            "ducklake_merge_adjacent_files": {"t7"},
            "ducklake_rewrite_data_files": {"t1"},
            "ducklake_flush_inlined_data": {"t8", "t9"},
            "ducklake_migrate_partitioning": {"t2", "t3"},
        }
        sa.event.listen(sa.Engine, "before_cursor_execute", count := lambda *call: statements.append(call[2]))
        try:
            for operation, tables in found.items():
                arguments: dict[str, Any] = {"delete_threshold": 0} if "rewrite" in operation else {}
                rows = lake.call(operation, dry_run=True, **arguments)
                assert set(rows["table_name"].to_pylist()) == tables, operation
            assert len(statements) < 3 * 40
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", count)
        rows = lake.call("ducklake_flush_inlined_data")
        assert dict(zip(rows["table_name"].to_pylist(), rows["rows_flushed"].to_pylist(), strict=True)) == {
            "t8": 1,
            "t9": 1,
        }
        assert lake.call("ducklake_flush_inlined_data").num_rows == 0
        assert not lake.spark_started
