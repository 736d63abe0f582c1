"""Tables of functions: for the types of the arguments, the text in the other engine and the type of the result."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import types as s
from pyspark.sql.types import DataType

from . import types as t
from .expressions import Expression, Untranslatable

_TYPES: Mapping[str, DataType] = {
    "boolean": t.BOOLEAN,
    "tinyint": t.BYTE,
    "smallint": t.SHORT,
    "int": t.INT,
    "bigint": t.LONG,
    "float": t.FLOAT,
    "double": t.DOUBLE,
    "string": t.STRING,
    "binary": t.BINARY,
    "date": t.DATE,
    "timestamp": t.TIMESTAMP,
    "timestamp_ntz": t.TIMESTAMP_NTZ,
    "hugeint": s.DecimalType(38, 0),
}
_CLASSES: Mapping[str, Callable[[DataType], bool]] = {
    "any": lambda type_: True,
    "atomic": t.is_atomic_type,
    "integral": t.is_integral,
    "decimal": lambda type_: isinstance(type_, s.DecimalType),
    "fractional": t.is_fractional,
    "numeric": t.is_numeric,
    "array": lambda type_: isinstance(type_, s.ArrayType),
}
_SIGNATURE = re.compile(r"(\w+)\((.*)\) -> (\w+)")


@dataclass(frozen=True)
class Signature:
    """One function for one list of argument types.

    `length(string) -> int`. A class of types, such as `integral`, takes each of them. The result type can be the name
    of such a class: the type of the first argument in it. `...` repeats the last argument.
    """

    name: str
    arguments: tuple[str, ...]
    result: str
    template: str
    """The text in the other engine, with `{0}` for the first argument, and `{*}` for all of them."""

    def accepts(self, arguments: Sequence[Expression]) -> bool:
        """Whether the arguments have these types as they are."""
        names = self._argument_names(len(arguments))
        return names is not None and all(
            _accepts(name, argument.type) for name, argument in zip(names, arguments, strict=True)
        )

    def targets(self, count: int) -> list[DataType | None] | None:
        """Returns the types to which so many arguments are to be cast; None for one that stays as it is."""
        names = self._argument_names(count)
        return None if names is None else [_TYPES.get(name) for name in names]

    def _argument_names(self, count: int) -> tuple[str, ...] | None:
        names = self.arguments
        if names and names[-1] == "...":
            names = names[:-1]
            names += (names[-1],) * (count - len(names))
        return names if len(names) == count else None

    def apply(self, arguments: Sequence[Expression]) -> Expression:
        texts = [argument.operand for argument in arguments]
        template = self.template.replace("{*}", ", ".join(f"{{{index}}}" for index in range(len(texts))))
        sql = re.sub(r"\{(\d+)\}", lambda match: texts[int(match[1])], template)
        return Expression(sql, self.result_type(arguments))

    def result_type(self, arguments: Sequence[Expression]) -> DataType:
        if self.result in _TYPES:
            return _TYPES[self.result]
        names = self._argument_names(len(arguments)) or ()
        return arguments[names.index(self.result)].type


def _accepts(name: str, type_: DataType) -> bool:
    return _CLASSES[name](type_) if name in _CLASSES else t.same_type(_TYPES[name], type_)


def table(*rows: tuple[str, str]) -> dict[str, list[Signature]]:
    """Returns signatures by the names of their functions.

    >>> table(("length(string) -> int", "CAST(length({0}) AS INTEGER)"))["length"][0].arguments
    ('string',)
    """
    found: dict[str, list[Signature]] = {}
    for declaration, template in rows:
        match = _SIGNATURE.fullmatch(declaration)
        assert match is not None, declaration
        arguments = tuple(match[2].split(", ")) if match[2] else ()
        found.setdefault(match[1], []).append(Signature(match[1], arguments, match[3], template))
    return found


def call_by_name(
    name: str,
    arguments: Sequence[Expression],
    signatures: Mapping[str, list[Signature]],
    rules: Mapping[str, Callable[..., Expression]],
    implicit_cast: Callable[[Expression, DataType], Expression | None],
) -> Expression:
    """Applies a signature of the function that the arguments fit, or else its rule."""
    if name in signatures:
        found = _choose(signatures[name], arguments, implicit_cast)
        if found is not None:
            return found
    rule = rules.get(name)
    if rule is not None:
        try:
            inspect.signature(rule).bind(*arguments)
        except TypeError:
            raise Untranslatable(f"{name}() with {len(arguments)} arguments") from None
        return rule(*arguments)
    what = ", ".join(a.type.simpleString() for a in arguments)
    raise Untranslatable(f"{name}()" + (f" of {what}" if name in signatures else ""))


def _choose(
    signatures: Sequence[Signature],
    arguments: Sequence[Expression],
    implicit_cast: Callable[[Expression, DataType], Expression | None],
) -> Expression | None:
    """Applies the first signature that the arguments fit: as they are, or else after implicit casts."""
    for signature in signatures:
        if signature.accepts(arguments):
            return signature.apply(arguments)
    for signature in signatures:
        targets = signature.targets(len(arguments))
        if targets is None:
            continue
        cast = [
            argument if target is None else implicit_cast(argument, target)
            for argument, target in zip(arguments, targets, strict=True)
        ]
        complete = [argument for argument in cast if argument is not None]
        if len(complete) == len(cast) and signature.accepts(complete):
            return signature.apply(complete)
    return None
