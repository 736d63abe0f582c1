"""The words of a SQL text as Spark reads them, and a cursor that steps over them.

Queries and expressions are never taken apart here: a cursor only finds where they begin and end, so
that Spark gets the characters that were written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias, TypeVar, cast

from ...lake.errors import LakeError

Name: TypeAlias = tuple[str, ...]  # a name's parts, without quotes: ("lake", "main", "orders")
Kind: TypeAlias = Literal["word", "quoted", "string", "number", "symbol", "unclosed", "end"]
T = TypeVar("T")

_PATTERN = re.compile(
    r"""
      (?P<space> \s+ | --(?:\\\n|[^\r\n])* )
    | (?P<comment> /\* )
    | (?P<string> [rR](?:'[^']*'|"[^"]*")
                | '[^'\\]*(?:(?:\\.|'')[^'\\]*)*'
                | "[^"\\]*(?:(?:\\.|"")[^"\\]*)*" )
    | (?P<quoted> `[^`]*(?:``[^`]*)*` )
    | (?P<unclosed> ['"`] )
    | (?P<number> (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:[bB][dD]|[lLsSyYfFdD])?(?!\w) )
    | (?P<word> \w+ )
    | (?P<symbol> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|[01][0-7]{2}|.)|(['\"])\2", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_CLOSING = {"(": ")", "[": "]", "{": "}", "CASE": "END"}

QUERY_WORDS = ("SELECT", "WITH", "VALUES", "TABLE", "FROM")


class StatementError(LakeError):
    """A statement that can not be taken: what it is, what was found and where, what would be right."""


class Token(NamedTuple):
    """One word of a SQL text; `key` is a bare word in capitals, or a symbol, and empty for the rest."""

    kind: Kind
    key: str
    start: int
    end: int


def scan(sql: str, position: int = 0) -> Iterator[Token]:
    """The tokens of a text, comments and space left out; what is not closed is one token to the end."""
    while match := _PATTERN.match(sql, position):
        kind, position = match.lastgroup, match.end()
        if kind == "space":
            continue
        if kind == "comment":
            position = _comment_end(sql, position)
            if position < 0:
                yield Token("unclosed", "", match.start(), len(sql))
                return
        elif kind == "word":
            yield Token("word", match[0].upper(), match.start(), position)
        elif kind == "symbol":
            yield Token("symbol", match[0], match.start(), position)
        elif kind == "unclosed":
            yield Token("unclosed", "", match.start(), len(sql))
            return
        else:
            yield Token(cast(Kind, kind), "", match.start(), position)


def _comment_end(sql: str, position: int) -> int:
    """Where a comment that was opened before `position` ends, nested ones included; -1: nowhere."""
    depth = 1
    while depth:
        edge = _COMMENT_EDGE.search(sql, position)
        if edge is None:
            return -1
        depth += 1 if edge[0] == "/*" else -1
        position = edge.end()
    return position


def split_statements(sql: str) -> list[str]:
    """The statements of a script, split at each `;` that is not quoted and not in a comment."""
    statements, start, empty = [], 0, True
    for token in scan(sql):
        if token.key != ";":
            empty = False
            continue
        if not empty:
            statements.append(sql[start : token.start].strip())
        start, empty = token.end, True
    if not empty:
        statements.append(sql[start:].strip())
    return statements


def decode_string(literal: str) -> str:
    """What a string literal of Spark says, its quotes and escapes resolved."""
    if literal[0] in "rR":
        return literal[2:-1]
    quote = literal[0]

    def resolve(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped is None:  # a doubled quote: one character where it is the literal's own quote
            return quote if match[2] == quote else match[0]
        if escaped[0] in "uU" and len(escaped) > 1:
            return chr(int(escaped[1:], 16))
        if len(escaped) == 3:
            return chr(int(escaped, 8))
        return _ESCAPED.get(escaped, escaped)

    text = _ESCAPE.sub(resolve, literal[1:-1])
    # Two \uXXXX of a surrogate pair are one character, as in Java.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def quote(part: str) -> str:
    """One part of a name, in backquotes."""
    return "`" + part.replace("`", "``") + "`"


def lowered(name: Name) -> Name:
    """A name as it is compared: case makes no difference."""
    return tuple(part.lower() for part in name)


def quote_name(name: Name) -> str:
    """A name as Spark takes it, every part in backquotes."""
    return ".".join(quote(part) for part in name)


def quote_string(text: str) -> str:
    """A text as a string literal of Spark."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class Cursor:
    """A place in one statement; it moves over what was recognised, and says what was not."""

    def __init__(self, sql: str, statement: str = "") -> None:
        self.sql = sql
        self.statement = statement  # what errors call this statement: "ALTER TABLE main.orders"
        self.index = 0
        self.tokens = list(scan(sql))
        while self.tokens and self.tokens[-1].key == ";":
            self.tokens.pop()
        end = self.tokens[-1].end if self.tokens else len(sql)
        self.tokens.append(Token("end", "", end, end))
        self._refuse_broken_text()

    def _refuse_broken_text(self) -> None:
        for index, token in enumerate(self.tokens):
            if token.kind != "unclosed" and token.key != ";":
                continue
            self.index = index
            if token.key == ";":
                raise self.error(
                    f"a second statement follows the ; at {self.place()}. Send one statement at a time; "
                    "split_statements() takes a script apart"
                )
            opening = "/*" if self.sql.startswith("/*", token.start) else self.sql[token.start]
            raise self.error(f"the {opening} at {self.place()} is never closed")

    # Looking

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def look(self, ahead: int) -> Token:
        """The token so many steps ahead; the end, beyond the end."""
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def at(self, *keys: str) -> bool:
        """Whether these words and symbols come next."""
        return all(self.look(ahead).key == key for ahead, key in enumerate(keys))

    def at_any(self, *keys: str) -> bool:
        return self.token.key != "" and self.token.key in keys

    def at_name(self) -> bool:
        return self.token.kind in ("word", "quoted")

    def at_string(self) -> bool:
        return self.token.kind == "string"

    def at_end(self) -> bool:
        return self.token.kind == "end"

    def at_query(self) -> bool:
        """Whether a query starts here, rather than a list of names in parentheses."""
        ahead = 0
        while self.look(ahead).key == "(":
            ahead += 1
        starts = self.look(ahead).key in QUERY_WORDS
        return starts and (ahead == 0 or self.look(ahead + 1).key not in (",", ")"))

    # Taking

    def take(self, *keys: str) -> bool:
        """Steps over these words and symbols if they come next; whether they did."""
        found = self.at(*keys)
        if found:
            self.index += len(keys)
        return found

    def take_any(self, *keys: str) -> str:
        """Steps over one of these words and returns it; empty if none comes next."""
        key = self.token.key
        if key and key in keys:
            self.index += 1
            return key
        return ""

    def expect(self, *keys: str) -> None:
        if not self.take(*keys):
            raise self.unexpected(" ".join(keys))

    def finish(self) -> None:
        """Promises that nothing follows."""
        if not self.at_end():
            raise self.unexpected("the end of the statement")

    def begin(self, *words: str) -> None:
        """Steps over the words that a statement begins with; from here on errors call it by them."""
        self.expect(*words)
        self.statement = f"{self.statement} {' '.join(words)}".strip()

    def part(self, what: str) -> str:
        """One part of a name, without its quotes."""
        token = self.token
        if not self.at_name():
            hint = " (names are quoted with backquotes)" if self.at_string() else ""
            raise self.unexpected(what + hint)
        text = self.sql[token.start : token.end]
        if token.kind == "quoted":
            text = text[1:-1].replace("``", "`")
            if not text:
                raise self.unexpected(f"{what} that is not empty")
        self.index += 1
        return text

    def name(self, what: str) -> Name:
        parts = [self.part(what)]
        while self.take("."):
            parts.append(self.part(f"{what}, continued after the dot"))
        return tuple(parts)

    def subject(self, what: str) -> Name:
        """The name that the statement is about; errors mention it from here on."""
        name = self.name(what)
        self.statement += " " + ".".join(name)
        return name

    def alias(self, *but: str) -> str | None:
        """An alias, with or without AS; `but` lists the words that mean there is none."""
        if self.take("AS") or (self.at_name() and self.token.key not in but):
            return self.part("an alias")
        return None

    def string(self, what: str) -> str:
        """The text of a string literal; literals side by side are one, as in Spark."""
        if not self.at_string():
            raise self.unexpected(f"{what}, a string in quotes")
        parts = []
        while self.at_string():
            parts.append(decode_string(self.sql[self.token.start : self.token.end]))
            self.index += 1
        return "".join(parts)

    def listed(self, one: Callable[[], T]) -> tuple[T, ...]:
        """One or more of something, separated by commas."""
        items = [one()]
        while self.take(","):
            items.append(one())
        return tuple(items)

    def parenthesised(self, one: Callable[[], T]) -> tuple[T, ...]:
        """One or more of something, separated by commas, in parentheses."""
        self.expect("(")
        items = self.listed(one)
        if not self.take(")"):
            raise self.unexpected("a comma or )")
        return items

    def expression(self, what: str, *stops: str) -> str:
        """The text up to a comma, a closing bracket or one of the words `stops` of the same level."""
        first, open_brackets = self.index, [""]
        while not self.at_end():
            token, previous = self.token, self.tokens[self.index - 1].key if self.index > first else ""
            if token.kind == "word" and previous == ".":
                pass  # t.case, t.end, t.when: a column
            elif token.key and token.key == open_brackets[-1]:
                open_brackets.pop()
            elif len(open_brackets) == 1 and self._ends(stops, previous):
                break
            elif token.key in _CLOSING:
                open_brackets.append(_CLOSING[token.key])
            elif token.key == "<" and (open_brackets[-1] == ">" or self._in_cast(first)):
                open_brackets.append(">")
            elif token.key in (")", "]", "}"):
                raise self.unexpected(open_brackets[-1])
            self.index += 1
        if len(open_brackets) > 1:
            raise self.unexpected(open_brackets[-1])
        if self.index == first:
            raise self.unexpected(what)
        return self.text_since(first)

    def _ends(self, stops: tuple[str, ...], previous: str) -> bool:
        """Whether this word ends an expression, rather than being a part of one."""
        key = self.token.key
        if key in (",", ")", "]", "}"):
            return True
        if key not in stops:
            return False
        if key == "FROM":
            return previous != "DISTINCT"  # IS DISTINCT FROM
        return key != "NOT" or (previous != "IS" and self.look(1).key == "NULL")

    def _in_cast(self, first: int) -> bool:
        """Whether the < here opens a type's arguments: x::map<string, int>."""
        before = self.tokens[max(first, self.index - 3) : self.index]
        return [token.key for token in before[:2]] == [":", ":"]

    def skip_parentheses(self) -> None:
        """Steps over ( and all up to its )."""
        self.expect("(")
        depth = 1
        while depth:
            if self.at_end():
                raise self.unexpected(")")
            depth += self.at("(") - self.at(")")
            self.index += 1

    def text_since(self, first: int) -> str:
        """The characters from the token with that index up to this place."""
        return self.sql[self.tokens[first].start : self.tokens[self.index - 1].end]

    def rest(self, what: str) -> str:
        """All characters from here to the statement's end."""
        if self.at_end():
            raise self.unexpected(what)
        start, self.index = self.token.start, len(self.tokens) - 1
        return self.sql[start : self.token.end]

    def query(self) -> str:
        if not (self.at_query() or self.at("(")):
            raise self.unexpected("a query")
        return self.rest("a query")

    # Errors

    def place(self) -> str:
        before = self.sql[: self.token.start]
        return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"

    def found(self) -> str:
        if self.at_end():
            return "the end of the statement"
        text = self.sql[self.token.start : self.token.end]
        return text if len(text) <= 60 else text[:57] + "..."

    def error(self, message: str) -> StatementError:
        return StatementError(f"{self.statement}: {message}." if self.statement else f"{message}.")

    def unexpected(self, expected: str) -> StatementError:
        """The error for a word that has no place here."""
        return self.error(f"expected {expected}, found {self.found()} at {self.place()}")

    def refused(self, what: str, reason: str) -> StatementError:
        """The error for something that is understood, and that a lake does not do."""
        return self.error(f"{what} at {self.place()} is not supported: {reason}")


def whole_name(text: str) -> Name | None:
    """The name that a text is, if it is nothing but one."""
    cursor = Cursor(text)
    try:
        name = cursor.name("a name")
    except StatementError:
        return None
    return name if cursor.at_end() else None
