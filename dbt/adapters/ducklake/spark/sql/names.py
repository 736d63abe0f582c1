"""Which relations a Spark SQL query names, and what its columns are qualified with.

The query is read as tokens, not as a tree: only what decides where a relation stands and what a
qualified column belongs to is understood (parentheses, clause words, `with`, aliases). Everything
else passes by, so syntax this module has never heard of costs nothing.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias


@dataclass(frozen=True)
class TimeTravel:
    """The version or the moment a relation is asked for; `expression` is its SQL text."""

    kind: Literal["version", "timestamp"]
    expression: str


@dataclass(frozen=True)
class RelationRef:
    """One place where a relation stands: `text[start:end]` is its name and its time travel clause.

    `name_end` is where the name alone ends. `alias_at` is where an alias may be written, behind a
    `tablesample`, and None where Spark allows none: `table t`.
    """

    parts: tuple[str, ...]
    start: int
    end: int
    time_travel: TimeTravel | None
    alias: str | None
    name_end: int
    alias_at: int | None


@dataclass(frozen=True)
class FunctionRef:
    """A table function in a FROM: `text[start:end]` is its name and its arguments.

    An argument is its keyword (`keyword => value`), or None, and its SQL text. `name` is unquoted,
    its parts joined by dots.
    """

    name: str
    arguments: tuple[tuple[str | None, str], ...]
    start: int
    end: int
    alias: str | None


@dataclass(frozen=True)
class CallRef:
    """A call of a function with a dotted name: `text[start:end]` is the name alone."""

    parts: tuple[str, ...]
    start: int
    end: int


Ref: TypeAlias = RelationRef | FunctionRef | CallRef


@dataclass(frozen=True)
class Source:
    """What a scope's columns may be qualified with: a relation's own name, or any alias."""

    names: tuple[str, ...]
    relation: RelationRef | None


@dataclass(frozen=True)
class Scope:
    """The sources of one SELECT, and the index of the scope around it when it may look outside."""

    parent: int | None
    sources: tuple[Source, ...]
    whole: bool
    """Whether it has every column of its sources: no join drops some, and no pivot."""


@dataclass(frozen=True)
class QualifiedColumn:
    """A dotted name that is no relation: `main.orders.id`, or with `star`, `main.orders.*`.

    Those of the names that are noted are here without dots too.
    """

    parts: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    scope: int
    star: bool


@dataclass(frozen=True)
class Star:
    """A `*` that stands for columns: of all sources, or of `column`.

    `end` is behind it. What its EXCEPT lists is `excepted`, and `list_at` is where the list begins.
    """

    end: int
    scope: int
    column: QualifiedColumn | None
    excepted: tuple[tuple[str, ...], ...]
    list_at: int | None


@dataclass(frozen=True)
class Names:
    """What a query names, in the order of the text.

    `query_at` is where the query starts behind a leading command, and None where none was found.
    """

    relations: tuple[RelationRef, ...]
    functions: tuple[FunctionRef, ...]
    calls: tuple[CallRef, ...]
    scopes: tuple[Scope, ...]
    columns: tuple[QualifiedColumn, ...]
    stars: tuple[Star, ...]
    query_at: int | None


def find_names(sql: str, noted: Collection[str] = ()) -> Names:
    """Every place of `sql` where a relation or a table function stands; names of CTEs are none.

    `noted` are names of columns, in lower case, that are looked for without a qualifier too. Any text
    gives an answer. Of a command only the query in it counts: `insert into t select ... from u` names `u`,
    `delete from t where id in (select id from u)` names `u`.
    """
    return _Reader(sql, noted).read()


def without_clutter(sql: str, names: Names, stand_in: str) -> str:
    """The query in `sql`, at its place in a text of the same length, as a simpler parser can read it.

    Comments, hints, time travel and a leading command are blank. `stand_in`, one character, replaces
    the characters of strings whose value depends on escapes or on the session's settings, and the
    digit that a name like `0x1F` starts with.
    """
    kept = [" "] * len(sql)
    for token in _tokens(sql):
        text = sql[token.start : token.end]
        if token.kind == "string" and not re.fullmatch(r"'[^'\\]*'|\"[^\"\\]*\"", text):
            text = f"'{stand_in * (len(text) - 2)}'" if len(text) > 1 else " "
        elif token.kind == "word" and text[0].isdigit():
            text = stand_in + text[1:]
        kept[token.start : token.end] = text
    for ref in names.relations:
        kept[ref.name_end : ref.end] = " " * (ref.end - ref.name_end)
    start = names.query_at or 0
    kept[:start] = " " * start
    return "".join(kept)


def has_pipes(sql: str) -> bool:
    return any(token.text == "|>" for token in _tokens(sql))


# Tokens


class _Token(NamedTuple):
    kind: str  # word, quoted, string, number, mark, end
    text: str  # a word in upper case, a mark as it is, nothing for the others
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


def _tokens(sql: str) -> Iterator[_Token]:
    at = 0
    while at < len(sql):
        found = _TOKEN.match(sql, at)
        assert found is not None  # the last alternative takes any character
        kind = found.lastgroup or ""
        if kind == "comment":
            at = _comment_end(sql, at)
            continue
        if kind == "word":
            yield _Token(kind, found.group().upper(), at, found.end())
        elif kind == "mark":
            yield _Token(kind, found.group(), at, found.end())
        elif kind != "space":
            yield _Token(kind, "", at, found.end())
        at = found.end()


def _comment_end(sql: str, start: int) -> int:
    """Where the comment at `start` ends; comments nest, hints do not."""
    if sql.startswith("/*+", start):
        end = sql.find("*/", start + 2)
        return len(sql) if end < 0 else end + 2
    depth = 0
    for mark in _COMMENT_MARK.finditer(sql, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(sql)


# The reader

_SET_OPERATIONS = {"UNION", "EXCEPT", "INTERSECT", "MINUS", "SETMINUS"}
_BY_CLAUSES = {"BIN", "GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"}
_ENDS_FROM = {"SELECT", "WHERE", "HAVING", "QUALIFY", "INSERT"}
_NO_ALIAS = {
    *_SET_OPERATIONS,
    *_ENDS_FROM,
    *("ANTI", "CROSS", "FULL", "INNER", "JOIN", "LATERAL", "LEFT", "NATURAL", "ON", "RIGHT", "SEMI"),
    *("ASOF", "AS", "FROM", "LIMIT", "MATCH_CONDITION", "OFFSET", "TABLESAMPLE", "USING", "WITH"),
}
_PARTIAL = {"SEMI", "ANTI", "NATURAL", "PIVOT", "UNPIVOT"}
_UNITS = {
    unit + plural
    for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
    for plural in ("", "S")
} | {"QUARTER", "QUARTERS"}
_OPERATORS = {"+", "-", "*", "/", "%", "|", "&", "^"}


@dataclass
class _Block:
    """A scope in the making."""

    index: int
    parent: int | None
    sources: list[tuple[tuple[str, ...], int | None]] = field(default_factory=list)
    whole: bool = True


class _Region(NamedTuple):
    """Tokens that are still to read, with what is visible there."""

    start: int
    stop: int
    kind: Literal["query", "relations", "expression", "arguments"]
    block: _Block
    ctes: frozenset[str]


class _Reader:
    """Reads regions of the text from a queue, so that depth of nesting costs no depth of calls."""

    def __init__(self, sql: str, noted: Collection[str] = ()) -> None:
        self.sql = sql
        self.noted = noted
        self.tokens = list(_tokens(sql))
        self.count = len(self.tokens)
        # reading a few tokens ahead needs no check for the end
        self.tokens += [_Token("end", "", len(sql), len(sql))] * 8
        self.close = self._closing_parentheses()
        self.inner = self._first_inside()
        self.blocks: list[_Block] = []
        self.relations: list[RelationRef] = []
        self.functions: list[FunctionRef] = []
        self.calls: list[CallRef] = []
        self.columns: list[QualifiedColumn] = []
        self.stars: list[Star] = []
        self.regions: deque[_Region] = deque()

    def read(self) -> Names:
        query_at = self._statement()
        while self.regions:
            self._region(self.regions.popleft())
        scopes = tuple(
            Scope(
                block.parent,
                tuple(
                    Source(names, None if place is None else self.relations[place]) for names, place in block.sources
                ),
                block.whole,
            )
            for block in self.blocks
        )
        by_start: Callable[[Ref], int] = lambda ref: ref.start  # noqa: E731
        return Names(
            tuple(sorted(self.relations, key=by_start)),
            tuple(sorted(self.functions, key=by_start)),
            tuple(sorted(self.calls, key=by_start)),
            scopes,
            tuple(self.columns),
            tuple(self.stars),
            query_at,
        )

    # What stands where

    def _closing_parentheses(self) -> dict[int, int]:
        """The place of the parenthesis that closes each one opened; the end for one never closed."""
        close, opened = {}, []
        for i in range(self.count):
            text = self.tokens[i].text
            if text == "(":
                opened.append(i)
            elif text == ")" and opened:
                close[opened.pop()] = i
        return close | dict.fromkeys(opened, self.count)

    def _first_inside(self) -> list[int]:
        """For each token, the first one from there on that opens no parenthesis."""
        inner = list(range(len(self.tokens)))
        for i in range(self.count - 1, -1, -1):
            if self.tokens[i].text == "(":
                inner[i] = inner[i + 1]
        return inner

    def _word(self, i: int) -> str:
        """The word at `i` in upper case; nothing when it is part of a dotted name or no plain word."""
        token = self.tokens[i]
        return token.text if token.kind == "word" and self.tokens[i + 1].text != "." else ""

    def _is_identifier(self, i: int) -> bool:
        return self.tokens[i].kind in ("word", "quoted")

    def _identifier(self, i: int) -> str:
        token = self.tokens[i]
        text = self.sql[token.start : token.end]
        if token.kind != "quoted":
            return text
        return (text[1:-1] if len(text) > 1 and text.endswith("`") else text[1:]).replace("``", "`")

    def _dotted(self, i: int) -> list[int]:
        """The places of the identifiers of the dotted name that starts at `i`."""
        places = [i]
        while self.tokens[i + 1].text == "." and self._is_identifier(i + 2):
            i += 2
            places.append(i)
        return places

    def _starts_query(self, i: int) -> bool:
        word, following = self._word(i), self.tokens[i + 1]
        if word in ("SELECT", "FROM"):
            return following.text not in (")", ",", "=", "<", ">")
        if word == "VALUES":
            return following.text == "(" or following.kind in ("word", "number", "string")
        if word in ("WITH", "TABLE", "MAP", "REDUCE"):
            return self._is_identifier(i + 1)
        return False

    def _block(self, parent: int | None) -> _Block:
        block = _Block(len(self.blocks), parent)
        self.blocks.append(block)
        return block

    # Statements

    def _statement(self) -> int | None:
        """Queues the query of a statement and gives its place in the text.

        What is no query is queued as an expression: only subqueries count.
        """
        i = 0
        block = self._block(None)
        while self._word(i) == "EXPLAIN":
            i += 1
            if self._word(i) in ("EXTENDED", "CODEGEN", "COST", "FORMATTED", "LOGICAL"):
                i += 1
        if self._word(i) in ("DESCRIBE", "DESC"):
            i += 2 if self._word(i + 1) == "QUERY" else 1
        elif self._word(i) in ("CREATE", "REPLACE", "ALTER", "CACHE"):
            for place in range(i, self.count):
                if self._word(place) == "AS" and self._starts_query(self.inner[place + 1]):
                    i = place + 1
                    break
        kind: Literal["query", "expression"] = "expression"
        if self._starts_query(self.inner[i]) or self._word(i) == "INSERT":
            kind = "query"
        self.regions.append(_Region(i, self.count, kind, block, frozenset()))
        return self.tokens[i].start if kind == "query" else None

    def _insert_target(self, i: int) -> int:
        """The place behind `insert into t partition (...) (columns)`, where the query starts."""
        while self._word(i) in ("INSERT", "INTO", "OVERWRITE", "TABLE", "LOCAL", "DIRECTORY"):
            i += 1
        i = self._dotted(i)[-1] + 1
        while i < self.count and not self._starts_query(self.inner[i]):
            i = self.close[i] + 1 if i in self.close else i + 1
        return i

    def _with(self, i: int, region: _Region) -> tuple[int, frozenset[str]]:
        """The place behind a WITH clause, and the CTEs visible from there."""
        ctes = region.ctes
        i += 1
        recursive = self._word(i) == "RECURSIVE" and self._is_identifier(i + 1) and self._word(i + 1) != "AS"
        if recursive:
            i += 1
        while self._is_identifier(i):
            name = self._identifier(i).lower()
            i += 1
            if self.tokens[i].text == "(" and not self._starts_query(self.inner[i]):
                i = self.close[i] + 1
            while i < region.stop and self.tokens[i].text != "(":
                i += 1
            if i >= region.stop:
                break
            body = self._block(region.block.parent)
            visible = ctes | {name} if recursive else ctes
            self.regions.append(_Region(i + 1, self.close[i], "query", body, visible))
            ctes |= {name}
            i = self.close[i] + 1
            if self.tokens[i].text != ",":
                break
            i += 1
        return i, ctes

    # Regions

    def _region(self, region: _Region) -> None:
        """Reads a region's tokens, and queues the queries inside its parentheses."""
        i, stop, kind, block, ctes = region
        clauses = kind in ("query", "relations")
        in_from = expects_relation = kind == "relations"
        at_start = kind == "query"
        plain_until = -1  # inside an expression's parentheses up to here: no clause starts
        piped_from: _Block | None = None  # whose columns count again after `|> union ...`
        while i < stop:
            if expects_relation:
                i = self._relation(i, stop, block, ctes)
                expects_relation = False
                continue
            token = self.tokens[i]
            word = self._word(i) if clauses and i > plain_until else ""
            starting, at_start = at_start, False
            if token.text == "(":
                if self._starts_query(self.inner[i]):
                    inside = self._block(block.index)
                    self.regions.append(_Region(i + 1, self.close[i], "query", inside, ctes))
                    i = self.close[i] + 1
                    continue
                plain_until = max(plain_until, self.close[i])
                i += 1
            elif token.text == "," and in_from and i > plain_until:
                expects_relation = True
                i += 1
            elif token.text == "|>" and clauses:
                in_from = self._joins(i + 1)
                block, piped_from = piped_from or block, None
                if self._word(i + 1) in _SET_OPERATIONS:
                    piped_from = block
                i += 1
            elif token.text in (".", ":") and self._is_identifier(i + 1):
                i = self._dotted(i + 1)[-1] + 1  # a field of a value, a parameter
            elif starting and word == "WITH":
                i, ctes = self._with(i, region)
                at_start = True
            elif word == "INSERT" and (starting or in_from):
                i = self._insert_target(i)
                at_start, in_from = True, False
            elif starting and word == "TABLE" and self._is_identifier(i + 1):
                i = self._relation(i + 1, stop, block, ctes, alias_allowed=False)
            elif word == "FROM" and not self._is_operator_from(i, in_from):
                in_from = expects_relation = True
                i += 1
            elif word == "JOIN" and in_from:
                expects_relation = True
                i += 1
            elif word in _SET_OPERATIONS and self._is_set_operation(i):
                i += 1
                while self._word(i) in ("ALL", "DISTINCT", "BY", "NAME"):
                    i += 1
                block = self._block(region.block.parent)
                at_start, in_from = True, False
            elif word == "LATERAL" and self._word(i + 1) == "VIEW":
                self._lateral_view_alias(i + 2, block)
                in_from = False
                i += 2
            elif kind == "arguments" and token.text == "TABLE" and self._names_table_argument(i + 1):
                i = self._relation(self.inner[i + 1], stop, block, ctes, alias_allowed=False)
            elif token.text == "*" and self._is_star(i):
                self._star(i, block, None)
                i += 1
            elif token.kind in ("word", "quoted"):
                if in_from and self._ends_from(i, word):
                    in_from = False
                if in_from and word in _PARTIAL:
                    block.whole = False
                i = self._column(i, block)
            else:
                i += 1

    def _is_operator_from(self, i: int, in_from: bool) -> bool:
        before, earlier = self.tokens[max(i - 1, 0)].text, self.tokens[max(i - 2, 0)].text
        return (before == "DISTINCT" and earlier in ("IS", "NOT")) or (before == "CHANGES" and in_from)

    def _is_set_operation(self, i: int) -> bool:
        if self.tokens[i - 1].text == "*":  # select * except (column)
            return False
        following = self._word(i + 1)
        return (
            self._starts_query(self.inner[i + 1])
            or following in ("ALL", "DISTINCT")
            or (following == "BY" and self._word(i + 2) == "NAME")
        )

    def _ends_from(self, i: int, word: str) -> bool:
        following = self._word(i + 1)
        return (
            word in _ENDS_FROM
            or (word in _BY_CLAUSES and following == "BY")
            or (word == "WINDOW" and self._is_identifier(i + 1) and self._word(i + 2) == "AS")
            or (word in ("MAP", "REDUCE") and self._is_identifier(i + 1))
        )

    def _joins(self, i: int) -> bool:
        """Whether a join starts at `i`: at most three words come before JOIN."""
        for place in range(i, i + 4):
            if self._word(place) == "JOIN":
                return True
            if not self._word(place):
                return False
        return False

    def _names_table_argument(self, i: int) -> bool:
        """Whether `table` before `i` has a relation's name behind it, not a query."""
        if self.tokens[i].text != "(":
            return self._is_identifier(i) and self.tokens[i + 1].text != "=>"
        return self._is_identifier(self.inner[i]) and not self._starts_query(self.inner[i])

    def _column(self, i: int, block: _Block) -> int:
        """Notes the dotted name at `i`, and gives the place behind it."""
        places = self._dotted(i)
        after = places[-1] + 1
        star = self.tokens[after].text == "." and self.tokens[after + 1].text == "*"
        if len(places) > 1 and self.tokens[after].text == "(":
            called = tuple(self._identifier(place) for place in places)
            self.calls.append(CallRef(called, self.tokens[i].start, self.tokens[places[-1]].end))
        elif star or len(places) > 1 or (self._identifier(i).lower() in self.noted and self.tokens[after].text != "("):
            column = QualifiedColumn(
                tuple(self._identifier(place) for place in places),
                tuple((self.tokens[place].start, self.tokens[place].end) for place in places),
                block.index,
                star,
            )
            self.columns.append(column)
            if star:
                self._star(after + 1, block, column)
        return after + 2 if star else after

    def _is_star(self, i: int) -> bool:
        """Whether the `*` at `i` stands for columns; it multiplies, or counts, otherwise."""
        before = self.tokens[i - 1].text if i else ""
        counts = before == "(" and i > 1 and self.tokens[i - 2].text == "COUNT"
        return before in ("SELECT", "DISTINCT", "ALL", ",", "(") and not counts

    def _star(self, i: int, block: _Block, column: QualifiedColumn | None) -> None:
        excepted: list[tuple[str, ...]] = []
        list_at = None
        if self.tokens[i + 1].text == "EXCEPT" and i + 2 in self.close and not self._starts_query(i + 3):
            list_at = self.tokens[i + 2].end
            place = i + 3
            while place < self.close[i + 2]:
                if self._is_identifier(place):
                    dotted = self._dotted(place)
                    excepted.append(tuple(self._identifier(part) for part in dotted))
                    place = dotted[-1]
                place += 1
        self.stars.append(Star(self.tokens[i].end, block.index, column, tuple(excepted), list_at))

    def _lateral_view_alias(self, i: int, block: _Block) -> None:
        if self._word(i) == "OUTER":
            i += 1
        after = self.close.get(self._dotted(i)[-1] + 1, self.count) + 1
        if after < self.count and self._is_identifier(after) and self._word(after) not in _NO_ALIAS:
            block.sources.append(((self._identifier(after),), None))

    # Relations

    def _relation(self, i: int, stop: int, block: _Block, ctes: frozenset[str], alias_allowed: bool = True) -> int:
        """Notes the relation that starts at `i`, and gives the place behind it and its alias."""
        lateral = self._word(i) == "LATERAL"
        if lateral:
            i += 1
        if i >= stop:
            return i
        if self.tokens[i].text == "(":
            if self._starts_query(i + 1) and self._word(i + 1) != "VALUES":
                inside = self._block(block.index if lateral else block.parent)
                self.regions.append(_Region(i + 1, self.close[i], "query", inside, ctes))
            else:  # a join in parentheses: its relations are visible outside too
                self.regions.append(_Region(i + 1, self.close[i], "relations", block, ctes))
            return self._derived_alias(self._behind_sample(self.close[i] + 1), block)
        if self._starts_query(i) and self._word(i) == "VALUES":
            return self._values(i + 1, stop, block, ctes)
        if not self._is_identifier(i) or self._word(i) in ("SELECT", "WHERE"):
            return i
        places = self._dotted(i)
        parts = tuple(self._identifier(place) for place in places)
        after = places[-1] + 1
        if self.tokens[after].text == "(":
            named = self._identifier_clause(i) if self._word(i) == "IDENTIFIER" else None
            if named is None:
                return self._function(i, after, ".".join(parts), block, ctes)
            parts, after = named, self.close[after] + 1
        name_end = self.tokens[after - 1].end
        travel, after = self._time_travel(after, stop) if alias_allowed else (None, after)
        end = self.tokens[after - 1].end
        alias: str | None = None
        alias_at: int | None = None
        if alias_allowed:
            after = self._behind_sample(after)
            alias_at = self.tokens[after - 1].end
            alias, after = self._alias(after)
        if len(parts) == 1 and parts[0].lower() in ctes:
            block.sources.append(((alias or parts[0],), None))
            return after
        start = self.tokens[i].start
        block.sources.append(((alias,) if alias else parts, len(self.relations)))
        self.relations.append(RelationRef(parts, start, end, travel, alias, name_end, alias_at))
        return after

    def _alias(self, i: int) -> tuple[str | None, int]:
        """The alias that stands at `i`, if any, and the place behind it and its column names."""
        if self._word(i) == "AS" and self._is_identifier(i + 1):
            i += 1
        elif not self._is_identifier(i) or self._is_clause(i):
            return None, i
        after = i + 1
        return self._identifier(i), self.close[after] + 1 if after in self.close else after

    def _is_clause(self, i: int) -> bool:
        word, following = self._word(i), self.tokens[i + 1].text
        return (
            word in _NO_ALIAS
            or self._ends_from(i, word)
            or (word in ("PIVOT", "UNPIVOT") and following in ("(", "INCLUDE", "EXCLUDE"))
        )

    def _derived_alias(self, i: int, block: _Block) -> int:
        alias, after = self._alias(i)
        if alias is not None:
            block.sources.append(((alias,), None))
        return after

    def _behind_sample(self, i: int) -> int:
        """The place behind `with (options)` and `tablesample (...) repeatable (...)`."""
        if self._word(i) == "WITH" and self.tokens[i + 1].text == "(":
            i = self.close[i + 1] + 1
        if self._word(i) == "TABLESAMPLE":
            i += 1
            if self._word(i) in ("SYSTEM", "BERNOULLI"):
                i += 1
            i = self.close[i] + 1 if i in self.close else i
            if self._word(i) == "REPEATABLE" and i + 1 in self.close:
                i = self.close[i + 1] + 1
        return min(i, self.count)

    def _identifier_clause(self, i: int) -> tuple[str, ...] | None:
        """The name in `identifier('main.orders')`; None when an expression makes the name."""
        token = self.tokens[i + 2]
        if token.kind != "string" or self.tokens[i + 3].text != ")" or self.tokens[i + 4].text == ".":
            return None
        text = self.sql[token.start : token.end]
        if not re.fullmatch(r"'[^'\\]+'|\"[^\"\\]+\"", text):
            return None
        return name_parts(text[1:-1])

    def _function(self, i: int, opened: int, name: str, block: _Block, ctes: frozenset[str]) -> int:
        closed = self.close[opened]
        arguments = tuple(self._arguments(opened + 1, closed))
        inside = self._block(block.index)
        self.regions.append(_Region(opened + 1, closed, "arguments", inside, ctes))
        alias, after = self._alias(min(closed + 1, self.count))
        start, end = self.tokens[i].start, self.tokens[closed].end
        self.functions.append(FunctionRef(name, arguments, start, end, alias))
        block.sources.append(((alias or name.split(".")[-1],), None))
        return after

    def _arguments(self, i: int, stop: int) -> Iterator[tuple[str | None, str]]:
        while i < stop:
            first, brackets = i, 0
            while i < stop and (brackets or self.tokens[i].text != ","):
                brackets += {"[": 1, "]": -1}.get(self.tokens[i].text, 0)
                i = self.close[i] + 1 if i in self.close else i + 1
            last = min(i, stop) - 1
            keyword = None
            if first < last and self._is_identifier(first) and self.tokens[first + 1].text == "=>":
                keyword, first = self._identifier(first), first + 2
            text = self.sql[self.tokens[first].start : self.tokens[last].end] if first <= last else ""
            yield keyword, text
            i += 1

    def _values(self, i: int, stop: int, block: _Block, ctes: frozenset[str]) -> int:
        """The place behind the rows and the alias of `values (1, 2), (3, 4) as t(a, b)`."""
        first = i
        while i < stop:
            while i < stop and self.tokens[i].text not in (",", "AS", "|>") and not self._is_join_or_clause(i):
                closes_row = i in self.close
                i = self.close[i] + 1 if closes_row else i + 1
                if closes_row and self._is_identifier(i):
                    break
            if self.tokens[i].text != ",":
                break
            i += 1
        i = min(i, stop)
        self.regions.append(_Region(first, i, "expression", self._block(block.index), ctes))
        return self._derived_alias(i, block)

    def _is_join_or_clause(self, i: int) -> bool:
        # LEFT and RIGHT are functions too
        return self._is_identifier(i) and self._is_clause(i) and self.tokens[i + 1].text != "("

    # Time travel

    def _time_travel(self, i: int, stop: int) -> tuple[TimeTravel | None, int]:
        """The time travel clause at `i`, if any, and the place behind it."""
        if self._word(i) == "AT" and self.tokens[i + 1].text == "(" and self.tokens[i + 3].text == "=>":
            closed = self.close[i + 1]
            what = self._word(i + 2).lower()
            if i + 4 < closed < self.count and (what == "version" or what == "timestamp"):
                text = self.sql[self.tokens[i + 4].start : self.tokens[closed - 1].end]
                return TimeTravel("version" if what == "version" else "timestamp", text), closed + 1
            return None, i
        first = i + 1 if self._word(i) == "FOR" else i
        if self._word(first + 1) != "AS" or self._word(first + 2) != "OF":
            return None, i
        kinds: dict[str, Literal["version", "timestamp"]] = {
            "VERSION": "version",
            "SYSTEM_VERSION": "version",
            "TIMESTAMP": "timestamp",
            "SYSTEM_TIME": "timestamp",
        }
        kind = kinds.get(self._word(first))
        after = self._value_end(first + 3, stop)
        if kind is None or after == first + 3:
            return None, i
        text = self.sql[self.tokens[first + 3].start : self.tokens[after - 1].end]
        return TimeTravel(kind, text), after

    def _value_end(self, i: int, stop: int) -> int:
        """The place behind the value expression at `i`: operands with arithmetic between them."""
        i = self._operand_end(i, stop)
        while i < stop and (self.tokens[i].text in _OPERATORS or self._word(i) == "DIV"):
            while i < stop and (self.tokens[i].text in _OPERATORS or self._word(i) == "DIV"):
                i += 1
            i = self._operand_end(i, stop)
        return min(i, stop)

    def _operand_end(self, i: int, stop: int) -> int:
        while self.tokens[i].text in ("-", "+", "~"):
            i += 1
        word = self._word(i)
        if i >= stop:
            return i
        if word == "INTERVAL" and self.tokens[i + 1].text not in (",", ")", "("):
            i = self._interval_end(i + 1)
        elif word == "CASE":
            depth = 0
            while i < stop:
                depth += {"CASE": 1, "END": -1}.get(self._word(i), 0)
                i += 1
                if depth == 0:
                    break
        elif self.tokens[i].text == "(":
            i = self.close[i] + 1
        elif self._is_identifier(i):
            i = self._dotted(i)[-1] + 1
            if self.tokens[i].kind == "string":  # date '2024-01-01'
                i += 1
            elif i in self.close:
                i = self.close[i] + 1
        elif self.tokens[i].kind in ("number", "string") or self.tokens[i].text == "?":
            i += 1
            while self.tokens[i].kind == "string":
                i += 1
        elif self.tokens[i].text == ":" and self._is_identifier(i + 1):
            i += 2
        while self.tokens[i].text in (".", "::", "[") and i < stop:
            if self.tokens[i].text == "[":
                while i < stop and self.tokens[i].text != "]":
                    i += 1
                i += 1
            else:
                i += 2
                if i in self.close:
                    i = self.close[i] + 1
        return i

    def _interval_end(self, i: int) -> int:
        while True:
            value = i + 1 if self.tokens[i].text in ("-", "+") else i
            if self.tokens[value].kind not in ("number", "string"):
                return i
            i = value + 1
            if self._word(i) in _UNITS:
                i += 1
            if self._word(i) == "TO" and self._word(i + 1) in _UNITS:
                i += 2


def name_parts(name: str) -> tuple[str, ...] | None:
    """The identifiers of a dotted name alone, ``main.`odd name` ``; None for any other text."""
    reader = _Reader(name)
    places = reader._dotted(0)
    if not reader._is_identifier(0) or places[-1] + 1 != reader.count:
        return None
    return tuple(reader._identifier(place) for place in places)
