"""Translates queries from DuckDB's SQL to Spark's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pyspark.sql.types import ArrayType, DataType, DecimalType, StructType
from sqlglot import exp

from .....lake.snapshot import Macro
from .. import types as t
from ..expressions import NOT_CONSTANT, Expression, Untranslatable
from ..nodes import Node
from ..parsing import SOURCE_TEXT, Parsed, only
from ..queries import Query, QueryTranslator
from ..relations import Relation, RelationResolver
from ..scalars import AggregateCall, function_name
from ..scopes import Scope
from ..signatures import Signature, call_by_name
from . import aggregates, arithmetic, casts, intervals, macros, numbers, texts, times
from .words import cast_to, quote, string

_TABLE: Mapping[str, list[Signature]] = {**texts.TABLE, **times.TABLE}
_FUNCTIONS: Mapping[str, Callable[..., Expression]] = {**texts.FUNCTIONS, **times.FUNCTIONS, **numbers.FUNCTIONS}
_TYPES: Mapping[str, DataType] = {
    "BOOLEAN": t.BOOLEAN,
    "TINYINT": t.BYTE,
    "SMALLINT": t.SHORT,
    "INT": t.INT,
    "BIGINT": t.LONG,
    "INT128": DecimalType(38, 0),
    "FLOAT": t.FLOAT,
    "DOUBLE": t.DOUBLE,
    "TEXT": t.STRING,
    "VARCHAR": t.STRING,
    "DATE": t.DATE,
    "TIMESTAMP": t.TIMESTAMP_NTZ,
    "TIMESTAMPNTZ": t.TIMESTAMP_NTZ,
    "TIMESTAMPTZ": t.TIMESTAMP,
}
_NAMES_WITHOUT_PARENTHESES = ("current_date", "current_timestamp")
_SYSTEM_SCHEMA = "main"
"""The schema of DuckDB's own functions, which it writes before some."""
_Translated = TypeVar("_Translated", Expression, Query)
_MAX_DEPTH = 30
"""Macros that call each other more deeply are taken for a cycle."""


class ToSpark(QueryTranslator):
    """Translates the queries of views as DuckDB stores them."""

    first_value_column = 0

    def __init__(
        self, parsed: Parsed, resolve: RelationResolver, find_macro: macros.MacroResolver = lambda parts: None
    ) -> None:
        super().__init__(parsed, resolve)
        self._find_macro = find_macro
        """Finds the macros of the lake, which hide functions of DuckDB."""
        self._macro_depth = 0
        self._handlers.update(
            {
                exp.JSONExtractScalar: self._json_text,
                exp.Array: lambda node, scope: self.call(
                    "list_value", [self.expression(n, scope) for n in node.expressions]
                ),
            }
        )

    # -- queries

    def source_text(self, relation: Relation, version: Any, alias: str) -> str:
        if version is not None:
            raise Untranslatable("AT (VERSION)")
        return ".".join(map(quote, (relation.lake, relation.schema, relation.name))) + f" AS {alias}"

    def star_without(self, star: str, columns: Sequence[str]) -> str:
        return f"{star} EXCEPT ({', '.join(map(quote, columns))})" if columns else star

    def cast_column(self, text: str, type_: DataType, is_opaque: bool) -> Expression:
        return Expression(text, type_, is_opaque=is_opaque)  # Spark reads the column in this type

    def semi_join_words(self, kind: str) -> str:
        return f"LEFT {kind} JOIN"

    def in_values(self, operand: str, query: str, filter_: str, scope: Scope) -> str:
        alias = quote(scope.unique_alias("in_values"))
        has_null = f"EXISTS (SELECT 1 FROM ({query}) AS {alias}(v) WHERE {alias}.v IS NULL)"
        is_unknown = f"{has_null} OR ({operand} IS NULL AND EXISTS ({query}))"
        return f"CASE WHEN {filter_} THEN TRUE WHEN {is_unknown} THEN NULL ELSE FALSE END"

    def lateral_view(self, function: str, value: Expression) -> tuple[str, DataType]:
        raise Untranslatable("LATERAL VIEW")

    def output_name(self, node: Node, expression: Expression) -> str | None:
        if isinstance(node, exp.Column):
            return str(node.name)
        if any(isinstance(inner, exp.Query) for inner in node.walk()):
            raise Untranslatable("a subquery as a column without a name")
        if isinstance(node, exp.Dot):
            raise Untranslatable("a function with the name of its schema as a column without a name")
        return str(node.meta[SOURCE_TEXT])

    def constant_group(self) -> str:
        return "CAST(0 AS INT)"

    # -- expressions

    def expression(self, node: Node, scope: Scope) -> Expression:
        found = super().expression(node, scope)
        if isinstance(found, intervals.Interval):
            raise Untranslatable("INTERVAL outside of an addition")
        return found

    def interval_or_expression(self, node: Node, scope: Scope) -> Expression:
        while isinstance(node, exp.Paren):
            node = node.this
        return super().expression(node, scope)

    def quote(self, name: str) -> str:
        return quote(name)

    def string(self, value: str) -> Expression:
        return Expression(string(value), t.STRING, value)

    def number(self, text: str) -> Expression:
        return numbers.number(text)

    def typed(self, expression: Expression) -> str:
        return f"cast({expression.sql} as {expression.type.simpleString()})"

    def coerce(self, expression: Expression, type_: DataType) -> Expression:
        return arithmetic.coerce(expression, type_)

    def common(self, values: Sequence[Expression], what: str) -> DataType:
        _refuse_opaque(values)
        return arithmetic.common(values, what)

    def common_type(self, types: Sequence[DataType], what: str) -> DataType:
        return arithmetic.common([Expression("", type_) for type_ in types], what)

    def cast_node(self, node: exp.Cast, scope: Scope) -> Expression:
        only(node, ("this", "to", "safe"))
        if getattr(node.args["to"].this, "name", "") == "INTERVAL" and isinstance(node.this, exp.Literal):
            return intervals.parse_interval(self.parsed.string(node.this))
        value, target = self.expression(node.this, scope), _type_of(node.args["to"])
        _refuse_opaque([value])
        found = casts.try_cast(value, target) if isinstance(node, exp.TryCast) else casts.cast(value, target)
        if not found.is_constant or target == t.BOOLEAN:
            return found
        # Of this type for certain, while a bare integer takes that of the other operand.
        return Expression(cast_to(found.sql, target), target, NOT_CONSTANT if t.is_numeric(target) else found.constant)

    def compare(self, operator: str, left: Expression, right: Expression) -> Expression:
        _refuse_opaque([left, right])
        return arithmetic.compare(operator, left, right)

    def _comparison(self, node: exp.Binary, scope: Scope) -> Expression:
        # IN (SELECT ...) is stored as = ANY(SELECT ...).
        if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
            query = node.expression.this
            query = query.this if isinstance(query, exp.Subquery) else query
            return self.in_subquery(self.expression(node.this, scope), query, scope)
        return super()._comparison(node, scope)

    def binary(self, operator: type[Node], left: Expression, right: Expression) -> Expression:
        _refuse_opaque([left, right])
        return arithmetic.binary(operator, left, right)

    def negative(self, operand: Expression) -> Expression:
        _refuse_opaque([operand])
        return arithmetic.negative(operand)

    def bitwise_not(self, operand: Expression) -> Expression:
        _refuse_opaque([operand])
        return arithmetic.bitwise_not(operand)

    def like(self, value: Expression, pattern: Expression, escape: str | None, ignores_case: bool) -> Expression:
        if ignores_case:
            if not isinstance(pattern.constant, str) or not pattern.constant.isascii() or escape:
                raise Untranslatable("ILIKE with a pattern that is no ASCII literal")
            value, pattern = self.call("lower", [value]), self.string(pattern.constant.lower())
        _refuse_opaque([value])
        return arithmetic.like(value, pattern, escape)

    def extract(self, field: str, source: Expression) -> Expression:
        _refuse_opaque([source])
        return times.extract(field, source)

    def _dot(self, node: exp.Dot, scope: Scope) -> Expression:
        if not isinstance(node.expression, exp.Anonymous):
            return super()._dot(node, scope)
        parts = [identifier.name for identifier in node.this.find_all(exp.Identifier, bfs=False)]
        macro = self._find_macro((*parts, function_name(node.expression)))
        if macro is not None:
            return self.macro(macro, self._arguments(node.expression, scope), scope)
        if parts == [_SYSTEM_SCHEMA]:
            return super()._function(node.expression, scope)
        raise Untranslatable("a function of a schema")

    def _function(self, node: exp.Anonymous, scope: Scope) -> Expression:
        macro = self._find_macro((function_name(node),))
        if macro is not None:
            return self.macro(macro, self._arguments(node, scope), scope)
        return super()._function(node, scope)

    # -- macros

    def _arguments(self, node: Node, scope: Scope) -> list[macros.Argument]:
        named = map(macros.named_argument, node.expressions)
        return [macros.Argument(name, self.expression(value, scope)) for name, value in named]

    def macro(self, macro: Macro, arguments: Sequence[macros.Argument], scope: Scope) -> Expression:
        """Returns what a call of a scalar macro stands for; `scope` is where it is called."""
        impl, values = macros.choose(macro, "scalar", arguments)
        body = macros.body_of(impl, f"SELECT {impl.sql}")
        only(body, ("expressions",), "a macro that is no expression")
        return self._in_macro(macro, lambda: self.expression(body.expressions[0], _macro_scope(values, scope)))

    def table_macro(self, macro: Macro, arguments: Sequence[macros.Argument], scope: Scope) -> Query:
        """Returns the query that a call of a table macro stands for."""
        impl, values = macros.choose(macro, "table", arguments)
        body = macros.body_of(impl, impl.sql)
        return self._in_macro(macro, lambda: self.query(body, _macro_scope(values, scope)))

    def _in_macro(self, macro: Macro, translate: Callable[[], _Translated]) -> _Translated:
        self._macro_depth += 1
        try:
            if self._macro_depth > _MAX_DEPTH:
                raise Untranslatable("it calls itself, by way of others")
            return translate()
        except Untranslatable as error:
            if self._macro_depth == 1:
                raise
            raise Untranslatable(f"the macro {macro.name}: {error}") from error
        finally:
            self._macro_depth -= 1

    def table_function(self, node: exp.Table, scope: Scope) -> tuple[Query, str]:
        only(node, ("this", "db", "catalog", "alias", "joins"))
        parts = [part.name for part in (node.args.get("catalog"), node.args.get("db")) if part is not None]
        macro = self._find_macro((*parts, function_name(node.this))) if isinstance(node.this, exp.Anonymous) else None
        if macro is None:
            raise Untranslatable("a table function")
        around = Scope(parent=scope.parent)  # its arguments cannot be columns of what is next to it in FROM
        return self.table_macro(macro, self._arguments(node.this, around), scope), macro.name

    def field(self, expression: Expression, name: str) -> Expression:
        if not isinstance(expression.type, StructType):
            raise Untranslatable(f"a field of {expression.type.simpleString()}")
        found = [f for f in expression.type.fields if f.name.lower() == name.lower()]
        if len(found) != 1:
            raise Untranslatable(f"the field {name}")
        return Expression(f"{expression.operand}.{quote(found[0].name)}", found[0].dataType)

    def element(self, collection: Expression, index: Expression) -> Expression:
        if isinstance(collection.type, StructType) and isinstance(index.constant, str):
            return self.field(collection, index.constant)
        if not isinstance(collection.type, ArrayType) or not isinstance(index.constant, int) or not index.constant:
            raise Untranslatable(f"an element of {collection.type.simpleString()}")
        return Expression(f"try_element_at({collection.sql}, {index.sql})", collection.type.elementType)

    def is_aggregate(self, name: str) -> bool:
        return name in aggregates.AGGREGATES or name in aggregates.WINDOW_FUNCTIONS

    def aggregate(self, call: AggregateCall) -> Expression:
        if self._find_macro((call.name,)) is not None:
            raise Untranslatable(f"the macro {call.name}() with a clause of aggregates")
        if call.name not in ("count", "min", "max"):
            _refuse_opaque(call.arguments)
        return replace(aggregates.aggregate(call), is_opaque=call.name != "count" and _any_opaque(call.arguments))

    def name_without_parentheses(self, parts: Sequence[str]) -> Expression | None:
        name = parts[0].lower()
        return self.call(name, []) if len(parts) == 1 and name in _NAMES_WITHOUT_PARENTHESES else None

    # -- functions

    def special_call(self, name: str, nodes: Sequence[Node], scope: Scope) -> Expression | None:
        if name in intervals.FUNCTIONS and len(nodes) == 1:
            count = _interval_count(nodes[0]) or nodes[0]
            return intervals.interval(intervals.FUNCTIONS[name], self.expression(count, scope))
        return None

    def call(self, name: str, arguments: Sequence[Expression]) -> Expression:
        _refuse_opaque(arguments)
        if name == "coalesce" and arguments:
            return self.coalesce(arguments)
        if name == "list_value" and arguments:
            type_ = self.common(arguments, "a list")
            items = ", ".join(cast_to(self.coerce(a, type_).sql, type_) for a in arguments)
            return Expression(f"array({items})", ArrayType(type_))
        if name in ("len", "array_length") and len(arguments) == 1 and isinstance(arguments[0].type, ArrayType):
            return Expression(cast_to(f"array_size({arguments[0].sql})", t.LONG), t.LONG)
        if name == "json_extract_string" and len(arguments) == 2 and isinstance(arguments[1].constant, str):
            return texts.json_text(arguments[0], _json_path(arguments[1].constant))
        return call_by_name(name, arguments, _TABLE, _FUNCTIONS, _implicit_cast)

    def _json_text(self, node: exp.JSONExtractScalar, scope: Scope) -> Expression:
        path = node.expression
        keys = path.expressions[1:] if isinstance(path, exp.JSONPath) else []
        if len(keys) != 1 or not all(isinstance(key, exp.JSONPathKey) and isinstance(key.this, str) for key in keys):
            raise Untranslatable("->> with such a path")
        value = self.expression(node.this, scope)
        _refuse_opaque([value])
        return texts.json_text(value, _json_path(f"$.{keys[0].this}"))


def _macro_scope(values: Mapping[str, Expression], caller: Scope) -> Scope:
    """Returns the scope of a macro's body. It sees the arguments, and no column of where it is called."""
    return Scope(parameters=values, reserved_names=caller.names_of_relations())


def _any_opaque(values: Sequence[Expression]) -> bool:
    return any(value.is_opaque for value in values)


def _refuse_opaque(values: Sequence[Expression]) -> None:
    if _any_opaque(values):
        raise Untranslatable("a value of a type that only DuckDB has")


def _json_path(path: str) -> str:
    names = path.split(".")
    if names[0] != "$" or len(names) < 2 or not all(n.isascii() and n.replace("_", "a").isalnum() for n in names[1:]):
        raise Untranslatable("a path in a JSON text other than of names")
    return path


def _interval_count(node: Node) -> Node | None:
    """Returns `n` of CAST(trunc(CAST(n AS DOUBLE)) AS INTEGER), as which DuckDB stores INTERVAL n DAY."""
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Anonymous):
        return None
    call = node.this
    if str(call.name).lower() != "trunc" or len(call.expressions) != 1 or not isinstance(call.expressions[0], exp.Cast):
        return None
    count: Node = call.expressions[0].this
    return count


def _type_of(node: exp.DataType) -> DataType:
    kind = getattr(node.this, "name", "")
    if kind == "DECIMAL":
        digits = [int(parameter.name) for parameter in node.expressions]
        return DecimalType(*digits) if digits else DecimalType(18, 3)
    found = _TYPES.get(kind)
    if found is None or (node.expressions and kind not in ("VARCHAR", "TEXT")):
        raise Untranslatable(f"the type {node.sql(dialect='duckdb')}")
    return found


def _implicit_cast(value: Expression, target: DataType) -> Expression | None:
    """Returns an argument as DuckDB casts it for a function that takes another type; None if it does not."""
    if t.same_type(value.type, target):
        return value
    widens = t.is_numeric(value.type) and arithmetic.widest(value.type, target) == target
    reads = t.is_temporal(value.type) and target == t.DATE
    if value.type == t.NULL or widens or reads or (value.type == t.STRING and value.is_constant):
        return casts.cast(value, target)
    return None
