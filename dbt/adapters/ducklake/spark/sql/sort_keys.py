"""Expressions that tables are sorted by, in the SQL of both engines.

The order of rows changes nothing that a table holds. So an expression of DuckDB's needs no typed rule to be obeyed: it
is enough that Spark can compute it. But one that DuckDB cannot compute would stop its inserts, so Spark sets none.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from ...lake.errors import LakeError, SchemaChangeError
from ...lake.snapshot import Macro, Table
from ...lake.sorting import SortKey
from .translation import types as t
from .translation.expressions import Expression, Untranslatable
from .translation.nodes import Node
from .translation.parsing import PlainDuckDB, parse_duckdb, parse_spark
from .translation.relations import Relation, lake_column
from .translation.scalars import function_name
from .translation.scopes import Scope, Source
from .translation.to_duckdb.translator import ToDuckDB
from .translation.to_spark.macros import UNTYPED, Argument, MacroResolver, body_of, choose, named_argument

_MAX_DEPTH = 30
"""Macros that call each other more deeply are taken for a cycle."""


def spark_sort_expression(key: SortKey, table: Table, find_macro: MacroResolver) -> str:
    """Returns the expression of a sort key in Spark's SQL, with what its macros stand for."""
    if key.dialect == "spark":
        return key.expression
    try:
        text = key.expression
        if key.dialect.lower() == "duckdb":
            tree = parse_duckdb(f"SELECT {text}", "").tree
            text = _expand(tree.expressions[0], find_macro).sql(dialect=PlainDuckDB, normalize_functions=False)
        return sqlglot.transpile(text, read=key.dialect, write="spark", unsupported_level=sqlglot.ErrorLevel.RAISE)[0]
    except (sqlglot.errors.SqlglotError, Untranslatable) as error:
        raise LakeError(
            f"the sort key {key.expression!r} of table {table.name} can not be said in Spark's SQL ({error})"
        ) from error


def duckdb_sort_expression(expression: str, table: Table, find_macro: MacroResolver) -> str:
    """Returns an expression of Spark's in DuckDB's SQL. Raises if DuckDB cannot compute it."""
    try:
        tree = sqlglot.parse_one(expression, read="spark")
        if not _calls_macro(tree, find_macro):
            select = parse_spark(f"SELECT {expression}")
            source = Source("t", ("t",), tuple(map(lake_column, table.columns)))
            ToDuckDB(select, _refuse_relation).expression(select.tree.expressions[0], Scope(sources=[source]))
        return tree.sql(dialect="duckdb", normalize_functions=False)
    except (sqlglot.errors.SqlglotError, Untranslatable) as error:
        raise SchemaChangeError(
            f"table {table.name} can not be sorted by {expression}, which may mean something else in DuckDB ({error});"
            " a key that DuckDB can not compute would stop its inserts"
        ) from error


def _expand(node: Node, find_macro: MacroResolver, depth: int = 0) -> Node:
    """Returns an expression of DuckDB's with the arguments of each macro in the place of its parameters."""
    if depth > _MAX_DEPTH:
        raise Untranslatable("a macro that calls itself, by way of others")

    def expanded(inner: Node) -> Node:
        macro = _macro_of(inner, find_macro)
        if macro is None:
            return inner
        call = inner.expression if isinstance(inner, exp.Dot) else inner
        return _expand(_body(macro, call), find_macro, depth + 1)

    return node.transform(expanded)


def _body(macro: Macro, call: Node) -> Node:
    """Returns the body of the macro that a call means, with the call's arguments in it."""
    named = [named_argument(argument) for argument in call.expressions]
    given = {f"_{number}": value for number, (_, value) in enumerate(named)}
    arguments = [Argument(name, Expression(key, t.NULL)) for key, (name, _) in zip(given, named, strict=True)]
    impl, values = choose(macro, "scalar", arguments)
    if any((parameter.type or UNTYPED) != UNTYPED for parameter in impl.parameters):
        raise Untranslatable(f"{macro.name}(), whose parameters have types")
    nodes = {
        name: given[value.sql] if value.sql in given else sqlglot.parse_one(value.sql, read="spark")
        for name, value in values.items()
    }

    def with_argument(node: Node) -> Node:
        found = nodes.get(node.name.lower()) if isinstance(node, exp.Column) and not node.table else None
        return node if found is None else exp.Paren(this=found.copy())

    body = body_of(impl, f"SELECT {impl.sql}").expressions[0]
    return exp.Paren(this=body.transform(with_argument))


def _macro_of(node: Node, find_macro: MacroResolver) -> Macro | None:
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
        qualifier = [identifier.name for identifier in node.this.find_all(exp.Identifier, bfs=False)]
        return find_macro((*qualifier, function_name(node.expression)))
    return find_macro((function_name(node),)) if isinstance(node, exp.Anonymous) else None


def _calls_macro(tree: Node, find_macro: MacroResolver) -> bool:
    """Whether an expression of Spark's calls a macro, which it does with the name of a schema."""
    return any(_macro_of(node, find_macro) is not None for node in tree.find_all(exp.Dot))


def _refuse_relation(parts: object) -> Relation:
    raise Untranslatable("a query")
