"""Translates queries from Spark's SQL to DuckDB's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import types as s
from pyspark.sql.types import ArrayType, DataType, DecimalType
from sqlglot import exp

from .. import types as t
from ..expressions import Expression, Untranslatable
from ..nodes import Node
from ..parsing import LAKE_PLACEHOLDER, only
from ..queries import QueryTranslator
from ..relations import Relation
from ..scalars import AggregateCall
from ..scopes import Scope
from ..signatures import Signature, call_by_name
from . import aggregates, arithmetic, casts, collections, numbers, texts, times
from .intervals import parse_interval
from .words import quote, string

_TABLE: Mapping[str, list[Signature]] = {**texts.TABLE, **times.TABLE, **numbers.TABLE}
_FUNCTIONS: Mapping[str, Callable[..., Expression]] = {
    **texts.FUNCTIONS,
    **times.FUNCTIONS,
    **numbers.FUNCTIONS,
    **collections.FUNCTIONS,
}
_CAST_FUNCTIONS: Mapping[str, DataType] = {
    "boolean": t.BOOLEAN,
    "tinyint": t.BYTE,
    "smallint": t.SHORT,
    "int": t.INT,
    "bigint": t.LONG,
    "float": t.FLOAT,
    "double": t.DOUBLE,
    "decimal": DecimalType(10, 0),
    "string": t.STRING,
    "binary": t.BINARY,
    "date": t.DATE,
    "timestamp": t.TIMESTAMP,
}
_TYPES: Mapping[str, DataType] = {
    "BOOLEAN": t.BOOLEAN,
    "TINYINT": t.BYTE,
    "SMALLINT": t.SHORT,
    "INT": t.INT,
    "BIGINT": t.LONG,
    "FLOAT": t.FLOAT,
    "DOUBLE": t.DOUBLE,
    "TEXT": t.STRING,
    "VARCHAR": t.STRING,
    "BINARY": t.BINARY,
    "DATE": t.DATE,
    "TIMESTAMPTZ": t.TIMESTAMP,
    "TIMESTAMPLTZ": t.TIMESTAMP,
    "TIMESTAMP": t.TIMESTAMP,
    "TIMESTAMPNTZ": t.TIMESTAMP_NTZ,
}
_NAMES_WITHOUT_PARENTHESES = ("current_date", "current_timestamp", "localtimestamp")


class ToDuckDB(QueryTranslator):
    """Translates queries that Spark has accepted, in ANSI mode and with its usual settings."""

    first_value_column = 1

    # -- queries

    def source_text(self, relation: Relation, version: Any, alias: str) -> str:
        # Not with the lake's name, which may be another one where the view is read.
        lake = LAKE_PLACEHOLDER if relation.names_lake else ""
        text = f"{lake}{quote(relation.schema)}.{quote(relation.name)} AS {alias}"
        if version is None:
            return text
        only(version, ("this", "expression", "kind"))
        if version.name.upper() != "VERSION" or not isinstance(version.expression, exp.Literal):
            raise Untranslatable("TIMESTAMP AS OF")
        number = version.expression
        text_of_number = self.parsed.string(number) if number.is_string else number.name
        if not text_of_number.isdigit():
            raise Untranslatable("VERSION AS OF something else than a number")
        return f"{text} AT (VERSION => {int(text_of_number)})"

    def star_without(self, star: str, columns: Sequence[str]) -> str:
        return f"{star} EXCLUDE ({', '.join(map(quote, columns))})" if columns else star

    def cast_column(self, text: str, type_: DataType, is_opaque: bool) -> Expression:
        return Expression(f"CAST({text} AS {casts.type_name(type_)})", type_)

    def semi_join_words(self, kind: str) -> str:
        return f"{kind} JOIN"

    def in_values(self, operand: str, query: str, filter_: str, scope: Scope) -> str:
        raise Untranslatable("IN (SELECT ...) outside of WHERE, which is never NULL in Spark")

    def lateral_view(self, function: str, value: Expression) -> tuple[str, DataType]:
        if function != "explode":
            raise Untranslatable(f"LATERAL VIEW {function}()")
        rows = collections.explode(value)
        return f"SELECT {rows.sql}", rows.type

    def output_name(self, node: Node, expression: Expression) -> str | None:
        if isinstance(node, exp.Anonymous) and node.name.lower() == "explode":
            return "col"
        return super().output_name(node, expression)

    def constant_group(self) -> str:
        return "CAST(0 AS INTEGER)"

    # -- expressions

    def quote(self, name: str) -> str:
        return quote(name)

    def string(self, value: str) -> Expression:
        return Expression(string(value), t.STRING, value)

    def number(self, text: str) -> Expression:
        return numbers.number(text)

    def typed(self, expression: Expression) -> str:
        return arithmetic.typed(expression)

    def coerce(self, expression: Expression, type_: DataType) -> Expression:
        return arithmetic.coerce(expression, type_)

    def common_type(self, types: Sequence[DataType], what: str) -> DataType:
        found = types[0]
        for type_ in types[1:]:
            wider = t.widest(found, type_)
            if wider is None:
                names = ", ".join(dict.fromkeys(k.simpleString() for k in types))
                raise Untranslatable(f"{what} with the types {names}")
            found = wider
        if len({k.simpleString() for k in types if k != t.NULL}) > 2 and t.STRING in types:
            raise Untranslatable(f"{what} with texts and several other types")
        return found

    def cast_node(self, node: exp.Cast, scope: Scope) -> Expression:
        only(node, ("this", "to", "safe"))
        value, target = self.expression(node.this, scope), self.type_of(node.args["to"])
        return casts.try_cast(value, target) if isinstance(node, exp.TryCast) else casts.cast(value, target)

    def type_of(self, node: exp.DataType) -> DataType:
        kind = getattr(node.this, "name", "")
        if kind == "DECIMAL":
            digits = [int(parameter.name) for parameter in node.expressions]
            return DecimalType(*digits) if digits else DecimalType(10, 0)
        if kind == "ARRAY" and len(node.expressions) == 1:
            return ArrayType(self.type_of(node.expressions[0]))
        found = _TYPES.get(kind)
        if found is None or (node.expressions and kind != "VARCHAR"):
            raise Untranslatable(f"the type {node.sql(dialect='spark')}")
        return found

    def compare(self, operator: str, left: Expression, right: Expression) -> Expression:
        return arithmetic.compare(operator, left, right)

    def binary(self, operator: type[Node], left: Expression, right: Expression) -> Expression:
        if operator is exp.DPipe and isinstance(left.type, ArrayType):
            return collections.concat_arrays([left, right])
        return arithmetic.binary(operator, left, right)

    def interval(self, node: exp.Interval) -> Expression:
        only(node, ("this", "unit"))
        if not isinstance(node.this, exp.Literal):
            raise Untranslatable("INTERVAL of something else than a literal")
        unit = node.args.get("unit")
        if unit is not None and not isinstance(unit, exp.Var):
            raise Untranslatable("INTERVAL with several units")
        return parse_interval(self.parsed.string(node.this), None if unit is None else unit.name)

    def negative(self, operand: Expression) -> Expression:
        return arithmetic.negative(operand)

    def bitwise_not(self, operand: Expression) -> Expression:
        return arithmetic.bitwise_not(operand)

    def like(self, value: Expression, pattern: Expression, escape: str | None, ignores_case: bool) -> Expression:
        if ignores_case:
            if not isinstance(pattern.constant, str) or not pattern.constant.isascii():
                raise Untranslatable("ILIKE with a pattern that is no ASCII literal")
            value, pattern = texts.lower(value), self.string(pattern.constant.lower())
        return arithmetic.like(value, pattern, escape)

    def extract(self, field: str, source: Expression) -> Expression:
        return times.extract(field, source, self.call)

    def field(self, expression: Expression, name: str) -> Expression:
        return collections.field(expression, name)

    def element(self, collection: Expression, index: Expression) -> Expression:
        return collections.element(collection, index)

    def is_aggregate(self, name: str) -> bool:
        return name in aggregates.AGGREGATES or name in aggregates.WINDOW_FUNCTIONS

    def aggregate(self, call: AggregateCall) -> Expression:
        return aggregates.aggregate(call)

    def name_without_parentheses(self, parts: Sequence[str]) -> Expression | None:
        name = parts[0].lower()
        return self.call(name, []) if len(parts) == 1 and name in _NAMES_WITHOUT_PARENTHESES else None

    # -- functions

    def special_call(self, name: str, nodes: Sequence[Node], scope: Scope) -> Expression | None:
        if name == "coalesce" and len(nodes) == 2 and _only_checks(nodes[0], nodes[1]):
            return self.expression(nodes[0], scope)
        if (
            name in ("dateadd", "date_add", "timestampadd", "datediff", "date_diff", "timestampdiff")
            and len(nodes) == 3
        ):
            if not isinstance(nodes[0], exp.Column):
                raise Untranslatable(f"{name}() with a unit that is no word")
            values = [self.expression(node, scope) for node in nodes[1:]]
            rule = times.timestamp_add if name.endswith("add") else times.timestamp_diff
            return rule(nodes[0].name.lower(), *values)
        if name == "date_part" and len(nodes) == 2 and isinstance(nodes[0], exp.Literal):
            return self.extract(self.parsed.string(nodes[0]).lower(), self.expression(nodes[1], scope))
        return None

    def call(self, name: str, arguments: Sequence[Expression]) -> Expression:
        general = _GENERAL.get(name)
        if general is not None:
            return general(self, arguments)
        if name in _CAST_FUNCTIONS and len(arguments) == 1:
            return casts.cast(arguments[0], _CAST_FUNCTIONS[name])
        return call_by_name(name, arguments, _TABLE, _FUNCTIONS, implicit_cast)


def implicit_cast(value: Expression, target: DataType) -> Expression | None:
    """Returns an argument as Spark casts it for a function that takes another type; None if it does not."""
    type_ = value.type
    if t.same_type(type_, target):
        return value
    widens = t.widest(type_, target) == target and type_ != t.STRING
    reads = t.is_temporal(type_) and target == t.DATE
    reads = reads or (type_ in (t.DATE, t.TIMESTAMP_NTZ) and target == t.TIMESTAMP)
    writes = target == t.STRING and t.is_atomic_type(type_) and type_ != t.BINARY
    parses = type_ == t.STRING and target in (t.DATE, t.TIMESTAMP, t.INT, t.LONG, t.DOUBLE)
    if type_ == t.NULL or widens or reads or writes or parses:
        return casts.cast(value, target)
    return None


def _only_checks(value: Node, check: Node) -> bool:
    """Whether `coalesce(value, check)` is the value: dbt's Spark macros wrap dates so, to fail early.

    The check is nvl2(value, assert_true(value is not null), null), which is never asked.
    """
    if not (isinstance(check, exp.Anonymous) and check.name.lower() == "nvl2" and len(check.expressions) == 3):
        return False
    subject, assertion, null = check.expressions
    return (
        subject == value
        and isinstance(null, exp.Null)
        and isinstance(assertion, exp.Anonymous)
        and assertion.name.lower() == "assert_true"
        and len(assertion.expressions) == 1
        and assertion.expressions[0] == exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
    )


# -- functions that take any types


def _coalesce(translator: ToDuckDB, arguments: Sequence[Expression]) -> Expression:
    if not arguments:
        raise Untranslatable("coalesce() without arguments")
    return translator.coalesce(arguments)


def _if(translator: ToDuckDB, arguments: Sequence[Expression]) -> Expression:
    condition, *values = arguments
    return translator.case([condition], values[:1], values[1] if len(values) > 1 else None)


def _nvl2(translator: ToDuckDB, arguments: Sequence[Expression]) -> Expression:
    value, present, missing = arguments
    return translator.case([_is_null(value, " NOT")], [present], missing)


def _is_null(value: Expression, negation: str = "") -> Expression:
    return Expression(f"{value.operand} IS{negation} NULL", t.BOOLEAN)


def _nullif(translator: ToDuckDB, arguments: Sequence[Expression]) -> Expression:
    value, other = arguments
    equal = translator.comparison(exp.EQ, value, other)
    if t.is_integral(value.type) and other.is_constant and other.constant == 0:
        return Expression(f"nullif({value.sql}, 0)", value.type)
    text = value.sql if value.type != t.NULL else "NULL"
    return Expression(f"CASE WHEN {equal.sql} THEN NULL ELSE {text} END", value.type)


def _greatest(translator: ToDuckDB, arguments: Sequence[Expression]) -> Expression:
    return _extreme(translator, "greatest", arguments)


def _least(translator: ToDuckDB, arguments: Sequence[Expression]) -> Expression:
    return _extreme(translator, "least", arguments)


def _extreme(translator: ToDuckDB, name: str, arguments: Sequence[Expression]) -> Expression:
    type_ = translator.common_type([a.type for a in arguments], f"{name}()")
    if not t.is_atomic_type(type_) or len(arguments) < 2:
        raise Untranslatable(f"{name}() of {type_.simpleString()}")
    texts_ = ", ".join(arithmetic.typed(arithmetic.coerce(a, type_)) for a in arguments)
    return Expression(f"{name}({texts_})", type_)


def _concat(translator: ToDuckDB, arguments: Sequence[Expression]) -> Expression:
    if arguments and isinstance(arguments[0].type, ArrayType):
        return collections.concat_arrays(arguments)
    return texts.concat_call(arguments)


def _array_append(translator: ToDuckDB, arguments: Sequence[Expression]) -> Expression:
    array, element = arguments
    if not isinstance(array.type, s.ArrayType) or not t.same_type(array.type.elementType, element.type):
        raise Untranslatable("array_append() of another type")
    text = f"list_append({array.sql}, {arithmetic.typed(element)})"
    return Expression(f"CASE WHEN {array.operand} IS NULL THEN NULL ELSE {text} END", array.type)


def _checked(count: int, rule: Callable[[ToDuckDB, Sequence[Expression]], Expression], name: str) -> Any:
    def checked(translator: ToDuckDB, arguments: Sequence[Expression]) -> Expression:
        if len(arguments) != count:
            raise Untranslatable(f"{name}() with {len(arguments)} arguments")
        return rule(translator, arguments)

    return checked


_GENERAL: Mapping[str, Callable[[ToDuckDB, Sequence[Expression]], Expression]] = {
    "coalesce": _coalesce,
    "nvl": _checked(2, _coalesce, "nvl"),
    "ifnull": _checked(2, _coalesce, "ifnull"),
    "if": _checked(3, _if, "if"),
    "nvl2": _checked(3, _nvl2, "nvl2"),
    "nullif": _checked(2, _nullif, "nullif"),
    "isnull": _checked(1, lambda _, arguments: _is_null(arguments[0]), "isnull"),
    "isnotnull": _checked(1, lambda _, arguments: _is_null(arguments[0], " NOT"), "isnotnull"),
    "greatest": _greatest,
    "least": _least,
    "concat": _concat,
    "array": lambda _, arguments: collections.array(arguments),
    "array_append": _checked(2, _array_append, "array_append"),
    "named_struct": lambda _, arguments: collections.named_struct(arguments),
}
