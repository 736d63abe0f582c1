"""Macros: those of the reference are loaded, it calls ours, and they are dropped with their schema."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake.lake.errors import AlreadyExistsError, SchemaChangeError
from dbt.adapters.ducklake.lake.snapshot import MacroImpl, Parameter

from ...lakes import Lake
from .catalogs import NewLake, every_reference_catalog

TWICE = (MacroImpl("duckdb", "(x * 2)", "scalar", (Parameter("x", "int32"),)),)


@every_reference_catalog
def test_macros_of_the_reference_are_seen(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    with lake.duckdb() as duckdb:
        duckdb.execute("create macro f(x, y := 3) as x + y, (x) as x")
        duckdb.execute("create macro rows(n integer) as table select * from range(n) r(i)")
        duckdb.execute("create macro gone() as 1")
        duckdb.execute("drop macro gone")
    f, table = lake.state.find_macro("main", "F"), lake.state.find_macro("main", "rows")
    assert f is not None
    assert table is not None
    assert [impl.sql for impl in f.impls] == ["(x + y)", "x"]
    assert f.impls[0].parameters == (Parameter("x"), Parameter("y", "unknown", "3", "int32"))
    assert (table.kind, table.impls[0].parameters) == ("table", (Parameter("n", "int32"),))
    assert lake.state.find_macro("main", "gone") is None


@every_reference_catalog
def test_a_macro_of_ours_is_called_by_the_reference(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    with lake.transaction() as tx:
        tx.create_macro(tx.create_schema("s"), "twice", TWICE, {"spark_sql": "x * 2"})
    assert lake.seen_by_duckdb("select lake.s.twice(21)") == [(42,)]
    macro = lake.state.find_macro("s", "twice")
    assert macro is not None
    assert (macro.impls, macro.tags) == (TWICE, (("spark_sql", "x * 2"),))
    assert lake.changes[-1] == 'created_schema:"s",created_scalar_macro:"s"."twice"'
    with lake.transaction() as tx:
        tx.drop_macro(macro)
    assert lake.changes[-1] == f"dropped_scalar_macro:{macro.id}"
    assert lake.state.macros == {}


def test_a_macro_name_is_used_once(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    with lake.transaction() as tx:
        schema = tx.state.schema("main")
        tx.create_macro(schema, "twice", TWICE)
        with pytest.raises(AlreadyExistsError, match="it is a macro"):
            tx.create_macro(schema, "TWICE", TWICE)


def test_macros_are_dropped_with_their_schema(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    with lake.duckdb() as duckdb:
        duckdb.execute("create schema s")
        duckdb.execute("create macro s.f() as 1")
    tx = lake.begin()
    with pytest.raises(SchemaChangeError, match="1 tables, views and macros: f"):
        tx.drop_schema("s")
    tx.drop_schema("s", cascade=True)
    tx.commit()
    assert lake.state.macros == {}
    assert lake.seen_by_duckdb("select 1") == [(1,)]
