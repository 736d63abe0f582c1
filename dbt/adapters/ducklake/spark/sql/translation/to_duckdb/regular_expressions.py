"""Regular expressions that Java, which Spark uses, and RE2, which DuckDB uses, match alike."""

from __future__ import annotations

import re

from pyspark.sql.types import ArrayType

from .. import types as t
from ..expressions import Expression, Untranslatable
from .casts import cast
from .words import string

_TOKEN = re.compile(
    r"""
      (?P<class> \[\^?(?:\\[dwsDW.\-/\]\[\\^$|*+?(){}]|\\[tnr]|[^\[\]\\&])+\] )
    | (?P<escape> \\(?:[dwsDW]|[.\-/\]\[\\^$|*+?(){}]|[tnr]) )
    | (?P<quantifier> (?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\?? )
    | (?P<open> \((?:\?:|(?!\?)) )
    | (?P<close> \) )
    | (?P<bar> \| )
    | (?P<start> \^ )
    | (?P<end> \$ )
    | (?P<dot> \. )
    | (?P<literal> [^\\\[\](){}*+?.^$|] )
    """,
    re.VERBOSE | re.DOTALL,
)
_CLASSES = {r"\s": r"\t\n\x0B\f\r "}
"""What RE2 understands differently, as the content of a class."""
_LINE_END = r"\n\r\x{85}\x{2028}\x{2029}"
_PLAIN = re.compile(r"(?:[^\\\[\](){}*+?.^$|]|\\[^A-Za-z0-9])+", re.DOTALL)


def translate_pattern(pattern: str, anchors: bool) -> str:
    """Returns a pattern of Java's for RE2; raises for what the two do not match alike.

    `anchors` allows `$`, which takes a line end with it.
    """
    pieces, position = [], 0
    groups: list[bool] = []  # of each open group, whether something in it repeats
    repeats_group: list[bool] = []  # likewise of each closed one
    last = ""
    while position < len(pattern):
        match = _TOKEN.match(pattern, position)
        if match is None:
            raise Untranslatable(f"the regular expression {pattern}")
        kind, text = str(match.lastgroup), match[0]
        if kind == "quantifier":
            if last not in ("class", "escape", "dot", "literal", "group"):
                raise Untranslatable(f"the regular expression {pattern}")
            if last == "group" and repeats_group and repeats_group[-1]:
                raise Untranslatable(f"the regular expression {pattern}, with repetitions in a repeated group")
            for index in range(len(groups)):
                groups[index] = True
        elif kind == "open":
            groups.append(False)
        elif kind == "close":
            if not groups:
                raise Untranslatable(f"the regular expression {pattern}")
            repeats_group.append(groups.pop())
            kind = "group"
        elif kind == "start" and position and last not in ("open", "bar"):
            raise Untranslatable(f"the regular expression {pattern}")
        elif kind == "end":
            if not anchors or match.end() != len(pattern) or groups:
                raise Untranslatable(f"the regular expression {pattern}, with a $")
            text = rf"(?:\r\n|[{_LINE_END}])?$"
        elif kind == "dot":
            text = f"[^{_LINE_END}]"
        elif kind in ("class", "escape"):
            text = _translate_class(text, kind)
        pieces.append(text)
        last, position = kind, match.end()
    if groups:
        raise Untranslatable(f"the regular expression {pattern}")
    return "".join(pieces)


def _translate_class(text: str, kind: str) -> str:
    if kind == "escape":
        return f"[{_CLASSES[text]}]" if text in _CLASSES else text
    return re.sub(r"\\.", lambda match: _CLASSES.get(match[0], match[0]), text, flags=re.DOTALL)


def _pattern_of(pattern: Expression, anchors: bool) -> str:
    if not isinstance(pattern.constant, str):
        raise Untranslatable("a regular expression that is no literal")
    return string(translate_pattern(pattern.constant, anchors))


def regexp_like(value: Expression, pattern: Expression) -> Expression:
    text = cast(value, t.STRING)
    return Expression(f"regexp_matches({text.sql}, {_pattern_of(pattern, anchors=True)})", t.BOOLEAN)


def regexp_extract(value: Expression, pattern: Expression, group: Expression | None = None) -> Expression:
    number = 1 if group is None else group.constant
    translated = _pattern_of(pattern, anchors=False)
    if not isinstance(number, int) or not 0 <= number <= re.compile(str(pattern.constant)).groups:
        raise Untranslatable("regexp_extract() with a group that the pattern does not have")
    if isinstance(value.constant, str) and value.constant.isascii() and "\n" not in value.constant:
        match = re.search(str(pattern.constant), value.constant)
        found = "" if match is None else match[number] or ""
        return Expression(string(found), t.STRING, found)
    return Expression(f"regexp_extract({cast(value, t.STRING).sql}, {translated}, {number})", t.STRING)


def regexp_replace(value: Expression, pattern: Expression, replacement: Expression) -> Expression:
    translated = _pattern_of(pattern, anchors=False)
    if not isinstance(replacement.constant, str) or re.search(r"[\\$]", replacement.constant):
        raise Untranslatable("regexp_replace() with such a replacement")
    if re.compile(str(pattern.constant)).fullmatch(""):
        raise Untranslatable("regexp_replace() with a pattern that matches nothing")
    return Expression(f"regexp_replace({cast(value, t.STRING).sql}, {translated}, {replacement.sql}, 'g')", t.STRING)


def split(value: Expression, pattern: Expression) -> Expression:
    """Returns the parts of a text; only for patterns that match one text."""
    if not isinstance(pattern.constant, str) or not _PLAIN.fullmatch(pattern.constant):
        raise Untranslatable("split() with such a pattern")
    delimiter = re.sub(r"\\(.)", r"\1", pattern.constant, flags=re.DOTALL)
    return Expression(
        f"string_split({cast(value, t.STRING).sql}, {string(delimiter)})", ArrayType(t.STRING, containsNull=False)
    )
