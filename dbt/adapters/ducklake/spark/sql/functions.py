"""SQL functions of a lake: macros for DuckDB, temporary functions for Spark.

The reference reads the body of every macro as DuckDB's SQL, whatever dialect the catalog names. So the definition in
Spark's SQL is kept in a tag. If it has no equivalent in DuckDB's SQL, the macro raises an error that says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql.types import DataType
from sqlglot import exp

from ...lake.snapshot import MacroImpl, Parameter
from ...lake.types import FLOATS, INTEGER_RANGES, NESTED
from .ddl import CreateFunction, FunctionParameter
from .literals import parse_literal
from .quoting import quoted
from .translation.expressions import Expression, Untranslatable
from .translation.nodes import Node
from .translation.parsing import only, parse_spark
from .translation.relations import Relation, lake_column
from .translation.scopes import Scope
from .translation.to_duckdb.casts import cast, type_name
from .translation.to_duckdb.translator import ToDuckDB
from .translation.to_duckdb.words import quote
from .translation.types import same_type
from .types import query_type

FUNCTION_TAG = "spark_function"
"""The tag with the signature and the body in Spark's SQL."""


def function_tags(statement: CreateFunction) -> dict[str, str]:
    """Returns the tags of a function's macro: the definition for Spark, and the comment."""
    definition = {FUNCTION_TAG: json.dumps([statement.signature, statement.body], ensure_ascii=False)}
    return definition if statement.comment is None else {**definition, "comment": statement.comment}


def is_written_in_spark(tags: Iterable[tuple[str, str]]) -> bool:
    """Whether Spark created the macro with these tags."""
    return any(key == FUNCTION_TAG for key, _ in tags)


def spark_definition(tags: Mapping[str, str]) -> tuple[str, str]:
    """Returns the signature and the body of a function that Spark created, as its author wrote them."""
    signature, body = json.loads(tags[FUNCTION_TAG])
    return signature, body


def temporary_function(name: str, signature: str, body: str) -> tuple[str, str]:
    """Returns the name of a temporary function with this definition, and the statement that creates it.

    The name is derived from the definition, so all threads create the same function.
    """
    definition = f"{signature} return {body}"
    digest = hashlib.sha256(definition.encode()).hexdigest()[:16]
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
    spark_name = f"_lake_function_{plain}_{digest}"
    return spark_name, f"create or replace temporary function {spark_name} {definition}"


# -- DuckDB's SQL


def body_query(statement: CreateFunction) -> str:
    """Returns a query with one column, of the type that the body has before the cast to the type of RETURNS."""
    nulls = ", ".join(
        f"cast(null as {query_type(p.column).simpleString()}) as {quoted(p.name)}" for p in statement.parameters
    )
    return f"select ({statement.body}\n) as value from (select {nulls or 'null'})"


def duckdb_macro(statement: CreateFunction, expression: str | None) -> MacroImpl:
    """Returns the macro for DuckDB; without an expression, one that raises an error."""
    if expression is not None:
        return MacroImpl("duckdb", expression, "scalar", tuple(map(_parameter, statement.parameters)))
    reason = f"{statement.name[-1]} is a function that only Spark can compute".replace("'", "''")
    # Parameters without types accept any call, so it fails for this reason and not because of its arguments.
    untyped = tuple(
        Parameter(p.name) if p.default is None else Parameter(p.name, default="", default_type="varchar")
        for p in statement.parameters
    )
    return MacroImpl("duckdb", f"error('{reason}')", "scalar", untyped)


def duckdb_expression(statement: CreateFunction, body_type: Callable[[], DataType]) -> str | None:
    """Returns the body in DuckDB's SQL, cast to the type of RETURNS; None if it may mean something else there.

    `body_type` returns the type that Spark gives the body.
    """
    if any(p.column.type in NESTED for p in statement.parameters):
        return None  # the reference cannot declare the type of such a parameter
    if any(p.default is not None and _default(p) is None for p in statement.parameters):
        return None
    try:
        body = _BodyTranslator(statement).translate_body()
        if not same_type(body.type, body_type()):
            return None
        returns = body.type if statement.returns is None else query_type(statement.returns)
        # A bare number would take its type from where the macro is called.
        return f"CAST({cast(body, returns).sql} AS {type_name(returns)})"
    except Untranslatable:
        return None


class _BodyTranslator(ToDuckDB):
    """Translates the body of a function, whose only names are its parameters."""

    def __init__(self, statement: CreateFunction) -> None:
        super().__init__(parse_spark(f"select ({statement.body}\n)"), _refuse_relation)
        columns = [replace(lake_column(p.column), name=p.name) for p in statement.parameters]
        self._parameters = {str(column.name).lower(): column for column in columns}

    def translate_body(self) -> Expression:
        select = self.parsed.tree
        only(select, ("expressions",), "a query")
        if not isinstance(select, exp.Select) or len(select.expressions) != 1:
            raise Untranslatable("a query")
        found = self.expression(select.expressions[0], Scope())
        if self.aggregate_count:
            raise Untranslatable("an aggregate")
        return found

    def column(self, node: exp.Column, scope: Scope) -> Expression:
        names = [part.name for part in node.parts]
        parameter = self._parameters.get(names[0].lower())
        # Where a parameter and a column have the same name, Spark takes the column and DuckDB the parameter.
        if len(names) > 1 or scope.sources or scope.parent is not None:
            raise Untranslatable("a column")
        if parameter is None:
            found = self.name_without_parentheses(names)
            if found is None:
                raise Untranslatable(f"the name {names[0]}")
            return found
        if parameter.type is None:
            raise Untranslatable(f"the type of {parameter.name}")
        return Expression(quote(str(parameter.name)), parameter.type)

    def scalar_subquery(self, node: exp.Subquery, scope: Scope) -> Expression:
        """Translates RETURN SELECT of an expression."""
        only(node, ("this",), "a query")
        select = node.this
        only(select, ("expressions",), "a query")
        if len(select.expressions) != 1:
            raise Untranslatable("a query")
        item = select.expressions[0]
        return self.expression(item.this if isinstance(item, exp.Alias) else item, scope)

    def exists(self, node: exp.Exists, scope: Scope) -> Expression:
        raise Untranslatable("a query")

    def in_subquery(self, value: Expression, node: Node, scope: Scope) -> Expression:
        raise Untranslatable("a query")


def _refuse_relation(parts: Sequence[str]) -> Relation:
    raise Untranslatable(".".join(parts))


def _parameter(parameter: FunctionParameter) -> Parameter:
    type_, default = parameter.column.type, _default(parameter)
    return Parameter(parameter.name, type_) if default is None else Parameter(parameter.name, type_, default, type_)


def _default(parameter: FunctionParameter) -> str | None:
    """Returns the default of a parameter as a text for DuckDB; None if it is no literal that fits the type.

    DuckDB could not open a lake with a default that does not fit.
    """
    literal = parse_literal(parameter.default or "")
    value, type_ = literal and literal.value, parameter.column.type
    if isinstance(value, str):
        return value if type_ == "varchar" else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    low, high = INTEGER_RANGES.get(type_, (0, -1))
    return str(value) if type_ in FLOATS or low <= value <= high else None
