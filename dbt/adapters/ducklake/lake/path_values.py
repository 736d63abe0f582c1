"""Values in the path of a file, as folders of Hive: `region=EU/year=2024/part-0.parquet`.

Engines read such a value from the path anew in each query, each with a cast of its own. So only texts are taken that
all of them read as the same value.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from urllib.parse import unquote

from .partition_values import HIVE_NULL, encode_partition_value
from .types import FLOATS, INTEGER_RANGES, TIMESTAMPS, decimal_parts
from .values import Comparable, float32, nanoseconds_per_unit, parse_value, render_value


@dataclass(frozen=True)
class PathValue:
    """A value in a file's path."""

    key: str
    """The key as it stands in the path, by which engines find the value."""
    text: str
    """The text as it stands in the path."""


@dataclass(frozen=True)
class ParsedValue:
    """The value of a column in a file's path."""

    statistics_text: str | None
    """Its text in statistics; None for NULL."""
    partition_text: str | None
    """Its text as a partition value; None for NULL."""


def path_values(path: str) -> dict[str, PathValue]:
    """The values in a file's path, by their keys in lower case. As in the reference, the first of equal keys counts."""
    found: dict[str, PathValue] = {}
    for folder in path.split("/")[:-1]:
        if folder.count("=") == 1:
            key, _, text = folder.partition("=")
            found.setdefault(unquote(key).lower(), PathValue(key, text))
    return found


def parse_path_value(text: str, type_: str) -> ParsedValue | None:
    """The value of a text in a path for a column of the type; None if engines do not read one value from it."""
    if type_ not in _TYPES and not decimal_parts(type_):
        return None
    if _is_null(text, type_):
        return ParsedValue(None, None)
    value = None if _MALFORMED.search(text) else _value(unquote(text), type_)
    if value is None:
        return None
    return ParsedValue(render_value(value, type_), encode_partition_value(value, type_))


def _is_null(text: str, type_: str) -> bool:
    """Whether a text in a path means NULL, as in the reference."""
    return text == HIVE_NULL or text.upper() == "NULL" or (not text and type_ != "varchar")


def _value(text: str, type_: str) -> Comparable | None:
    pattern = _PATTERNS.get(type_)
    if pattern is not None and not pattern.fullmatch(text):
        return None
    if type_ == "blob":
        return text.encode()
    if type_ == "json":
        return text if _is_json(text) else None
    value = parse_value(text.lower() if type_ == "boolean" else text, type_)
    if value is None:
        return None
    if type_ in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_]
        return value if isinstance(value, int) and low <= value <= high else None
    if type_ == "float32":
        return float32(float(value))
    if type_ in TIMESTAMPS:
        return value if isinstance(value, int) and value % nanoseconds_per_unit(type_) == 0 else None
    if decimal_parts(type_):
        return value if _fits(text, type_) else None
    if type_ in ("time", "uuid"):  # texts in Spark, which reads them as they are
        return value if render_value(value, type_) == text else None
    return value


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _fits(text: str, type_: str) -> bool:
    parts = decimal_parts(type_)
    assert parts is not None
    whole, _, fraction = text.lstrip("+-").partition(".")
    return len(whole.lstrip("0")) <= parts[0] - parts[1] and len(fraction.rstrip("0")) <= parts[1]


_MALFORMED = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DATE = r"\d{4}-\d\d-\d\d"
_TIMESTAMP = _DATE + r"([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?"
_PATTERNS = {
    **{name: re.compile(r"[+-]?\d+") for name in INTEGER_RANGES},
    **{name: re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?") for name in FLOATS},
    **{name: re.compile(_TIMESTAMP) for name in TIMESTAMPS if name != "timestamptz"},
    "timestamptz": re.compile(_DATE + r"[ T]\d\d:\d\d:\d\d(\.\d{1,6})?([+-]\d\d(:\d\d)?|Z)"),
    "date": re.compile(_DATE),
    # What is no UTF-8 was replaced, and most databases cannot store a NUL in a text.
    "varchar": re.compile(r"[^\0\ufffd]*", re.DOTALL),
    # The reference takes a backslash for an escape, and has texts of ASCII only.
    "blob": re.compile(r"[ -\[\]-~]+"),
}
_TYPES = frozenset(
    [*INTEGER_RANGES, *FLOATS, *TIMESTAMPS, "boolean", "varchar", "json", "blob", "uuid", "date", "time"]
) - {"uint128"}
"""The types, besides decimals, of which a column may be in a path."""
