"""The arguments of a procedure, from SQL or from Python, as the parameters of the function that does it."""

from __future__ import annotations

import datetime
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from ...lake.durations import is_duration, moment_before
from ...lake.errors import LakeError
from ...lake.options import parse_size
from ...lake.tables import UTC, parse_instant
from ..sql.quoting import string_literal


class Bytes(int):
    """A number of bytes. An argument may also be a text such as `512MB`."""


@dataclass(frozen=True)
class Expression:
    """An argument that is no literal, such as `now() - interval 7 days`."""

    text: str


def bind(
    procedure: str,
    function: Callable[..., Any],
    positional: Sequence[Any],
    named: Mapping[str, Any],
    evaluate_timestamp: Callable[[str], datetime.datetime],
) -> dict[str, Any]:
    """The arguments for all parameters of a function after its first one, by their names.

    Values get the types of the parameters. Raises if an argument is unknown, missing, given twice or of another type.
    """
    hints = get_type_hints(function)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    by_position = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    if len(positional) > len(by_position):
        named_only = ", ".join(f"{p.name} => ..." for p in parameters if p.name not in by_position)
        raise LakeError(
            f"{procedure} takes at most {_count(len(by_position))} by position, and {len(positional)} were given"
            f"{f'; name the others: {named_only}' if named_only else ''}"
        )
    given = dict(zip(by_position, positional, strict=False))
    for name, value in named.items():
        if name.lower() in given:
            raise LakeError(f"{procedure} was given {name.lower()} twice")
        given[name.lower()] = value
    known = [p.name for p in parameters]
    for name in given:
        if name not in known:
            raise LakeError(f"{procedure} does not take the argument {name}; it takes {', '.join(known)}")
    for parameter in parameters:
        if parameter.default is parameter.empty and given.get(parameter.name) is None:
            raise LakeError(f"{procedure} needs the argument {parameter.name}")
    return {
        name: _convert(procedure, name, value, hints[name], evaluate_timestamp)
        for name, value in given.items()
        if value is not None
    }


def _count(number: int) -> str:
    return "1 argument" if number == 1 else f"{number} arguments"


def _convert(
    procedure: str, name: str, value: Any, hint: Any, evaluate_timestamp: Callable[[str], datetime.datetime]
) -> Any:
    if isinstance(hint, UnionType):
        (hint,) = (h for h in get_args(hint) if h is not NoneType)
    if hint is datetime.datetime:
        return _moment(value, evaluate_timestamp)
    if isinstance(value, Expression):
        raise LakeError(f"argument {name} of {procedure} takes a literal; {value.text} is none")
    kind = get_origin(hint) or hint
    try:
        if kind is Sequence:
            (item,) = get_args(hint)
            return tuple(_CONVERSIONS[item](v) for v in (value if isinstance(value, list | tuple) else (value,)))
        return _CONVERSIONS[kind](value)
    except (TypeError, ValueError):
        raise LakeError(f"argument {name} of {procedure} takes {_DESCRIPTIONS[kind]}, not {value!r}") from None


def _moment(value: Any, evaluate: Callable[[str], datetime.datetime]) -> datetime.datetime:
    """The moment of a timestamp, of its text, or of an SQL expression. A duration is so long ago.

    A duration and a text with a UTC offset need no Spark.
    """
    if isinstance(value, datetime.datetime):
        return value if value.tzinfo else value.astimezone()
    if isinstance(value, datetime.timedelta):
        return datetime.datetime.now(UTC) - value
    if isinstance(value, Expression):
        return evaluate(value.text)
    if is_duration(str(value)):
        return moment_before(datetime.datetime.now(UTC), str(value))
    if _WITH_OFFSET.fullmatch(str(value).strip()):
        return parse_instant(str(value).strip())
    return evaluate(string_literal(str(value)))


def _boolean(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise ValueError(value)
    return value


def _whole_number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(value)
    return int(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _bytes(value: Any) -> Bytes:
    return Bytes(_whole_number(value) if isinstance(value, int) else parse_size(value))


_WITH_OFFSET = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)")
_CONVERSIONS: Mapping[Any, Callable[[Any], Any]] = {
    bool: _boolean,
    Bytes: _bytes,
    int: _whole_number,
    float: float,
    str: _text,
}
_DESCRIPTIONS: Mapping[Any, str] = {
    bool: "true or false",
    Bytes: "a size such as 512MB",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Sequence: "a list",
}
