"""The difference between the staged state of the lake and the base state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..conflicts import IntendedChanges
from ..snapshot import LakeState, Table, View
from .staged import Staged


def differences(base: Mapping[int, Any], state: Mapping[int, Any]) -> Iterable[tuple[Any, Any]]:
    """The old and the new value of everything that differs: None and a new value, or an old value and None."""
    for key in base.keys() | state.keys():
        old, new = base.get(key), state.get(key)
        if old is not new and old != new:
            yield old, new


def is_renamed(old: Table | View, new: Table | View) -> bool:
    """Whether the name or the schema changed."""
    return (old.schema_id, old.name) != (new.schema_id, new.name)


def is_altered(old: Table | View, new: Table | View) -> bool:
    """Whether more changed than the name, the schema and the path."""
    if isinstance(old, Table) and isinstance(new, Table):
        renamed = replace(
            old, schema_id=new.schema_id, name=new.name, path=new.path, path_is_relative=new.path_is_relative
        )
        return renamed != new
    return isinstance(old, View) and replace(old, schema_id=new.schema_id, name=new.name) != new


def creation_order(difference: tuple[Any, Any]) -> tuple[bool, int]:
    """Sort key for differences: existing things by id, then new ones in the order of their creation."""
    old, new = difference
    object_id = (old or new).id
    return is_provisional(object_id), abs(object_id)


def is_provisional(object_id: int) -> bool:
    """Whether the commit still has to assign a real id."""
    return object_id < 0


def intended_changes(staged: Staged, base: LakeState) -> IntendedChanges:
    """What the commit is about to do, to be checked for conflicts with concurrent snapshots."""
    state = staged.state
    created_relations: dict[tuple[str, str], int] = {}
    relation_changes: set[tuple[str, int]] = set()
    relation_names: dict[int, str] = {}
    for old, new in (*differences(base.tables, state.tables), *differences(base.views, state.views)):
        if new is not None and (old is None or is_renamed(old, new)):
            created_relations[state.schema_of(new).name.lower(), new.name.lower()] = new.schema_id
        if old is not None:
            relation_names[old.id] = base.qualified_name(old)
            relation_changes.add(("dropped" if new is None else "altered", old.id))
    for table_id, changes in staged.data_changes.items():
        if is_provisional(table_id):
            continue
        relation_names[table_id] = base.qualified_name(base.tables[table_id])
        if changes.adds_rows:
            relation_changes.add(("inserted", table_id))
        if changes.truncated:
            relation_changes.add(("truncated", table_id))
        elif changes.changed_file_ids:
            relation_changes.add(("deleted", table_id))
        if changes.flushes or changes.flushed_deletes:
            relation_changes.add(("flushed", table_id))
        for compaction in changes.compactions:
            relation_changes.add(("merged" if compaction.is_merge else "rewritten", table_id))
        if changes.ended_inlined_row_ids:
            relation_changes.add(("inlined", table_id))
    schemas = list(differences(base.schemas, state.schemas))
    macros = list(differences(base.macros, state.macros))
    return IntendedChanges(
        created_schemas=frozenset(new.name.lower() for old, new in schemas if old is None),
        dropped_schemas={old.id: old.name for old, new in schemas if new is None},
        created_relations=created_relations,
        created_macros={
            (new.kind, state.schemas[new.schema_id].name.lower(), new.name.lower()): new.schema_id
            for old, new in macros
            if old is None
        },
        dropped_macros={(old.kind, old.id): old.name for old, new in macros if new is None},
        relation_changes=frozenset(relation_changes),
        fully_read_tables=frozenset(table_id for table_id, read in staged.reads.items() if read is None),
        relation_names=relation_names,
    )
