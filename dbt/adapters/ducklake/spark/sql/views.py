"""The two languages of views: what Spark reads of a view that DuckDB wrote, and the reverse.

A view is kept in DuckDB's words wherever its query can be said in them without any doubt about the
meaning, so that DuckDB users can query it; Spark's own words are then kept beside it in a tag.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from ...lake.errors import UnsupportedError
from ...lake.snapshot import View

SPARK_SQL_TAG = "spark_sql"
COLUMNS_TAG = "spark_columns"
"""The columns that a view had when it was created: a format without them would need Spark to tell."""


@dataclass(frozen=True)
class ViewColumn:
    name: str
    type: str
    comment: str | None = None


def view_columns(view: View) -> list[ViewColumn] | None:
    """The columns that were noted with the view; None where another engine created it."""
    text = dict(view.tags).get(COLUMNS_TAG)
    return None if text is None else [ViewColumn(*c) for c in json.loads(text)]


def columns_tag(columns: Iterable[ViewColumn]) -> str:
    return json.dumps([[c.name, c.type, c.comment] for c in columns], ensure_ascii=False)


def spark_sql(view: View, name: str) -> str:
    """The view's query in Spark's words."""
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
    """Functions by whose inner names DuckDB keeps a query."""
    if isinstance(node, exp.Anonymous) and node.name.lower() == "count_star":
        return exp.Count(this=exp.Star())
    return node


def is_same(view: View, sql: str, dialect: str, aliases: tuple[str, ...], tags: Mapping[str, str]) -> bool:
    """Whether a view would become what it is already; comments that it has and the new one lacks aside."""
    if (view.sql, view.dialect, view.column_aliases) != (sql, dialect, aliases):
        return False
    old, new = dict(view.tags), dict(tags)
    uncommented = [ViewColumn(c.name, c.type) for c in view_columns(view) or ()]
    old[COLUMNS_TAG] = columns_tag(uncommented)
    if "comment" not in new:
        old.pop("comment", None)
    return old == new


# Nodes whose meaning is the same in both languages, whatever the values.
_SAME = (
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
    """The query in DuckDB's words, if it means the same there beyond doubt; else None.

    Relations are named with their schema, since DuckDB looks a bare name up where the reader is.
    """
    try:
        tree = sqlglot.parse_one(query, read="spark")
    except sqlglot.errors.SqlglotError:
        return None
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for node in tree.walk():
        if not _means_the_same(node):
            return None
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            return None
        if table.catalog and table.catalog.lower() != database.lower():
            return None  # in DuckDB the other lake may be attached under another name
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


def _means_the_same(node: exp.Expr) -> bool:
    if isinstance(node, exp.Literal):
        # Strings with escapes are read differently.
        return not node.is_string or "\\" not in str(node.this)
    if isinstance(node, exp.Table):
        return not ({k for k, v in node.args.items() if v} - {"this", "db", "catalog", "alias"})
    if isinstance(node, exp.Ordered):
        # Where nothing is said of NULLs, Spark puts them first in ascending order; sqlglot says so.
        return True
    if isinstance(node, exp.Join):
        return not node.args.get("using") and not node.args.get("method")
    if isinstance(node, exp.Select):
        odd = {
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
        return not any(node.args.get(key) for key in odd)
    return type(node) in _SAME
