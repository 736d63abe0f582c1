"""MERGE: matches the rows of a table with those of a source, and applies the first clause that holds to each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.errors import ConstraintError, SchemaChangeError
from ...lake.predicates import Predicate
from ...lake.types import Column, find_path
from ..read.scan import FILE, POSITION
from ..sql import statements as st
from ..sql.defaults import default_sql
from ..sql.names import name_parts
from ..sql.quoting import quoted, quoted_name, string_literal
from ..sql.tokens import lowered
from .assignments import Assignments, cast_to_table, value_sql
from .broadcast import fits_broadcast
from .command_context import CommandContext
from .key_pruning import equality_keys, key_predicate
from .merge_source import SOURCE_ROW, MergeSource
from .row_deletion import delete_rows
from .row_positions import RowPositions
from .schema_merge import fields_assigned_by_name, merge_schema
from .target import ROW_POSITION, TargetTable, old_value_column

_CLAUSE = "_lake_clause"
"""The column with the index of the clause that applies to a row; NULL if none does."""


def merge(context: CommandContext, statement: st.Merge) -> int:
    target = TargetTable.of(context, statement)
    return _Merge(context, statement, target, MergeSource(context, statement)).run()


class _Merge:
    def __init__(self, context: CommandContext, statement: st.Merge, target: TargetTable, source: MergeSource) -> None:
        self.context = context
        self.statement = statement
        self.target = target
        self.source = source
        self.matched_clauses = [c for c in statement.clauses if c.kind == "matched"]
        self.not_matched_clauses = [c for c in statement.clauses if c.kind == "not matched"]
        self.not_matched_by_source_clauses = [c for c in statement.clauses if c.kind == "not matched by source"]
        self.views: list[str] = []

    def run(self) -> int:
        rows = self.source.rows
        try:
            return self._run(self._register_view(F.broadcast(rows) if fits_broadcast(rows) else rows))
        finally:
            for view in self.views:
                rows.sparkSession.catalog.dropTempView(view)

    def _register_view(self, rows: DataFrame) -> str:
        self.views.append(self.context.planner.register_view(rows))
        return self.views[-1]

    def _run(self, source_view: str) -> int:
        if self.statement.schema_evolution:
            table = merge_schema(self.context, self.target.table, self._fields_to_merge())
            self.target = replace(self.target, table=table)
        self.target.changed_relation.extra_predicate = self._key_predicate()
        pairs = self._matched_pairs(source_view)
        read_predicate = None if self.not_matched_by_source_clauses else self.target.read_predicate()
        self.target.changed_relation.extra_predicate = None
        unmatched = self._unmatched_target_rows(source_view) if self.not_matched_by_source_clauses else None
        inserts = self._rows_to_insert(pairs) if self.not_matched_clauses else None
        self.context.transaction.record_read(self.target.table, read_predicate)
        inserted = self.target.write(inserts) if inserts is not None else 0
        positions = self._changed_positions(pairs, unmatched)
        if not positions:
            return inserted
        self._write_new_versions(pairs, self.matched_clauses, "matched")
        if unmatched is not None:
            self._write_new_versions(unmatched, self.not_matched_by_source_clauses, "unmatched")
        return inserted + delete_rows(self.context, self.target.table, self.target.scan, positions)

    def _fields_to_merge(self) -> list[s.StructField]:
        """The source's fields for the schema merge: all with `*`, else those assigned to columns of the same name."""
        pairs: list[tuple[st.Name, str]] = []
        for action in (clause.action for clause in self.statement.clauses):
            if isinstance(action, st.MergeUpdate):
                if action.assignments is None:
                    return self.source.fields
                pairs += [(a.column, a.expression) for a in action.assignments]
            elif isinstance(action, st.MergeInsert):
                if action.values is None:
                    return self.source.fields
                pairs += zip(action.columns or (), action.values, strict=False)
        own_name = (self.statement.alias,) if self.statement.alias else self.statement.name
        assigned = [
            (_without_qualifier(own_name, column), _without_qualifier(self.source.qualifier, name_parts(value) or ()))
            for column, value in pairs
        ]
        # A nested field can only be added to a struct that exists.
        possible = [p for p in assigned if len(p[0]) == 1 or find_path(self.target.table.columns, p[0][:-1])]
        return fields_assigned_by_name(self.source.fields, possible)

    def _key_predicate(self) -> Predicate | None:
        """A predicate on the table's rows that can match the source. Not worth a Spark job if there are few files."""
        if not self.context.is_in_parts(self.target.table):
            return None
        qualifier = self.statement.alias or self.target.table.name
        source_qualifier = self.source.qualifier[-1] if self.source.qualifier else None
        names = [f.name for f in self.source.fields]
        keys = equality_keys(self.statement.condition, self.target.table, qualifier, source_qualifier, names)
        return key_predicate(self.source.rows, source_qualifier, keys)

    # -- which rows a clause applies to

    def _matched_pairs(self, source_view: str) -> DataFrame:
        """The pairs of a target row and a source row that match, with the clause that applies and its values."""
        source, views = self.source.from_item(source_view)
        columns = [*ROW_POSITION, SOURCE_ROW, f"{_clause_index_sql(self.matched_clauses)} as {_CLAUSE}"]
        columns += self._new_version_columns(self.matched_clauses, "matched")
        return self.target.select(columns, f"join {source} on {self.statement.condition}", views).localCheckpoint()

    def _unmatched_target_rows(self, source_view: str) -> DataFrame:
        """The target rows that match no source row and that a clause applies to."""
        source, views = self.source.from_item(source_view)
        clauses = self.not_matched_by_source_clauses
        columns = [*ROW_POSITION, f"{_clause_index_sql(clauses)} as {_CLAUSE}"]
        columns += self._new_version_columns(clauses, "unmatched")
        where = f"where not exists (select 1 from {source} where {self.statement.condition})"
        rows = self.target.select(columns, where, views)
        return rows.where(F.col(_CLAUSE).isNotNull()).localCheckpoint()

    def _changed_positions(self, pairs: DataFrame, unmatched: DataFrame | None) -> RowPositions | None:
        """The positions of the target rows that are deleted or updated.

        Raises if several source rows match one of them, unless each of these pairs deletes it.
        """
        parts = [pairs.select(FILE, POSITION, _CLAUSE)] if self.matched_clauses else []
        parts += [unmatched.select(FILE, POSITION, _CLAUSE)] if unmatched is not None else []
        if not parts:
            return None
        positions = RowPositions.of(reduce(DataFrame.union, parts), self.target.scan, action_column=_CLAUSE)
        duplicate = positions.find_duplicate() if self.matched_clauses else None
        if duplicate is None:
            return positions
        if not self._always_deletes_matches:
            raise self._ambiguous_match(*duplicate)
        return positions.distinct()

    @property
    def _always_deletes_matches(self) -> bool:
        """Whether each match deletes the target row, however many source rows match it."""
        first = self.matched_clauses[0] if self.matched_clauses else None
        return first is not None and first.condition is None and isinstance(first.action, st.MergeDelete)

    def _ambiguous_match(self, file: str | None, position: int, pairs: int) -> ConstraintError:
        is_row = F.col(FILE).eqNullSafe(F.lit(file)) & (F.col(POSITION) == position)
        columns = self.target.table.columns
        rows = self.target.select([FILE, POSITION, *self.target.old_value_columns(columns)], "")
        row = rows.where(is_row).collect()[0]
        values = ", ".join(f"{c.name} = {row[old_value_column(c)]!r}" for c in columns[:8])
        return ConstraintError(
            f"{pairs} rows of the source of MERGE match one row of table {self.target.table.name} ({values});"
            " make the source have one row for each key, or the ON condition stricter"
        )

    # -- new versions of rows

    def _update_clauses(self, clauses: Sequence[st.MergeClause]) -> list[tuple[int, Assignments]]:
        """The clauses that update, by index, with what they assign."""
        result = []
        for index, clause in enumerate(clauses):
            if isinstance(clause.action, st.MergeUpdate):
                assignments = clause.action.assignments or self._star_assignments()
                result.append((index, Assignments.of(self.target, assignments)))
        return result

    def _new_version_columns(self, clauses: Sequence[st.MergeClause], prefix: str) -> list[str]:
        """The old values that stay and the values of each clause, as SELECT expressions."""
        kept: dict[int, Column] = {}
        columns: list[str] = []
        for index, assignments in self._update_clauses(clauses):
            kept |= {c.id: c for c in assignments.kept_columns}
            columns += assignments.value_columns(f"{prefix}_{index}", f"{_CLAUSE} = {index}")
        return [*self.target.old_value_columns(kept.values()), *columns]

    def _write_new_versions(self, rows: DataFrame, clauses: Sequence[st.MergeClause], prefix: str) -> None:
        parts = [
            assignments.new_rows(rows.where(F.col(_CLAUSE) == index), f"{prefix}_{index}")
            for index, assignments in self._update_clauses(clauses)
        ]
        if parts:
            self.target.write_new_versions(reduce(DataFrame.unionByName, parts))

    def _star_assignments(self) -> tuple[st.Assignment, ...]:
        """The assignments of `SET *`."""
        return tuple(
            st.Assignment((column.name,), self._with_old_fields(column, field.dataType, value))
            for column, field, value in self._star_columns()
        )

    def _with_old_fields(self, column: Column, source_type: s.DataType, value: str) -> str:
        """The SQL of a source value. In a schema merge, struct fields that the source lacks keep their old values."""
        old = f"{self.target.qualifier}.{quoted(column.name)}"
        return _fill_fields(column, source_type, old, value) if self.statement.schema_evolution else value

    def _star_columns(self) -> Iterator[tuple[Column, s.StructField, str]]:
        """The columns that `*` assigns: each column of the table, the source's field of that name, and its SQL.

        Only in a schema merge may the source lack columns of the table.
        """
        fields = {f.name.lower(): f for f in self.source.fields}
        for column in self.target.table.columns:
            field = fields.get(column.name.lower())
            if field is not None:
                yield column, field, quoted_name((*self.source.qualifier, field.name))
            elif not self.statement.schema_evolution:
                raise SchemaChangeError(
                    f"* takes column {column.name} of table {self.target.table.name} from the source, which has"
                    f" {', '.join(f.name for f in self.source.fields)}; list the columns to set and to insert, or write"
                    " MERGE WITH SCHEMA EVOLUTION, which keeps what the source has no column for"
                )

    # -- inserted rows

    def _rows_to_insert(self, pairs: DataFrame) -> DataFrame:
        """The rows that NOT MATCHED clauses make of the source rows without a match."""
        unmatched = self.source.rows.join(pairs.select(SOURCE_ROW).distinct(), SOURCE_ROW, "left_anti")
        source, views = self.source.from_item(self._register_view(unmatched))
        clause_index = _clause_index_sql(self.not_matched_clauses)
        parts = []
        for index, clause in enumerate(self.not_matched_clauses):
            assert isinstance(clause.action, st.MergeInsert)
            columns = ", ".join(self._insert_columns(clause.action))
            head = f"{self.statement.with_clause or ''} select {columns} from "
            views_at = {len(head): view for view in views.values()}
            query = f"{head}{source} where {clause_index} = {index}"
            parts.append(
                self.context.planner.query(
                    query, self.context.query_context, views_at=views_at, statement=self.statement.text
                )
            )
        return reduce(DataFrame.unionByName, [cast_to_table(part, self.target.table.columns) for part in parts])

    def _insert_columns(self, action: st.MergeInsert) -> list[str]:
        """The columns of the table as SELECT expressions over the source."""
        columns = self.target.table.columns
        if action.values is None:
            expressions = {column.id: value for column, _, value in self._star_columns()}
        else:
            if action.columns is None:
                paths: list[tuple[Column, ...]] = [(c,) for c in columns]
            else:
                paths = [self.target.column_path(name, "INSERT") for name in action.columns]
            if len(paths) != len(action.values):
                raise SchemaChangeError(
                    f"INSERT gives {len(action.values)} values for {len(paths)} columns of table"
                    f" {self.target.table.name}; list the columns"
                )
            if any(len(path) > 1 for path in paths):
                raise SchemaChangeError("INSERT takes columns, not fields of them; give the whole column a value")
            expressions = {
                path[0].id: value_sql(value, path, self.target.table)
                for path, value in zip(paths, action.values, strict=True)
            }
            if len(expressions) < len(paths):
                raise SchemaChangeError("INSERT names a column twice; give each one value")
        return [f"({expressions.get(c.id) or default_sql(c)}) as {quoted(c.name)}" for c in columns]


def _fill_fields(column: Column, source_type: s.DataType, old: str, new: str) -> str:
    """The SQL of a new value, where struct fields that the source's type lacks come from the old value."""
    if column.type != "struct" or not isinstance(source_type, s.StructType):
        return new
    fields = {f.name.lower(): f for f in source_type.fields}
    parts, is_filled = [], False
    for child in column.children:
        field, old_field = fields.get(child.name.lower()), f"{old}.{quoted(child.name)}"
        value = old_field
        if field is not None:
            new_field = f"{new}.{quoted(field.name)}"
            value = _fill_fields(child, field.dataType, old_field, new_field)
        is_filled |= field is None or value != new_field
        parts += [string_literal(child.name), value]
    return f"case when {new} is not null then named_struct({', '.join(parts)}) end" if is_filled else new


def _without_qualifier(qualifier: st.Name, name: st.Name) -> st.Name:
    """The path of a column whose name may begin with its relation's name."""
    for length in range(min(len(qualifier), len(name) - 1), 0, -1):
        if lowered(name[:length]) == lowered(qualifier[-length:]):
            return name[length:]
    return name


def _clause_index_sql(clauses: Sequence[st.MergeClause]) -> str:
    """The SQL for the index of the first clause whose condition holds, or NULL."""
    cases = [f"when {c.condition or 'true'} then {i}" for i, c in enumerate(clauses)]
    return f"case {' '.join(cases)} end" if cases else "cast(null as int)"
