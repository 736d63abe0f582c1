"""Names and strings, quoted for Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence


def quoted(name: str) -> str:
    """Returns one part of a name in backquotes."""
    return "`" + name.replace("`", "``") + "`"


def quoted_name(parts: Sequence[str]) -> str:
    """Returns a dotted name, each of its parts in backquotes."""
    return ".".join(map(quoted, parts))


def string_literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"
