"""Which columns of a query's result hold only literals that its author wrote: of VALUES, and of SELECTs of literals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .query_keywords import SET_OPERATIONS, ends_from, is_operator_from, is_set_operation
from .query_tokens import QueryTokens

_CLAUSES = {"LATERAL", "LIMIT", "OFFSET"}


def literal_columns(sql: str, count: int) -> frozenset[int]:
    """Returns the indexes of the columns, of `count`, that are a string literal or NULL in each row.

    Each SELECT of a UNION counts. So do the columns of a VALUES that a SELECT names.

    >>> sorted(literal_columns("values ('2026-01-01', 1), (null, 2)", 2))
    [0]
    >>> sorted(literal_columns("select id, 'x' as note, upper('x') from t union all select 1, null, 'x'", 3))
    [1]
    >>> sorted(literal_columns("select col2, id from values ('a', 'b')", 2))
    [0]
    """
    are_literal = _Reader(QueryTokens(sql), count).query(0, None)
    if are_literal is None or len(are_literal) != count:
        return frozenset()
    return frozenset(i for i, is_literal in enumerate(are_literal) if is_literal)


class _Values(NamedTuple):
    """A VALUES in a FROM."""

    are_literal: list[bool]
    names: list[str]
    """The names of its columns in lower case."""
    alias: str | None


class _Reader:
    """Reads the outermost parts of a query. None stands for what it does not understand: nothing in it is literal.

    Methods take the index of a token, and the index at which their part of the text ends.
    """

    def __init__(self, tokens: QueryTokens, count: int) -> None:
        self.tokens = tokens
        self.count = count

    def query(self, i: int, stop: int | None) -> list[bool] | None:
        """Whether each column of a query is literal."""
        stop = self.tokens.count if stop is None else stop
        i = self._past_common_tables(i, stop)
        found: list[bool] | None = None
        while True:
            end = self._end_of_term(i, stop)
            part = self._term(i, end)
            if part is None or (found is not None and len(part) != len(found)):
                return None
            found = part if found is None else [a and b for a, b in zip(found, part, strict=True)]
            if end == stop or self.tokens.word(end) != "UNION":
                return found if self._is_trailing_clause(end, stop) else None
            i = end + 1
            while self.tokens.word(i) in ("ALL", "DISTINCT"):
                i += 1
            if self.tokens.word(i) == "BY":  # BY NAME matches columns by name
                return None

    def _past_common_tables(self, i: int, stop: int) -> int:
        """Steps over `with a as (select ...), b as (...)`."""
        if self.tokens.word(i) != "WITH":
            return i
        while i < stop:
            while i < stop and not (self.tokens[i].text == "(" and self.tokens.starts_query(self.tokens.inside[i])):
                i += 1
            i = self.tokens.past_parentheses(i)
            if self.tokens[i].text != ",":
                return i
            i += 1
        return i

    def _end_of_term(self, i: int, stop: int) -> int:
        """Where a SELECT or VALUES ends: at a set operation, at ORDER BY or LIMIT, or at a `|>`."""
        first = i
        while i < stop:
            is_end = (
                self._is_trailing_clause(i, stop)
                or self.tokens[i].text == "|>"
                or (self.tokens.word(i) in SET_OPERATIONS and is_set_operation(self.tokens, i))
            )
            if is_end and i > first:
                return i
            i = max(i + 1, self.tokens.past_parentheses(i))
        return stop

    def _is_trailing_clause(self, i: int, stop: int) -> bool:
        word = self.tokens.word(i)
        return i == stop or word in ("LIMIT", "OFFSET") or (word == "ORDER" and self.tokens.word(i + 1) == "BY")

    def _term(self, i: int, stop: int) -> list[bool] | None:
        if self.tokens[i].text == "(" and self.tokens.past_parentheses(i) == stop:
            return self.query(i + 1, stop - 1)
        if self.tokens.word(i) == "VALUES":
            rows, end = self._rows(i + 1, stop)
            return rows if end == stop or self.tokens.is_identifier(end) else None
        return self._select(i + 1, stop) if self.tokens.word(i) == "SELECT" else None

    def _select(self, i: int, stop: int) -> list[bool] | None:
        if self.tokens.word(i) in ("ALL", "DISTINCT"):
            i += 1
        end = i
        while end < stop and not self._ends_projection(end):
            end = max(end + 1, self.tokens.past_parentheses(end))
        values = self._inline_values(end + 1, stop) if self.tokens.word(end) == "FROM" else None
        items = list(self._items(i, end))
        stars = [index for index, (first, last) in enumerate(items) if self._is_star(first, last)]
        if len(stars) > 1:
            return None
        found = [self._is_literal(first, last) or self._is_literal_column(first, last, values) for first, last in items]
        for star in stars:
            width = self.count - len(items) + 1
            columns = values.are_literal if values is not None and len(values.are_literal) == width else [False] * width
            found[star : star + 1] = columns
        return found

    def _ends_projection(self, i: int) -> bool:
        word = self.tokens.word(i)
        if word == "FROM":
            return not is_operator_from(self.tokens, i, False)
        return word in _CLAUSES or ends_from(self.tokens, i, word)

    def _is_star(self, first: int, last: int) -> bool:
        """Whether an item is `*` or `t.*`, possibly with an EXCEPT."""
        i = first
        while i <= last:
            if self.tokens[i].text == "*" and (i == first or self.tokens[i - 1].text == "."):
                return True
            i = max(i + 1, self.tokens.past_parentheses(i))
        return False

    def _inline_values(self, i: int, stop: int) -> _Values | None:
        """The VALUES that is all of a FROM."""
        if self.tokens[i].text == "(" and self.tokens.word(i + 1) == "VALUES":
            closing = self.tokens.closing[i]
            rows, end = self._rows(i + 2, closing)
            if end != closing:
                return None
            end += 1
        elif self.tokens.word(i) == "VALUES":
            rows, end = self._rows(i + 1, stop)
        else:
            return None
        if rows is None:
            return None
        names, alias = [f"col{n}" for n in range(1, len(rows) + 1)], None
        if end < stop and self.tokens.word(end) == "AS":
            end += 1
        if end < stop and self.tokens.is_identifier(end) and not self._ends_projection(end):
            alias = self.tokens.identifier(end).lower()
            end += 1
            if end in self.tokens.closing:
                inside = range(end + 1, self.tokens.closing[end])
                names = [self.tokens.identifier(j).lower() for j in inside if self.tokens.is_identifier(j)]
                end = self.tokens.closing[end] + 1
        is_all = end >= stop or self._ends_projection(end)
        return _Values(rows, names, alias) if is_all and len(names) == len(rows) else None

    def _rows(self, i: int, stop: int) -> tuple[list[bool] | None, int]:
        """Whether each column of `('a', 1), ('b', 2)` is literal, and the index behind the rows."""
        found: list[bool] | None = None
        while i < stop:
            if i in self.tokens.closing:
                items, i = list(self._items(i + 1, self.tokens.closing[i])), self.tokens.closing[i] + 1
            else:
                first = i
                while i < stop and (self.tokens[i].kind == "string" or self.tokens.word(i) == "NULL"):
                    i += 1
                items = [(first, i - 1)]
            row = [self._is_literal(first, last) for first, last in items]
            if found is not None and len(found) != len(row):
                return None, i
            found = row if found is None else [a and b for a, b in zip(found, row, strict=True)]
            if self.tokens[i].text != ",":
                break
            i += 1
        return found, i

    def _items(self, i: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yields the first and the last token of each item of a list."""
        while i < stop:
            first, brackets = i, 0
            while i < stop and (brackets or self.tokens[i].text != ","):
                brackets += {"[": 1, "]": -1}.get(self.tokens[i].text, 0)
                i = max(i + 1, self.tokens.past_parentheses(i))
            yield first, min(i, stop) - 1
            i += 1

    def _is_literal(self, first: int, last: int) -> bool:
        """Whether an item is a string literal or NULL, possibly with an alias."""
        if first < last and self.tokens.is_identifier(last) and self.tokens[last].text != "NULL":
            last -= 2 if self.tokens[last - 1].text == "AS" else 1
        while first < last and self.tokens.closing.get(first) == last:
            first, last = first + 1, last - 1
        if first == last and self.tokens.word(first) == "NULL":
            return True
        return first <= last and all(self.tokens[i].kind == "string" for i in range(first, last + 1))

    def _is_literal_column(self, first: int, last: int, values: _Values | None) -> bool:
        """Whether an item is a column of a VALUES that is literal."""
        if values is None or not self.tokens.is_identifier(first):
            return False
        parts = self.tokens.dotted_name(first)
        name = tuple(part.lower() for part in self.tokens.identifiers(parts))
        alias = parts[-1] + (2 if self.tokens[parts[-1] + 1].text == "AS" else 1)
        is_only_name = parts[-1] == last or (alias == last and self.tokens.is_identifier(last))
        if not is_only_name or name[:-1] not in ((), (values.alias,)) or name[-1] not in values.names:
            return False
        return values.are_literal[values.names.index(name[-1])]


def is_string_literal(expression: str) -> bool:
    """Whether an expression is a string literal, possibly in parentheses.

    >>> is_string_literal("('2026-01-01')")
    True
    >>> is_string_literal("date'2026-01-01'")
    False
    """
    tokens = QueryTokens(expression)
    first, last = 0, tokens.count - 1
    while first < last and tokens.closing.get(first) == last:
        first, last = first + 1, last - 1
    return first <= last and all(tokens[i].kind == "string" for i in range(first, last + 1))
