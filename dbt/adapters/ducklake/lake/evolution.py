"""Schema evolution: functions from a table's definition to a changed one, or to an error if a rule forbids it.

None of them changes a data file. A column keeps its id until it is dropped, and readers find its values in old files
by this id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from .errors import AlreadyExistsError, SchemaChangeError
from .partitions import PartitionField, PartitionSpec, Transform
from .quoted_names import quote_name
from .snapshot import Table, Tags
from .sorting import SortKey, SortSpec
from .types import Column, can_promote, find_path, is_known_type, with_new_ids

ColumnPath = tuple[str, ...]
"""A column, or the nested fields below it, by name."""
TableChange = Callable[[Table], Table]

_IDENTIFIER = re.compile(r""""(?:[^"]|"")*"|'(?:[^']|'')*'|[^\W\d]\w*""")


@dataclass
class ColumnIds:
    """Assigns column ids in one table. The ids of dropped columns are never assigned again."""

    next: int

    def assign(self, column: Column) -> Column:
        """The column with new ids for itself and its nested fields."""
        column, self.next = with_new_ids(column, self.next)
        return column


def check_columns(columns: tuple[Column, ...], table: str) -> None:
    """Raises if a table cannot have these columns."""
    if not columns:
        raise SchemaChangeError(f"table {table} needs at least one column")
    _check_names(columns, f"table {table}")
    for column in columns:
        for field in column.walk():
            if not is_known_type(field.type):
                raise SchemaChangeError(
                    f"column {column.name} of table {table} has type {field.type!r}, which DuckLake does not have"
                )
            if field.type == "struct":
                _check_names(field.children, f"column {field.name} of table {table}")


def _check_names(columns: tuple[Column, ...], where: str) -> None:
    seen: set[str] = set()
    for column in columns:
        if not column.name:
            raise SchemaChangeError(f"{where} has a column without a name")
        if column.name.lower() in seen:
            raise SchemaChangeError(f"{where} has two columns named {column.name} (case makes no difference)")
        seen.add(column.name.lower())


def add_column(table: Table, parent: ColumnPath, column: Column, ids: ColumnIds) -> Table:
    """The table with another column, or with another field in the struct at `parent`."""
    if not parent:
        _check_name_is_free(table.columns, column.name, f"table {table.name}")
        return replace(table, columns=(*table.columns, ids.assign(column)))
    struct = table.column(*parent)
    if struct.type == "list":
        struct = struct.children[0]
    if struct.type != "struct":
        raise SchemaChangeError(
            f"field {column.name} can not be added to {'.'.join(parent)} of table {table.name}:"
            f" it is a {struct.type_text()}, and only a struct has fields"
        )
    _check_name_is_free(struct.children, column.name, f"column {'.'.join(parent)} of table {table.name}")
    return _replace_column(table, replace(struct, children=(*struct.children, ids.assign(column))))


def drop_column(table: Table, path: ColumnPath) -> Table:
    """The table without a column or struct field. The last column and the columns of its layout cannot be dropped."""
    column = table.column(*path)
    if len(path) == 1:
        if len(table.columns) == 1:
            raise SchemaChangeError(
                f"column {column.name} is the last one of table {table.name} and can not be dropped;"
                " drop the table, or add another column first"
            )
        for field in table.partition.fields if table.partition else ():
            if field.column_id == column.id:
                raise SchemaChangeError(
                    f"column {column.name} can not be dropped: table {table.name} is partitioned by it;"
                    " change the partitioning first (ALTER TABLE ... RESET PARTITIONED BY)"
                )
        for key in table.sort.keys if table.sort else ():
            if _mentions(key.expression, column.name):
                raise SchemaChangeError(
                    f"column {column.name} can not be dropped: table {table.name} is sorted by {key.expression};"
                    " change the sort order first (ALTER TABLE ... RESET SORTED BY)"
                )
        return replace(table, columns=tuple(c for c in table.columns if c.id != column.id))
    parent = table.column(*path[:-1])
    if parent.type != "struct":
        raise SchemaChangeError(
            f"{'.'.join(path)} of table {table.name} can not be dropped: it is a part of a {parent.type},"
            " and only fields of a struct can be"
        )
    if len(parent.children) == 1:
        raise SchemaChangeError(
            f"field {'.'.join(path)} is the last one of its struct and can not be dropped; drop"
            f" {'.'.join(path[:-1])} instead"
        )
    return _replace_column(table, replace(parent, children=tuple(c for c in parent.children if c.id != column.id)))


def rename_column(table: Table, path: ColumnPath, name: str) -> Table:
    """The table with another name for a column or struct field, also in its sort keys."""
    column = table.column(*path)
    if len(path) == 1:
        siblings, where = table.columns, f"table {table.name}"
    else:
        parent = table.column(*path[:-1])
        if parent.type != "struct":
            raise SchemaChangeError(
                f"{'.'.join(path)} of table {table.name} can not be renamed: the parts of a {parent.type}"
                " have fixed names"
            )
        siblings, where = parent.children, f"column {'.'.join(path[:-1])} of table {table.name}"
    _check_name_is_free(tuple(s for s in siblings if s.id != column.id), name, where)
    renamed = _replace_column(table, replace(column, name=name))
    if len(path) == 1 and renamed.sort:
        keys = tuple(
            replace(key, expression=_rename_in(key.expression, column.name, name)) for key in renamed.sort.keys
        )
        renamed = replace(renamed, sort=replace(renamed.sort, keys=keys))
    return renamed


def change_column_type(table: Table, path: ColumnPath, new: Column, ids: ColumnIds) -> Table:
    """The table with a wider type of a column. In a nested type, struct fields may be added and dropped."""
    return _replace_column(table, _promoted_column(table, table.column(*path), new, ids, ".".join(path)))


def _promoted_column(table: Table, old: Column, new: Column, ids: ColumnIds, path: str) -> Column:
    if old.same_shape(new):
        return old
    if old.children and old.type == new.type:
        wanted = {c.name.lower(): c for c in new.children}
        kept = [
            _promoted_column(table, child, wanted.pop(child.name.lower()), ids, f"{path}.{child.name}")
            for child in old.children
            if child.name.lower() in wanted
        ]
        return replace(old, children=(*kept, *(ids.assign(c) for c in wanted.values())))
    if not can_promote(old.type, new.type):
        raise SchemaChangeError(
            f"column {path} of table {table.name} can not change from {old.type_text()} to {new.type_text()}:"
            " only a wider type of the same kind is allowed, so that every old value stays what it was"
            " (int32 to int64, float32 to float64, decimal(10,2) to decimal(12,2)); for anything else add a"
            " new column and fill it"
        )
    return replace(old, type=new.type)


def merge_schema(table: Table, columns: Iterable[Column], ids: ColumnIds) -> Table:
    """The table with the columns, struct fields and wider types that the given columns have in addition.

    A column keeps its type if the other type cannot hold all of its values.
    """
    return replace(table, columns=_merged_columns(table.columns, columns, ids))


def _merged_columns(own: tuple[Column, ...], others: Iterable[Column], ids: ColumnIds) -> tuple[Column, ...]:
    remaining = {c.name.lower(): c for c in others}
    merged = [_merged_column(column, remaining.pop(column.name.lower(), column), ids) for column in own]
    return (*merged, *(ids.assign(c) for c in remaining.values()))


def _merged_column(own: Column, other: Column, ids: ColumnIds) -> Column:
    if own.children and own.type == other.type:
        return replace(own, children=_merged_columns(own.children, other.children, ids))
    return replace(own, type=other.type) if can_promote(own.type, other.type) else own


def set_not_null(table: Table, path: ColumnPath, not_null: bool) -> Table:
    if len(path) > 1:
        raise SchemaChangeError(
            f"NOT NULL can be set on whole columns only, not on the field {'.'.join(path)} of table {table.name}"
        )
    column = table.column(*path)
    return _replace_column(table, replace(column, nulls_allowed=not not_null))


def set_default(
    table: Table, path: ColumnPath, value: str | None, kind: str = "literal", dialect: str = "duckdb"
) -> Table:
    """The table with another default for new rows. Existing rows keep their values."""
    if len(path) > 1:
        raise SchemaChangeError(
            f"a default can be set on whole columns only, not on the field {'.'.join(path)} of table {table.name}"
        )
    column = table.column(*path)
    if column.children and value is not None:
        raise SchemaChangeError(f"column {column.name} of table {table.name} is nested and can have no default")
    return _replace_column(
        table,
        replace(column, default_value=value, default_value_type=kind, default_value_dialect=dialect),
    )


def set_column_comment(table: Table, path: ColumnPath, comment: str | None) -> Table:
    column = table.column(*path)
    return _replace_column(table, replace(column, tags=with_comment(column.tags, comment)))


def with_comment(tags: Tags, comment: str | None) -> Tags:
    """The tags with this comment in place of any other; None removes it."""
    kept = tuple((key, value) for key, value in tags if key != "comment")
    return kept if comment is None else tuple(sorted((*kept, ("comment", comment))))


def set_partition(table: Table, keys: list[tuple[str, Transform]], spec_id: int) -> Table:
    """The table with these partition keys for new files. Existing files keep their partitioning."""
    fields = []
    for index, (name, transform) in enumerate(keys):
        column = find_path(table.columns, (name,))
        if column is None:
            names = ", ".join(c.name for c in table.columns)
            raise SchemaChangeError(
                f"table {table.name} can not be partitioned by {name}: it has no such column; it has {names}"
            )
        if not transform.applies_to(column[0].type):
            raise SchemaChangeError(
                f"table {table.name} can not be partitioned by {transform} of {name}:"
                f" the column is {column[0].type_text()}"
            )
        fields.append(PartitionField(index, column[0].id, transform))
    if len(fields) != len({(f.column_id, f.transform) for f in fields}):
        raise SchemaChangeError(f"table {table.name} can not be partitioned by the same key twice")
    if table.partition and table.partition.fields == tuple(fields):
        return table
    return replace(table, partition=PartitionSpec(spec_id, tuple(fields)) if fields else None)


def set_sort(table: Table, keys: tuple[SortKey, ...], sort_id: int) -> Table:
    """The table with these sort keys for new files."""
    if table.sort and table.sort.keys == keys:
        return table
    return replace(table, sort=SortSpec(sort_id, keys) if keys else None)


def replace_columns(table: Table, new: tuple[Column, ...], ids: ColumnIds) -> Table:
    """The table with other columns. A column of the same name keeps its id if it can hold all earlier values.

    Time travel and the change feed follow a column by its id. Columns are in the order of their ids, though. So a
    column that moves in front of an older one gets a new id.
    """

    def with_ids(old: tuple[Column, ...], new: tuple[Column, ...]) -> tuple[Column, ...]:
        result: list[Column] = []
        for column in new:
            same_name = next((c for c in old if c.name.lower() == column.name.lower()), None)
            last_id = result[-1].id if result else 0
            if same_name and same_name.id > last_id and _holds_values_of(column, same_name):
                children = with_ids(same_name.children, column.children)
                initial_default = same_name.initial_default
                result.append(replace(column, id=same_name.id, initial_default=initial_default, children=children))
            else:
                result.append(ids.assign(column))
        return tuple(result)

    return replace(table, columns=with_ids(table.columns, new))


def _holds_values_of(new: Column, old: Column) -> bool:
    return old.same_shape(new) or can_promote(old.type, new.type)


def _mentions(expression: str, name: str) -> bool:
    """Whether a sort expression uses a column."""
    return any(_unquote(m[0]).lower() == name.lower() for m in _IDENTIFIER.finditer(expression) if m[0][0] != "'")


def _rename_in(expression: str, old: str, new: str) -> str:
    """A sort expression with another name for one column, otherwise unchanged."""

    def renamed(match: re.Match[str]) -> str:
        word = match[0]
        if word[0] == "'" or _unquote(word).lower() != old.lower():
            return word
        return new if re.fullmatch(r"[a-z_][a-z0-9_]*", new) else quote_name(new)

    return _IDENTIFIER.sub(renamed, expression)


def _unquote(word: str) -> str:
    return word[1:-1].replace('""', '"') if word[0] == '"' else word


def _check_name_is_free(siblings: tuple[Column, ...], name: str, where: str) -> None:
    if any(s.name.lower() == name.lower() for s in siblings):
        raise AlreadyExistsError(f"{where} already has a column {name}")


def _replace_column(table: Table, new: Column) -> Table:
    """The table with the column or nested field of the same id replaced."""

    def replaced(column: Column) -> Column:
        if column.id == new.id:
            return new
        children = tuple(map(replaced, column.children))
        return column if children == column.children else replace(column, children=children)

    return replace(table, columns=tuple(map(replaced, table.columns)))
