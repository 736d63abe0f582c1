"""The official suite: dbt snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic.test_snapshot_check_cols import TestSnapshotCheckCols as SnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import TestSnapshotTimestamp as SnapshotTimestamp
from dbt.tests.adapter.simple_snapshot import new_record_check_mode as new_record_check_mode
from dbt.tests.adapter.simple_snapshot import new_record_dbt_valid_to_current as valid_to_current
from dbt.tests.adapter.simple_snapshot import test_ephemeral_snapshot_hard_deletes as hard_deletes
from dbt.tests.adapter.simple_snapshot import test_snapshot as simple
from dbt.tests.adapter.simple_snapshot import test_various_configs as various

from .dialect import in_spark


class _InSpark:
    @pytest.fixture(scope="class", autouse=True)
    def run_in_spark(self, project: Any) -> None:
        """What the suite sends as it stands in its files is said in Spark's words."""
        run = project.run_sql
        project.run_sql = lambda sql, **options: run(in_spark(sql), **options)


class TestSnapshotCheckCols(SnapshotCheckCols):
    pass


class TestSnapshotTimestamp(SnapshotTimestamp):
    pass


class TestSnapshotNewRecordCheckMode(_InSpark, new_record_check_mode.BaseSnapshotNewRecordCheckMode):
    pass


class TestSnapshotNewRecordDbtValidToCurrent(_InSpark, valid_to_current.BaseSnapshotNewRecordDbtValidToCurrent):
    pass


class TestSnapshotEphemeralHardDeletes(_InSpark, hard_deletes.BaseSnapshotEphemeralHardDeletes):
    pass


class TestSnapshotNewColumnSpecificCheckCols(_InSpark, hard_deletes.BaseSnapshotNewColumnSpecificCheckCols):
    pass


class TestSnapshotNewColumnTimestampStrategy(_InSpark, hard_deletes.BaseSnapshotNewColumnTimestampStrategy):
    pass


class TestSnapshotNewColumnWithDeletes(_InSpark, hard_deletes.BaseSnapshotNewColumnWithDeletes):
    pass


class TestSnapshot(simple.TestSnapshot):
    pass


class TestSnapshotCheck(simple.TestSnapshotCheck):
    pass


class TestSnapshotColumnNames(_InSpark, various.BaseSnapshotColumnNames):
    pass


class TestSnapshotColumnNamesFromDbtProject(_InSpark, various.BaseSnapshotColumnNamesFromDbtProject):
    pass


class TestSnapshotDbtValidToCurrent(various.BaseSnapshotDbtValidToCurrent):
    @pytest.fixture(autouse=True)
    def as_the_suite_expects_it(self, project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Moments without a zone, and rows in the order in which they came: a lake keeps none."""
        run, ask = project.run_sql, various.run_sql_with_adapter
        version = "select row_number() over (partition by id order by test_valid_from) as version,"

        def in_order(adapter: Any, sql: str, fetch: str) -> Any:
            rows = sql.replace("select", version, 1)
            return ask(adapter, f"select * except (version) from ({rows}) order by version, id", fetch)

        project.run_sql = lambda sql, **options: run(in_spark(sql, "timestamp_ntz"), **options)
        monkeypatch.setattr(various, "run_sql_with_adapter", in_order)


class TestSnapshotInvalidColumnNames(_InSpark, various.BaseSnapshotInvalidColumnNames):
    pass


class TestSnapshotMultiUniqueKey(_InSpark, various.BaseSnapshotMultiUniqueKey):
    pass
