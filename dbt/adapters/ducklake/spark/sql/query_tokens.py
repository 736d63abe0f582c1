"""The tokens of a query, with its parentheses paired.

Any text can be read, broken SQL included: nothing here raises. `tokens.py` is the strict counterpart for statements,
whose syntax is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class QueryToken(NamedTuple):
    kind: str
    """`word`, `quoted`, `string`, `number`, `mark` or `end`."""
    text: str
    """A word in upper case, or a mark as written; empty for all other kinds."""
    start: int
    end: int


_TOKEN = re.compile(
    r"""
      (?P<space> \s+ | --(?:\\\n|[^\r\n])* )
    | (?P<comment> /\* )
    | (?P<string> r'[^']*'? | r"[^"]*"?
                | '[^'\\]*(?:(?:\\.|'')[^'\\]*)*'? | "[^"\\]*(?:(?:\\.|"")[^"\\]*)*"?
                | \$(?P<tag>[a-z]*)\$.*?\$(?P=tag)\$ )
    | (?P<quoted> `(?:[^`]|``)*`? )
    | (?P<number> (?:\d+\.\d*|\.\d+|\d+)(?:e[+-]?\d+)?(?:bd|[lsyfd])?(?!\w) )
    | (?P<word> [a-z]+://[\w/.?=&\#%-]+ | \w+ )
    | (?P<mark> <=> | => | -> | :: | \|> | . )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")
_LOOKAHEAD = 8


def query_tokens(sql: str) -> Iterator[QueryToken]:
    """Yields the tokens of a text, without comments and white space."""
    position = 0
    while position < len(sql):
        match = _TOKEN.match(sql, position)
        assert match is not None  # the last alternative takes any character
        kind = match.lastgroup or ""
        if kind == "comment":
            position = _comment_end(sql, position)
            continue
        if kind == "word":
            yield QueryToken(kind, match.group().upper(), position, match.end())
        elif kind == "mark":
            yield QueryToken(kind, match.group(), position, match.end())
        elif kind != "space":
            yield QueryToken(kind, "", position, match.end())
        position = match.end()


def _comment_end(sql: str, start: int) -> int:
    """Returns the end of the comment at `start`; comments nest, hints do not."""
    if sql.startswith("/*+", start):
        end = sql.find("*/", start + 2)
        return len(sql) if end < 0 else end + 2
    depth = 0
    for mark in _COMMENT_MARK.finditer(sql, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(sql)


class QueryTokens:
    """The tokens of one text by index; a few indexes past the last token are `end` tokens."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._tokens = list(query_tokens(sql))
        self.count = len(self._tokens)
        # Padding, so that code that reads a few tokens ahead needs no check for the end.
        self._tokens += [QueryToken("end", "", len(sql), len(sql))] * _LOOKAHEAD
        self.closing = self._closing_parentheses()
        """The index of the closing parenthesis by that of the opening one; `count` if it is never closed."""
        self.inside = self._first_inside()
        """For each token the index of the first one from there on that is no opening parenthesis."""

    def __getitem__(self, i: int) -> QueryToken:
        return self._tokens[i]

    def _closing_parentheses(self) -> dict[int, int]:
        closing, open_parentheses = {}, []
        for i in range(self.count):
            text = self._tokens[i].text
            if text == "(":
                open_parentheses.append(i)
            elif text == ")" and open_parentheses:
                closing[open_parentheses.pop()] = i
        return closing | dict.fromkeys(open_parentheses, self.count)

    def _first_inside(self) -> list[int]:
        inside = list(range(len(self._tokens)))
        for i in range(self.count - 1, -1, -1):
            if self._tokens[i].text == "(":
                inside[i] = inside[i + 1]
        return inside

    def word(self, i: int) -> str:
        """Returns the word at `i` in upper case; empty if it is no plain word, or a dot follows."""
        token = self._tokens[i]
        return token.text if token.kind == "word" and self._tokens[i + 1].text != "." else ""

    def is_identifier(self, i: int) -> bool:
        return self._tokens[i].kind in ("word", "quoted")

    def identifier(self, i: int) -> str:
        """Returns the identifier at `i`, without backquotes."""
        token = self._tokens[i]
        text = self.sql[token.start : token.end]
        if token.kind != "quoted":
            return text
        return (text[1:-1] if len(text) > 1 and text.endswith("`") else text[1:]).replace("``", "`")

    def dotted_name(self, i: int) -> list[int]:
        """Returns the indexes of the identifiers of the dotted name that starts at `i`."""
        parts = [i]
        while self._tokens[i + 1].text == "." and self.is_identifier(i + 2):
            i += 2
            parts.append(i)
        return parts

    def identifiers(self, parts: list[int]) -> tuple[str, ...]:
        return tuple(self.identifier(i) for i in parts)

    def starts_query(self, i: int) -> bool:
        word, following = self.word(i), self._tokens[i + 1]
        if word in ("SELECT", "FROM"):
            return following.text not in (")", ",", "=", "<", ">")
        if word == "VALUES":
            return following.text == "(" or following.kind in ("word", "number", "string")
        if word in ("WITH", "TABLE", "MAP", "REDUCE"):
            return self.is_identifier(i + 1)
        return False

    def past_parentheses(self, i: int) -> int:
        """Returns the index behind the parentheses that open at `i`; `i` itself if none open there."""
        return self.closing[i] + 1 if i in self.closing else i

    def source(self, first: int, last: int) -> str:
        """Returns the text from the token `first` to the token `last`, both included."""
        return self.sql[self._tokens[first].start : self._tokens[last].end]
