"""`rowid` and `snapshot_id`: a table has them where a query names them, and no `*` stands for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .names import Names, RelationRef
from .rewriting import Sources

ROW_ID = "rowid"
SNAPSHOT_ID = "snapshot_id"
VIRTUAL_COLUMNS = (ROW_ID, SNAPSHOT_ID)


def are_named(names: Names) -> bool:
    """Whether a query names a virtual column, of whatever."""
    return any(column.parts[-1].lower() in VIRTUAL_COLUMNS for column in names.columns)


def tables_asked(
    names: Names,
    columns: Mapping[RelationRef, Sequence[str]],
    full_names: Mapping[RelationRef, tuple[str, ...]],
) -> frozenset[RelationRef]:
    """The tables, given with the columns of their own, whose virtual columns a query may name."""
    if not are_named(names):
        return frozenset()
    real = {ref: {name.lower() for name in own} & {*VIRTUAL_COLUMNS} for ref, own in columns.items()}
    sources = Sources(names.scopes, full_names)

    def meant() -> Iterator[RelationRef]:
        for column in names.columns:
            name = column.parts[-1].lower()
            if column.star or name not in VIRTUAL_COLUMNS:
                continue
            count, relation = sources.relation_of(column)
            if count and count == len(column.parts) - 1 and relation in real:
                yield relation
            elif len(column.parts) == 1:
                yield from unqualified(name, column.scope)

    def unqualified(name: str, scope: int) -> Iterator[RelationRef]:
        for outer in sources.outward(scope):
            tables = [source.relation for source in names.scopes[outer].sources if source.relation in real]
            if tables:
                yield from (() if any(name in real[ref] for ref in tables) else tables)
                return

    return frozenset(ref for ref in meant() if not real[ref])
