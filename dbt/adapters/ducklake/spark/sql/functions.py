"""SQL functions of a lake: macros for DuckDB, temporary functions for Spark.

The reference reads the body of every macro as DuckDB's SQL, whatever dialect the catalog names. So the definition in
Spark's SQL is kept in a tag. If it has no equivalent in DuckDB's SQL, the macro raises an error that says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

import sqlglot
from pyspark.sql.types import DataType, DecimalType, IntegralType
from sqlglot import exp

from ...lake.errors import UnsupportedError
from ...lake.snapshot import MacroImpl, Parameter
from ...lake.types import FLOATS, INTEGER_RANGES, NESTED
from .ddl import CreateFunction, FunctionParameter
from .literals import parse_literal
from .quoting import quoted
from .types import query_type
from .views import duckdb_sql

FUNCTION_TAG = "spark_function"
"""The tag with the signature and the body in Spark's SQL."""

_DUCKDB_TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}


def function_tags(statement: CreateFunction) -> dict[str, str]:
    """Returns the tags of a function's macro: the definition for Spark, and the comment."""
    definition = {FUNCTION_TAG: json.dumps([statement.signature, statement.body], ensure_ascii=False)}
    return definition if statement.comment is None else {**definition, "comment": statement.comment}


def spark_definition(tags: Mapping[str, str], name: Sequence[str]) -> tuple[str, str]:
    """Returns the signature and the body of a function in Spark's SQL, as its author wrote them."""
    tag = tags.get(FUNCTION_TAG)
    if tag is None:
        raise UnsupportedError(
            f"{'.'.join(name)} is a macro of DuckDB's, whose parameters and words Spark does not know;"
            " create a function in Spark's words beside it"
        )
    signature, body = json.loads(tag)
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


def duckdb_expression(statement: CreateFunction) -> str | None:
    """Returns the body in DuckDB's SQL; None if it may mean something else there."""
    if any(p.column.type in NESTED for p in statement.parameters):
        return None  # the reference cannot declare the type of such a parameter
    if any(p.default is not None and _default(p) is None for p in statement.parameters):
        return None
    query = duckdb_sql(f"select ({statement.body}\n)", "", "")
    if query is None:
        return None
    tree = sqlglot.parse_one(query, read="duckdb")
    # Where a parameter and a column have the same name, Spark takes the column and DuckDB the parameter.
    if tree.find(exp.Table) or any(column.table for column in tree.find_all(exp.Column)):
        return None
    return query.removeprefix("SELECT ")


def cast_to_return_type(expression: str, statement: CreateFunction, body_type: DataType) -> str | None:
    """Returns a DuckDB expression cast to the type that the function returns; None if the cast may round differently.

    `body_type` is the type that Spark gives the body.
    """
    returns = body_type if statement.returns is None else query_type(statement.returns)
    if returns != body_type and not (isinstance(returns, IntegralType) and isinstance(body_type, IntegralType)):
        return None
    text = returns.simpleString()
    duckdb_type = text.upper() if isinstance(returns, DecimalType) else _DUCKDB_TYPES.get(text)
    return None if duckdb_type is None else f"CAST({expression} AS {duckdb_type})"


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
