"""SQL functions that a lake keeps: macros to DuckDB, temporary functions to Spark.

The reference reads the body of every macro as its own SQL, whatever dialect it names. So a body that
only Spark can say stands beside it in a tag, and DuckDB is given one that says so when it is called.
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
from ...lake.types import FLOATS, INTEGER_BITS, NESTED
from .ddl import CreateFunction, FunctionParameter
from .definitions import parse_literal
from .tokens import quote
from .types import query_type
from .views import duckdb_sql

FUNCTION_TAG = "spark_function"

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


def tags_of(statement: CreateFunction) -> dict[str, str]:
    """What is kept beside a function's macro: Spark's words, and the comment."""
    words = {FUNCTION_TAG: json.dumps([statement.signature, statement.body], ensure_ascii=False)}
    return words if statement.comment is None else {**words, "comment": statement.comment}


def spark_words(tags: Mapping[str, str], name: Sequence[str]) -> tuple[str, str]:
    """The signature and the body of a function, as its author wrote them."""
    tag = tags.get(FUNCTION_TAG)
    if tag is None:
        raise UnsupportedError(
            f"{'.'.join(name)} is a macro of DuckDB's, whose parameters and words Spark does not know;"
            " create a function in Spark's words beside it"
        )
    signature, body = json.loads(tag)
    return signature, body


def temporary_function(name: str, signature: str, body: str) -> tuple[str, str]:
    """The name by which Spark calls a function of these words, and the statement that makes it."""
    words = f"{signature} return {body}"
    digest = hashlib.sha256(words.encode()).hexdigest()[:16]
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
    short = f"_lake_function_{plain}_{digest}"
    return short, f"create or replace temporary function {short} {words}"


# -- DuckDB's words


def value_query(statement: CreateFunction) -> str:
    """A query with one column, whose type is that of the body before RETURNS has its say."""
    nulls = ", ".join(
        f"cast(null as {query_type(p.column).simpleString()}) as {quote(p.name)}" for p in statement.parameters
    )
    return f"select ({statement.body}\n) as value from (select {nulls or 'null'})"


def macro_impl(statement: CreateFunction, body: str | None) -> MacroImpl:
    """The macro for DuckDB; without a body in its words, it says who can compute the function."""
    if body is not None:
        return MacroImpl("duckdb", body, "scalar", tuple(map(_parameter, statement.parameters)))
    reason = f"{statement.name[-1]} is a function that only Spark can compute".replace("'", "''")
    # Any call is to meet the reason, rather than an error about its arguments.
    anything = tuple(
        Parameter(p.name) if p.default is None else Parameter(p.name, default="", default_type="varchar")
        for p in statement.parameters
    )
    return MacroImpl("duckdb", f"error('{reason}')", "scalar", anything)


def duckdb_body(statement: CreateFunction) -> str | None:
    """The body in DuckDB's words, if it means the same there beyond doubt."""
    if any(p.column.type in NESTED for p in statement.parameters):
        return None  # the reference has no words for what is in such a parameter
    if any(p.default is not None and _default(p) is None for p in statement.parameters):
        return None
    words = duckdb_sql(f"select ({statement.body}\n)", "", "")
    if words is None:
        return None
    tree = sqlglot.parse_one(words, read="duckdb")
    # Of a parameter and a column of one name, Spark takes the column and DuckDB the parameter.
    if tree.find(exp.Table) or any(column.table for column in tree.find_all(exp.Column)):
        return None
    return words.removeprefix("SELECT ")


def with_type(body: str, statement: CreateFunction, natural: DataType) -> str | None:
    """The body in DuckDB's words, as the type that the function returns; None if rounding may differ."""
    returns = natural if statement.returns is None else query_type(statement.returns)
    if returns != natural and not (isinstance(returns, IntegralType) and isinstance(natural, IntegralType)):
        return None
    text = returns.simpleString()
    type_ = text.upper() if isinstance(returns, DecimalType) else _DUCKDB_TYPES.get(text)
    return None if type_ is None else f"CAST({body} AS {type_})"


def _parameter(parameter: FunctionParameter) -> Parameter:
    type_, default = parameter.column.type, _default(parameter)
    return Parameter(parameter.name, type_) if default is None else Parameter(parameter.name, type_, default, type_)


def _default(parameter: FunctionParameter) -> str | None:
    """The text of a default that DuckDB can read; one that does not fit its type would break the lake there."""
    literal = parse_literal(parameter.default or "")
    value, type_ = literal and literal.value, parameter.column.type
    if isinstance(value, str):
        return value if type_ == "varchar" else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    low, high = INTEGER_BITS.get(type_, (0, -1))
    return str(value) if type_ in FLOATS or low <= value <= high else None
