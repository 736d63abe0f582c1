"""Plans queries: every lake relation in a query's text becomes a scan behind a temporary view.

The text stays its author's. Only the names of lake relations, table functions and functions are replaced, by names that
Spark has for this query. Any other name goes to Spark untouched.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import NullType

from ...lake.catalog import SnapshotInfo
from ...lake.errors import LakeError, NotFoundError, UnsupportedError
from ...lake.predicates import And, Predicate
from ...lake.snapshot import LakeState, Macro, View
from ...lake.tables import parse_instant
from ...lake.transaction import Transaction
from ..engine.source_text import SentQuery, remember
from ..sql.functions import is_written_in_spark, spark_definition, temporary_function
from ..sql.macros import CallText, MacroCall, MacroExpression
from ..sql.name_reader import find_names
from ..sql.names import CallRef, FunctionRef, Ref, RelationRef, TimeTravel
from ..sql.pushdown import pushdown_predicates
from ..sql.repeatability import unrepeatable_function
from ..sql.rewriting import Edit, rewriting_edits
from ..sql.views import lake_name_in_query, spark_sql
from ..sql.virtual_columns import VIRTUAL_COLUMNS, names_virtual_columns, relations_with_virtual_columns
from . import information_schema, table_functions
from .context import QueryContext, ResolvedRelation
from .lakes import Lake, not_found_at_snapshot
from .local_rows import arrow_dataframe
from .macro_calls import MacroCalls, Replacement
from .missing_names import check_full_names, missing_relation
from .parquet import union_barrier
from .scan import TableScan, scan_dataframe

if TYPE_CHECKING:
    from ..engine.spark_session import Engine

_MAX_DEPTH = 50
"""Views and functions nested deeper than this are taken for a cycle."""
_MAX_CONNECT_QUERIES = 500
"""Over Spark Connect, the temporary names of the last so many queries stay."""
_EXISTS = re.compile(r"\bexists\b", re.IGNORECASE)
_view_numbers = itertools.count(1)


@dataclass
class _TemporaryNames:
    """The temporary views and functions that Spark has for one query."""

    views: list[str] = field(default_factory=list)
    functions: dict[tuple[str, Macro], str] = field(default_factory=dict)
    """Spark's function for each macro, by lake name and macro."""
    query_functions: list[str] = field(default_factory=list)
    """The functions that read these views, and are dropped with them."""
    left_to_spark: list[RelationRef] = field(default_factory=list)
    """The names of relations that no lake has."""

    def original_column_name(self, column: str) -> str:
        """Restores the macro names in a column name that Spark derived, such as `twice(id)`."""
        for (_, macro), function in self.functions.items():
            column = column.replace(function, macro.name)
        return column


@dataclass
class ChangedRelation:
    """The relation in a query whose rows a statement changes; its scan has row positions."""

    name_position: int
    """Where its name begins in the query's text."""
    extra_predicate: Predicate | None = None
    """A predicate that holds for the rows to change, in addition to those in the query."""
    may_include_deleted: Callable[[TableScan], bool] = lambda scan: False
    """Whether the query may see rows that are already deleted."""
    scan: TableScan | None = None
    """The relation's scan. The planner sets it."""
    read_predicate: Predicate | None = None
    """The predicate that was pushed down, if any: all rows to change fulfill it. The planner sets it."""


class Planner:
    """Plans queries in one Spark session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connect_names: list[_TemporaryNames] = []
        """Names of recent queries over Spark Connect, the oldest first."""
        self._functions: set[str] = set()
        """Functions that stay for the whole session; each name is a hash of the function's definition."""
        self._builtins: set[str] | None = None
        """Spark's own functions, once they are needed."""

    @property
    def spark(self) -> SparkSession:
        return self._engine.spark()

    def query(
        self,
        sql: str,
        context: QueryContext,
        keep_views: bool = False,
        *,
        changed_relation: ChangedRelation | None = None,
        views_at: Mapping[int, str] | None = None,
        statement: str | None = None,
    ) -> DataFrame:
        """Plans a query as a DataFrame; errors in the query are Spark's own.

        With `keep_views` the temporary views outlive the query, as a CREATE TEMPORARY VIEW over them needs.
        `views_at` maps positions in the text, where relation names begin, to temporary views that replace these names.
        `statement` is what the author wrote, if the query is composed of parts of it; errors then refer to that.
        """
        return self._plan(sql, context, 0, keep_views, changed_relation, views_at, statement)

    def check_function(self, name: str, definition: tuple[str, str], context: QueryContext) -> None:
        """Raises if Spark cannot create a function with this signature and body in the context's schema."""
        temporary = _TemporaryNames()
        try:
            self._create_function(name, definition, context, 0, temporary)
        finally:
            self._drop(temporary)

    def _plan(
        self,
        sql: str,
        context: QueryContext,
        depth: int,
        keep_views: bool,
        changed_relation: ChangedRelation | None = None,
        views_at: Mapping[int, str] | None = None,
        statement: str | None = None,
    ) -> DataFrame:
        temporary = _TemporaryNames()
        try:
            query = self._rewrite_names(sql, context, depth, temporary, changed_relation, views_at or {}, statement)
            rows = self._run(query.text, context, temporary)
            if temporary.functions:
                names = [temporary.original_column_name(column) for column in rows.columns]
                rows = rows if names == rows.columns else rows.toDF(*names)
            return rows
        finally:
            # A classic DataFrame holds its resolved plan. A Spark Connect one resolves its names each time it runs.
            if not keep_views and not self._engine.is_connect():
                self._drop(temporary)
            elif not keep_views:
                self._connect_names.append(temporary)
                while len(self._connect_names) > _MAX_CONNECT_QUERIES:
                    self._drop(self._connect_names.pop(0))

    def _run(self, sql: str, context: QueryContext, temporary: _TemporaryNames) -> DataFrame:
        """Runs a query whose names are rewritten. Raises for names that Spark does not know either."""
        try:
            rows = self.spark.sql(sql)
            if temporary.left_to_spark and self._engine.is_connect():
                _ = rows.schema  # over Spark Connect, names are only resolved when they are needed
            return rows
        except AnalysisException as error:
            missing = missing_relation(error, self.spark, temporary.left_to_spark, context)
            if missing is None:
                raise
            raise missing from error

    def _analyze(self, sql: str, context: QueryContext, temporary: _TemporaryNames) -> None:
        rows = self._run(sql, context, temporary)
        if self._engine.is_connect():
            _ = rows.schema

    def _drop(self, temporary: _TemporaryNames) -> None:
        for function in temporary.query_functions:
            self.spark.sql(f"drop temporary function if exists {function}")
        for view in temporary.views:
            self.spark.catalog.dropTempView(view)

    def _rewrite_names(
        self,
        sql: str,
        context: QueryContext,
        depth: int,
        temporary: _TemporaryNames,
        changed_relation: ChangedRelation | None = None,
        views_at: Mapping[int, str] = MappingProxyType({}),
        statement: str | None = None,
        statement_of: Callable[[str], str] = str,
    ) -> SentQuery:
        """The query with temporary names in the place of names that belong to a lake.

        `statement_of` returns the statement that Spark can analyze, where the text is only a part of one.
        """
        if depth > _MAX_DEPTH:
            raise LakeError("a view or a function uses itself, by way of others; drop or replace one of them")
        names = find_names(sql, VIRTUAL_COLUMNS)
        given: dict[Ref, str] = {ref: views_at[ref.start] for ref in names.relations if ref.start in views_at}
        resolved = {
            ref: relation
            for ref in names.relations
            if ref not in given and (relation := self._resolve(ref, context)) is not None
        }
        others = [ref for ref in names.relations if ref not in given and ref not in resolved]
        described = {ref: information_schema.read_relation(ref.parts, context) for ref in others}
        macros = {call: context.find_macro(call.parts) for call in names.calls}
        temporary.left_to_spark += [ref for ref, found in described.items() if found is None]
        self._record_besides_relations(sql, context, depth, others, macros)
        check_full_names(self._engine.spark, temporary.left_to_spark, context)
        check_full_names(self._engine.spark, [call for call, found in macros.items() if found is None], context)
        predicates = pushdown_predicates(sql, lambda ref: _columns(resolved.get(ref)), names) if resolved else {}
        full_names: dict[RelationRef, tuple[str, ...]] = {
            ref: (relation.lake.name, relation.schema, relation.relation.name) for ref, relation in resolved.items()
        }
        full_names |= {ref: _full_name(ref, context) for ref in names.relations if ref in given}
        columns = {ref: own for ref, relation in resolved.items() if (own := _columns(relation)) is not None}
        with_virtual_columns = relations_with_virtual_columns(names, columns, full_names)
        has_exists = _EXISTS.search(sql) is not None
        views: dict[Ref, str] = {}
        for ref, relation in resolved.items():
            context.record_read(relation)
            changed = changed_relation if changed_relation and changed_relation.name_position == ref.start else None
            rows = self._relation_dataframe(
                relation, predicates.get(ref), ref in with_virtual_columns, has_exists, context, depth, changed
            )
            views[ref] = self._temporary_view(rows, temporary)
        for ref, found in described.items():
            if found is not None:
                full_names[ref], table = found
                views[ref] = self._temporary_view(self.arrow_dataframe(table), temporary)
        for function in names.functions:
            result = self._table_function(function, context, names_virtual_columns(names), depth, temporary)
            if result is not None:
                views[function] = self._temporary_view(union_barrier(result) if has_exists else result, temporary)
        of_duckdb: dict[CallRef, MacroCall] = {}
        for call, macro in macros.items():
            if macro is not None and is_written_in_spark(macro[2].tags):
                views[call] = self._macro_function(*macro, call, context, depth, temporary)
            elif macro is not None:
                arguments = [CallText(a.keyword, sql[a.start : a.end]) for a in call.arguments]
                around = names.relations_around(call.scope)
                of_duckdb[call] = self._macro_call(macro[2], ".".join(call.parts), arguments, context, around)
        hidden = dict.fromkeys(with_virtual_columns, VIRTUAL_COLUMNS)
        edits = rewriting_edits(sql, names, {**views, **given}, full_names, hidden) if views or given else []
        if of_duckdb:

            def analyze(edits: Sequence[Edit]) -> None:
                query = SentQuery(sql, edits, statement)
                remember(query)
                self._analyze(statement_of(query.text), context, temporary)

            edits = MacroCalls(sql, edits, of_duckdb).expand(
                lambda call, found: self._macro_replacement(call, found, context, depth, temporary), analyze
            )
        query = SentQuery(sql, edits, statement)
        if edits or statement is not None:
            remember(query)
        return query

    def _record_besides_relations(
        self,
        sql: str,
        context: QueryContext,
        depth: int,
        others: Sequence[RelationRef],
        macros: Mapping[CallRef, tuple[Lake, str, Macro] | None],
    ) -> None:
        """Records what a query depends on besides relations of lakes. Of views and functions that is more."""
        for ref in others:
            context.record_outside(".".join(ref.parts))
        for found in macros.values():
            if found is not None:
                lake, schema, macro = found
                context.record_function(f"{lake.name}.{schema}.{macro.name}", macro)
        function = unrepeatable_function(sql) if depth else None
        if function is not None:
            context.record_outside(f"{function}() in a view or function")

    def _temporary_view(self, rows: DataFrame, temporary: _TemporaryNames) -> str:
        temporary.views.append(self.register_view(rows))
        return temporary.views[-1]

    def register_view(self, rows: DataFrame) -> str:
        """Creates a temporary view and returns its name; the caller drops it."""
        view = f"_lake_{next(_view_numbers)}"
        rows.createOrReplaceTempView(view)
        return view

    def drop_temporary_view(self, name: str) -> bool:
        """Drops a temporary view of the user's. Returns whether there was one."""
        return self._engine.started and bool(self.spark.catalog.dropTempView(name))

    def _resolve(self, ref: RelationRef, context: QueryContext) -> ResolvedRelation | None:
        """The lake relation that a name refers to; None if the name is left to Spark."""
        resolved = context.resolve_name(ref.parts)
        if resolved is None:
            return None
        lake, schema, name = resolved
        transaction = context.transaction_on(lake.name)
        if ref.time_travel is not None:
            snapshot, state = self._time_travel(lake, ref.time_travel)
            relation = state.find_relation(schema, name)
            if relation is None:
                if len(ref.parts) == 3 or transaction.state.find_schema(schema) is not None:
                    raise not_found_at_snapshot(lake, schema, name, snapshot, state)
                return None
            return ResolvedRelation(lake, schema, relation, state, snapshot, None)
        relation = transaction.state.find_relation(schema, name)
        if relation is None:
            return None
        return ResolvedRelation(lake, schema, relation, transaction.state, transaction.base, transaction)

    def _time_travel(self, lake: Lake, travel: TimeTravel) -> tuple[SnapshotInfo, LakeState]:
        """The snapshot that an AS OF clause names, with the lake's state there."""
        if travel.kind == "version":
            text = travel.expression.strip().strip("'\"")
            if not text.isdigit():
                raise NotFoundError(f"a version is the number of a snapshot, not {travel.expression}")
            return lake.snapshot_at(version=int(text))
        return lake.snapshot_at(timestamp=self.evaluate_timestamp(travel.expression))

    def evaluate_timestamp(self, expression: str) -> datetime.datetime:
        """The value of an SQL expression as a timestamp, in the session's time zone."""
        row = self.spark.sql(f"select unix_micros(cast({expression} as timestamp)) as moment").collect()[0]
        if row[0] is None:
            raise NotFoundError(f"{expression} is no moment, but NULL")
        epoch = parse_instant("1970-01-01 00:00:00+00")
        return epoch + datetime.timedelta(microseconds=row[0])

    def _relation_dataframe(
        self,
        relation: ResolvedRelation,
        predicate: Predicate | None,
        with_virtual_columns: bool,
        has_exists: bool,
        context: QueryContext,
        depth: int,
        changed_relation: ChangedRelation | None = None,
    ) -> DataFrame:
        """The rows of a table or a view; `predicate` is what the query pushes down to it."""
        if isinstance(relation.relation, View):
            rows = self._view(relation, relation.relation, context, depth)
            return union_barrier(rows) if has_exists else rows
        scan_predicate = predicate
        if changed_relation is not None:
            parts = [p for p in (predicate, changed_relation.extra_predicate) if p is not None]
            changed_relation.read_predicate = scan_predicate = And(tuple(parts)) if parts else None
        scan = relation.lake.plan_scan(
            relation.relation,
            relation.snapshot,
            relation.state,
            transaction=relation.transaction,
            predicate=scan_predicate,
            time_zone=self.time_zone,
        )
        if changed_relation is not None:
            changed_relation.scan = scan
        return scan_dataframe(
            self.spark,
            relation.lake.file_reader,
            scan,
            with_virtual_columns=with_virtual_columns,
            with_row_positions=changed_relation is not None,
            with_kept_text=changed_relation is not None,
            has_exists=has_exists,
            pushed_predicate=predicate,
            include_deleted=changed_relation is not None and changed_relation.may_include_deleted(scan),
        )

    @property
    def time_zone(self) -> str:
        return self.spark.conf.get("spark.sql.session.timeZone") or "UTC"

    def _view(self, relation: ResolvedRelation, view: View, context: QueryContext, depth: int) -> DataFrame:
        """The rows of a view; names in its query resolve as they did where the view was created."""
        sql = spark_sql(view, relation.state, relation.lake.name)
        transaction_on = context.transaction_on
        if relation.transaction is None:  # time travel: the view reads its own lake at that snapshot too
            past = Transaction(
                relation.lake.catalog,
                relation.lake.snapshots,
                relation.snapshot,
                relation.state,
                transaction_on(relation.lake.name).options,
            )
            transaction_on = lambda name: past if name == relation.lake.name else context.transaction_on(name)  # noqa: E731
        view_context = replace(context, transaction_on=transaction_on)
        own_name = lake_name_in_query(view)
        if own_name is not None:  # whatever the lake is attached as here
            view_context = replace(view_context, lakes={**context.lakes, own_name.lower(): relation.lake})
        view_context = view_context.with_current_schema(relation.lake, relation.schema)
        try:
            rows = self._plan(sql, view_context, depth + 1, False)
        except NotFoundError as error:
            raise NotFoundError(f"view {relation.schema}.{view.name} can not be read: {error}") from error
        if view.column_aliases:
            if len(view.column_aliases) > len(rows.columns):
                raise UnsupportedError(f"view {relation.schema}.{view.name} names more columns than its query has")
            rows = rows.toDF(*view.column_aliases, *rows.columns[len(view.column_aliases) :])
        return rows

    def _macro_function(
        self,
        lake: Lake,
        schema: str,
        macro: Macro,
        call: CallRef,
        context: QueryContext,
        depth: int,
        temporary: _TemporaryNames,
    ) -> str:
        """The name of Spark's function for a macro of a lake."""
        key = lake.name, macro
        if key not in temporary.functions:
            definition = spark_definition(dict(macro.tags))
            inside = context.with_current_schema(lake, schema)
            temporary.functions[key] = self._create_function(macro.name, definition, inside, depth + 1, temporary)
        return temporary.functions[key]

    def _create_function(
        self, name: str, definition: tuple[str, str], context: QueryContext, depth: int, temporary: _TemporaryNames
    ) -> str:
        """Creates a temporary function from its signature and body, and returns its name.

        A function that reads lake relations is created for each query, since it reads what that query reads.
        Any other is created once: threads create the same function under the same name.
        """
        signature, body = definition
        signature = self._rewrite_names(
            signature,
            context,
            depth,
            temporary,
            statement_of=lambda text: temporary_function(name, text, "null")[1],
        ).text
        body = self._rewrite_names(
            body, context, depth, temporary, statement_of=lambda text: temporary_function(name, signature, text)[1]
        ).text
        function, statement = temporary_function(name, signature, body)
        if function not in self._functions:
            self._run(statement, context, temporary)
            if any(used in statement for used in (*temporary.views, *temporary.query_functions)):
                temporary.query_functions.append(function)
            else:
                self._functions.add(function)
        return function

    def _macro_call(
        self,
        macro: Macro,
        name: str,
        arguments: Sequence[CallText],
        context: QueryContext,
        names_around: Collection[str] = (),
    ) -> MacroCall:
        """A call of a macro of DuckDB's, whose body has the names that there are where it is called."""
        state = context.transaction_on(context.current_lake).state
        lake = context.lakes[context.current_lake].name
        schema = context.current_schema
        return MacroCall(macro, name, arguments, state, lake, schema, self.is_builtin, names_around)

    def is_builtin(self, function: str) -> bool:
        if self._builtins is None:
            self._builtins = {str(row[0]).lower() for row in self.spark.sql("show system functions").collect()}
        return function in self._builtins

    def _macro_replacement(
        self, call: MacroCall, found: MacroExpression, context: QueryContext, depth: int, temporary: _TemporaryNames
    ) -> Replacement:
        """What takes the place of a call of DuckDB's macro: its expression, or a function that computes it."""
        if found.needs_function:
            definition = (found.signature, found.sql)
            function = self._create_function(call.macro.name, definition, context, depth + 1, temporary)
            return lambda arguments: f"{function}({', '.join(arguments)})"
        query = "select "
        body = self._rewrite_names(query + found.sql, context, depth + 1, temporary).text[len(query) :]
        return replace(found, sql=body).with_arguments

    def _table_function(
        self,
        ref: FunctionRef,
        context: QueryContext,
        with_virtual_columns: bool,
        depth: int,
        temporary: _TemporaryNames,
    ) -> DataFrame | None:
        """The rows of a `ducklake_...` table function or of a macro; None if the function is Spark's."""
        rows = table_functions.evaluate(ref, context, self, with_virtual_columns)
        if rows is not None:
            return self.arrow_dataframe(rows) if isinstance(rows, pa.Table) else rows
        name = ref.name.split(".")
        found = context.find_macro(name) if len(name) > 1 else None
        return None if found is None else self._table_macro(found[2], ref, context, depth, temporary)

    def _table_macro(
        self, macro: Macro, ref: FunctionRef, context: QueryContext, depth: int, temporary: _TemporaryNames
    ) -> DataFrame:
        """The rows of a macro. Its arguments cannot be columns."""
        if is_written_in_spark(macro.tags):
            raise UnsupportedError(f"{ref.name} gives no rows in Spark; create a view in Spark's words beside it")
        arguments = [CallText(keyword, text) for keyword, text in ref.arguments]
        call = self._macro_call(macro, ref.name, arguments, context)
        texts, types = [], []
        for _, text in ref.arguments:
            select = self._rewrite_names(f"select ({text})", context, depth + 1, temporary).text
            texts.append(select.removeprefix("select"))
            types.append(self._run(select, context, temporary).schema[0].dataType if call.needs_types else NullType())
        return self._plan(call.query(types, texts), context, depth + 1, False)

    def arrow_dataframe(self, table: pa.Table) -> DataFrame:
        """A small Arrow table as a DataFrame."""
        return arrow_dataframe(self.spark, table)


def _full_name(ref: RelationRef, context: QueryContext) -> tuple[str, ...]:
    resolved = context.resolve_name(ref.parts)
    return ref.parts if resolved is None else (resolved[0].name, *resolved[1:])


def _columns(relation: ResolvedRelation | None) -> Sequence[str] | None:
    """The column names of a table; None for a view, whose columns are only known once it is planned."""
    if relation is None or isinstance(relation.relation, View):
        return None
    return [c.name for c in relation.relation.columns]
