"""Macros of DuckDB's: which implementation a call means, and the arguments of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import add

from pyspark.sql.types import DataType
from sqlglot import exp

from .....lake import types as lake_types
from .....lake.snapshot import LakeState, Macro, MacroImpl, Parameter
from .....lake.types import Column
from .. import types as t
from ..expressions import Expression, Untranslatable
from ..nodes import Node
from ..parsing import parse_duckdb
from ..relations import lake_column
from . import arithmetic, casts, numbers
from .words import string

UNTYPED = "unknown"
"""The type of a parameter that takes any argument, as the catalog names it."""
DEFAULT_SCHEMA = "main"
"""Where DuckDB looks for a name next to the current schema."""

MacroResolver = Callable[[Sequence[str]], Macro | None]
"""Returns the macro of a dotted name; None if it is the name of no macro of the lake."""


def macros_in(state: LakeState, lake: str, schema: str) -> MacroResolver:
    """Returns a resolver of names in one lake, which the query calls `lake`; `schema` is the current schema."""

    def resolve(parts: Sequence[str]) -> Macro | None:
        *qualifier, name = parts
        if qualifier and qualifier[0].lower() == lake.lower() and len(qualifier) == 2:
            qualifier = qualifier[1:]
        if len(qualifier) == 1:
            return state.find_macro(qualifier[0], name)
        if qualifier:
            return None
        return state.find_macro(schema, name) or state.find_macro(DEFAULT_SCHEMA, name)

    return resolve


@dataclass(frozen=True)
class Argument:
    """An argument of a call, and the name of its parameter where the call says it."""

    name: str | None
    value: Expression


def body_of(impl: MacroImpl, sql: str) -> Node:
    """Parses the body of an implementation; `sql` is a query of it."""
    if impl.dialect.lower() != "duckdb":
        raise Untranslatable(f"the dialect {impl.dialect}")
    # The catalog has the name of a lake in a macro as it was written, with no placeholder for it.
    return parse_duckdb(sql, "").tree


def named_argument(node: Node) -> tuple[str | None, Node]:
    """Returns the name that a call gives an argument, as in `y := 2`, and the argument."""
    if isinstance(node, exp.PropertyEQ | exp.Kwarg):
        return str(node.this.name), node.expression
    return None, node


def choose(macro: Macro, kind: str, arguments: Sequence[Argument]) -> tuple[MacroImpl, Mapping[str, Expression]]:
    """Returns the implementation that DuckDB calls, and the values of its parameters by their names in lower case."""
    fitting = []
    for impl in macro.impls:
        given = _by_parameter(impl, arguments)
        if impl.kind == kind and given is not None:
            fitting.append((impl, given))
    exact = [(impl, given) for impl, given in fitting if _has_exact_types(impl, given)]
    if len(fitting) > 1 and len(exact) == 1:
        fitting = exact
    if len(fitting) != 1:
        what = "several implementations that fit" if fitting else "no implementation for"
        raise Untranslatable(f"{macro.name}() has {what} {_described(arguments)}")
    impl, given = fitting[0]
    return impl, {
        parameter.name.lower(): _as_parameter(given.get(parameter.name.lower()), parameter)
        for parameter in impl.parameters
    }


def _by_parameter(impl: MacroImpl, arguments: Sequence[Argument]) -> dict[str, Expression] | None:
    """Returns the arguments by parameter; None if the implementation does not take them."""
    names = [parameter.name.lower() for parameter in impl.parameters]
    positional = [argument.value for argument in arguments if argument.name is None]
    named = {argument.name.lower(): argument.value for argument in arguments if argument.name is not None}
    given = dict(zip(names, positional, strict=False))
    if len(positional) + len(named) != len(arguments) or len(positional) > len(names):
        return None
    if not set(named) <= set(names[len(positional) :]):
        return None
    given |= named
    parameters = {parameter.name.lower(): parameter for parameter in impl.parameters}
    if any(name not in given and parameters[name].default is None for name in names):
        return None
    if any(_converted(value, parameters[name]) is None for name, value in given.items()):
        return None
    return given


def _has_exact_types(impl: MacroImpl, given: Mapping[str, Expression]) -> bool:
    parameters = {parameter.name.lower(): parameter for parameter in impl.parameters}
    types = ((value.type, _type_of(parameters[name].type)) for name, value in given.items())
    return all(declared is not None and t.same_type(type_, declared) for type_, declared in types)


def _as_parameter(value: Expression | None, parameter: Parameter) -> Expression:
    found = _default(parameter) if value is None else _converted(value, parameter)
    assert found is not None  # an implementation was chosen that takes the argument
    return found


def _converted(value: Expression, parameter: Parameter) -> Expression | None:
    """Returns an argument in the type that its parameter declares; None if DuckDB casts it only when asked."""
    if (parameter.type or UNTYPED) == UNTYPED:
        return value
    target = _type_of(parameter.type)
    if target is None:
        raise Untranslatable(f"the type {parameter.type} of the parameter {parameter.name}")
    if t.same_type(value.type, target):
        return value
    widens = t.is_numeric(value.type) and t.is_numeric(target) and arithmetic.widest(value.type, target) == target
    return casts.cast(value, target) if widens or value.type == t.NULL else None


def _default(parameter: Parameter) -> Expression:
    """Returns the default of a parameter, which the catalog has as a text and a type."""
    text, kind = parameter.default or "", parameter.default_type or ""
    if kind == "varchar":
        value = Expression(string(text), t.STRING, text)
    elif kind == "boolean":
        value = Expression(text.upper(), t.BOOLEAN, text.lower() == "true")
    elif kind in lake_types.INTEGER_RANGES or lake_types.decimal_parts(kind) is not None:
        value = numbers.number(text)
    else:
        type_ = _type_of(kind)
        if type_ is None:
            raise Untranslatable(f"the default of the parameter {parameter.name}, which is of type {kind}")
        value = casts.cast(Expression(string(text), t.STRING, text), type_)
    return value if (parameter.type or UNTYPED) == UNTYPED else _converted_default(value, parameter)


def _converted_default(value: Expression, parameter: Parameter) -> Expression:
    found = _converted(value, parameter)
    if found is None:
        raise Untranslatable(f"the default of the parameter {parameter.name}, which is of another type")
    return found


@lru_cache(maxsize=100)
def _type_of(kind: str | None) -> DataType | None:
    """Returns the Spark type of a type of the catalog; None for one that expressions are not translated for."""
    if kind is None or kind == UNTYPED or kind in lake_types.NESTED:
        return None
    column = lake_column(Column(0, "parameter", kind))
    return None if column.cast_in_duckdb else column.type


def _described(arguments: Sequence[Argument]) -> str:
    if not arguments:
        return "no arguments"
    names = ("" if argument.name is None else f"{argument.name} := " for argument in arguments)
    types = (argument.value.type.simpleString() for argument in arguments)
    return f"({', '.join(map(add, names, types))})"
