"""Comments: the statements that bring a relation's comments in line with a model's descriptions."""

from __future__ import annotations

from dbt.adapters.ducklake.comments import comment_changes
from dbt.adapters.ducklake.docs import CatalogColumn
from dbt.adapters.ducklake.lake.snapshot import View

ORDERS = View(1, "uuid", 0, "orders", "duckdb", "select 1", (), tags=(("comment", "One row an order"),))
COLUMNS = (CatalogColumn("id", "bigint", None), CatalogColumn("At", "date", "When"))


def test_only_descriptions_that_differ_become_statements() -> None:
    described = {"ID": {"description": "it's the key"}, "At": {"description": "When"}, "": {}}
    changes = comment_changes("main.orders", ORDERS, COLUMNS, "Orders", described)
    assert changes.statements == (
        "comment on view main.orders is 'Orders'",
        "comment on column main.orders.`id` is 'it\\'s the key'",
    )
    assert comment_changes("main.orders", ORDERS, COLUMNS, "One row an order", {}).statements == ()
    assert comment_changes("main.orders", ORDERS, COLUMNS, None, {}).statements == ()


def test_described_columns_that_do_not_exist_are_returned() -> None:
    described = {"nothing": {"description": "x"}, "ID": {"description": "x", "quote": True}, "id": {"quote": True}}
    changes = comment_changes("main.orders", ORDERS, COLUMNS, None, described)
    assert changes.missing_columns == ("nothing", "ID")
    assert changes.statements == ()
