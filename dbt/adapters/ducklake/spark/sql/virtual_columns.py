"""The virtual columns `rowid` and `snapshot_id`.

A table has them only in queries that name them, and `*` never includes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .name_resolution import SourceIndex
from .names import Names, RelationRef

ROW_ID = "rowid"
SNAPSHOT_ID = "snapshot_id"
VIRTUAL_COLUMNS = (ROW_ID, SNAPSHOT_ID)


def names_virtual_columns(names: Names) -> bool:
    """Whether a query names `rowid` or `snapshot_id`, of whatever source."""
    return any(column.parts[-1].lower() in VIRTUAL_COLUMNS for column in names.columns)


def relations_with_virtual_columns(
    names: Names,
    columns: Mapping[RelationRef, Sequence[str]],
    full_names: Mapping[RelationRef, tuple[str, ...]],
) -> frozenset[RelationRef]:
    """Returns the tables whose virtual columns a query may name.

    `columns` are the columns of each table. A table with a real column of one of these names has no virtual columns.
    """
    if not names_virtual_columns(names):
        return frozenset()
    shadowed = {ref: {name.lower() for name in real} & {*VIRTUAL_COLUMNS} for ref, real in columns.items()}
    sources = SourceIndex(names.scopes, full_names)

    def named_relations() -> Iterator[RelationRef]:
        for column in names.columns:
            name = column.parts[-1].lower()
            if column.star or name not in VIRTUAL_COLUMNS:
                continue
            qualifier_length, relation = sources.resolve(column)
            if qualifier_length and qualifier_length == len(column.parts) - 1 and relation in shadowed:
                yield relation
            elif len(column.parts) == 1:
                yield from resolve_unqualified(name, column.scope)

    def resolve_unqualified(name: str, scope: int) -> Iterator[RelationRef]:
        """Yields the tables of the innermost scope that has any, unless one of them has a real column of that name."""
        for enclosing in sources.enclosing_scopes(scope):
            tables = [source.relation for source in names.scopes[enclosing].sources if source.relation in shadowed]
            if tables:
                yield from (() if any(name in shadowed[ref] for ref in tables) else tables)
                return

    return frozenset(ref for ref in named_relations() if not shadowed[ref])
