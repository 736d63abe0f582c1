"""A query's text and the lakes, brought together: every lake relation in it becomes a planned scan."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ...lake.catalog import SnapshotInfo
from ...lake.errors import LakeError, NotFoundError, UnsupportedError
from ...lake.predicates import And, Predicate
from ...lake.snapshot import LakeState, Macro, View
from ...lake.tables import parse_instant
from ...lake.transaction import Transaction
from ..sql.functions import spark_words, temporary_function
from ..sql.names import CallRef, FunctionRef, Ref, RelationRef, TimeTravel, find_names
from ..sql.pushdown import predicates_of
from ..sql.rewriting import rewrite
from ..sql.views import spark_sql
from ..sql.virtual_columns import VIRTUAL_COLUMNS, are_named, tables_asked
from . import information_schema
from . import table_functions as functions
from .context import Found, QueryContext
from .lakes import Lake, never_there
from .local_rows import local_rows
from .parquet import undivided
from .scan import TableScan, dataframe

if TYPE_CHECKING:
    from ..engine.spark_session import Engine

_MAX_DEPTH = 50
_EXISTS = re.compile(r"\bexists\b", re.IGNORECASE)
_view_numbers = itertools.count(1)


@dataclass
class _Made:
    """What Spark was given names for, for the sake of one query."""

    views: list[str] = field(default_factory=list)
    functions: dict[tuple[str, Macro], str] = field(default_factory=dict)
    """The function of Spark's for each macro of a lake."""
    passing: list[str] = field(default_factory=list)
    """Those functions that read what these views are, and are gone with them."""

    def shown(self, column: str) -> str:
        """A column's name as the query's author knows it: `twice(id)`."""
        for (_, macro), short in self.functions.items():
            column = column.replace(short, macro.name)
        return column


@dataclass
class Changing:
    """The relation of a query whose rows a statement changes: of them the query sees the places too."""

    start: int
    """Where its name begins in the text."""
    asked: Predicate | None = None
    """What is known of the rows that matter, beside what the query says."""
    deleted_too: Callable[[TableScan], bool] = lambda scan: False
    """Whether the query may see rows that are deleted already."""
    scan: TableScan | None = None
    """What is read of it; set when the query is planned."""
    read: Predicate | None = None
    """What the rows that matter have in common, if that is known; set likewise."""


class Planner:
    """Plans queries in one Spark session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: list[_Made] = []
        self._functions: set[str] = set()
        """Functions that Spark was given for good: the name of each tells its words."""

    @property
    def spark(self) -> SparkSession:
        return self._engine.spark()

    def query(
        self,
        sql: str,
        context: QueryContext,
        keep_views: bool = False,
        *,
        changing: Changing | None = None,
        given: Mapping[int, str] | None = None,
    ) -> DataFrame:
        """The query as a DataFrame; errors in it are Spark's own.

        `given` names a temporary view for the relations whose names begin at some places of the text.
        """
        return self._plan(sql, context, 0, keep_views, changing, given)

    def check(self, name: str, words: tuple[str, str], context: QueryContext) -> None:
        """Raises if Spark can not make a function of these words in the context's schema."""
        made = _Made()
        try:
            self._function(name, words, context, 0, made)
        finally:
            self._release(made)

    def _plan(
        self,
        sql: str,
        context: QueryContext,
        depth: int,
        keep_views: bool,
        changing: Changing | None = None,
        given: Mapping[int, str] | None = None,
    ) -> DataFrame:
        made = _Made()
        try:
            rows = self.spark.sql(self._text(sql, context, depth, made, changing, given or {}))
            if made.functions:
                names = [made.shown(column) for column in rows.columns]
                rows = rows if names == rows.columns else rows.toDF(*names)
            return rows
        finally:
            # A DataFrame of classic Spark has its plan; one of Connect looks its names up each time.
            if not keep_views and not self._engine.is_connect():
                self._release(made)
            elif not keep_views:
                self._kept.append(made)
                while len(self._kept) > 500:
                    self._release(self._kept.pop(0))

    def _release(self, made: _Made) -> None:
        for function in made.passing:
            self.spark.sql(f"drop temporary function if exists {function}")
        for view in made.views:
            self.spark.catalog.dropTempView(view)

    def _text(
        self,
        sql: str,
        context: QueryContext,
        depth: int,
        made: _Made,
        changing: Changing | None = None,
        given: Mapping[int, str] = MappingProxyType({}),
    ) -> str:
        """The text with what is a lake's under names of Spark's."""
        if depth > _MAX_DEPTH:
            raise LakeError("a view or a function uses itself, by way of others; drop or replace one of them")
        names = find_names(sql, VIRTUAL_COLUMNS)
        ready: dict[Ref, str] = {ref: given[ref.start] for ref in names.relations if ref.start in given}
        found = {ref: f for ref in names.relations if ref not in ready and (f := self._find(ref, context))}
        asked = predicates_of(sql, lambda ref: _columns(found.get(ref)), names) if found else {}
        full: dict[RelationRef, tuple[str, ...]] = {
            ref: (f.lake.name, f.schema, f.relation.name) for ref, f in found.items()
        }
        full |= {ref: _full_name(ref, context) for ref in names.relations if ref in ready}
        columns = {ref: own for ref, f in found.items() if (own := _columns(f)) is not None}
        virtual = tables_asked(names, columns, full)
        exists = _EXISTS.search(sql) is not None
        views: dict[Ref, str] = {}
        for ref, target in found.items():
            context.saw(target)
            changed = changing if changing and changing.start == ref.start else None
            rows = self._rows(target, asked.get(ref), ref in virtual, exists, context, depth, changed)
            views[ref] = self._register(rows, made)
        for ref in names.relations:
            told = None if ref in found or ref in ready else information_schema.find(ref.parts, context)
            if told is not None:
                full[ref], rows = told
                views[ref] = self._register(self.local(rows), made)
        for function in names.functions:
            table = self._table_function(function, context, are_named(names))
            if table is not None:
                views[function] = self._register(undivided(table) if exists else table, made)
        for call in names.calls:
            kept = context.find_macro(call.parts)
            if kept is not None:
                views[call] = self._call(*kept, call, context, depth, made)
        hidden = dict.fromkeys(virtual, VIRTUAL_COLUMNS)
        return rewrite(sql, names, {**views, **ready}, full, hidden) if views or ready else sql

    def _register(self, rows: DataFrame, made: _Made) -> str:
        made.views.append(self.register(rows))
        return made.views[-1]

    def register(self, rows: DataFrame) -> str:
        """A temporary view of rows, which who asked for it drops."""
        view = f"_lake_{next(_view_numbers)}"
        rows.createOrReplaceTempView(view)
        return view

    def _find(self, ref: RelationRef, context: QueryContext) -> Found | None:
        place = context.find(ref.parts)
        if place is None:
            return None
        lake, schema, name = place
        transaction = context.transactions(lake.name)
        if ref.time_travel is not None:
            if transaction.state.find(schema, name) is None and len(ref.parts) < 3 and lake.name == context.lake:
                # Perhaps it was there once; otherwise the name is none of a lake's.
                pass
            at, state = self._past(lake, ref.time_travel)
            relation = state.find(schema, name)
            if relation is None:
                if len(ref.parts) == 3 or transaction.state.find_schema(schema) is not None:
                    raise never_there(lake, schema, name, at)
                return None
            return Found(lake, schema, relation, state, at, None)
        relation = transaction.state.find(schema, name)
        if relation is None:
            return None
        return Found(lake, schema, relation, transaction.state, transaction.base, transaction)

    def _past(self, lake: Lake, travel: TimeTravel) -> tuple[SnapshotInfo, LakeState]:
        if travel.kind == "version":
            text = travel.expression.strip().strip("'\"")
            if not text.isdigit():
                raise NotFoundError(f"a version is the number of a snapshot, not {travel.expression}")
            return lake.past(version=int(text))
        return lake.past(timestamp=self.moment(travel.expression))

    def moment(self, expression: str) -> datetime.datetime:
        """The moment that an SQL expression names, in the session's time zone."""
        row = self.spark.sql(f"select unix_micros(cast({expression} as timestamp)) as moment").collect()[0]
        if row[0] is None:
            raise NotFoundError(f"{expression} is no moment, but NULL")
        epoch = parse_instant("1970-01-01 00:00:00+00")
        return epoch + datetime.timedelta(microseconds=row[0])

    def _rows(
        self,
        found: Found,
        predicate: Predicate | None,
        virtual: bool,
        exists: bool,
        context: QueryContext,
        depth: int,
        changing: Changing | None = None,
    ) -> DataFrame:
        if isinstance(found.relation, View):
            rows = self._view(found, found.relation, context, depth)
            return undivided(rows) if exists else rows
        says = predicate
        if changing is not None:
            asked = [p for p in (predicate, changing.asked) if p is not None]
            changing.read = predicate = And(tuple(asked)) if asked else None
        scan = found.lake.scan(
            found.relation,
            found.at,
            found.state,
            transaction=found.transaction,
            predicate=predicate,
            time_zone=self.time_zone,
        )
        if changing is not None:
            changing.scan = scan
        return dataframe(
            self.spark,
            found.lake.storage,
            scan,
            virtual,
            places=changing is not None,
            exists=exists,
            says=says,
            deleted_too=changing is not None and changing.deleted_too(scan),
        )

    @property
    def time_zone(self) -> str:
        return self.spark.conf.get("spark.sql.session.timeZone") or "UTC"

    def _view(self, found: Found, view: View, context: QueryContext, depth: int) -> DataFrame:
        """The rows of a view: its query, with names as they were meant where it was created."""
        sql = spark_sql(view, f"{found.schema}.{view.name}")
        transactions = context.transactions
        if found.transaction is None:
            past = Transaction(
                found.lake.catalog,
                found.lake.snapshots,
                found.at,
                found.state,
                transactions(found.lake.name).options,
            )
            transactions = lambda name: past if name == found.lake.name else context.transactions(name)  # noqa: E731
        inside = replace(context, transactions=transactions).within(found.lake, found.schema)
        rows = self._plan(sql, inside, depth + 1, False)
        if view.column_aliases:
            if len(view.column_aliases) > len(rows.columns):
                raise UnsupportedError(f"view {found.schema}.{view.name} names more columns than its query has")
            rows = rows.toDF(*view.column_aliases, *rows.columns[len(view.column_aliases) :])
        return rows

    def _call(
        self, lake: Lake, schema: str, macro: Macro, call: CallRef, context: QueryContext, depth: int, made: _Made
    ) -> str:
        """The name by which Spark calls a macro of a lake."""
        key = lake.name, macro
        if key not in made.functions:
            words = spark_words(dict(macro.tags), call.parts)
            made.functions[key] = self._function(macro.name, words, context.within(lake, schema), depth + 1, made)
        return made.functions[key]

    def _function(self, name: str, words: tuple[str, str], context: QueryContext, depth: int, made: _Made) -> str:
        """The name of a function that Spark is given for these words.

        One that reads relations of a lake is made for one query: it reads them as that query does.
        """
        signature, body = (self._text(text, context, depth, made) for text in words)
        short, statement = temporary_function(name, signature, body)
        if short not in self._functions:
            self.spark.sql(statement)
            if any(view in statement for view in (*made.views, *made.passing)):
                made.passing.append(short)
            else:
                self._functions.add(short)
        return short

    def _table_function(self, ref: FunctionRef, context: QueryContext, virtual: bool) -> DataFrame | None:
        rows = functions.evaluate(ref, context, self, virtual)
        if rows is not None:
            return self.local(rows) if isinstance(rows, pa.Table) else rows
        name = ref.name.split(".")
        if len(name) > 1 and context.find_macro(name) is not None:
            raise UnsupportedError(f"{ref.name} gives no rows in Spark; create a view in Spark's words beside it")
        return None

    def local(self, table: pa.Table) -> DataFrame:
        """A small Arrow table as a DataFrame."""
        return local_rows(self.spark, table)


def _full_name(ref: RelationRef, context: QueryContext) -> tuple[str, ...]:
    place = context.find(ref.parts)
    return ref.parts if place is None else (place[0].name, *place[1:])


def _columns(found: Found | None) -> Sequence[str] | None:
    if found is None or isinstance(found.relation, View):
        return None
    return [c.name for c in found.relation.columns]
