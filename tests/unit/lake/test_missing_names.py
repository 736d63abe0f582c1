"""Errors for missing tables, schemas and lakes: they say where was looked, and what may have been meant."""

from __future__ import annotations

import dataclasses

import pytest

from dbt.adapters.ducklake.lake.missing_names import (
    function_not_found,
    lake_not_found,
    relation_not_found,
    schema_not_found,
)
from dbt.adapters.ducklake.lake.snapshot import LakeState, Macro, Schema, Table, View


def _state() -> LakeState:
    schemas = {i: Schema(i, "", name, None, True) for i, name in enumerate(["main", "raw", "Empty"])}
    table = Table(1, "", 0, "orders", None, True, ())
    names = [(0, "orders"), (0, "order_items"), (0, "Customers"), (1, "orders_2024"), (1, "payments")]
    tables = {i: dataclasses.replace(table, id=i, schema_id=s, name=n) for i, (s, n) in enumerate(names)}
    views = {9: View(9, "", 1, "Refunds", "spark", "select 1")}
    return LakeState(schemas, tables, views, {1: Macro(1, 0, "twice", ())})


@pytest.mark.parametrize(
    ("schema", "name", "hint"),
    [
        ("main", "ordrs", "main.ordrs at 7; did you mean main.orders or main.order_items?"),
        ("MAIN", "order_item", "main.order_item at 7; did you mean main.order_items or main.orders?"),
        ("main", "customer", "main.customer at 7; did you mean main.Customers?"),
        ("main", "payments", "main.payments at 7; did you mean raw.payments?"),
        ("main", "refunds", "main.refunds at 7; did you mean raw.Refunds?"),
        ("raw", "orders", "raw.orders at 7; did you mean raw.orders_2024 or main.orders?"),
        ("main", "zebra", "main.zebra at 7; SHOW TABLES IN main lists what there is"),
        ("empty", "zebra", "Empty.zebra at 7; schema Empty is empty"),
        ("row", "payments", "row.payments at 7, and no schema row; did you mean raw.payments?"),
        ("row", "zebra", "row.zebra at 7, and no schema row; did you mean raw?"),
        ("x", "zebra", "x.zebra at 7, and no schema x; the lake's schemas are Empty, main, raw"),
    ],
)
def test_a_missing_table_is_named_with_the_nearest_ones(schema: str, name: str, hint: str) -> None:
    error = relation_not_found(_state(), schema, name, " at 7")
    assert str(error) == f"there is no table or view {hint}"


def test_a_missing_schema_function_or_lake_is_named_with_the_nearest_ones() -> None:
    assert str(schema_not_found(_state(), "mian")) == "there is no schema mian; did you mean main?"
    assert str(function_not_found(_state(), "main", "twise")) == (
        "there is no function main.twise; did you mean main.twice?"
    )
    assert str(lake_not_found("lak", ["other", "lake"])) == (
        "there is no lake lak (the lakes here: lake, other); did you mean lake?"
    )
    assert "attach it first" in str(lake_not_found("warehouse", ["lake"]))


def test_an_error_does_not_list_a_thousand_schemas() -> None:
    schemas = {i: Schema(i, "", f"s{i:04}", None, True) for i in range(1000)}
    error = str(schema_not_found(LakeState(schemas), "analytics"))
    assert error.endswith("s0008, s0009, and 990 more")
