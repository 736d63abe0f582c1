"""The setting `maintenance`, and the time that it gives."""

from __future__ import annotations

import time
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.ducklake.maintenance import MaintenanceSettings, RunBudget, describe


@pytest.mark.parametrize("value", [None, False, "off"])
def test_it_is_off_in_each_of_its_words(value: Any) -> None:
    assert MaintenanceSettings.parse(value) is None


@pytest.mark.parametrize("value", [True, "on", "auto", {}])
def test_it_is_on_in_each_of_its_words(value: Any) -> None:
    assert MaintenanceSettings.parse(value) == MaintenanceSettings()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("always", "takes auto, off, or settings, and it is 'always'"),
        ({"files": 1}, "has no setting files; it has deleted_share, inlined_rows, max_seconds"),
        ({"small_files": 1.5}, "small_files takes a number of 0 or more, and it is 1.5"),
        ({"max_share": 25}, "max_share takes a number between 0 and 1, and it is 25"),
        ({"max_seconds": True}, "max_seconds takes a number of 0 or more, and it is True"),
    ],
)
def test_what_is_wrong_is_named(value: Any, message: str) -> None:
    with pytest.raises(CompilationError, match=message):
        MaintenanceSettings.parse(value)


def test_the_budget_is_a_share_of_the_run_for_all_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    budget, settings = RunBudget(), MaintenanceSettings(max_seconds=60, max_share=0.25)
    assert budget.remaining_seconds(settings) == 0
    now[0] += 100
    assert budget.remaining_seconds(settings) == 25
    budget.spend(20)
    assert budget.remaining_seconds(settings) == 5
    now[0] += 10_000
    assert budget.remaining_seconds(settings) == 60


def test_the_log_says_what_was_done() -> None:
    empty = {"schema_name": "main", "table_name": "t", "files_processed": None, "files_created": None}
    rows = [
        {**empty, "operation": "ducklake_flush_inlined_data", "rows_flushed": 7, "seconds": 0.04, "note": None},
        {**empty, "operation": "ducklake_merge_adjacent_files", "rows_flushed": None, "seconds": 2, "note": "late"},
    ]
    assert list(describe(rows)) == [
        "main.t: flushed 7 inlined rows into files in 0.0 s",
        "main.t: ducklake_merge_adjacent_files in 2.0 s (late)",
    ]
