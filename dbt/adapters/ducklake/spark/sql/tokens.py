"""The tokens of a statement as Spark reads them, and a cursor that parses them.

Queries and expressions are not parsed: the cursor only finds where they begin and end, so Spark gets them as written.
`query_tokens.py` is the lenient counterpart for queries, which accepts any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias, TypeVar, cast

from ...lake.errors import LakeError

Name: TypeAlias = tuple[str, ...]  # the parts of a name without quotes: ("lake", "main", "orders")
TokenKind: TypeAlias = Literal["word", "quoted", "string", "number", "symbol", "unclosed", "end"]
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
_COMMENT_MARK = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|[01][0-7]{2}|.)|(['\"])\2", re.DOTALL)
_ESCAPED_CHARACTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_CLOSING_KEYS = {"(": ")", "[": "]", "{": "}", "CASE": "END"}

QUERY_KEYWORDS = ("SELECT", "WITH", "VALUES", "TABLE", "FROM")


class StatementError(LakeError):
    """A statement has a syntax error, or asks for something that a lake does not support.

    The message names the statement, what was found and where, and what would be right.
    """


class Token(NamedTuple):
    kind: TokenKind
    key: str
    """A bare word in upper case, or a symbol; empty for all other kinds."""
    start: int
    end: int


def tokenize(sql: str, position: int = 0) -> Iterator[Token]:
    """Yields the tokens of a text, without comments and white space.

    A string, name or comment that is never closed is one token of the kind `unclosed`, up to the end of the text.
    """
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
            yield Token(cast(TokenKind, kind), "", match.start(), position)


def _comment_end(sql: str, position: int) -> int:
    """Returns the end of the comment that opens before `position`; -1 if it is never closed. Comments nest."""
    depth = 1
    while depth:
        mark = _COMMENT_MARK.search(sql, position)
        if mark is None:
            return -1
        depth += 1 if mark[0] == "/*" else -1
        position = mark.end()
    return position


def split_statements(sql: str) -> list[str]:
    """Splits a script at each `;` outside of quotes and comments; empty statements are left out."""
    statements, start, empty = [], 0, True
    for token in tokenize(sql):
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
    """Returns the value of a Spark string literal: without its quotes, with escapes resolved."""
    if literal[0] in "rR":
        return literal[2:-1]
    quote = literal[0]

    def resolve(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped is None:  # a doubled quote, which is one character if it is the literal's own quote
            return quote if match[2] == quote else match[0]
        if escaped[0] in "uU" and len(escaped) > 1:
            return chr(int(escaped[1:], 16))
        if len(escaped) == 3:
            return chr(int(escaped, 8))
        return _ESCAPED_CHARACTERS.get(escaped, escaped)

    text = _ESCAPE.sub(resolve, literal[1:-1])
    # As in Java, two \uXXXX that are a surrogate pair are one character.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def lowered(name: Name) -> Name:
    """Returns a name in lower case: names are compared without regard to case."""
    return tuple(part.lower() for part in name)


class Cursor:
    """A position in the tokens of one statement, which parsing moves forward; raises errors that name the position."""

    def __init__(self, sql: str, statement: str = "") -> None:
        self.sql = sql
        self.statement = statement
        """How errors refer to the statement: `ALTER TABLE main.orders`."""
        self.index = 0
        self.tokens = list(tokenize(sql))
        while self.tokens and self.tokens[-1].key == ";":
            self.tokens.pop()
        end = self.tokens[-1].end if self.tokens else len(sql)
        self.tokens.append(Token("end", "", end, end))
        self._check_is_one_statement()

    def _check_is_one_statement(self) -> None:
        for index, token in enumerate(self.tokens):
            if token.kind != "unclosed" and token.key != ";":
                continue
            self.index = index
            if token.key == ";":
                raise self.error(
                    f"a second statement follows the ; at {self.position()}. Send one statement at a time; "
                    "split_statements() takes a script apart"
                )
            opening = "/*" if self.sql.startswith("/*", token.start) else self.sql[token.start]
            raise self.error(f"the {opening} at {self.position()} is never closed")

    # Lookahead

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def peek(self, ahead: int) -> Token:
        """Returns the token that many steps ahead, and the last one, of kind `end`, for all beyond it."""
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def at(self, *keys: str) -> bool:
        """Whether the next tokens are these words and symbols."""
        return all(self.peek(ahead).key == key for ahead, key in enumerate(keys))

    def at_any(self, *keys: str) -> bool:
        return self.token.key != "" and self.token.key in keys

    def at_name(self) -> bool:
        return self.token.kind in ("word", "quoted")

    def at_string(self) -> bool:
        return self.token.kind == "string"

    def at_end(self) -> bool:
        return self.token.kind == "end"

    def at_query(self) -> bool:
        """Whether a query starts here, possibly in parentheses, and not a list of names in parentheses."""
        ahead = 0
        while self.peek(ahead).key == "(":
            ahead += 1
        starts = self.peek(ahead).key in QUERY_KEYWORDS
        return starts and (ahead == 0 or self.peek(ahead + 1).key not in (",", ")"))

    # Parsing

    def take(self, *keys: str) -> bool:
        """Steps over these words and symbols if they are next; returns whether they were."""
        found = self.at(*keys)
        if found:
            self.index += len(keys)
        return found

    def take_any(self, *keys: str) -> str:
        """Steps over one of these words and returns it; returns an empty string if none is next."""
        key = self.token.key
        if key and key in keys:
            self.index += 1
            return key
        return ""

    def expect(self, *keys: str) -> None:
        """Steps over these words and symbols; raises if they are not next."""
        if not self.take(*keys):
            raise self.unexpected(" ".join(keys))

    def finish(self) -> None:
        """Raises unless the statement ends here."""
        if not self.at_end():
            raise self.unexpected("the end of the statement")

    def begin(self, *words: str) -> None:
        """Steps over words at the beginning of a statement, and adds them to what errors call the statement."""
        self.expect(*words)
        self.statement = f"{self.statement} {' '.join(words)}".strip()

    def identifier(self, what: str) -> str:
        """Parses one part of a name; `what` describes it in errors."""
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
        """Parses a dotted name."""
        parts = [self.identifier(what)]
        while self.take("."):
            parts.append(self.identifier(f"{what}, continued after the dot"))
        return tuple(parts)

    def subject(self, what: str) -> Name:
        """Parses the name that the statement is about, and adds it to what errors call the statement."""
        name = self.name(what)
        self.statement += " " + ".".join(name)
        return name

    def alias(self, *next_keywords: str) -> str | None:
        """Parses an optional alias, with or without AS; `next_keywords` may follow, and are no alias without AS."""
        if self.take("AS") or (self.at_name() and self.token.key not in next_keywords):
            return self.identifier("an alias")
        return None

    def string(self, what: str) -> str:
        """Parses a string literal and returns its value; adjacent literals are one, as in Spark."""
        if not self.at_string():
            raise self.unexpected(f"{what}, a string in quotes")
        parts = []
        while self.at_string():
            parts.append(decode_string(self.sql[self.token.start : self.token.end]))
            self.index += 1
        return "".join(parts)

    def comma_separated(self, parse_item: Callable[[], T]) -> tuple[T, ...]:
        """Parses one or more items, separated by commas."""
        items = [parse_item()]
        while self.take(","):
            items.append(parse_item())
        return tuple(items)

    def parenthesized(self, parse_item: Callable[[], T]) -> tuple[T, ...]:
        """Parses one or more items, separated by commas, in parentheses."""
        self.expect("(")
        items = self.comma_separated(parse_item)
        if not self.take(")"):
            raise self.unexpected("a comma or )")
        return items

    def expression(self, what: str, *stops: str) -> str:
        """Returns the text up to a comma, a closing bracket or one of the words `stops` outside of brackets."""
        first, open_brackets = self.index, [""]
        while not self.at_end():
            token, previous = self.token, self.tokens[self.index - 1].key if self.index > first else ""
            if token.kind == "word" and previous == ".":
                pass  # a column: t.case, t.end, t.when
            elif token.key and token.key == open_brackets[-1]:
                open_brackets.pop()
            elif len(open_brackets) == 1 and self._ends_expression(stops, previous):
                break
            elif token.key in _CLOSING_KEYS:
                open_brackets.append(_CLOSING_KEYS[token.key])
            elif token.key == "<" and (open_brackets[-1] == ">" or self._opens_type_arguments(first)):
                open_brackets.append(">")
            elif token.key in (")", "]", "}"):
                raise self.unexpected(open_brackets[-1])
            self.index += 1
        if len(open_brackets) > 1:
            raise self.unexpected(open_brackets[-1])
        if self.index == first:
            raise self.unexpected(what)
        return self.text_since(first)

    def _ends_expression(self, stops: tuple[str, ...], previous: str) -> bool:
        """Whether the current token ends an expression, rather than being part of it."""
        key = self.token.key
        if key in (",", ")", "]", "}"):
            return True
        if key not in stops:
            return False
        if key == "FROM":
            return previous != "DISTINCT"  # IS DISTINCT FROM
        return key != "NOT" or (previous != "IS" and self.peek(1).key == "NULL")

    def _opens_type_arguments(self, first: int) -> bool:
        """Whether the < at the cursor opens the arguments of a type, as in x::map<string, int>."""
        before = self.tokens[max(first, self.index - 3) : self.index]
        return [token.key for token in before[:2]] == [":", ":"]

    def skip_parentheses(self) -> None:
        """Steps over parentheses and their content."""
        self.expect("(")
        depth = 1
        while depth:
            if self.at_end():
                raise self.unexpected(")")
            depth += self.at("(") - self.at(")")
            self.index += 1

    def text_since(self, first: int) -> str:
        """Returns the text from the token with that index to the token before the cursor."""
        return self.sql[self.tokens[first].start : self.tokens[self.index - 1].end]

    def rest(self, what: str) -> str:
        """Returns the text from here to the end of the statement."""
        if self.at_end():
            raise self.unexpected(what)
        start, self.index = self.token.start, len(self.tokens) - 1
        return self.sql[start : self.token.end]

    def whole_text(self) -> str:
        """Returns the text of the whole statement, and moves the cursor to its end."""
        self.index = 0
        return self.rest("a statement")

    def query(self) -> str:
        """Returns the text from here to the end of the statement, which must be a query."""
        if not (self.at_query() or self.at("(")):
            raise self.unexpected("a query")
        return self.rest("a query")

    # Errors

    def position(self) -> str:
        """Returns the line and the column of the current token, as 1:15."""
        before = self.sql[: self.token.start]
        return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"

    def found(self) -> str:
        """Returns the text of the current token for an error."""
        if self.at_end():
            return "the end of the statement"
        text = self.sql[self.token.start : self.token.end]
        return text if len(text) <= 60 else text[:57] + "..."

    def error(self, message: str) -> StatementError:
        return StatementError(f"{self.statement}: {message}." if self.statement else f"{message}.")

    def unexpected(self, expected: str) -> StatementError:
        """Returns the error for a token that is not allowed here."""
        return self.error(f"expected {expected}, found {self.found()} at {self.position()}")

    def refused(self, what: str, reason: str) -> StatementError:
        """Returns the error for something that is valid SQL but that a lake does not support."""
        return self.error(f"{what} at {self.position()} is not supported: {reason}")
