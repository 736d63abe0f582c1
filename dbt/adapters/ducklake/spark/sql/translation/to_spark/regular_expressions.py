"""Regular expressions that RE2, which DuckDB uses, and Java, which Spark uses, match alike."""

from __future__ import annotations

import re

from ..expressions import Untranslatable

_TOKEN = re.compile(
    r"""
      (?P<class> \[\^?[\w\ \-,.;:@/]+\] )
    | (?P<escape> \\(?:[dwDW.\-/\]\[\\^$|*+?(){}]) )
    | (?P<quantifier> (?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\?? )
    | (?P<bar> \| )
    | (?P<start> ^\^ )
    | (?P<end> \$\Z )
    | (?P<dot> \. )
    | (?P<literal> [^\\\[\](){}*+?.^$|] )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_TRANSLATED = {"dot": r"[^\n]", "end": r"\z"}


def translate_pattern(pattern: str) -> str:
    r"""Returns a pattern of RE2's for Java, without groups; raises for what the two may not match alike.

    >>> translate_pattern("^a.c$")
    '^a[^\\n]c\\z'
    """
    pieces, position, last = [], 0, ""
    while position < len(pattern):
        match = _TOKEN.match(pattern, position)
        kind = "" if match is None else str(match.lastgroup)
        if match is None or (kind == "quantifier" and last not in ("class", "escape", "dot", "literal")):
            raise Untranslatable(f"the regular expression {pattern}")
        if kind == "bar" and ("^" in pattern[:1] or pattern.endswith("$")):
            raise Untranslatable(f"the regular expression {pattern}")
        pieces.append(_TRANSLATED.get(kind, match[0]))
        last, position = kind, match.end()
    return "".join(pieces)
