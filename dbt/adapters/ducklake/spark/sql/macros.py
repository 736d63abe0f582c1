"""Macros of DuckDB's in queries of Spark: what a call stands for, in Spark's SQL.

DuckDB puts the arguments of a macro, as they are written, in the place of its parameters, which have no types. So a
body is translated for the types of the arguments of each call. A name in a body is one of where the macro is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from pyspark.sql.types import ArrayType, DataType, StructType
from sqlglot import exp

from ...lake.errors import UnsupportedError
from ...lake.snapshot import LakeState, Macro
from .literals import parse_literal
from .query_tokens import QueryTokens
from .translation import types as t
from .translation.expressions import Expression, Untranslatable
from .translation.nodes import Node
from .translation.parsing import parse_duckdb
from .translation.queries import Query
from .translation.scalars import function_name
from .translation.scopes import Scope
from .translation.to_spark import numbers
from .translation.to_spark.macros import Argument, body_of, choose, macros_in
from .translation.to_spark.translator import ToSpark
from .translation.to_spark.words import string
from .views import duckdb_translator

_NUMBER = re.compile(r"-?\s*\d+(\.\d+)?")
_PLACEHOLDER = re.compile(r"_lake_argument_(\d+)_")
_NOT_DETERMINISTIC = frozenset(
    [
        *("rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id"),
        *("spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length"),
        *("reflect", "java_method", "try_reflect"),
    ]
)


@dataclass(frozen=True)
class CallText:
    """An argument of a call in Spark's SQL."""

    keyword: str | None
    text: str


@dataclass(frozen=True)
class MacroExpression:
    """A scalar macro for the types of one call's arguments."""

    sql: str
    """The expression, with placeholders for the arguments."""
    arguments: tuple[DataType, ...]
    needs_function: bool
    """Whether the arguments must be evaluated once and apart from the body, as those of a function are."""

    def with_arguments(self, texts: Sequence[str]) -> str:
        """Returns the expression with the arguments of the call in the place of its parameters."""
        return "(" + _PLACEHOLDER.sub(lambda match: f"({texts[int(match[1])]})", self.sql) + ")"

    @property
    def signature(self) -> str:
        """The parameters of a function whose body is the expression."""
        kinds = ("int" if type_ == t.NULL else type_.simpleString() for type_ in self.arguments)
        return f"({', '.join(f'{placeholder(n)} {kind}' for n, kind in enumerate(kinds))})"


def _is_known(type_: DataType) -> bool:
    """Whether expressions are translated for a type."""
    if isinstance(type_, ArrayType):
        return _is_known(type_.elementType)
    if isinstance(type_, StructType):
        return all(_is_known(f.dataType) for f in type_.fields)
    return t.is_atomic_type(type_) or type_ == t.NULL


def _has_parameter_in_query(body: Node, values: Mapping[str, Expression]) -> bool:
    """Whether a query in the body of a macro names a parameter whose argument is no literal."""
    names = {name for name, value in values.items() if not value.is_constant}
    columns = (
        column for query in body.find_all(exp.Query) if query is not body for column in query.find_all(exp.Column)
    )
    return any(column.parts[0].name.lower() in names for column in columns)


def placeholder(number: int) -> str:
    """Returns the name that stands for an argument of a call."""
    return f"_lake_argument_{number}_"


def literal_argument(text: str) -> Expression | None:
    """Returns an argument that is a literal, as DuckDB reads it in a macro; None for any other.

    >>> literal_argument("'it''s'").type, literal_argument("2").constant, literal_argument("2L")
    (StringType(), 2, None)
    """
    if _NUMBER.fullmatch(text):
        return numbers.number(text.replace(" ", ""))
    literal = parse_literal(text)
    if literal is None or (
        isinstance(literal.value, int | float | Decimal | bytes | tuple) and not isinstance(literal.value, bool)
    ):
        return None
    if literal.value is None:
        return Expression("NULL", t.NULL, None)
    if isinstance(literal.value, bool):
        return Expression(str(literal.value).upper(), t.BOOLEAN, literal.value)
    return Expression(string(str(literal.value)), t.STRING, str(literal.value))


@dataclass
class MacroCall:
    """A call of a macro of DuckDB's in a query of Spark."""

    macro: Macro
    name: str
    """The macro's name as the query writes it."""
    arguments: Sequence[CallText]
    state: LakeState
    """What the names in the macro's body resolve in: the lake, its name, and the schema."""
    lake: str
    schema: str
    is_builtin: Callable[[str], bool]
    """Whether a function is one of Spark's own."""
    names_around: Collection[str] = ()
    """The names of the relations that the arguments can be columns of, in lower case."""
    _literals: list[Expression | None] = field(init=False)

    def __post_init__(self) -> None:
        self._literals = [literal_argument(argument.text) for argument in self.arguments]

    @property
    def needs_types(self) -> bool:
        """Whether the types of the arguments are not known from their text."""
        return None in self._literals

    def expression(self, types: Sequence[DataType]) -> MacroExpression:
        """Translates a scalar macro for arguments of these types. Raises if it has no equivalent in Spark."""
        try:
            arguments = self._typed(types)
            if self.macro.kind != "scalar":
                raise UnsupportedError(f"{self.name} is a macro that gives rows; call it in FROM")
            scope = Scope(reserved_names=frozenset(self.names_around))
            found = self._translator().macro(self.macro, arguments, scope)
            impl, values = choose(self.macro, "scalar", arguments)
            body = body_of(impl, f"SELECT {impl.sql}")
            needs_function = _has_parameter_in_query(body, values)
            needs_function = self._check_repeated(found.sql, body, values) or needs_function
        except Untranslatable as error:
            raise self._refusal(error) from error
        return MacroExpression(found.sql, tuple(types), needs_function)

    def query(self, types: Sequence[DataType], texts: Sequence[str]) -> str:
        """Returns the query of a table macro for arguments of these types; `texts` are those that Spark gets."""
        try:
            arguments = self._typed(types)
            if self.macro.kind != "table":
                raise UnsupportedError(f"{self.name} gives no rows in Spark; call it in an expression")
            found: Query = self._translator().table_macro(self.macro, arguments, Scope())
            impl, values = choose(self.macro, "table", arguments)
            if self._check_repeated(found.sql, body_of(impl, impl.sql), values):
                raise Untranslatable("an argument that is not deterministic")
        except Untranslatable as error:
            raise self._refusal(error) from error
        return _PLACEHOLDER.sub(lambda match: f"({texts[int(match[1])]})", found.sql)

    def _translator(self) -> ToSpark:
        return duckdb_translator(parse_duckdb("SELECT 1", self.lake), self.state, self.lake, self.schema)

    def _typed(self, types: Sequence[DataType]) -> list[Argument]:
        found = []
        for number, (argument, literal, type_) in enumerate(zip(self.arguments, self._literals, types, strict=True)):
            if literal is None and not _is_known(type_):
                raise Untranslatable(f"an argument of type {type_.simpleString()}")
            found.append(Argument(argument.keyword, literal or Expression(placeholder(number), type_)))
        return found

    def _refusal(self, error: Untranslatable) -> UnsupportedError:
        return UnsupportedError(
            f"{self.name} is a macro of DuckDB's that Spark can not compute ({error});"
            " create a function in Spark's words beside it"
        )

    def _check_repeated(self, sql: str, body: Node, values: Mapping[str, Expression]) -> bool:
        """Returns whether an argument is to be evaluated once that the translation has several times.

        Raises if DuckDB evaluates an argument that is not deterministic another number of times.
        """
        find = macros_in(self.state, self.lake, self.schema)
        calls_macros = any(find((function_name(n),)) is not None for n in body.find_all(exp.Anonymous))
        once = False
        for name, value in values.items():
            match = _PLACEHOLDER.fullmatch(value.sql)
            if match is None or not self._may_vary(self.arguments[int(match[1])].text):
                continue
            mentions = sum(1 for n in body.find_all(exp.Column) if n.parts[0].name.lower() == name)
            if calls_macros or (mentions != sql.count(value.sql) and mentions != 1):
                raise Untranslatable("an argument that is not deterministic")
            once = once or mentions != sql.count(value.sql)
        return once

    def _may_vary(self, text: str) -> bool:
        """Whether an argument may have another value each time that it is evaluated."""
        tokens = QueryTokens(text)
        for i in range(tokens.count):
            if tokens.is_identifier(i) and tokens[i + 1].text == "(":
                name = tokens.identifier(i).lower()
                if tokens[max(i - 1, 0)].text == "." or name in _NOT_DETERMINISTIC or not self.is_builtin(name):
                    return True
        return False
