"""The official suite: empty."""

from __future__ import annotations

from typing import Any

from dbt.tests.adapter.empty import test_empty as empty
from dbt.tests.util import get_relation_columns, run_dbt

from .not_here import SEED_TAKES_EMPTY, left_out


class TestEmpty(empty.TestEmpty):
    pass


class TestEmptyInlineSourceRef(empty.BaseTestEmptyInlineSourceRef):
    pass


class TestEmptySeedFlag(empty.BaseTestEmptySeedFlag):
    if not SEED_TAKES_EMPTY:
        test_seed_empty_creates_table_with_zero_rows = left_out(
            "empty.test_empty.BaseTestEmptySeedFlag.test_seed_empty_creates_table_with_zero_rows"
        )
        test_seed_empty_preserves_column_types = left_out(
            "empty.test_empty.BaseTestEmptySeedFlag.test_seed_empty_preserves_column_types"
        )

        def test_an_empty_seed_keeps_its_types(self, project: Any) -> None:
            """What the suite asks of `seed --empty`, of `build --empty`, with which dbt 1.11 reads the whole seed."""
            run_dbt(["build", "--empty"])
            columns = get_relation_columns(project.adapter, "raw_seed")
            self.assert_row_count(project, "raw_seed", 0)
            run_dbt(["seed"])
            self.assert_row_count(project, "raw_seed", 2)
            assert columns == get_relation_columns(project.adapter, "raw_seed")


class TestMetadataWithEmptyFlag(empty.MetadataWithEmptyFlag):
    pass
