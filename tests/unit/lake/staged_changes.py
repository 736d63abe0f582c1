"""One staged change of each kind, for tests of conflicts."""

from __future__ import annotations

from collections.abc import Callable

from dbt.adapters.ducklake.lake import evolution
from dbt.adapters.ducklake.lake.snapshot import MacroImpl
from dbt.adapters.ducklake.lake.transaction import Transaction

from ...lakes import column, columns
from ...workers import paper_file

Change = Callable[[Transaction], None]


def insert(tx: Transaction) -> None:
    tx.append(tx.state.table("main", "t"), [paper_file("new.parquet", 2)])


def delete(tx: Transaction) -> None:
    tx.truncate(tx.state.table("main", "t"))


def merge(tx: Transaction) -> None:
    table = tx.state.table("main", "t")
    tx.append(table, [paper_file("merged.parquet", 2)])
    tx.record_read(table)


def replace(tx: Transaction) -> None:
    tx.replace_table(tx.state.table("main", "t"), columns(id="int64", more="int32"))


def alter(tx: Transaction) -> None:
    table = tx.state.table("main", "t")
    tx.alter_table(table, lambda x: evolution.add_column(x, (), column("more", "int32"), tx.column_ids(x)))


def rename(tx: Transaction) -> None:
    tx.rename(tx.state.table("main", "t"), tx.state.schema("main"), "renamed")


def drop(tx: Transaction) -> None:
    tx.drop(tx.state.table("main", "t"))


def comment(tx: Transaction) -> None:
    tx.set_tags(tx.state.table("main", "t"), (("comment", "new"),))


def create_table(tx: Transaction) -> None:
    tx.create_table(tx.state.schema("s"), "new", columns(id="int64"))


def create_view(tx: Transaction) -> None:
    tx.create_view(tx.state.schema("s"), "NEW", "select 1 as a", "duckdb")


def create_schema(tx: Transaction) -> None:
    tx.create_schema("fresh")


def drop_schema(tx: Transaction) -> None:
    tx.drop_schema("s", cascade=True)


def alter_view(tx: Transaction) -> None:
    tx.set_tags(tx.state.relation("s", "v"), (("comment", "new"),))


def drop_view(tx: Transaction) -> None:
    tx.drop(tx.state.relation("s", "v"))


def insert_elsewhere(tx: Transaction) -> None:
    tx.append(tx.state.table("s", "other"), [paper_file("elsewhere.parquet", 2)])


def create_macro(tx: Transaction) -> None:
    tx.create_macro(tx.state.schema("s"), "NEW", (MacroImpl("duckdb", "1", "scalar"),))


def drop_macro(tx: Transaction) -> None:
    macro = tx.state.find_macro("s", "m")
    assert macro is not None
    tx.drop_macro(macro)


def replace_macro(tx: Transaction) -> None:
    drop_macro(tx)
    tx.create_macro(tx.state.schema("s"), "m", (MacroImpl("duckdb", "2", "scalar"),))


CHANGES: list[Change] = [
    *(insert, delete, merge, replace, alter, rename, drop, comment),
    *(create_table, create_view, create_schema, drop_schema, alter_view, drop_view, insert_elsewhere),
    *(create_macro, drop_macro, replace_macro),
]
