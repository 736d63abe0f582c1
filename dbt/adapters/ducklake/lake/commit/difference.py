"""The difference between two states of the lake, and what a commit intends to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..conflicts import Intent
from ..snapshot import LakeState, Table, View
from .staged import Staged


def differences(base: Mapping[int, Any], state: Mapping[int, Any]) -> Iterable[tuple[Any, Any]]:
    """Old and new of everything that differs: created things have no old, dropped ones no new."""
    for key in base.keys() | state.keys():
        old, new = base.get(key), state.get(key)
        if old is not new and old != new:
            yield old, new


def is_moved(old: Table | View, new: Table | View) -> bool:
    return (old.schema_id, old.name) != (new.schema_id, new.name)


def is_altered(old: Table | View, new: Table | View) -> bool:
    """Whether more than its name and place changed."""
    if isinstance(old, Table) and isinstance(new, Table):
        moved = replace(
            old, schema_id=new.schema_id, name=new.name, path=new.path, path_is_relative=new.path_is_relative
        )
        return moved != new
    return isinstance(old, View) and replace(old, schema_id=new.schema_id, name=new.name) != new


def oldest_first(pair: tuple[Any, Any]) -> tuple[bool, int]:
    """Order of ids: what was there by id, then what is new in the order in which it was made."""
    thing = pair[0] or pair[1]
    return thing.id < 0, abs(thing.id)


def intent(staged: Staged, base: LakeState) -> Intent:
    """What the commit is about to do, for the check against what others did."""
    state = staged.state
    created: dict[tuple[str, str], int] = {}
    tables: set[tuple[str, int]] = set()
    names: dict[int, str] = {}
    relations = [*differences(base.tables, state.tables), *differences(base.views, state.views)]
    for old, new in relations:
        if new is not None and (old is None or is_moved(old, new)):
            created[state.schema_of(new).name.lower(), new.name.lower()] = new.schema_id
        if old is not None:
            names[old.id] = base.qualified(old)
            if new is None:
                tables.add(("dropped", old.id))
            else:
                tables.add(("altered", old.id))
    for table_id, data in staged.data.items():
        if table_id < 0:
            continue
        names[table_id] = base.qualified(base.tables[table_id])
        if data.added:
            tables.add(("inserted", table_id))
        if data.truncated:
            tables.add(("truncated", table_id))
        elif data.touched:
            tables.add(("deleted", table_id))
        if data.inlined:
            tables.add(("inlined", table_id))
    schemas = list(differences(base.schemas, state.schemas))
    macros = list(differences(base.macros, state.macros))
    return Intent(
        created_schemas=frozenset(new.name.lower() for old, new in schemas if old is None),
        dropped_schemas={old.id: old.name for old, new in schemas if new is None},
        created=created,
        created_macros={
            (new.kind, state.schemas[new.schema_id].name.lower(), new.name.lower()): new.schema_id
            for old, new in macros
            if old is None
        },
        dropped_macros={(old.kind, old.id): old.name for old, new in macros if new is None},
        tables=frozenset(tables),
        rewritten=frozenset(table_id for table_id, read in staged.rewritten.items() if read is None),
        names=names,
    )
