"""How a table's definition may change: each rule of schema evolution, as a function to a new table.

No data file is touched by any of them. A column keeps its id for as long as it lives, and readers
find its values in old files by that id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from .errors import AlreadyExistsError, NotFoundError, SchemaChangeError
from .partitions import PartitionField, PartitionSpec, Transform
from .snapshot import Table
from .sorting import SortKey, SortSpec
from .types import Column, find_path, is_known, promotes, renumber

Path = tuple[str, ...]

_IDENTIFIER = re.compile(r""""(?:[^"]|"")*"|'(?:[^']|'')*'|[^\W\d]\w*""")


@dataclass
class ColumnIds:
    """The next free column id of a table: ids of dropped columns are never given again."""

    next: int

    def number(self, column: Column) -> Column:
        column, self.next = renumber(column, self.next)
        return column


def check_columns(columns: tuple[Column, ...], table: str) -> None:
    """Raises where columns can not stand in one table."""
    if not columns:
        raise SchemaChangeError(f"table {table} needs at least one column")
    _check_names(columns, f"table {table}")
    for column in columns:
        for field in column.walk():
            if not is_known(field.type):
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


def add_column(table: Table, parent: Path, column: Column, ids: ColumnIds) -> Table:
    """The table with one more column, or with one more field in the struct at `parent`."""
    if not parent:
        _require_free(table, table.columns, column.name, f"table {table.name}")
        return replace(table, columns=(*table.columns, ids.number(column)))
    struct = _find(table, parent)
    if struct.type == "list":
        struct = struct.children[0]
    if struct.type != "struct":
        raise SchemaChangeError(
            f"field {column.name} can not be added to {'.'.join(parent)} of table {table.name}:"
            f" it is a {struct.type_text()}, and only a struct has fields"
        )
    if column.initial_default is not None:
        raise SchemaChangeError(
            f"field {'.'.join((*parent, column.name))} of table {table.name} can not be added with a default:"
            " old files have no value for it, and only whole columns are filled in; add it without, then"
            " UPDATE the rows that need a value"
        )
    _require_free(table, struct.children, column.name, f"column {'.'.join(parent)} of table {table.name}")
    return _put(table, replace(struct, children=(*struct.children, ids.number(column))))


def drop_column(table: Table, path: Path) -> Table:
    column = _find(table, path)
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
            if mentions(key.expression, column.name):
                raise SchemaChangeError(
                    f"column {column.name} can not be dropped: table {table.name} is sorted by {key.expression};"
                    " change the sort order first (ALTER TABLE ... RESET SORTED BY)"
                )
        return replace(table, columns=tuple(c for c in table.columns if c.id != column.id))
    parent = _find(table, path[:-1])
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
    return _put(table, replace(parent, children=tuple(c for c in parent.children if c.id != column.id)))


def rename_column(table: Table, path: Path, name: str) -> Table:
    column = _find(table, path)
    if len(path) == 1:
        siblings, where = table.columns, f"table {table.name}"
    else:
        parent = _find(table, path[:-1])
        if parent.type != "struct":
            raise SchemaChangeError(
                f"{'.'.join(path)} of table {table.name} can not be renamed: the parts of a {parent.type}"
                " have fixed names"
            )
        siblings, where = parent.children, f"column {'.'.join(path[:-1])} of table {table.name}"
    _require_free(table, tuple(s for s in siblings if s.id != column.id), name, where)
    renamed = _put(table, replace(column, name=name))
    if len(path) == 1 and renamed.sort:
        keys = tuple(replace(key, expression=rename_in(key.expression, column.name, name)) for key in renamed.sort.keys)
        renamed = replace(renamed, sort=replace(renamed.sort, keys=keys))
    return renamed


def retype_column(table: Table, path: Path, new: Column, ids: ColumnIds) -> Table:
    """The table with a column of a wider type; struct fields may come and go with it."""
    return _put(table, _promoted(table, _find(table, path), new, ids, ".".join(path)))


def _promoted(table: Table, old: Column, new: Column, ids: ColumnIds, path: str) -> Column:
    if old.same_shape(new):
        return old
    if old.children and old.type == new.type:
        wanted = {c.name.lower(): c for c in new.children}
        kept = [
            _promoted(table, child, wanted.pop(child.name.lower()), ids, f"{path}.{child.name}")
            for child in old.children
            if child.name.lower() in wanted
        ]
        return replace(old, children=(*kept, *(ids.number(c) for c in wanted.values())))
    if not promotes(old.type, new.type):
        raise SchemaChangeError(
            f"column {path} of table {table.name} can not change from {old.type_text()} to {new.type_text()}:"
            " only a wider type of the same kind is allowed, so that every old value stays what it was"
            " (int32 to int64, float32 to float64, decimal(10,2) to decimal(12,2)); for anything else add a"
            " new column and fill it"
        )
    return replace(old, type=new.type)


def widen(table: Table, others: Iterable[Column], ids: ColumnIds) -> Table:
    """The table with what these columns have more than its own: columns, fields of structs, wider types.

    Where a type does not hold every value of the table's, the table's stays.
    """
    return replace(table, columns=_widened(table.columns, others, ids))


def _widened(own: tuple[Column, ...], others: Iterable[Column], ids: ColumnIds) -> tuple[Column, ...]:
    more = {c.name.lower(): c for c in others}
    kept = [_wider(column, more.pop(column.name.lower(), column), ids) for column in own]
    return (*kept, *(ids.number(c) for c in more.values()))


def _wider(own: Column, other: Column, ids: ColumnIds) -> Column:
    if own.children and own.type == other.type:
        return replace(own, children=_widened(own.children, other.children, ids))
    return replace(own, type=other.type) if promotes(own.type, other.type) else own


def set_not_null(table: Table, path: Path, not_null: bool) -> Table:
    if len(path) > 1:
        raise SchemaChangeError(
            f"NOT NULL can be set on whole columns only, not on the field {'.'.join(path)} of table {table.name}"
        )
    column = _find(table, path)
    return _put(table, replace(column, nulls_allowed=not not_null))


def set_default(table: Table, path: Path, value: str | None, kind: str = "literal", dialect: str = "duckdb") -> Table:
    """The table with another default for rows to come; old rows keep what they have."""
    if len(path) > 1:
        raise SchemaChangeError(
            f"a default can be set on whole columns only, not on the field {'.'.join(path)} of table {table.name}"
        )
    column = _find(table, path)
    if column.children and value is not None:
        raise SchemaChangeError(f"column {column.name} of table {table.name} is nested and can have no default")
    return _put(
        table,
        replace(column, default_value=value, default_value_type=kind, default_value_dialect=dialect),
    )


def set_column_comment(table: Table, path: Path, comment: str | None) -> Table:
    column = _find(table, path)
    return _put(table, replace(column, tags=with_comment(column.tags, comment)))


def with_comment(tags: tuple[tuple[str, str], ...], comment: str | None) -> tuple[tuple[str, str], ...]:
    kept = tuple((key, value) for key, value in tags if key != "comment")
    return kept if comment is None else tuple(sorted((*kept, ("comment", comment))))


def set_partition(table: Table, keys: list[tuple[str, Transform]], spec_id: int) -> Table:
    """The table whose new files are split by these keys; files that are there stay as they are."""
    fields = []
    for index, (name, transform) in enumerate(keys):
        column = find_path(table.columns, (name,))
        if column is None:
            there = ", ".join(c.name for c in table.columns)
            raise SchemaChangeError(
                f"table {table.name} can not be partitioned by {name}: it has no such column; it has {there}"
            )
        if not transform.applies_to(column[0].type):
            raise SchemaChangeError(
                f"table {table.name} can not be partitioned by {transform} of {name}:"
                f" the column is {column[0].type_text()}"
            )
        fields.append(PartitionField(index, column[0].id, transform))
    if len(set(fields)) != len({(f.column_id, f.transform) for f in fields}):
        raise SchemaChangeError(f"table {table.name} can not be partitioned by the same key twice")
    old = table.partition
    if old and old.fields == tuple(fields):
        return table
    return replace(table, partition=PartitionSpec(spec_id, tuple(fields)) if fields else None)


def set_sort(table: Table, keys: tuple[SortKey, ...], sort_id: int) -> Table:
    """The table whose new files are sorted by these keys."""
    if table.sort and table.sort.keys == keys:
        return table
    return replace(table, sort=SortSpec(sort_id, keys) if keys else None)


def replace_columns(table: Table, new: tuple[Column, ...], ids: ColumnIds) -> Table:
    """The table with other columns; one of the same name and shape stays the column it was.

    That a column keeps its id is what lets the change feed and time travel follow it. The order of
    columns is that of their ids, though: one that moved before an older one takes a new id.
    """

    def level(old: tuple[Column, ...], wanted: tuple[Column, ...]) -> tuple[Column, ...]:
        placed: list[Column] = []
        for column in wanted:
            was = next((c for c in old if c.name.lower() == column.name.lower()), None)
            if was and was.id > (placed[-1].id if placed else 0) and _holds(was, column):
                children = level(was.children, column.children)
                placed.append(replace(column, id=was.id, initial_default=was.initial_default, children=children))
            else:
                placed.append(ids.number(column))
        return tuple(placed)

    return replace(table, columns=level(table.columns, new))


def _holds(old: Column, new: Column) -> bool:
    """Whether every value of the old column is one of the new column too."""
    return old.same_shape(new) or promotes(old.type, new.type)


def mentions(expression: str, name: str) -> bool:
    return any(_unquote(m[0]).lower() == name.lower() for m in _IDENTIFIER.finditer(expression) if m[0][0] != "'")


def rename_in(expression: str, old: str, new: str) -> str:
    """A sort expression with one column's name replaced, and not a character besides."""

    def renamed(match: re.Match[str]) -> str:
        word = match[0]
        if word[0] == "'" or _unquote(word).lower() != old.lower():
            return word
        return new if re.fullmatch(r"[a-z_][a-z0-9_]*", new) else '"' + new.replace('"', '""') + '"'

    return _IDENTIFIER.sub(renamed, expression)


def _unquote(word: str) -> str:
    return word[1:-1].replace('""', '"') if word[0] == '"' else word


def _find(table: Table, path: Path) -> Column:
    found = find_path(table.columns, path)
    if found is None:
        there = ", ".join(c.name for c in table.columns)
        raise NotFoundError(f"table {table.name} has no column {'.'.join(path)}; its columns are {there}")
    return found[-1]


def _require_free(table: Table, siblings: tuple[Column, ...], name: str, where: str) -> None:
    if any(s.name.lower() == name.lower() for s in siblings):
        raise AlreadyExistsError(f"{where} already has a column {name}")


def _put(table: Table, new: Column) -> Table:
    """The table with the column or field of the same id replaced, wherever it stands."""

    def visit(column: Column) -> Column:
        if column.id == new.id:
            return new
        children = tuple(map(visit, column.children))
        return column if children == column.children else replace(column, children=children)

    return replace(table, columns=tuple(map(visit, table.columns)))


Change = Callable[[Table], Table]
