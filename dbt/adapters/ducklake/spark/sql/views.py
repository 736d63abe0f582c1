"""Views in the two SQL dialects: how Spark reads a view of DuckDB, and the reverse.

A view is stored in DuckDB's SQL if its query means the same there beyond doubt, so that DuckDB can query it. The query
in Spark's SQL is then kept in a tag.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from ...lake.errors import UnsupportedError
from ...lake.snapshot import View

SPARK_SQL_TAG = "spark_sql"
"""The tag with the query in Spark's SQL."""
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
    if text is None:
        return None
    comments = {name: dict(tags).get("comment") for name, tags in view.column_tags}
    return [replace(c, comment=comments.get(c.name, c.comment)) for c in (RecordedColumn(*v) for v in json.loads(text))]


def columns_tag(columns: Iterable[RecordedColumn]) -> str:
    return json.dumps([[c.name, c.type, c.comment] for c in columns], ensure_ascii=False)


def spark_sql(view: View, name: str) -> str:
    """Returns the view's query in Spark's SQL; `name` is the view's name in errors."""
    tags = dict(view.tags)
    if SPARK_SQL_TAG in tags:
        return tags[SPARK_SQL_TAG]
    if view.dialect.lower() in ("spark", "spark_sql", "databricks"):
        return view.sql
    try:
        tree = sqlglot.parse_one(view.sql, read=view.dialect.lower())
        tree = tree.transform(_from_duckdb)
        text: str = tree.sql(dialect="spark", unsupported_level=sqlglot.ErrorLevel.RAISE)
        return text
    except (sqlglot.errors.SqlglotError, ValueError) as error:
        raise UnsupportedError(
            f"view {name} is written in {view.dialect}'s SQL, and its query can not be said in Spark's"
            f" ({str(error).splitlines()[0]}); create a view in Spark's words beside it"
        ) from error


def _from_duckdb(node: exp.Expr) -> exp.Expr:
    """Replaces functions that DuckDB stores under internal names."""
    if isinstance(node, exp.Anonymous) and node.name.lower() == "count_star":
        return exp.Count(this=exp.Star())
    return node


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


# Nodes with the same meaning in both dialects, whatever the values.
_PORTABLE_NODES = (
    exp.Select,
    exp.From,
    exp.Where,
    exp.Group,
    exp.Having,
    exp.Order,
    exp.Limit,
    exp.Join,
    exp.Table,
    exp.TableAlias,
    exp.Subquery,
    exp.With,
    exp.CTE,
    exp.Union,
    exp.Column,
    exp.Identifier,
    exp.Star,
    exp.Alias,
    exp.Paren,
    exp.And,
    exp.Or,
    exp.Not,
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Is,
    exp.In,
    exp.Between,
    exp.Null,
    exp.Boolean,
    exp.Case,
    exp.If,
    exp.Coalesce,
    exp.Count,
    exp.Sum,
    exp.Min,
    exp.Max,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Neg,
    exp.Upper,
    exp.Lower,
    exp.Abs,
    exp.Exists,
    exp.Distinct,
    exp.Tuple,
)


def duckdb_sql(query: str, database: str, schema: str) -> str | None:
    """Returns a Spark query in DuckDB's SQL; None if it may mean something else there.

    Relations get the name of their schema, because DuckDB resolves a bare name in the current schema of the reader.

    >>> duckdb_sql("select id from orders", "lake", "main")
    'SELECT id FROM "main".orders AS "orders"'
    >>> duckdb_sql("select date_format(day, 'yyyy') from orders", "lake", "main") is None
    True
    """
    try:
        tree = sqlglot.parse_one(query, read="spark")
    except sqlglot.errors.SqlglotError:
        return None
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for node in tree.walk():
        if not _is_portable(node):
            return None
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            return None
        if table.catalog and table.catalog.lower() != database.lower():
            return None  # DuckDB may have attached the other lake under another name
        if not table.db and table.name.lower() in ctes:
            continue
        table.set("catalog", None)
        if not table.db:
            table.set("db", exp.to_identifier(schema, quoted=True))
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
    for column in tree.find_all(exp.Column):
        if column.args.get("catalog"):
            return None
    try:
        text: str = tree.sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE)
    except (sqlglot.errors.SqlglotError, ValueError):
        return None
    return text


def _is_portable(node: exp.Expr) -> bool:
    if isinstance(node, exp.Literal):
        # The dialects read escapes in strings differently.
        return not node.is_string or "\\" not in str(node.this)
    if isinstance(node, exp.Table):
        return not ({k for k, v in node.args.items() if v} - {"this", "db", "catalog", "alias"})
    if isinstance(node, exp.Ordered):
        # Without NULLS FIRST or LAST, Spark puts NULLs first in ascending order; sqlglot writes that out.
        return True
    if isinstance(node, exp.Join):
        return not node.args.get("using") and not node.args.get("method")
    if isinstance(node, exp.Select):
        unsupported_clauses = {
            "hint",
            "laterals",
            "pivots",
            "sample",
            "windows",
            "qualify",
            "cluster",
            "distribute",
            "sort",
            "into",
        }
        return not any(node.args.get(key) for key in unsupported_clauses)
    return type(node) in _PORTABLE_NODES
