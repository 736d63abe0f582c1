"""DELETE, UPDATE and MERGE, merge-on-read: old rows are masked, and their new versions keep the row ids.

What a statement does to each row is one Spark plan over the table and the source. Its result is
computed once and kept by Spark, since it is used twice: for the rows to write, and for the places of
the rows that go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ..lake.errors import ConstraintError, NotFoundError, SchemaChangeError, UnsupportedError
from ..lake.predicates import Predicate, Read
from ..lake.snapshot import Table
from ..lake.types import Column, find_path
from . import statements as st
from .defaults import default_sql
from .keys import asked_of_target, fits_broadcast, keys_of
from .masks import Places, take_away
from .names import RelationRef, find_names
from .queries import Changing
from .reading import few
from .scan import FILE, OWN_ROW_ID, POSITION, TableScan, file_keys
from .scope import Scope
from .types import query_type, quoted

_PLACE = (FILE, POSITION, OWN_ROW_ID)
_CLAUSE = "_lake_clause"
_SOURCE_ROW = "_lake_source_row"


def delete(scope: Scope, statement: st.Delete) -> int:
    target = Target.of(scope, statement.name, statement.alias, statement.with_clause)
    if statement.condition is None:
        scan = scope.lake.scan(target.table, scope.transaction.base, scope.state, transaction=scope.transaction)
        scope.transaction.truncate(target.table)
        return sum(f.live_rows for f in scan.files) + len(scan.inlined or ())
    rows = target.select([FILE, POSITION], f"where {statement.condition}")
    return take_away(scope, target.table, target.scan, Places.of(rows, target.scan, computed=False))


def update(scope: Scope, statement: st.Update) -> int:
    target = Target.of(scope, statement.name, statement.alias, statement.with_clause)
    new = _Assigned.of(target, statement.assignments)
    where = "" if statement.condition is None else f"where {statement.condition}"
    rows = target.select([*_PLACE, *target.old_columns(new.kept), *new.values("value")], where).localCheckpoint()
    target.write_versions(new.rows(rows, "value"))
    return take_away(scope, target.table, target.scan, Places.of(rows.select(FILE, POSITION), target.scan))


def merge(scope: Scope, statement: st.Merge) -> int:
    return _Merge(scope, statement).run()


@dataclass
class Target:
    """The table that a statement changes, as its text calls it."""

    scope: Scope
    table: Table
    name: str
    alias: str | None
    with_clause: str | None
    changing: Changing

    @classmethod
    def of(cls, scope: Scope, name: Sequence[str], alias: str | None, with_clause: str | None) -> Target:
        return cls(scope, scope.table(name), st.quote_name(tuple(name)), alias, with_clause, Changing(0))

    @property
    def label(self) -> str:
        """What its columns are qualified with."""
        return quoted(self.alias) if self.alias else self.name

    @property
    def text(self) -> str:
        """What stands in FROM."""
        return self.name if self.alias is None else f"{self.name} as {quoted(self.alias)}"

    @property
    def scan(self) -> TableScan:
        assert self.changing.scan is not None
        return self.changing.scan

    def select(self, columns: Iterable[str], rest: str, given: dict[str, str] | None = None) -> DataFrame:
        """Rows of the table, with what follows its name in the query.

        `given` are temporary views for relations by their text, which `rest` has once after a blank.
        """
        head = f"{self.with_clause or ''} select {', '.join(columns)} from "
        self.changing.start = len(head)
        sql = f"{head}{self.text} {rest}"
        behind = len(head) + len(self.text)
        places = {sql.index(f" {text}", behind) + 1: view for text, view in (given or {}).items()}
        return self.scope.planner.query(sql, self.scope.context, changing=self.changing, given=places)

    def read(self) -> Read | None:
        """What the rows that were looked at have in common, if that is known."""
        return None if self.changing.read is None else Read(self.changing.read, self.scope.planner.time_zone)

    def old_columns(self, columns: Iterable[Column]) -> list[str]:
        return [f"{self.label}.{quoted(c.name)} as {_old(c)}" for c in columns]

    def write_versions(self, rows: DataFrame) -> None:
        """Writes new versions of rows; these have the places of the old ones, which are to be taken away."""
        starts = [(key, f.row_id_start) for key, f in file_keys(self.scan.files).items() if f.id >= 0]
        known = few(rows.sparkSession, starts, _lake_key=pa.string(), _lake_start=pa.int64())
        row_id = F.coalesce(F.col(OWN_ROW_ID), F.col("_lake_start") + F.col(POSITION))
        rows = rows.join(F.broadcast(known), F.col(FILE) == F.col("_lake_key"), "left").withColumn("_lake_id", row_id)
        if all(f.id >= 0 for f in self.scan.files):
            self.scope.transaction.updates(self.table, self.write(rows, row_id="_lake_id"))
            return
        # What this transaction inserted has no row id yet: its new version is what it inserts.
        self.write(rows.where(F.col("_lake_id").isNull()))
        there = rows.where(F.col("_lake_id").isNotNull())
        self.scope.transaction.updates(self.table, self.write(there, row_id="_lake_id"))

    def write(self, rows: DataFrame, row_id: str | None = None) -> int:
        """Writes rows in files of a fair size, however many tasks computed them."""
        if self.table.partition is None and self.table.sort is None:
            rows = rows.hint("rebalance")
        return self.scope.write(rows, self.table, row_id)

    def column(self, name: Sequence[str], what: str) -> tuple[Column, ...]:
        """The column or field that a statement assigns to, as a path."""
        for start in range(len(name)):
            if start and name[start - 1].lower() not in ((self.alias or "").lower(), self.table.name.lower()):
                continue
            path = find_path(self.table.columns, tuple(name[start:]))
            if path is not None:
                return tuple(path)
        there = ", ".join(c.name for c in self.table.columns)
        raise NotFoundError(f"{what} names {'.'.join(name)}, which table {self.table.name} has not; it has {there}")


def _old(column: Column) -> str:
    return f"_lake_old_{column.id}"


@dataclass
class _Assigned:
    """The values that a statement gives to columns and fields of a row."""

    target: Target
    paths: list[tuple[Column, ...]]
    expressions: list[str]

    @classmethod
    def of(cls, target: Target, assignments: Sequence[st.Assignment]) -> _Assigned:
        paths = [target.column(a.column, "SET") for a in assignments]
        for index, path in enumerate(paths):
            for other in paths[:index]:
                if path[: len(other)] == other[: len(path)]:
                    raise SchemaChangeError(f"SET gives {'.'.join(c.name for c in path)} two values; give it one")
        return cls(target, paths, [_or_default(a.expression, p) for a, p in zip(assignments, paths, strict=True)])

    @property
    def kept(self) -> list[Column]:
        """The columns of which something of the old value stays."""
        replaced = {path[0].id for path in self.paths if len(path) == 1}
        return [c for c in self.target.table.columns if c.id not in replaced]

    def values(self, stem: str, condition: str | None = None) -> list[str]:
        """What a query selects to have the values, computed only where the condition holds."""
        return [
            f"{e if condition is None else f'case when {condition} then {e} end'} as _lake_{stem}_{i}"
            for i, e in enumerate(self.expressions)
        ]

    def rows(self, rows: DataFrame, stem: str) -> DataFrame:
        """The new rows, with the places of the old ones."""
        columns: dict[int, SparkColumn] = {c.id: F.col(_old(c)) for c in self.kept}
        for index, path in enumerate(self.paths):
            value = F.col(f"_lake_{stem}_{index}")
            if len(path) == 1:
                columns[path[0].id] = value
                continue
            field = ".".join(quoted(c.name) for c in path[1:])
            columns[path[0].id] = columns[path[0].id].withField(field, value)
        rows = rows.select(*_PLACE, *(columns[c.id].alias(c.name) for c in self.target.table.columns))
        return stored(rows, self.target.table, _PLACE)


def stored(rows: DataFrame, table: Table, besides: Sequence[str] = ()) -> DataFrame:
    """The rows with the types of the table's columns, by Spark's rules of what may be stored into what."""
    kept = [rows.schema[name] for name in besides]
    return rows.to(s.StructType([*kept, *(s.StructField(c.name, query_type(c), True) for c in table.columns)]))


def _or_default(expression: str, path: Sequence[Column]) -> str:
    if expression.strip().lower() != "default":
        return expression
    return default_sql(path[0]) if len(path) == 1 else "null"


class _Merge:
    """One MERGE: which rows of the table and the source meet, and what becomes of each."""

    def __init__(self, scope: Scope, statement: st.Merge) -> None:
        if statement.schema_evolution:
            raise UnsupportedError("MERGE WITH SCHEMA EVOLUTION is not there; add the columns with ALTER TABLE first")
        self.scope = scope
        self.statement = statement
        self.target = Target.of(scope, statement.name, statement.alias, statement.with_clause)
        self.matched = [c for c in statement.clauses if c.kind == "matched"]
        self.inserted = [c for c in statement.clauses if c.kind == "not matched"]
        self.missed = [c for c in statement.clauses if c.kind == "not matched by source"]

        self.names: list[str] = []
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
        self.views.append(self.scope.planner.register(rows))
        return self.views[-1]

    def _run(self, source: DataFrame, view: str) -> int:
        self.names = [name for name in source.columns if name != _SOURCE_ROW]
        self.target.changing.asked = self._asked(source)
        met = self._met(view)
        self.read = None if self.missed else self.target.read()
        self.target.changing.asked = None
        missed = self._missed(view) if self.missed else None
        new_rows = self._new_rows(source, met) if self.inserted else None
        self.scope.transaction.rewrites(self.target.table, self.read)
        count = self.target.write(new_rows) if new_rows is not None else 0
        places = self._places(met, missed)
        if not places:
            return count
        for rows, clauses, stem in ((met, self.matched, "matched"), (missed, self.missed, "missed")):
            versions = self._versions(rows, clauses, stem) if rows is not None else None
            if versions is not None:
                self.target.write_versions(versions)
        return count + take_away(self.scope, self.target.table, self.target.scan, places)

    # -- the source

    def _source(self) -> DataFrame:
        """The source's rows, computed once."""
        alias = "" if self._alias is None else f" as {quoted(self._alias)}"
        sql = f"{self.statement.with_clause or ''} select * from {self.statement.source}{alias}"
        rows = self.scope.query(sql)
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

    def _joined(self, view: str) -> tuple[str, dict[str, str]]:
        """The source as it stands in FROM, and the view given for it, if it keeps its own name."""
        if self._alias is None:
            return self.statement.source, {self.statement.source: view}
        return f"{view} as {quoted(self._alias)}", {}

    def _asked(self, source: DataFrame) -> Predicate | None:
        """What the source's keys say of the rows that they can match; not worth a question for few files."""
        if self.scope.file_count(self.target.table) < 2:
            return None
        label = self.statement.alias or self.target.table.name
        source_label = self._alias or (self._relation.parts[-1] if self._relation else None)
        keys = keys_of(self.statement.condition, self.target.table, label, source_label, self.names)
        return asked_of_target(source, source_label, keys)

    # -- the rows

    def _met(self, view: str) -> DataFrame:
        """Every pair of a row of the table and a row of the source that match, and what becomes of it."""
        joined, given = self._joined(view)
        columns = [*_PLACE, _SOURCE_ROW, f"{_clause_of(self.matched)} as {_CLAUSE}"]
        columns += self._values(self.matched, "matched")
        return self.target.select(columns, f"join {joined} on {self.statement.condition}", given).localCheckpoint()

    def _missed(self, view: str) -> DataFrame:
        """The rows of the table that match none of the source, and what becomes of each."""
        joined, given = self._joined(view)
        columns = [*_PLACE, f"{_clause_of(self.missed)} as {_CLAUSE}", *self._values(self.missed, "missed")]
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

    def _assigned(self, clauses: Sequence[st.MergeClause]) -> list[tuple[int, _Assigned]]:
        found = []
        for index, clause in enumerate(clauses):
            if isinstance(clause.action, st.MergeUpdate):
                assignments = clause.action.assignments
                found.append((index, _Assigned.of(self.target, assignments or self._all_columns())))
        return found

    def _all_columns(self) -> tuple[st.Assignment, ...]:
        """SET *: each column from the source's of the same name."""
        return tuple(st.Assignment((c.name,), self._from_source(c)) for c in self.target.table.columns)

    def _from_source(self, column: Column) -> str:
        name = next((n for n in self.names if n.lower() == column.name.lower()), None)
        if name is None:
            raise SchemaChangeError(
                f"* takes column {column.name} of table {self.target.table.name} from the source, which has"
                f" {', '.join(self.names)}; list the columns to set and to insert"
            )
        label = (self._alias,) if self._alias else self._relation.parts if self._relation else ()
        return st.quote_name((*label, name))

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
            parts.append(self.scope.planner.query(where, self.scope.context, given=places))
        return reduce(DataFrame.unionByName, [stored(part, self.target.table) for part in parts])

    def _inserted_values(self, action: st.MergeInsert) -> list[str]:
        columns = self.target.table.columns
        if action.values is None:
            expressions = {c.id: self._from_source(c) for c in columns}
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
                path[0].id: _or_default(value, path) for path, value in zip(paths, action.values, strict=True)
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
        select = [*_PLACE[:2], *self.target.old_columns(self.target.table.columns)]
        row = self.target.select(select, "").where(found).collect()[0]
        shown = ", ".join(f"{c.name} = {row[_old(c)]!r}" for c in self.target.table.columns[:8])
        return ConstraintError(
            f"{pairs} rows of the source of MERGE match one row of table {self.target.table.name} ({shown});"
            " make the source have one row for each key, or the ON condition stricter"
        )


def _clause_of(clauses: Sequence[st.MergeClause]) -> str:
    """The SQL for which clause acts on a row: the first whose condition holds."""
    cases = [f"when {c.condition or 'true'} then {i}" for i, c in enumerate(clauses)]
    return f"case {' '.join(cases)} end" if cases else "cast(null as int)"
