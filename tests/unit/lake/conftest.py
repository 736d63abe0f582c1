"""Lakes in SQLite that tests of conflicts make anew in a moment."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from dbt.adapters.ducklake.lake.snapshot import MacroImpl
from dbt.adapters.ducklake.lake.snapshot_loader import Snapshots

from ...lakes import Lake, LakeAddress, columns
from ...workers import paper_file


@pytest.fixture(scope="module")
def new_copy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Lake]:
    """Returns a function that makes one lake what it was at first, which is cheaper than creating another.

    The lake stays the same object, so that its statements are compiled once.
    """
    folder = tmp_path_factory.mktemp("conflicts")
    file, original = folder / "catalog.sqlite", folder / "original.sqlite"
    lake = Lake(LakeAddress("sqlite", f"sqlite:{file}", f"{folder}/data/"))
    with lake.transaction() as tx:
        schema = tx.create_schema("s")
        tx.create_table(tx.state.schema("main"), "t", columns(id="int64"))
        tx.create_table(schema, "other", columns(id="int64"))
        tx.create_view(schema, "v", "select 1 as a", "duckdb")
        tx.create_macro(schema, "m", (MacroImpl("duckdb", "1", "scalar"),))
    with lake.transaction() as tx:
        tx.append(tx.state.table("main", "t"), [paper_file("first.parquet", 3)])
    shutil.copy(file, original)

    def copy() -> Lake:
        shutil.copy(original, file)
        lake.snapshots = Snapshots(lake.catalog)
        return lake

    return copy
