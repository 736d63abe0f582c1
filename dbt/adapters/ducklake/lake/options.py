"""The options of a lake: their names, valid values and defaults, and the value that applies to a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from .durations import is_duration
from .errors import OptionError

OptionKey = tuple[str | None, int | None, str]
"""Scope (None for the lake, "schema" or "table"), id of the schema or table, and name of the option."""

COMPRESSIONS = ("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4", "lz4_raw")

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")
_UNITS = {
    **{
        unit: 1000**power
        for power, units in enumerate((("", "b", "byte", "bytes"), ("k", "kb"), ("m", "mb"), ("g", "gb"), ("t", "tb")))
        for unit in units
    },
    **{unit: 1024**power for power, unit in enumerate(("kib", "mib", "gib", "tib"), start=1)},
}


def parse_size(text: str) -> int:
    """The number of bytes in a text such as `512MB` or `1.5 GiB`. A ValueError describes a valid text."""
    match = _SIZE.fullmatch(text)
    unit = match[2].lower() if match else ""
    if not match or unit not in _UNITS:
        raise ValueError("a size such as 512MB")
    return int(float(match[1]) * _UNITS[unit])


def _parse_size(text: str) -> str:
    size = parse_size(text)
    if size <= 0:
        raise ValueError("a size above zero, such as 512MB")
    return str(size)


def _parse_count(minimum: int) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not text.strip().isdigit() or int(text) < minimum:
            raise ValueError(f"a whole number of at least {minimum}")
        return str(int(text))

    return parse


def _parse_flag(text: str) -> str:
    if text.strip().lower() not in ("true", "false", "1", "0", "t", "f", "yes", "no"):
        raise ValueError("true or false")
    return "true" if text.strip().lower() in ("true", "1", "t", "yes") else "false"


def _parse_compression(text: str) -> str:
    if text.lower() not in COMPRESSIONS:
        raise ValueError("one of " + ", ".join(COMPRESSIONS))
    return text.lower()


def _parse_version(text: str) -> str:
    if text.lower().lstrip("v") not in ("1", "2"):
        raise ValueError("1 or 2")
    return "V" + text.lower().lstrip("v")


def _parse_fraction(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError("a number between 0 and 1")
    return f"{value:.6f}"


def _parse_interval(text: str) -> str:
    if text and not is_duration(text):
        raise ValueError("a duration such as 7 days")
    return text


@dataclass(frozen=True)
class Option:
    parse: Callable[[str], str]
    """Turns a user's text into the text for the catalog. A ValueError describes a valid text."""
    default: str | None
    scopes: tuple[str | None, ...] = (None, "schema", "table")


OPTIONS: Mapping[str, Option] = {
    "auto_compact": Option(_parse_flag, "true"),
    "data_inlining_row_limit": Option(_parse_count(0), "10"),
    "delete_older_than": Option(_parse_interval, None, (None,)),
    "expire_older_than": Option(_parse_interval, None, (None,)),
    "hive_file_pattern": Option(_parse_flag, "true"),
    "parquet_compression": Option(_parse_compression, "snappy"),
    "parquet_compression_level": Option(_parse_count(0), None),
    "parquet_row_group_size": Option(_parse_count(1), None),
    "parquet_row_group_size_bytes": Option(_parse_size, None),
    "parquet_version": Option(_parse_version, "V1"),
    "per_thread_output": Option(_parse_flag, "false"),
    "require_commit_message": Option(_parse_flag, "false", (None,)),
    "rewrite_delete_threshold": Option(_parse_fraction, "0.95"),
    "sort_on_insert": Option(_parse_flag, "true"),
    "target_file_size": Option(_parse_size, str(512 * 1000 * 1000)),
    "write_deletion_vectors": Option(_parse_flag, "false"),
}


def parse_option(name: str, value: object, scope: str | None = None) -> str:
    """The text to store for a value of an option. Raises an OptionError if the value or the scope is invalid."""
    option = OPTIONS.get(name.lower())
    if option is None:
        raise OptionError(f"there is no option {name!r}; there are {', '.join(OPTIONS)}")
    if scope not in option.scopes:
        raise OptionError(f"option {name} holds for the whole lake and can not be set for one {scope}")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        return option.parse(text)
    except ValueError as error:
        raise OptionError(f"option {name} takes {error}, not {text!r}") from None


@dataclass(frozen=True)
class Options:
    """The options that are set in a lake. The first of these applies: table, schema, lake, default."""

    values: Mapping[OptionKey, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Defaults that take precedence over those of `OPTIONS`."""

    @classmethod
    def from_rows(
        cls, rows: Iterable[tuple[str | None, int | None, str, str]], defaults: Mapping[str, str] | None = None
    ) -> Options:
        return cls({(scope, scope_id, key): value for scope, scope_id, key, value in rows}, defaults or {})

    def get(self, name: str, schema_id: int | None = None, table_id: int | None = None) -> str | None:
        for scope, scope_id in (("table", table_id), ("schema", schema_id), (None, None)):
            if (scope is None or scope_id is not None) and (scope, scope_id, name) in self.values:
                return self.values[scope, scope_id, name]
        option = OPTIONS.get(name)
        return self.defaults.get(name, option.default if option else None)

    def flag(self, name: str, schema_id: int | None = None, table_id: int | None = None) -> bool:
        return (self.get(name, schema_id, table_id) or "false").lower() == "true"

    def explicit_value(self, name: str, schema_id: int, table_id: int) -> str | None:
        """The value that is set for the table, its schema or the lake; None if only a default applies."""
        keys: list[OptionKey] = [("table", table_id, name), ("schema", schema_id, name), (None, None, name)]
        return next((self.values[key] for key in keys if self.values.get(key) is not None), None)

    def number(self, name: str, schema_id: int | None = None, table_id: int | None = None) -> int | None:
        text = self.get(name, schema_id, table_id)
        return None if text is None else int(text)

    def with_values(self, values: Mapping[OptionKey, str | None]) -> Options:
        """These options with others set. The value None unsets an option."""
        merged = {**self.values, **values}
        return Options({key: value for key, value in merged.items() if value is not None}, self.defaults)
