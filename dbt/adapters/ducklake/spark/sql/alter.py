"""ALTER TABLE and ALTER VIEW: a statement with one or more actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ...lake.types import Column
from .ddl import SCHEMA_KEYWORDS, RelationKind, refuse_storage
from .definitions import (
    ColumnDefinition,
    PartitionKey,
    Properties,
    SortKey,
    column_definition,
    column_type,
    partition_keys,
    properties,
    property_key,
    refuse_constraint,
    sort_keys,
)
from .tokens import Cursor, Name

_PARTITION_HINT = (
    "a lake's partitions come and go with their rows. Change the keys with SET PARTITIONED BY, and the rows with DELETE"
)


@dataclass(frozen=True)
class Position:
    """The new position of a column."""

    after: str | None = None
    """The column that it follows; None for the first position."""


@dataclass(frozen=True)
class AddColumn:
    definition: ColumnDefinition
    parent: Name = ()
    """The path of the struct that gets the field; empty for a column."""
    position: Position | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropColumn:
    path: Name
    if_exists: bool = False


@dataclass(frozen=True)
class RenameColumn:
    path: Name
    new_name: str


@dataclass(frozen=True)
class ChangeType:
    path: Name
    type: Column
    """A column of the new type, with the id 0."""


@dataclass(frozen=True)
class SetNotNull:
    path: Name


@dataclass(frozen=True)
class DropNotNull:
    path: Name


@dataclass(frozen=True)
class SetDefault:
    path: Name
    expression: str


@dataclass(frozen=True)
class DropDefault:
    path: Name


@dataclass(frozen=True)
class SetColumnComment:
    path: Name
    comment: str | None


@dataclass(frozen=True)
class MoveColumn:
    path: Name
    position: Position


@dataclass(frozen=True)
class RenameRelation:
    new_name: Name


@dataclass(frozen=True)
class SetPartitionKeys:
    keys: tuple[PartitionKey, ...]
    """Empty for RESET PARTITIONED BY."""


@dataclass(frozen=True)
class SetSortKeys:
    keys: tuple[SortKey, ...]
    """Empty for RESET SORTED BY."""


@dataclass(frozen=True)
class SetProperties:
    properties: Properties


@dataclass(frozen=True)
class UnsetProperties:
    names: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class SetViewQuery:
    query: str


ColumnAction: TypeAlias = (
    RenameColumn | ChangeType | SetNotNull | DropNotNull | SetDefault | DropDefault | SetColumnComment | MoveColumn
)
AlterAction: TypeAlias = (
    AddColumn
    | DropColumn
    | ColumnAction
    | RenameRelation
    | SetPartitionKeys
    | SetSortKeys
    | SetProperties
    | UnsetProperties
    | SetViewQuery
)


@dataclass(frozen=True)
class Alter:
    """ALTER TABLE or ALTER VIEW; each action applies to the result of those before it."""

    kind: RelationKind
    name: Name
    actions: tuple[AlterAction, ...]
    if_exists: bool = False


def parse_alter(cursor: Cursor) -> Alter:
    cursor.begin("ALTER")
    if cursor.at_any(*SCHEMA_KEYWORDS):
        raise cursor.refused(
            f"ALTER {cursor.token.key}",
            "a DuckLake schema keeps its name, in DuckDB too, and has no properties. To rename it, CREATE SCHEMA with"
            " the new name, move each table and view there (ALTER TABLE old.t RENAME TO new.t) and DROP SCHEMA, in one"
            " transaction. For a description, use COMMENT ON",
        )
    if not cursor.at_any("TABLE", "VIEW"):
        raise cursor.unexpected("TABLE or VIEW")
    kind: RelationKind = "table" if cursor.at("TABLE") else "view"
    cursor.begin(cursor.token.key)
    if_exists = cursor.take("IF", "EXISTS")
    name = cursor.subject(f"a {kind}")
    actions = _table_actions(cursor) if kind == "table" else _view_actions(cursor)
    cursor.finish()
    return Alter(kind, name, actions, if_exists)


def _view_actions(cursor: Cursor) -> tuple[AlterAction, ...]:
    if cursor.take("RENAME"):
        cursor.expect("TO")
        return (RenameRelation(cursor.name("the view's new name")),)
    if cursor.at_any("SET", "UNSET"):
        return (_properties(cursor),)
    if cursor.take("AS") or cursor.at_query():
        return (SetViewQuery(cursor.query()),)
    raise cursor.unexpected("RENAME TO, AS and a query, SET TBLPROPERTIES or UNSET TBLPROPERTIES")


def _table_actions(cursor: Cursor) -> tuple[AlterAction, ...]:
    refuse_storage(cursor)
    action = cursor.take_any("ADD", "DROP", "RENAME", "ALTER", "CHANGE", "SET", "RESET", "UNSET", "REPLACE")
    if action == "ADD":
        return _add_columns(cursor)
    if action == "DROP":
        return _drop_columns(cursor)
    if action == "RENAME":
        return (_rename(cursor),)
    if action in ("ALTER", "CHANGE"):
        return _alter_columns(cursor, hive=action == "CHANGE")
    if action in ("SET", "RESET", "UNSET"):
        cursor.index -= 1
        return (_set_layout_or_properties(cursor),)
    if action == "REPLACE" and cursor.at("COLUMNS"):
        raise cursor.refused(
            "REPLACE COLUMNS", "it would drop what is not listed. Write ADD COLUMN, DROP COLUMN, ALTER COLUMN"
        )
    raise cursor.unexpected("ADD, DROP, RENAME, ALTER, SET, RESET or UNSET")


def _add_columns(cursor: Cursor) -> tuple[AlterAction, ...]:
    _refuse_partition(cursor, "ADD")
    _take_column_keyword(cursor)
    refuse_constraint(cursor)
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")

    def parse_column() -> AddColumn:
        path = cursor.name("a column name")
        definition = column_definition(cursor, path)
        return AddColumn(definition, path[:-1], _position(cursor), if_not_exists)

    return cursor.parenthesized(parse_column) if cursor.at("(") else cursor.comma_separated(parse_column)


def _drop_columns(cursor: Cursor) -> tuple[AlterAction, ...]:
    _refuse_partition(cursor, "DROP")
    _take_column_keyword(cursor)
    refuse_constraint(cursor)
    if_exists = cursor.take("IF", "EXISTS")

    def parse_column() -> DropColumn:
        return DropColumn(cursor.name("a column"), if_exists)

    return cursor.parenthesized(parse_column) if cursor.at("(") else cursor.comma_separated(parse_column)


def _rename(cursor: Cursor) -> AlterAction:
    if cursor.take("TO"):
        return RenameRelation(cursor.name("the table's new name"))
    if cursor.at("PARTITION", "("):
        raise cursor.refused("RENAME PARTITION", _PARTITION_HINT)
    _take_column_keyword(cursor)
    path = cursor.name("a column or TO")
    cursor.expect("TO")
    return RenameColumn(path, cursor.identifier("the column's new name"))


def _alter_columns(cursor: Cursor, hive: bool) -> tuple[AlterAction, ...]:
    _take_column_keyword(cursor)
    actions: list[AlterAction] = []
    for column_actions in cursor.comma_separated(lambda: _column_actions(cursor, hive)):
        actions.extend(column_actions)
    return tuple(actions)


def _column_actions(cursor: Cursor, hive: bool) -> tuple[ColumnAction, ...]:
    """Parses the actions on one column, of ALTER COLUMN or of Hive's CHANGE COLUMN."""
    path = cursor.name("a column")
    if cursor.take("TYPE") or cursor.take("SET", "DATA", "TYPE") or cursor.take("SET", "TYPE"):
        return (ChangeType(path, column_type(cursor, path)),)
    if cursor.take("SET", "NOT", "NULL"):
        return (SetNotNull(path),)
    if cursor.take("DROP", "NOT", "NULL"):
        return (DropNotNull(path),)
    if cursor.take("SET", "DEFAULT"):
        return (SetDefault(path, cursor.expression("a default value")),)
    if cursor.take("DROP", "DEFAULT"):
        return (DropDefault(path),)
    if cursor.at("COMMENT") and (cursor.peek(1).kind == "string" or cursor.peek(1).key == "NULL"):
        return (SetColumnComment(path, _column_comment(cursor)),)
    if position := _position(cursor):
        return (MoveColumn(path, position),)
    if hive and cursor.at_name():
        return _hive_change(cursor, path)
    raise cursor.unexpected("TYPE, SET, DROP NOT NULL, DROP DEFAULT, COMMENT, FIRST or AFTER")


def _hive_change(cursor: Cursor, path: Name) -> tuple[ColumnAction, ...]:
    """Parses Hive's `CHANGE old new type COMMENT 'x' AFTER c`; the rename comes last, so `path` holds until then."""
    new_name = cursor.identifier("the column's new name")
    actions: list[ColumnAction] = [ChangeType(path, column_type(cursor, path))]
    if cursor.at("COMMENT"):
        actions.append(SetColumnComment(path, _column_comment(cursor)))
    if position := _position(cursor):
        actions.append(MoveColumn(path, position))
    if new_name != path[-1]:
        actions.append(RenameColumn(path, new_name))
    return tuple(actions)


def _column_comment(cursor: Cursor) -> str | None:
    cursor.expect("COMMENT")
    return None if cursor.take("NULL") else cursor.string("a comment")


def _position(cursor: Cursor) -> Position | None:
    if cursor.take("FIRST"):
        return Position()
    return Position(cursor.identifier("a column")) if cursor.take("AFTER") else None


def _take_column_keyword(cursor: Cursor) -> None:
    """Steps over the keyword COLUMN or COLUMNS, unless it is the name of a column."""
    if cursor.peek(1).kind in ("word", "quoted") or cursor.peek(1).key == "(":
        cursor.take_any("COLUMN", "COLUMNS")


def _refuse_partition(cursor: Cursor, action: str) -> None:
    ahead = 2 if cursor.at("IF", "EXISTS") else 3 if cursor.at("IF", "NOT", "EXISTS") else 0
    if cursor.peek(ahead).key == "PARTITION" and cursor.peek(ahead + 1).key == "(":
        raise cursor.refused(f"{action} PARTITION", _PARTITION_HINT)


def _set_layout_or_properties(cursor: Cursor) -> AlterAction:
    """Parses SET, RESET and UNSET: the layout of new files, or the properties of the table."""
    if cursor.take("RESET", "PARTITIONED", "BY"):
        return SetPartitionKeys(())
    if cursor.take("RESET", "SORTED", "BY"):
        return SetSortKeys(())
    if cursor.at("RESET"):
        cursor.index += 1
        raise cursor.unexpected("PARTITIONED BY or SORTED BY")
    if cursor.take("SET", "PARTITIONED", "BY"):
        return SetPartitionKeys(partition_keys(cursor))
    if cursor.take("SET", "SORTED", "BY"):
        return SetSortKeys(sort_keys(cursor))
    return _properties(cursor)


def _properties(cursor: Cursor) -> SetProperties | UnsetProperties:
    if cursor.take("UNSET"):
        cursor.expect("TBLPROPERTIES")
        if_exists = cursor.take("IF", "EXISTS")
        return UnsetProperties(cursor.parenthesized(lambda: property_key(cursor)), if_exists)
    cursor.expect("SET")
    refuse_storage(cursor)
    if not cursor.take("TBLPROPERTIES"):
        raise cursor.unexpected("PARTITIONED BY, SORTED BY or TBLPROPERTIES")
    return SetProperties(properties(cursor))
