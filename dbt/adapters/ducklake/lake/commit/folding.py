"""Fold the changes of a nested transaction into its parent, where others may have folded theirs since it began.

If two of them change one table, view or macro, the one that is folded later conflicts: it has not seen what the other
did. Only rows can always be added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ..deletes import NewDeleteFile
from ..errors import ConflictError
from ..files import NewDataFile
from ..options import OptionKey
from ..paths import resolve
from ..predicates import ReadPredicate
from ..snapshot import LakeState, Table, View
from .difference import differences, is_renamed
from .staged import DataChanges, Staged

K = TypeVar("K")
V = TypeVar("V")


def fold(origin: Staged, own: Staged, parent: Staged) -> Staged:
    """The staged changes of the parent with those that lead from `origin` to `own`. Raises if they conflict."""
    if parent is origin:
        return own
    if own is origin:
        return parent
    folding = _Folding(origin, own, parent)
    return Staged(
        state=folding.state(),
        data_changes=folding.data_changes(),
        options=folding.options(),
        reads=folding.reads(),
        is_snapshot_without_changes=own.is_snapshot_without_changes or parent.is_snapshot_without_changes,
    )


def only_difference(origin: Staged, own: Staged) -> tuple[Staged, Staged]:
    """The same two values for `fold`, without what both have alike: a lake has many tables, and a run many folds."""
    reads, options = _changed_keys(origin.reads, own.reads), _changed_keys(origin.options, own.options)
    relations = changed_relations(origin, own) | reads
    macros = _changed_keys(origin.state.macros, own.state.macros)

    def part(staged: Staged) -> Staged:
        state = LakeState(
            schemas=staged.state.schemas,
            tables=_some(staged.state.tables, relations),
            views=_some(staged.state.views, relations),
            macros=_some(staged.state.macros, macros),
        )
        return Staged(
            state,
            _some(staged.data_changes, relations),
            _some(staged.options, options),
            _some(staged.reads, reads),
            staged.is_snapshot_without_changes,
        )

    return part(origin), part(own)


def changed_relations(origin: Staged, own: Staged) -> set[int]:
    """The tables and views by id whose definition or rows the changes from `origin` to `own` touch."""
    return (
        _changed_keys(origin.data_changes, own.data_changes)
        | _changed_keys(origin.state.tables, own.state.tables)
        | _changed_keys(origin.state.views, own.state.views)
    )


def only_adds_rows(origin: Staged, own: Staged, table_id: int) -> bool:
    """Whether the changes to a table from `origin` to `own` are new rows and nothing else."""
    return (
        origin.state.tables.get(table_id) == own.state.tables.get(table_id)
        and _appended(origin.changes_of(table_id), own.changes_of(table_id)) is not None
    )


def staged_files(origin: Staged, own: Staged, data_path: str) -> set[str]:
    """The data files and delete files of the tables whose rows changed since `origin`, by their whole paths."""
    paths: set[str] = set()
    for table_id in _changed_keys(origin.data_changes, own.data_changes) & own.data_changes.keys():
        changes = own.data_changes[table_id]
        folder = own.state.table_folder(data_path, own.state.tables[table_id])
        deletes = [*changes.position_deletes.values(), *(f.position_deletes for f in changes.added_files)]
        written: list[NewDataFile | NewDeleteFile | None] = [*changes.added_files]
        written += [d.delete_file for d in deletes if d is not None]
        paths |= {resolve(folder, file.path, file.path_is_relative) for file in written if file is not None}
    return paths


@dataclass(frozen=True)
class _Folding:
    origin: Staged
    own: Staged
    parent: Staged

    def state(self) -> LakeState:
        origin, own, parent = self.origin.state, self.own.state, self.parent.state
        if own is origin:
            return parent
        kinds: dict[str, Any] = {}
        for kind in ("schemas", "tables", "views", "macros"):
            kinds[kind] = self._folded_definitions(getattr(origin, kind), getattr(own, kind), getattr(parent, kind))
        state = replace(parent, **kinds)
        self._check_names(state)
        return state

    def _folded_definitions(
        self, origin: Mapping[int, Any], own: Mapping[int, Any], parent: Mapping[int, Any]
    ) -> Mapping[int, Any]:
        if own is origin:
            return parent
        folded = dict(parent)
        for old, new in differences(origin, own):
            thing = old or new
            if parent.get(thing.id) != old or (isinstance(thing, Table) and self._parent_changed_rows(thing.id)):
                raise self._conflict(thing)
            if new is None:
                del folded[thing.id]
            else:
                folded[thing.id] = new
        return folded

    def _check_names(self, state: LakeState) -> None:
        """Raises if both sides gave one name away, or one side dropped the schema in which the other made something."""
        origin, own = self.origin.state, self.own.state
        for old, new in differences(origin.schemas, own.schemas):
            if new is None and (state.relations_in(old) or state.macros_in(old)):
                raise self._conflict(old)
            if new is not None and _are_several(new, state.schemas.values()):
                raise self._conflict(new)
        for kind in ("tables", "views", "macros"):
            for old, new in differences(getattr(origin, kind), getattr(own, kind)):
                if new is None or (old is not None and not is_renamed(old, new)):
                    continue
                schema = state.schemas.get(new.schema_id)
                find_all = state.macros_in if kind == "macros" else state.relations_in
                if schema is None or _are_several(new, find_all(schema)):
                    raise self._conflict(new)

    def data_changes(self) -> Mapping[int, DataChanges]:
        own = self.own.data_changes
        folded = dict(self.parent.data_changes)
        for table_id in _changed_keys(self.origin.data_changes, own):
            if table_id not in own:  # the table was dropped
                folded.pop(table_id, None)
                continue
            table = self.own.state.tables[table_id]
            if self._parent_altered(table_id):
                raise self._conflict(table)
            if not self._parent_changed_rows(table_id):
                folded[table_id] = own[table_id]
                continue
            added = _appended(self.origin.changes_of(table_id), own[table_id])
            if added is None:
                raise self._conflict(table)
            changes = self.parent.changes_of(table_id).with_added_files(added.added_files)
            folded[table_id] = changes.with_inlined_inserts(added.inlined_inserts)
        return folded

    def options(self) -> Mapping[OptionKey, str | None]:
        changed = _changed_keys(self.origin.options, self.own.options)
        return {**_some(self.parent.options, self.parent.options.keys() - changed), **_some(self.own.options, changed)}

    def reads(self) -> Mapping[int, ReadPredicate | None]:
        folded = dict(self.parent.reads)
        for table_id in _changed_keys(self.origin.reads, self.own.reads):
            if self._parent_changed_rows(table_id) or self._parent_altered(table_id):
                raise self._conflict(self.origin.state.tables[table_id])
            read = self.own.reads[table_id]
            others = folded.get(table_id, read)
            folded[table_id] = None if read is None or others is None else read.union(others)
        return folded

    def _parent_changed_rows(self, table_id: int) -> bool:
        return self.parent.data_changes.get(table_id) != self.origin.data_changes.get(table_id)

    def _parent_altered(self, table_id: int) -> bool:
        return self.parent.state.tables.get(table_id) != self.origin.state.tables.get(table_id)

    def _conflict(self, thing: Any) -> ConflictError:
        state = self.own.state if thing.id in self.own.state.tables else self.origin.state
        is_relation = isinstance(thing, Table | View) and thing.schema_id in state.schemas
        name = state.qualified_name(thing) if is_relation else thing.name
        return ConflictError(
            f"the transaction can not change {name}: another one that runs beside it in the same run has changed it"
            " since this one began; let one of them wait for the other"
        )


def _some(values: Mapping[K, V], keys: Collection[K]) -> dict[K, V]:
    return {key: values[key] for key in keys if key in values}


def _changed_keys(origin: Mapping[K, V], own: Mapping[K, V]) -> set[K]:
    """The keys of the values that differ, or that only one side has. None is a value, too."""
    both = origin.keys() & own.keys()
    return (origin.keys() ^ own.keys()) | {
        key for key in both if own[key] is not origin[key] and own[key] != origin[key]
    }


def _are_several(thing: Any, others: Iterable[Any]) -> bool:
    """Whether more than one of these has a name, in any case."""
    name: str = thing.name.lower()
    return [other.name.lower() for other in others].count(name) > 1


def _appended(origin: DataChanges, own: DataChanges) -> DataChanges | None:
    """The rows that are added, if that is the only difference."""
    files, inserts = len(origin.added_files), len(origin.inlined_inserts)
    before = replace(own, added_files=own.added_files[:files], inlined_inserts=own.inlined_inserts[:inserts])
    if before != origin:
        return None
    return DataChanges(own.added_files[files:], own.inlined_inserts[inserts:])
