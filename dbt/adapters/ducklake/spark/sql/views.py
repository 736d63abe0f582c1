"""Views in the two SQL dialects: how Spark reads a view of DuckDB, and the reverse.

A view is stored in DuckDB's SQL, with the query in Spark's SQL in a tag. Where `translation` has no equivalent of the
query, the stored one raises an error in DuckDB that says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import DataType

from ...lake.errors import LakeError, UnsupportedError
from ...lake.snapshot import LakeState, View
from .definitions import column_type
from .tokens import Cursor
from .translation.expressions import Untranslatable
from .translation.parsing import Parsed, parse_duckdb, parse_spark
from .translation.relations import Column, RelationResolver, resolve_in
from .translation.to_duckdb.translator import ToDuckDB
from .translation.to_duckdb.words import quote, string
from .translation.to_spark.macros import DEFAULT_SCHEMA, macros_in
from .translation.to_spark.translator import ToSpark
from .translation.types import duckdb_type, same_type
from .types import query_type

SPARK_SQL_TAG = "spark_sql"
"""The tag with the query in Spark's SQL."""
LAKE_TAG = "spark_lake"
"""The tag with the name by which the query in Spark's SQL calls its own lake."""
COLUMNS_TAG = "spark_columns"
"""The tag with the columns of the view when it was created. The format does not store them, and without the tag they
are known only by analyzing the query in Spark."""


@dataclass(frozen=True)
class RecordedColumn:
    """A column of a view when the view was created."""

    name: str
    type: str
    """The Spark type, as a text."""
    comment: str | None = None


def view_columns(view: View) -> list[RecordedColumn] | None:
    """Returns the columns that were recorded with the view; None if another engine created it."""
    text = dict(view.tags).get(COLUMNS_TAG)
    return None if text is None else _with_comments(view, [RecordedColumn(*c) for c in json.loads(text)])


def _with_comments(view: View, columns: Iterable[RecordedColumn]) -> list[RecordedColumn]:
    """Returns the columns with the comments that lakes of DuckLake 1.1 have for them."""
    comments = {name: dict(tags).get("comment") for name, tags in view.column_tags}
    return [replace(c, comment=comments.get(c.name, c.comment)) for c in columns]


def columns_tag(columns: Iterable[RecordedColumn]) -> str:
    return json.dumps([[c.name, c.type, c.comment] for c in columns], ensure_ascii=False)


def spark_sql(view: View, state: LakeState, lake: str) -> str:
    """Returns the view's query in Spark's SQL; `lake` is the name of its lake. Raises if it has no equivalent."""
    known = _own_spark_sql(view)
    if known is not None:
        return known
    try:
        return _to_spark(view, state, lake).translate().sql
    except Untranslatable as error:
        raise UnsupportedError(
            f"view {state.qualified_name(view)} is written in {view.dialect}'s SQL, and its query can not be said in"
            f" Spark's ({error}); create a view in Spark's words beside it"
        ) from error


def view_definition(view: View, state: LakeState, lake: str) -> str:
    """Returns the view's query for a reader: in Spark's SQL, or as it is stored if it has no equivalent there."""
    try:
        return spark_sql(view, state, lake)
    except UnsupportedError:
        return view.sql


def readable_columns(view: View, state: LakeState, lake: str) -> list[RecordedColumn]:
    """Returns the columns of a view without a query in Spark; only those with names if its query has no equivalent."""
    recorded = view_columns(view)
    if recorded is not None:
        return recorded
    try:
        columns = translated_columns(view, state, lake)
    except Untranslatable:
        return _with_comments(view, (RecordedColumn(name, "unknown") for name in view.column_aliases))
    found = (
        RecordedColumn(c.name or f"column {position}", "unknown" if c.type is None else c.type.simpleString())
        for position, c in enumerate(columns, start=1)
    )
    return _with_comments(view, found)


def lake_name_in_query(view: View) -> str | None:
    """Returns the name by which the query in Spark's SQL calls its own lake, if it names it."""
    return dict(view.tags).get(LAKE_TAG)


def _own_spark_sql(view: View) -> str | None:
    """Returns the query of a view that was created in Spark."""
    found = dict(view.tags).get(SPARK_SQL_TAG)
    if found is None and view.dialect.lower() in ("spark", "spark_sql", "databricks"):
        return view.sql
    return found


def _to_spark(view: View, state: LakeState, lake: str) -> ToSpark:
    if view.dialect.lower() != "duckdb":
        raise Untranslatable(f"the dialect {view.dialect}")
    return duckdb_translator(parse_duckdb(view.sql, lake), state, lake, state.schema_of(view).name)


def duckdb_translator(parsed: Parsed, state: LakeState, lake: str, schema: str) -> ToSpark:
    """Returns a translator of DuckDB's SQL to Spark's, for a query that names relations and macros of one lake.

    `schema` is the current schema. DuckDB looks for a name without a schema there, then in the lake's default schema.
    """
    resolve = resolve_in(state, lake, schema, translated_columns, DEFAULT_SCHEMA)
    return ToSpark(parsed, resolve, macros_in(state, lake, schema))


def translated_columns(view: View, state: LakeState, lake: str) -> tuple[Column, ...]:
    """Returns the columns of a view as other views see them."""
    own = _own_spark_sql(view)
    recorded = view_columns(view)
    if own is None:
        try:
            columns = _to_spark(view, state, lake).translate().columns
        except Untranslatable as error:
            raise Untranslatable(f"the view {view.name}: {error}") from error
    else:
        schema = state.schema_of(view).name
        resolve = resolve_in(state, lake_name_in_query(view) or lake, schema, translated_columns)
        try:
            columns = ToDuckDB(parse_spark(own), resolve).translate().columns
        except Untranslatable:
            if recorded is None:
                raise
            columns = ()
        if recorded is not None and len(columns) != len(recorded):
            columns = tuple(Column(c.name, _type_of(c.type)) for c in recorded)
    names: list[str | None] = [*view.column_aliases, *(c.name for c in columns[len(view.column_aliases) :])]
    if recorded is not None and len(recorded) == len(columns):
        names = [c.name for c in recorded]
    return tuple(replace(c, name=n) for n, c in zip(names, columns, strict=False))


def _type_of(text: str) -> DataType | None:
    """Returns the Spark type of a text; None for one that no column of a lake has."""
    try:
        return query_type(column_type(Cursor(text), ("column",)))
    except LakeError:
        return None


def is_unchanged(view: View, sql: str, dialect: str, aliases: tuple[str, ...], tags: Mapping[str, str]) -> bool:
    """Whether a new definition equals that of the view, not counting comments that only the view has."""
    if (view.sql, view.dialect, view.column_aliases) != (sql, dialect, aliases):
        return False
    old, new = dict(view.tags), dict(tags)
    uncommented = [RecordedColumn(c.name, c.type) for c in view_columns(view) or ()]
    old[COLUMNS_TAG] = columns_tag(uncommented)
    if "comment" not in new:
        old.pop("comment", None)
    return old == new


@dataclass(frozen=True)
class DuckDBView:
    """How a view is stored for DuckDB."""

    sql: str
    spark_only: str | None
    """What of the query only Spark can compute; None if DuckDB can query the view."""


def duckdb_view(
    query: str,
    name: str,
    columns: Sequence[tuple[str, DataType]],
    resolve: RelationResolver,
    settings: Mapping[str, str | None],
    column_names: Sequence[str],
) -> DuckDBView:
    """Returns the query of a view in DuckDB's SQL, or one that raises an error.

    `columns` are those that Spark finds in the query, `column_names` those of the view. `settings` are Spark's.
    """
    try:
        return DuckDBView(duckdb_sql(query, columns, resolve, settings), None)
    except Untranslatable as error:
        return DuckDBView(_spark_only_sql(name, str(error), [t for _, t in columns], column_names), str(error))


def duckdb_sql(
    query: str,
    columns: Sequence[tuple[str, DataType]],
    resolve: RelationResolver,
    settings: Mapping[str, str | None],
) -> str:
    """Returns a Spark query in DuckDB's SQL. Raises `Untranslatable` if it may mean something else there."""
    for setting, value in REQUIRED_SETTINGS.items():
        if (settings.get(setting) or value).lower() != value:
            raise Untranslatable(f"the setting {setting}={settings[setting]}")
    names = [name for name, _ in columns]
    if len({name.lower() for name in names}) < len(names):
        raise Untranslatable("two columns of the same name")
    double_quoted = (settings.get(DOUBLE_QUOTED_IDENTIFIERS) or "").lower() == "true"
    found = ToDuckDB(parse_spark(query, double_quoted), resolve).translate(names)
    if [c.name for c in found.columns] != names:
        raise Untranslatable("columns whose names the engines choose differently")
    for column, (_, type_) in zip(found.columns, columns, strict=True):
        if column.type is not None and not same_type(column.type, type_):
            raise Untranslatable(f"the type of {column.name}, which is {type_.simpleString()}")
    return found.sql


DOUBLE_QUOTED_IDENTIFIERS = "spark.sql.ansi.doubleQuotedIdentifiers"
REQUIRED_SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "timestamp_ltz",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
}
"""The settings of Spark with which queries mean what `translation` takes them to mean."""
VIEW_SETTINGS = (*REQUIRED_SETTINGS, DOUBLE_QUOTED_IDENTIFIERS)

_SPARK_ONLY = re.compile(
    r"SELECT .* FROM \(SELECT CAST\(error\('view .* AS VARCHAR\) AS e\) WHERE e IS NOT NULL", re.DOTALL
)


def is_spark_only(view: View) -> bool:
    """Whether DuckDB gets an error from a view."""
    known = _own_spark_sql(view)
    return known is not None and (known == view.sql or _SPARK_ONLY.fullmatch(view.sql) is not None)


def _spark_only_sql(name: str, reason: str, types: Sequence[DataType], names: Sequence[str]) -> str:
    """Returns a query with the columns of a view, which raises an error whatever is asked of it."""
    message = f"view {name} is written in Spark SQL, and only Spark can compute it ({reason})"
    items = [f"CAST(e AS {duckdb_type(t) or 'VARCHAR'}) AS {quote(n)}" for n, t in zip(names, types, strict=True)]
    error = f"SELECT CAST(error({string(message)}) AS VARCHAR) AS e"
    return f"SELECT {', '.join(items)} FROM ({error}) WHERE e IS NOT NULL"


def renamed_sql(view: View, old_name: str, new_name: str) -> str:
    """Returns the query stored for DuckDB of a view that has got another name."""
    start = f"error({string(f'view {old_name} is written')[:-1]}"
    return view.sql.replace(start, f"error({string(f'view {new_name} is written')[:-1]}", 1)
