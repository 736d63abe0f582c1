"""The lineage page: one HTML file that loads nothing, put together from the parts in the folder `page`."""

from __future__ import annotations

from pathlib import Path

_PARTS = Path(__file__).parent / "page"

_SCRIPTS = (
    "helpers.js",
    "index.js",
    "state.js",
    "list.js",
    "time_strip.js",
    "layout.js",
    "graph.js",
    "version_graph.js",
    "overview.js",
    "version.js",
    "main.js",
)
"""In the order in which they run. They share one scope."""


def lineage_page(lineage: str) -> str:
    """The page that shows a lineage, given as JSON."""
    # The JSON stands in a script element, so no character of it may begin a tag.
    for character in "<>&\u2028\u2029":
        lineage = lineage.replace(character, f"\\u{ord(character):04x}")
    before, _, after = _part("page.html").partition("/*LINEAGE*/")
    after = after.replace("/*SCRIPTS*/\n", "\n".join(map(_part, _SCRIPTS)))
    return before.replace("/*STYLE*/\n", _part("page.css")) + lineage + after


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")
