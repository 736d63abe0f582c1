"""Schema evolution: what each change of a table definition keeps, and what it forbids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.ducklake.lake import evolution
from dbt.adapters.ducklake.lake.errors import AlreadyExistsError, NotFoundError, SchemaChangeError
from dbt.adapters.ducklake.lake.evolution import ColumnIds
from dbt.adapters.ducklake.lake.partitions import Bucket, Identity, Year
from dbt.adapters.ducklake.lake.snapshot import Table
from dbt.adapters.ducklake.lake.snapshot_loader import ColumnHistory
from dbt.adapters.ducklake.lake.sorting import SortKey
from dbt.adapters.ducklake.lake.types import Column

from ...lakes import Lake, LakeAddress, column, columns


def table(**kinds: Any) -> tuple[Table, ColumnIds]:
    ids = ColumnIds(1)
    numbered = tuple(ids.assign(c) for c in columns(**kinds))
    return Table(1, "uuid", 0, "t", "t/", True, numbered), ids


def ids_of(table: Table) -> dict[str, int]:
    """Returns the id of every column and field by its dotted name."""

    def visit(column: Column, prefix: str) -> dict[str, int]:
        below: dict[str, int] = {prefix + column.name: column.id}
        for child in column.children:
            below |= visit(child, f"{prefix}{column.name}.")
        return below

    return {name: id_ for c in table.columns for name, id_ in visit(c, "").items()}


# -- schema merge


def test_a_schema_merge_adds_columns_and_fields_and_widens_types() -> None:
    t, ids = table(a="int32", s={"x": "int32", "y": [{"k": "int8"}]}, d="decimal(4,2)")
    s = {"z": "date", "Y": [{"k": "int16", "l": "varchar"}]}
    others = columns(S=s, b={"c": "int8"}, A="int64", d="decimal(6,2)")
    new = evolution.merge_schema(t, others, ids)
    assert [c.type_text() for c in new.columns] == [
        "int64",
        "struct<x: int32, y: list<struct<k: int16, l: varchar>>, z: date>",
        "decimal(6,2)",
        "struct<c: int8>",
    ]
    assert {n: i for n, i in ids_of(new).items() if i > 7} == {"s.y.element.l": 8, "s.z": 9, "b": 10, "b.c": 11}


@pytest.mark.parametrize("other", ["int16", "float64", "varchar", "decimal(10,2)"])
def test_a_schema_merge_keeps_a_type_that_the_other_does_not_contain(other: str) -> None:
    t, ids = table(a="int32", s={"x": "int32"})
    assert evolution.merge_schema(t, columns(a=other, s={"x": other}), ids) == t
    assert evolution.merge_schema(t, columns(s="varchar"), ids) == t


# -- add


def test_an_added_column_stands_last_and_has_a_new_id() -> None:
    t, ids = table(a="int32", s={"x": "int32"})
    new = evolution.add_column(t, (), column("b", {"y": "varchar"}), ids)
    assert ids_of(new) == {"a": 1, "s": 2, "s.x": 3, "b": 4, "b.y": 5}


def test_a_field_can_be_added_to_a_struct_however_deep() -> None:
    t, ids = table(s={"l": [{"x": "int32"}], "m": ("varchar", {"y": "int32"})})
    new = evolution.add_column(t, ("s", "l"), column("z", "date"), ids)
    new = evolution.add_column(new, ("s", "l", "element"), column("z2", "date"), ids)
    new = evolution.add_column(new, ("s", "m", "value"), column("z3", "date"), ids)
    assert {n: i for n, i in ids_of(new).items() if ".z" in n} == {
        "s.l.element.z": 9,
        "s.l.element.z2": 10,
        "s.m.value.z3": 11,
    }


def test_a_name_that_exists_in_another_case_cannot_be_added() -> None:
    t, ids = table(a="int32", s={"x": "int32"})
    with pytest.raises(AlreadyExistsError, match="table t already has a column A"):
        evolution.add_column(t, (), column("A", "int32"), ids)
    with pytest.raises(AlreadyExistsError, match="column s of table t already has a column X"):
        evolution.add_column(t, ("s",), column("X", "int32"), ids)


def test_a_field_cannot_be_added_to_a_column_without_fields() -> None:
    t, ids = table(a="int32", s={"x": "int32"})
    with pytest.raises(SchemaChangeError, match="it is a int32"):
        evolution.add_column(t, ("a",), column("b", "int32"), ids)
    with pytest.raises(NotFoundError, match="no column q; its columns are a, s"):
        evolution.add_column(t, ("q",), column("b", "int32"), ids)


# -- drop


def test_an_id_is_never_given_again() -> None:
    t, ids = table(a="int32", b="int32")
    new = evolution.add_column(evolution.drop_column(t, ("b",)), (), column("b", "int32"), ids)
    assert ids_of(new) == {"a": 1, "b": 3}


def test_a_field_can_be_dropped_but_not_the_last_one_nor_a_part_of_a_list() -> None:
    t, _ = table(s={"x": "int32", "y": "int32"}, l=["int32"], m=("int32", "int32"))
    new = evolution.drop_column(t, ("s", "x"))
    assert "s.x" not in ids_of(new)
    with pytest.raises(SchemaChangeError, match="the last one of its struct"):
        evolution.drop_column(new, ("s", "y"))
    for path in (("l", "element"), ("m", "key"), ("m", "value")):
        with pytest.raises(SchemaChangeError, match="only fields of a struct"):
            evolution.drop_column(t, path)


def test_the_last_column_of_a_table_cannot_be_dropped() -> None:
    with pytest.raises(SchemaChangeError, match="is the last one of table t"):
        evolution.drop_column(table(a="int32")[0], ("a",))


def test_a_column_that_partitions_or_sorts_cannot_be_dropped() -> None:
    t, _ = table(a="int32", b="int32", c="int32")
    t = evolution.set_partition(t, [("a", Identity())], -1)
    t = evolution.set_sort(t, (SortKey('lower("B")'),), -2)
    with pytest.raises(SchemaChangeError, match="partitioned by it"):
        evolution.drop_column(t, ("a",))
    with pytest.raises(SchemaChangeError, match="sorted by"):
        evolution.drop_column(t, ("b",))
    assert ids_of(evolution.drop_column(t, ("c",))) == {"a": 1, "b": 2}


# -- rename


def test_a_rename_keeps_the_id_and_follows_into_the_sort_order() -> None:
    t, _ = table(a="int32", b="int32", s={"x": "int32", "y": "int32"})
    t = evolution.set_sort(t, (SortKey("a"), SortKey("concat(\"A\", 'a', ab)")), -2)
    new = evolution.rename_column(t, ("A",), "odd name")
    assert ids_of(new) == {"odd name": 1, "b": 2, "s": 3, "s.x": 4, "s.y": 5}
    assert new.sort
    assert [k.expression for k in new.sort.keys] == ['"odd name"', "concat(\"odd name\", 'a', ab)"]
    assert ids_of(evolution.rename_column(t, ("s", "x"), "z"))["s.z"] == 4


def test_a_rename_may_change_only_the_case_but_not_take_another_name() -> None:
    t, _ = table(a="int32", b="int32", s={"x": "int32", "y": "int32"}, l=["int32"])
    assert evolution.rename_column(t, ("a",), "A").columns[0].name == "A"
    with pytest.raises(AlreadyExistsError, match="table t already has a column B"):
        evolution.rename_column(t, ("a",), "B")
    with pytest.raises(AlreadyExistsError, match="column s of table t"):
        evolution.rename_column(t, ("s", "x"), "Y")
    with pytest.raises(SchemaChangeError, match="fixed names"):
        evolution.rename_column(t, ("l", "element"), "e")


# -- retype


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int8", "int16"),
        ("int32", "int64"),
        ("uint8", "int16"),
        ("uint32", "int64"),
        ("uint8", "uint64"),
        ("float32", "float64"),
        ("decimal(10,2)", "decimal(12,2)"),
        ("decimal(10,2)", "decimal(12,4)"),
    ],
)
def test_a_wider_type_of_the_same_kind_is_accepted(old: str, new: str) -> None:
    t, ids = table(a=old, s={"x": old}, l=[old], m=("varchar", old))
    for path in (("a",), ("s", "x"), ("l", "element"), ("m", "value")):
        changed = evolution.change_column_type(t, path, column(path[-1], new), ids)
        assert changed.column(*path).type == new
        assert ids_of(changed) == ids_of(t)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int64", "int32"),
        ("int32", "uint64"),
        ("uint32", "int32"),
        ("float64", "float32"),
        ("int32", "float64"),
        ("int32", "varchar"),
        ("decimal(10,2)", "decimal(11,4)"),
        ("decimal(10,2)", "decimal(9,2)"),
        ("date", "timestamp"),
        ("timestamp", "timestamptz"),
        ("varchar", "blob"),
    ],
)
def test_any_other_type_is_refused(old: str, new: str) -> None:
    t, ids = table(a=old)
    with pytest.raises(SchemaChangeError, match="only a wider type of the same kind"):
        evolution.change_column_type(t, ("a",), column("a", new), ids)


def test_a_struct_retyped_keeps_drops_and_adds_fields_by_name() -> None:
    t, ids = table(s={"x": "int32", "y": "int32", "z": {"q": "int8"}})
    wanted = column("s", {"new": "date", "Z": {"q": "int16", "r": "date"}, "x": "int64"})
    changed = evolution.change_column_type(t, ("s",), wanted, ids)
    assert ids_of(changed) == {"s": 1, "s.x": 2, "s.z": 4, "s.z.q": 5, "s.z.r": 6, "s.new": 7}
    assert changed.column("s", "x").type == "int64"


def test_a_struct_cannot_become_a_list() -> None:
    t, ids = table(s={"x": "int32"})
    with pytest.raises(SchemaChangeError, match="from struct<x: int32> to list<int32>"):
        evolution.change_column_type(t, ("s",), column("s", ["int32"]), ids)


# -- not null, defaults


def test_not_null_and_defaults_are_for_whole_columns() -> None:
    t, _ = table(a="int32", s={"x": "int32"})
    assert not evolution.set_not_null(t, ("a",), True).columns[0].nulls_allowed
    assert evolution.set_not_null(evolution.set_not_null(t, ("a",), True), ("a",), False) == t
    assert evolution.set_default(t, ("a",), "7").columns[0].default_value == "7"
    assert evolution.set_default(evolution.set_default(t, ("a",), "7"), ("a",), None) == t
    with pytest.raises(SchemaChangeError, match="whole columns only"):
        evolution.set_not_null(t, ("s", "x"), True)
    with pytest.raises(SchemaChangeError, match="whole columns only"):
        evolution.set_default(t, ("s", "x"), "7")
    with pytest.raises(SchemaChangeError, match="nested and can have no default"):
        evolution.set_default(t, ("s",), "7")


# -- partitions and sort orders


def test_partition_keys_are_columns_that_the_transform_takes() -> None:
    t, _ = table(a="int32", d="date", s={"x": "int32"})
    with pytest.raises(SchemaChangeError, match="no such column; it has a, d, s"):
        evolution.set_partition(t, [("q", Identity())], -1)
    with pytest.raises(SchemaChangeError, match="by year of a: the column is int32"):
        evolution.set_partition(t, [("a", Year())], -1)
    with pytest.raises(SchemaChangeError, match="struct<x: int32>"):
        evolution.set_partition(t, [("s", Identity())], -1)


def test_the_same_partitioning_or_sort_order_again_changes_nothing() -> None:
    t, _ = table(a="int32", d="date")
    keys = [("a", Bucket(4)), ("d", Year())]
    split = evolution.set_partition(t, keys, -1)
    assert evolution.set_partition(split, keys, -2) == split
    assert evolution.set_partition(split, [], -2) == t
    ordered = evolution.set_sort(t, (SortKey("a"),), -1)
    assert evolution.set_sort(ordered, (SortKey("a"),), -2) == ordered
    assert evolution.set_sort(ordered, (), -2) == t


def test_a_key_cannot_partition_twice() -> None:
    t, _ = table(a="int32", d="date")
    with pytest.raises(SchemaChangeError, match="same key twice"):
        evolution.set_partition(t, [("a", Identity()), ("A", Identity())], -1)


# -- replace


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"a": "int32", "b": "int32"}, {"a": 1, "b": 2}),
        ({"A": "int64", "c": "date"}, {"A": 1, "c": 3}),
        ({"b": "int32"}, {"b": 2}),
        ({"b": "int32", "a": "int32"}, {"b": 2, "a": 6}),
        ({"c": "date", "a": "int32", "b": "int32"}, {"c": 3, "a": 6, "b": 7}),
        ({"a": "int32", "new": "int32", "b": "int32"}, {"a": 1, "new": 6, "b": 7}),
        ({"a": "varchar", "b": "int32"}, {"a": 6, "b": 7}),
        ({"s": {"x": "int32"}, "a": "int32"}, {"s": 4, "s.x": 5, "a": 6}),
        ({"s": {"x": "int32", "y": "int32"}}, {"s": 6, "s.x": 7, "s.y": 8}),
    ],
)
def test_a_replaced_column_keeps_its_id_while_the_order_of_ids_is_that_of_columns(
    wanted: dict[str, Any], expected: dict[str, int]
) -> None:
    t, ids = table(a="int32", b="int32", c="date", s={"x": "int32"})
    assert ids_of(evolution.replace_columns(t, columns(**wanted), ids)) == expected


def test_replaced_columns_are_read_back_in_their_order(new_lake: Callable[[str], LakeAddress]) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create(a="int32", b="varchar", s={"x": "int32", "y": "int32"})
    lake.append({"a": [1], "b": ["one"]})
    with lake.transaction() as tx:
        old = tx.state.table("main", "t")
        new = tx.replace_table(old, columns(s={"y": "int32", "x": "int32"}, c="date", b="varchar", a="int32"))
        tx.append(new, [lake.file(tx, new, {"b": ["two"], "a": [2]})])
    assert [c.name for c in lake.table().columns] == ["s", "c", "b", "a"]
    assert [c.name for c in lake.table().column("s").children] == ["y", "x"]
    assert lake.seen_by_duckdb("from t") == [(None, None, "two", 2)]
    assert lake.seen_by_duckdb("from t at (version => 2)") == [(1, "one", None)]


# -- valid columns and comments


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ((), "needs at least one column"),
        (columns(a="int32", A="int32"), "two columns named A"),
        (columns(s={"a": "int32", "A": "int32"}), "two columns named A"),
        ((column("", "int32"),), "a column without a name"),
        (columns(a="integer"), "type 'integer', which DuckLake does not have"),
        (columns(a=[{"x": "text"}]), "type 'text', which DuckLake does not have"),
    ],
)
def test_invalid_columns_are_refused(wanted: tuple[Column, ...], error: str) -> None:
    with pytest.raises(SchemaChangeError, match=error):
        evolution.check_columns(wanted, "t")


def test_a_comment_is_set_and_removed_on_columns_and_fields() -> None:
    t, _ = table(a="int32", s={"x": "int32"})
    new = evolution.set_column_comment(evolution.set_column_comment(t, ("a",), "A"), ("s", "x"), "X")
    assert (new.column("a").comment, new.column("s", "x").comment) == ("A", "X")
    assert evolution.set_column_comment(replace(new), ("a",), None).column("a").comment is None


# -- names that come back


def test_columns_under_a_name_that_another_one_had_are_known() -> None:
    def row(id_: int, name: str, parent: int | None = None) -> Any:
        return SimpleNamespace(column_id=id_, column_name=name, parent_column=parent)

    history = ColumnHistory(
        (
            row(1, "id"),
            row(2, "v"),
            row(3, "s"),
            row(4, "x", 3),
            row(5, "y", 3),
            row(6, "V"),
            row(7, "w"),
            row(7, "old"),
        )
    )
    struct = Column(3, "s", "struct", children=(Column(4, "x", "int32"), Column(8, "z", "int32")))
    swapped = replace(struct, children=(Column(4, "y", "int32"),))
    current = (Column(1, "id", "int32"), Column(6, "v", "int32"), struct, Column(7, "x", "int32"))
    assert history.with_reused_names(current) == {6}
    assert history.with_reused_names((swapped, Column(7, "w", "int32"), Column(-1, "old", "int32"))) == {3, -1}
