"""Finds the relations, functions and columns that a Spark SQL query names.

The query is read as tokens, not as a tree. Only what decides where a relation stands and what a qualified column
belongs to is parsed: parentheses, clause words, `with`, aliases. Everything else is skipped, so syntax that this
module does not know does no harm.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from .names import (
    CallArgument,
    CallRef,
    FunctionRef,
    Names,
    QualifiedColumn,
    RelationRef,
    Scope,
    Source,
    Star,
    name_parts,
)
from .query_keywords import (
    COLUMN_DROPPING_KEYWORDS,
    NO_ALIAS_KEYWORDS,
    SET_OPERATIONS,
    ends_from,
    is_clause,
    is_column_star,
    is_join_or_clause,
    is_operator_from,
    is_set_operation,
    names_table_argument,
    starts_join,
)
from .query_tokens import QueryTokens
from .time_travel import read_time_travel


def find_names(sql: str, unqualified_columns: Collection[str] = ()) -> Names:
    """Returns the relations, table functions and columns that `sql` names; names of CTEs are no relations.

    `unqualified_columns` are names of columns, in lower case, that are recorded without a qualifier too. Any text is
    accepted. Of a command only the query in it counts: `insert into t select ... from u` names `u`,
    `delete from t where id in (select id from u)` names `u`.
    """
    return _NameReader(sql, unqualified_columns).read()


@dataclass
class _OpenScope:
    """A scope whose sources are still being read."""

    index: int
    parent: int | None
    sources: list[tuple[tuple[str, ...], int | None]] = field(default_factory=list)
    """The names of each source, and its index in the relations if it is one."""
    keeps_all_columns: bool = True

    def close(self, relations: list[RelationRef]) -> Scope:
        sources = (Source(names, None if index is None else relations[index]) for names, index in self.sources)
        return Scope(self.parent, tuple(sources), self.keeps_all_columns)


class _Region(NamedTuple):
    """A range of tokens that is still to be read, and what is visible there."""

    start: int
    stop: int
    kind: Literal["query", "relations", "expression", "arguments"]
    """`relations` is the inside of a join in parentheses, `arguments` that of the parentheses of a table function."""
    scope: _OpenScope
    ctes: frozenset[str]


class _NameReader:
    """Reads the regions of a text from a queue, so that deep nesting needs no recursion.

    Methods take the index of a token, and most return the index behind what they read.
    """

    def __init__(self, sql: str, unqualified_columns: Collection[str]) -> None:
        self.sql = sql
        self.unqualified_columns = unqualified_columns
        self.tokens = QueryTokens(sql)
        self.scopes: list[_OpenScope] = []
        self.relations: list[RelationRef] = []
        self.functions: list[FunctionRef] = []
        self.calls: list[CallRef] = []
        self.columns: list[QualifiedColumn] = []
        self.stars: list[Star] = []
        self.regions: deque[_Region] = deque()

    def read(self) -> Names:
        query_start = self._statement()
        while self.regions:
            self._region(self.regions.popleft())
        return Names(
            tuple(sorted(self.relations, key=lambda ref: ref.start)),
            tuple(sorted(self.functions, key=lambda ref: ref.start)),
            tuple(sorted(self.calls, key=lambda ref: ref.start)),
            tuple(scope.close(self.relations) for scope in self.scopes),
            tuple(self.columns),
            tuple(self.stars),
            query_start,
        )

    def _open_scope(self, parent: int | None) -> _OpenScope:
        scope = _OpenScope(len(self.scopes), parent)
        self.scopes.append(scope)
        return scope

    # Statements

    def _statement(self) -> int | None:
        """Queues the query of a statement and returns its position in the text.

        A statement without a query is queued as an expression, of which only subqueries count.
        """
        i = 0
        scope = self._open_scope(None)
        while self.tokens.word(i) == "EXPLAIN":
            i += 1
            if self.tokens.word(i) in ("EXTENDED", "CODEGEN", "COST", "FORMATTED", "LOGICAL"):
                i += 1
        if self.tokens.word(i) in ("DESCRIBE", "DESC"):
            i += 2 if self.tokens.word(i + 1) == "QUERY" else 1
        elif self.tokens.word(i) in ("CREATE", "REPLACE", "ALTER", "CACHE"):
            for j in range(i, self.tokens.count):
                if self.tokens.word(j) == "AS" and self.tokens.starts_query(self.tokens.inside[j + 1]):
                    i = j + 1
                    break
        kind: Literal["query", "expression"] = "expression"
        if self.tokens.starts_query(self.tokens.inside[i]) or self.tokens.word(i) == "INSERT":
            kind = "query"
        self.regions.append(_Region(i, self.tokens.count, kind, scope, frozenset()))
        return self.tokens[i].start if kind == "query" else None

    def _insert_target(self, i: int) -> int:
        """Skips `insert into t partition (...) (columns)`, up to the query."""
        while self.tokens.word(i) in ("INSERT", "INTO", "OVERWRITE", "TABLE", "LOCAL", "DIRECTORY"):
            i += 1
        i = self.tokens.dotted_name(i)[-1] + 1
        while i < self.tokens.count and not self.tokens.starts_query(self.tokens.inside[i]):
            i = self._skip_one(i)
        return i

    def _skip_one(self, i: int) -> int:
        """Skips a token, or the parentheses that open there."""
        return max(i + 1, self.tokens.past_parentheses(i))

    def _with(self, i: int, region: _Region) -> tuple[int, frozenset[str]]:
        """Reads a WITH clause; returns the index behind it and the CTEs that are visible behind it."""
        ctes = region.ctes
        i += 1
        recursive = (
            self.tokens.word(i) == "RECURSIVE" and self.tokens.is_identifier(i + 1) and self.tokens.word(i + 1) != "AS"
        )
        if recursive:
            i += 1
        while self.tokens.is_identifier(i):
            name = self.tokens.identifier(i).lower()
            i += 1
            if self.tokens[i].text == "(" and not self.tokens.starts_query(self.tokens.inside[i]):
                i = self.tokens.closing[i] + 1
            while i < region.stop and self.tokens[i].text != "(":
                i += 1
            if i >= region.stop:
                break
            body = self._open_scope(region.scope.parent)
            visible = ctes | {name} if recursive else ctes
            self.regions.append(_Region(i + 1, self.tokens.closing[i], "query", body, visible))
            ctes |= {name}
            i = self.tokens.closing[i] + 1
            if self.tokens[i].text != ",":
                break
            i += 1
        return i, ctes

    # Regions

    def _region(self, region: _Region) -> None:
        """Reads a region's tokens, and queues the queries inside its parentheses."""
        i, stop, kind, scope, ctes = region
        has_clauses = kind in ("query", "relations")
        in_from = expects_relation = kind == "relations"
        in_select = False
        at_start = kind == "query"
        expression_end = -1  # up to here the tokens are inside an expression's parentheses: no clause starts
        piped_scope: _OpenScope | None = None  # the scope whose columns are visible again after `|> union ...`
        while i < stop:
            if expects_relation:
                i = self._relation(i, stop, scope, ctes)
                expects_relation = False
                continue
            token = self.tokens[i]
            word = self.tokens.word(i) if has_clauses and i > expression_end else ""
            is_first, at_start = at_start, False
            if word:
                in_select = word == "SELECT" or (in_select and word != "FROM" and not ends_from(self.tokens, i, word))
            if token.text == "(":
                if self.tokens.starts_query(self.tokens.inside[i]):
                    inside = self._open_scope(scope.index)
                    self.regions.append(_Region(i + 1, self.tokens.closing[i], "query", inside, ctes))
                    i = self.tokens.closing[i] + 1
                    continue
                expression_end = max(expression_end, self.tokens.closing[i])
                i += 1
            elif token.text == "," and in_from and i > expression_end:
                expects_relation = True
                i += 1
            elif token.text == "|>" and has_clauses:
                in_from = starts_join(self.tokens, i + 1)
                scope, piped_scope = piped_scope or scope, None
                if self.tokens.word(i + 1) in SET_OPERATIONS:
                    piped_scope = scope
                i += 1
            elif token.text in (".", ":") and self.tokens.is_identifier(i + 1):
                i = self.tokens.dotted_name(i + 1)[-1] + 1  # a field of a value, or a parameter
            elif is_first and word == "WITH":
                i, ctes = self._with(i, region)
                at_start = True
            elif word == "INSERT" and (is_first or in_from):
                i = self._insert_target(i)
                at_start, in_from = True, False
            elif is_first and word == "TABLE" and self.tokens.is_identifier(i + 1):
                i = self._relation(i + 1, stop, scope, ctes, alias_allowed=False)
            elif word == "FROM" and not is_operator_from(self.tokens, i, in_from):
                in_from = expects_relation = True
                i += 1
            elif word == "JOIN" and in_from:
                expects_relation = True
                i += 1
            elif word in SET_OPERATIONS and is_set_operation(self.tokens, i):
                i += 1
                while self.tokens.word(i) in ("ALL", "DISTINCT", "BY", "NAME"):
                    i += 1
                scope = self._open_scope(region.scope.parent)
                at_start, in_from = True, False
            elif word == "LATERAL" and self.tokens.word(i + 1) == "VIEW":
                self._lateral_view_alias(i + 2, scope)
                in_from = False
                i += 2
            elif kind == "arguments" and token.text == "TABLE" and names_table_argument(self.tokens, i + 1):
                i = self._relation(self.tokens.inside[i + 1], stop, scope, ctes, alias_allowed=False)
            elif token.text == "*" and is_column_star(self.tokens, i):
                self._star(i, scope, None)
                i += 1
            elif token.kind in ("word", "quoted"):
                if in_from and ends_from(self.tokens, i, word):
                    in_from = False
                if in_from and word in COLUMN_DROPPING_KEYWORDS:
                    scope.keeps_all_columns = False
                i = self._column(i, scope, in_select and i > expression_end)
            else:
                i += 1

    def _column(self, i: int, scope: _OpenScope, in_select: bool) -> int:
        """Records the column or the call whose name starts at `i`."""
        parts = self.tokens.dotted_name(i)
        after = parts[-1] + 1
        star = self.tokens[after].text == "." and self.tokens[after + 1].text == "*"
        is_call = self.tokens[after].text == "("
        if len(parts) > 1 and is_call:
            self.calls.append(self._call(i, parts, scope, in_select))
        elif star or len(parts) > 1 or (self.tokens.identifier(i).lower() in self.unqualified_columns and not is_call):
            column = QualifiedColumn(
                self.tokens.identifiers(parts),
                tuple((self.tokens[part].start, self.tokens[part].end) for part in parts),
                scope.index,
                star,
            )
            self.columns.append(column)
            if star:
                self._star(after + 1, scope, column)
        return after + 2 if star else after

    def _call(self, i: int, parts: list[int], scope: _OpenScope, in_select: bool) -> CallRef:
        opening = parts[-1] + 1
        closing = self.tokens.closing[opening]
        arguments = tuple(
            CallArgument(keyword, self.tokens[first].start, self.tokens[last].end)
            for keyword, first, last in self._argument_tokens(opening + 1, closing)
            if first <= last
        )
        end = min(closing + 1, self.tokens.count)
        is_item = in_select and self.tokens[max(i - 1, 0)].text in ("SELECT", "DISTINCT", "ALL", ",")
        is_whole = self.tokens[end].text in (",", ")") or self.tokens[end].kind == "end"
        is_whole = is_whole or (is_join_or_clause(self.tokens, end) and self.tokens.word(end) != "AS")
        return CallRef(
            self.tokens.identifiers(parts),
            self.tokens[i].start,
            self.tokens[parts[-1]].end,
            arguments,
            self.tokens[closing].end,
            scope.index,
            is_item and is_whole,
        )

    def _star(self, i: int, scope: _OpenScope, qualifier: QualifiedColumn | None) -> None:
        except_columns: list[tuple[str, ...]] = []
        except_position = None
        if self.tokens[i + 1].text == "EXCEPT" and i + 2 in self.tokens.closing and not self.tokens.starts_query(i + 3):
            except_position = self.tokens[i + 2].end
            j = i + 3
            while j < self.tokens.closing[i + 2]:
                if self.tokens.is_identifier(j):
                    parts = self.tokens.dotted_name(j)
                    except_columns.append(self.tokens.identifiers(parts))
                    j = parts[-1]
                j += 1
        self.stars.append(Star(self.tokens[i].end, scope.index, qualifier, tuple(except_columns), except_position))

    def _lateral_view_alias(self, i: int, scope: _OpenScope) -> None:
        """Records the alias of the table in `lateral view [outer] explode(x) e as p, q`."""
        if self.tokens.word(i) == "OUTER":
            i += 1
        after = self.tokens.closing.get(self.tokens.dotted_name(i)[-1] + 1, self.tokens.count) + 1
        if self.tokens.is_identifier(after) and self.tokens.word(after) not in NO_ALIAS_KEYWORDS:
            scope.sources.append(((self.tokens.identifier(after),), None))

    # Relations

    def _relation(self, i: int, stop: int, scope: _OpenScope, ctes: frozenset[str], alias_allowed: bool = True) -> int:
        """Records the relation that starts at `i`; returns the index behind it and its alias."""
        lateral = self.tokens.word(i) == "LATERAL"
        if lateral:
            i += 1
        if i >= stop:
            return i
        if self.tokens[i].text == "(":
            if self.tokens.starts_query(i + 1) and self.tokens.word(i + 1) != "VALUES":
                inside = self._open_scope(scope.index if lateral else scope.parent)
                self.regions.append(_Region(i + 1, self.tokens.closing[i], "query", inside, ctes))
            else:  # a join in parentheses: its relations are visible outside of them
                self.regions.append(_Region(i + 1, self.tokens.closing[i], "relations", scope, ctes))
            return self._derived_alias(self._skip_sample(self.tokens.closing[i] + 1), scope)
        if self.tokens.starts_query(i) and self.tokens.word(i) == "VALUES":
            return self._values(i + 1, stop, scope, ctes)
        if not self.tokens.is_identifier(i) or self.tokens.word(i) in ("SELECT", "WHERE"):
            return i
        indexes = self.tokens.dotted_name(i)
        parts = self.tokens.identifiers(indexes)
        after = indexes[-1] + 1
        if self.tokens[after].text == "(":
            literal_name = self._identifier_clause(i) if self.tokens.word(i) == "IDENTIFIER" else None
            if literal_name is None:
                return self._function(i, after, ".".join(parts), scope, ctes)
            parts, after = literal_name, self.tokens.closing[after] + 1
        name_end = self.tokens[after - 1].end
        time_travel, after = read_time_travel(self.tokens, after, stop) if alias_allowed else (None, after)
        end = self.tokens[after - 1].end
        alias: str | None = None
        alias_position: int | None = None
        if alias_allowed:
            after = self._skip_sample(after)
            alias_position = self.tokens[after - 1].end
            alias, after = self._alias(after)
        if len(parts) == 1 and parts[0].lower() in ctes:
            scope.sources.append(((alias or parts[0],), None))
            return after
        start = self.tokens[i].start
        scope.sources.append(((alias,) if alias else parts, len(self.relations)))
        self.relations.append(RelationRef(parts, start, end, time_travel, alias, name_end, alias_position))
        return after

    def _alias(self, i: int) -> tuple[str | None, int]:
        """Returns the alias at `i`, if there is one, and the index behind it and its column names."""
        if self.tokens.word(i) == "AS" and self.tokens.is_identifier(i + 1):
            i += 1
        elif not self.tokens.is_identifier(i) or is_clause(self.tokens, i):
            return None, i
        after = i + 1
        return self.tokens.identifier(i), self.tokens.past_parentheses(after)

    def _derived_alias(self, i: int, scope: _OpenScope) -> int:
        """Records the alias of a subquery, a join in parentheses, or VALUES."""
        alias, after = self._alias(i)
        if alias is not None:
            scope.sources.append(((alias,), None))
        return after

    def _skip_sample(self, i: int) -> int:
        """Skips `with (options)` and `tablesample (...) repeatable (...)`."""
        if self.tokens.word(i) == "WITH" and self.tokens[i + 1].text == "(":
            i = self.tokens.closing[i + 1] + 1
        if self.tokens.word(i) == "TABLESAMPLE":
            i += 1
            if self.tokens.word(i) in ("SYSTEM", "BERNOULLI"):
                i += 1
            i = self.tokens.past_parentheses(i)
            if self.tokens.word(i) == "REPEATABLE" and i + 1 in self.tokens.closing:
                i = self.tokens.closing[i + 1] + 1
        return min(i, self.tokens.count)

    def _identifier_clause(self, i: int) -> tuple[str, ...] | None:
        """Returns the name in `identifier('main.orders')`; None if an expression computes the name."""
        token = self.tokens[i + 2]
        if token.kind != "string" or self.tokens[i + 3].text != ")" or self.tokens[i + 4].text == ".":
            return None
        text = self.sql[token.start : token.end]
        if not re.fullmatch(r"'[^'\\]+'|\"[^\"\\]+\"", text):
            return None
        return name_parts(text[1:-1])

    def _function(self, i: int, opening: int, name: str, scope: _OpenScope, ctes: frozenset[str]) -> int:
        closing = self.tokens.closing[opening]
        arguments = tuple(self._arguments(opening + 1, closing))
        inside = self._open_scope(scope.index)
        self.regions.append(_Region(opening + 1, closing, "arguments", inside, ctes))
        alias, after = self._alias(min(closing + 1, self.tokens.count))
        start, end = self.tokens[i].start, self.tokens[closing].end
        self.functions.append(FunctionRef(name, arguments, start, end, alias))
        scope.sources.append(((alias or name.split(".")[-1],), None))
        return after

    def _arguments(self, i: int, stop: int) -> Iterator[tuple[str | None, str]]:
        for keyword, first, last in self._argument_tokens(i, stop):
            yield keyword, self.tokens.source(first, last) if first <= last else ""

    def _argument_tokens(self, i: int, stop: int) -> Iterator[tuple[str | None, int, int]]:
        """Yields the keyword of each argument, and its first and last token."""
        while i < stop:
            first, brackets = i, 0
            while i < stop and (brackets or self.tokens[i].text != ","):
                brackets += {"[": 1, "]": -1}.get(self.tokens[i].text, 0)
                i = self._skip_one(i)
            last = min(i, stop) - 1
            keyword = None
            if first < last and self.tokens.is_identifier(first) and self.tokens[first + 1].text == "=>":
                keyword, first = self.tokens.identifier(first), first + 2
            yield keyword, first, last
            i += 1

    def _values(self, i: int, stop: int, scope: _OpenScope, ctes: frozenset[str]) -> int:
        """Reads the rows and the alias of `values (1, 2), (3, 4) as t(a, b)`."""
        first = i
        while i < stop:
            while i < stop and self.tokens[i].text not in (",", "AS", "|>") and not is_join_or_clause(self.tokens, i):
                is_row = i in self.tokens.closing
                i = self._skip_one(i)
                if is_row and self.tokens.is_identifier(i):
                    break
            if self.tokens[i].text != ",":
                break
            i += 1
        i = min(i, stop)
        self.regions.append(_Region(first, i, "expression", self._open_scope(scope.index), ctes))
        return self._derived_alias(i, scope)
