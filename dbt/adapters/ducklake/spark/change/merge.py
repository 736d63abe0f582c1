"""MERGE: which rows of a table and a source meet, and what becomes of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.errors import ConstraintError, SchemaChangeError
from ...lake.predicates import Predicate, Read
from ...lake.types import Column, find_path
from ..read.scan import FILE, POSITION
from ..sql import statements as st
from ..sql.defaults import default_sql
from ..sql.names import RelationRef, find_names
from ..sql.tokens import lowered, whole_name
from ..sql.types import quoted, string_literal
from .assignments import Assigned, or_default, stored
from .command_context import CommandContext
from .key_pruning import asked_of_target, fits_broadcast, keys_of
from .position_deletes import Places, take_away
from .schema_merge import same_fields, take_up
from .target import PLACE, TargetTable, old_name

_CLAUSE = "_lake_clause"
_SOURCE_ROW = "_lake_source_row"


def merge(context: CommandContext, statement: st.Merge) -> int:
    return _Merge(context, statement).run()


class _Merge:
    """One MERGE: which rows of the table and the source meet, and what becomes of each."""

    def __init__(self, context: CommandContext, statement: st.Merge) -> None:
        self.context = context
        self.statement = statement
        self.target = TargetTable.of(context, statement.name, statement.alias, statement.with_clause)
        self.matched = [c for c in statement.clauses if c.kind == "matched"]
        self.inserted = [c for c in statement.clauses if c.kind == "not matched"]
        self.missed = [c for c in statement.clauses if c.kind == "not matched by source"]

        self.fields: list[s.StructField] = []
        """The columns of the source."""
        self.read: Read | None = None
        """The rows of the table that may match one of the source, by what is known of them."""
        self.views: list[str] = []

    def run(self) -> int:
        source = self._source()
        try:
            return self._run(source, self._view(F.broadcast(source) if fits_broadcast(source) else source))
        finally:
            for view in self.views:
                source.sparkSession.catalog.dropTempView(view)

    def _view(self, rows: DataFrame) -> str:
        self.views.append(self.context.planner.register(rows))
        return self.views[-1]

    def _run(self, source: DataFrame, view: str) -> int:
        self.fields = [f for f in source.schema.fields if f.name != _SOURCE_ROW]
        if self.statement.schema_evolution:
            self.target = replace(self.target, table=take_up(self.context, self.target.table, self._taken()))
        self.target.changing.asked = self._asked(source)
        met = self._met(view)
        self.read = None if self.missed else self.target.read()
        self.target.changing.asked = None
        missed = self._missed(view) if self.missed else None
        new_rows = self._new_rows(source, met) if self.inserted else None
        self.context.transaction.rewrites(self.target.table, self.read)
        count = self.target.write(new_rows) if new_rows is not None else 0
        places = self._places(met, missed)
        if not places:
            return count
        for rows, clauses, stem in ((met, self.matched, "matched"), (missed, self.missed, "missed")):
            versions = self._versions(rows, clauses, stem) if rows is not None else None
            if versions is not None:
                self.target.write_versions(versions)
        return count + take_away(self.context, self.target.table, self.target.scan, places)

    # -- the source

    def _source(self) -> DataFrame:
        """The source's rows, computed once."""
        alias = "" if self._alias is None else f" as {quoted(self._alias)}"
        sql = f"{self.statement.with_clause or ''} select * from {self.statement.source}{alias}"
        rows = self.context.query(sql)
        return rows.withColumn(_SOURCE_ROW, F.monotonically_increasing_id()).localCheckpoint()

    @cached_property
    def _relation(self) -> RelationRef | None:
        """The source, where it is a relation by its name."""
        head = f"{self.statement.with_clause or ''} select * from "
        relations = find_names(head + self.statement.source).relations
        return next((r for r in relations if r.start == len(head)), None)

    @cached_property
    def _alias(self) -> str | None:
        """What the source is called; None of a relation that goes by its own name."""
        if self.statement.source_alias is not None or self._relation is not None:
            return self.statement.source_alias
        name = self.statement.source.strip().strip("`")
        return name if name.isidentifier() else "_lake_source"

    @property
    def _label(self) -> tuple[str, ...]:
        """What the source's columns are qualified with."""
        return (self._alias,) if self._alias else self._relation.parts if self._relation else ()

    def _taken(self) -> list[s.StructField]:
        """The columns of the source that are to be in the table: all for `*`, else those that one of that name gets."""
        pairs: list[tuple[st.Name, str]] = []
        for action in (clause.action for clause in self.statement.clauses):
            if isinstance(action, st.MergeUpdate):
                if action.assignments is None:
                    return self.fields
                pairs += [(a.column, a.expression) for a in action.assignments]
            elif isinstance(action, st.MergeInsert):
                if action.values is None:
                    return self.fields
                pairs += zip(action.columns or (), action.values, strict=False)
        own = (self.statement.alias,) if self.statement.alias else self.statement.name
        given = [(_behind(own, column), _behind(self._label, whole_name(value) or ())) for column, value in pairs]
        # A field comes into a struct that is there.
        there = [p for p in given if len(p[0]) == 1 or find_path(self.target.table.columns, p[0][:-1])]
        return same_fields(self.fields, there)

    def _joined(self, view: str) -> tuple[str, dict[str, str]]:
        """The source as it stands in FROM, and the view given for it, if it keeps its own name."""
        if self._alias is None:
            return self.statement.source, {self.statement.source: view}
        return f"{view} as {quoted(self._alias)}", {}

    def _asked(self, source: DataFrame) -> Predicate | None:
        """What the source's keys say of the rows that they can match; not worth a question for few files."""
        if self.context.file_count(self.target.table) < 2:
            return None
        label = self.statement.alias or self.target.table.name
        source_label = self._label[-1] if self._label else None
        names = [f.name for f in self.fields]
        keys = keys_of(self.statement.condition, self.target.table, label, source_label, names)
        return asked_of_target(source, source_label, keys)

    # -- the rows

    def _met(self, view: str) -> DataFrame:
        """Every pair of a row of the table and a row of the source that match, and what becomes of it."""
        joined, given = self._joined(view)
        columns = [*PLACE, _SOURCE_ROW, f"{_clause_of(self.matched)} as {_CLAUSE}"]
        columns += self._values(self.matched, "matched")
        return self.target.select(columns, f"join {joined} on {self.statement.condition}", given).localCheckpoint()

    def _missed(self, view: str) -> DataFrame:
        """The rows of the table that match none of the source, and what becomes of each."""
        joined, given = self._joined(view)
        columns = [*PLACE, f"{_clause_of(self.missed)} as {_CLAUSE}", *self._values(self.missed, "missed")]
        where = f"where not exists (select 1 from {joined} where {self.statement.condition})"
        rows = self.target.select(columns, where, given)
        return rows.where(F.col(_CLAUSE).isNotNull()).localCheckpoint()

    def _values(self, clauses: Sequence[st.MergeClause], stem: str) -> list[str]:
        """What the new versions are made of: what stays of the old rows, and the values of each clause."""
        kept: dict[int, Column] = {}
        columns: list[str] = []
        for index, new in self._assigned(clauses):
            kept |= {c.id: c for c in new.kept}
            columns += new.values(f"{stem}_{index}", f"{_CLAUSE} = {index}")
        return [*self.target.old_columns(kept.values()), *columns]

    def _assigned(self, clauses: Sequence[st.MergeClause]) -> list[tuple[int, Assigned]]:
        found = []
        for index, clause in enumerate(clauses):
            if isinstance(clause.action, st.MergeUpdate):
                assignments = clause.action.assignments
                found.append((index, Assigned.of(self.target, assignments or self._all_columns())))
        return found

    def _all_columns(self) -> tuple[st.Assignment, ...]:
        """SET *: each column from the source's of the same name."""
        return tuple(
            st.Assignment((column.name,), self._kept_fields(column, field.dataType, value))
            for column, field, value in self._from_source()
        )

    def _from_source(self) -> Iterator[tuple[Column, s.StructField, str]]:
        """What `*` means: columns of the table, and for each the source's of that name, and the SQL for its value.

        Only a table that follows the source may have columns that the source has not.
        """
        fields = {f.name.lower(): f for f in self.fields}
        for column in self.target.table.columns:
            field = fields.get(column.name.lower())
            if field is not None:
                yield column, field, st.quote_name((*self._label, field.name))
            elif not self.statement.schema_evolution:
                raise SchemaChangeError(
                    f"* takes column {column.name} of table {self.target.table.name} from the source, which has"
                    f" {', '.join(f.name for f in self.fields)}; list the columns to set and to insert, or write"
                    " MERGE WITH SCHEMA EVOLUTION, which keeps what the source has no column for"
                )

    def _kept_fields(self, column: Column, kind: s.DataType, value: str) -> str:
        """The SQL for a value of the source, with the old row's fields where the source's struct has none."""
        old = f"{self.target.label}.{quoted(column.name)}"
        return _filled(column, kind, old, value) if self.statement.schema_evolution else value

    def _versions(self, rows: DataFrame, clauses: Sequence[st.MergeClause], stem: str) -> DataFrame | None:
        parts = [
            new.rows(rows.where(F.col(_CLAUSE) == index), f"{stem}_{index}") for index, new in self._assigned(clauses)
        ]
        return reduce(DataFrame.unionByName, parts) if parts else None

    def _new_rows(self, source: DataFrame, met: DataFrame) -> DataFrame:
        """What is inserted of the source's rows that match none of the table."""
        rest = source.join(met.select(_SOURCE_ROW).distinct(), _SOURCE_ROW, "left_anti")
        joined, given = self._joined(self._view(rest))
        parts = []
        for index, clause in enumerate(self.inserted):
            assert isinstance(clause.action, st.MergeInsert)
            values = self._inserted_values(clause.action)
            head = f"{self.statement.with_clause or ''} select {', '.join(values)} from "
            where = f"{head}{joined} where {_clause_of(self.inserted)} = {index}"
            places = {len(head): given_view for given_view in given.values()}
            parts.append(self.context.planner.query(where, self.context.query_context, given=places))
        return reduce(DataFrame.unionByName, [stored(part, self.target.table) for part in parts])

    def _inserted_values(self, action: st.MergeInsert) -> list[str]:
        columns = self.target.table.columns
        if action.values is None:
            expressions = {column.id: value for column, _, value in self._from_source()}
        else:
            if action.columns is None:
                paths: list[tuple[Column, ...]] = [(c,) for c in columns]
            else:
                paths = [self.target.column(name, "INSERT") for name in action.columns]
            if len(paths) != len(action.values):
                raise SchemaChangeError(
                    f"INSERT gives {len(action.values)} values for {len(paths)} columns of table"
                    f" {self.target.table.name}; list the columns"
                )
            if any(len(path) > 1 for path in paths):
                raise SchemaChangeError("INSERT takes columns, not fields of them; give the whole column a value")
            expressions = {
                path[0].id: or_default(value, path) for path, value in zip(paths, action.values, strict=True)
            }
            if len(expressions) < len(paths):
                raise SchemaChangeError("INSERT names a column twice; give each one value")
        return [f"{expressions.get(c.id) or default_sql(c)} as {quoted(c.name)}" for c in columns]

    # -- what must hold

    @property
    def _may_meet_twice(self) -> bool:
        """Whether it is all the same how many rows of the source match a row: it is deleted in any case."""
        first = self.matched[0] if self.matched else None
        return first is not None and first.condition is None and isinstance(first.action, st.MergeDelete)

    def _places(self, met: DataFrame, missed: DataFrame | None) -> Places | None:
        """Where the rows are that go, or get a new version; an error if it is not clear what becomes of one."""
        parts = [met.select(FILE, POSITION, _CLAUSE)] if self.matched else []
        parts += [missed.select(FILE, POSITION, _CLAUSE)] if missed is not None else []
        if not parts:
            return None
        rows = reduce(DataFrame.union, parts)
        found = Places.of(rows, self.target.scan, acted=_CLAUSE)
        repeated = found.repeated() if self.matched else None
        if repeated is None:
            return found
        if not self._may_meet_twice:
            raise self._ambiguous(*repeated)
        return found.once()

    def _ambiguous(self, file: str | None, position: int, pairs: int) -> ConstraintError:
        found = F.col(FILE).eqNullSafe(F.lit(file)) & (F.col(POSITION) == position)
        select = [*PLACE[:2], *self.target.old_columns(self.target.table.columns)]
        row = self.target.select(select, "").where(found).collect()[0]
        shown = ", ".join(f"{c.name} = {row[old_name(c)]!r}" for c in self.target.table.columns[:8])
        return ConstraintError(
            f"{pairs} rows of the source of MERGE match one row of table {self.target.table.name} ({shown});"
            " make the source have one row for each key, or the ON condition stricter"
        )


def _filled(column: Column, kind: s.DataType, old: str, new: str) -> str:
    """The SQL for a new value; fields of the column that its type `kind` has not stay what they were."""
    if column.type != "struct" or not isinstance(kind, s.StructType):
        return new
    fields = {f.name.lower(): f for f in kind.fields}
    parts, missing = [], False
    for child in column.children:
        field, before = fields.get(child.name.lower()), f"{old}.{quoted(child.name)}"
        value = before
        if field is not None:
            after = f"{new}.{quoted(field.name)}"
            value = _filled(child, field.dataType, before, after)
        missing |= field is None or value != after
        parts += [string_literal(child.name), value]
    return f"case when {new} is not null then named_struct({', '.join(parts)}) end" if missing else new


def _behind(label: st.Name, name: st.Name) -> st.Name:
    """The path of a column, of a name that may begin with what its relation is called."""
    for length in range(min(len(label), len(name) - 1), 0, -1):
        if lowered(name[:length]) == lowered(label[-length:]):
            return name[length:]
    return name


def _clause_of(clauses: Sequence[st.MergeClause]) -> str:
    """The SQL for which clause acts on a row: the first whose condition holds."""
    cases = [f"when {c.condition or 'true'} then {i}" for i, c in enumerate(clauses)]
    return f"case {' '.join(cases)} end" if cases else "cast(null as int)"
