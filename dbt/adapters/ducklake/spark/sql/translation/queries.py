"""Translates the structure of queries: FROM, SELECT, GROUP BY, set operations, subqueries.

Names are resolved here and written in full, so that the other engine has nothing to resolve its own way. A name that
the two engines could understand differently is refused.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.types import DataType
from sqlglot import exp

from . import types as t
from .expressions import Expression, Untranslatable
from .nodes import Node, arg
from .parsing import Parsed, only
from .relations import Column, Relation, RelationResolver
from .scalars import ScalarTranslator
from .scopes import CommonTable, MergedColumn, Scope, Source

_SET_OPERATIONS = {"union": "UNION", "intersect": "INTERSECT", "except": "EXCEPT"}
_QUERIES = (exp.Select, exp.Union, exp.Intersect, exp.Except, exp.Subquery, exp.Values)


@dataclass(frozen=True)
class Query:
    """A translated query, and its columns."""

    sql: str
    columns: tuple[Column, ...]


@dataclass
class _Items:
    """The translated SELECT list."""

    texts: list[str]
    columns: list[Column]
    expressions: list[Expression | None]
    """The expression of each column; None for columns of a star."""
    aggregates: list[bool]
    """Whether each column is computed from a group of rows."""


class QueryTranslator(ScalarTranslator):
    """Translates queries; subclasses add what differs between the two directions."""

    def __init__(self, parsed: Parsed, resolve: RelationResolver) -> None:
        super().__init__(parsed)
        self._resolve = resolve
        self._final_names: Sequence[str] = ()
        """The names of the columns of the whole query, where the author's engine makes them up."""
        self._filters: set[int] = set()
        """The ids of the queries in `x IN (SELECT ...)` where NULL and FALSE are the same: in WHERE and HAVING."""
        self._first_select: Node | None = None
        """The SELECT that names the columns of the whole query."""

    # -- hooks

    first_value_column: int
    """Where the author's engine begins to count the columns of VALUES."""

    @abstractmethod
    def source_text(self, relation: Relation, version: Any, alias: str) -> str:
        """Returns the text in FROM that stands for a relation of the lake, at a version if one is given."""

    @abstractmethod
    def star_without(self, star: str, columns: Sequence[str]) -> str:
        """Returns a star without some columns."""

    def table_function(self, node: exp.Table, scope: Scope) -> tuple[Query, str]:
        """Returns the query that a function in FROM stands for, and the name of the relation that it makes."""
        raise Untranslatable("a table function")

    @abstractmethod
    def cast_column(self, text: str, type_: DataType, is_opaque: bool) -> Expression:
        """Returns a column that DuckDB has in a type of its own, in the type that expressions expect."""

    # -- queries

    def translate(self, names: Sequence[str] = ()) -> Query:
        """Translates the whole query; `names` are those that its columns have in the author's engine."""
        self._final_names = names
        first = self.parsed.tree
        while isinstance(first, exp.Subquery | exp.Union | exp.Intersect | exp.Except):
            first = first.this
        self._first_select = first
        return self.query(self.parsed.tree, None)

    def query(self, node: Node, parent: Scope | None) -> Query:
        """Translates a query; `parent` is the scope around it."""
        common_tables, prefix = self._common_tables(arg(node, "with"), parent)
        scope = Scope(parent=parent, common_tables=common_tables)
        if isinstance(node, exp.Select):
            query = self._select(node, scope)
        elif isinstance(node, exp.Union | exp.Intersect | exp.Except):
            query = self._set_operation(node, scope)
        elif isinstance(node, exp.Subquery):
            query = self._parenthesized(node, scope)
        elif isinstance(node, exp.Values):
            only(node, ("expressions",))
            query = self._values(node)
        else:
            raise Untranslatable(f"{node.key.upper()} as a query")
        return replace(query, sql=prefix + query.sql)

    def _common_tables(self, node: Any, parent: Scope | None) -> tuple[dict[str, CommonTable], str]:
        found = dict(parent.common_tables) if parent is not None else {}
        if node is None:
            return found, ""
        only(node, ("expressions",), "WITH RECURSIVE")
        texts = []
        for table in node.expressions:
            only(table, ("this", "alias", "materialized"), "an option of a common table expression")
            scope = Scope(parent=parent, common_tables=dict(found))
            query = self.query(table.this, scope)
            names = [identifier.name for identifier in table.args["alias"].columns]
            columns = self._renamed(query.columns, names)
            name = table.alias
            found[name.lower()] = CommonTable(name, columns)
            heading = self.quote(name) + self._column_list(names)
            texts.append(f"{heading} AS ({query.sql})")
        return found, f"WITH {', '.join(texts)} "

    def _renamed(self, columns: Sequence[Column], names: Sequence[str]) -> tuple[Column, ...]:
        if names and len(names) != len(columns):
            raise Untranslatable("a list of column names that is not as long as the columns")
        return tuple(replace(c, name=n) for c, n in zip(columns, names, strict=True)) if names else tuple(columns)

    def _column_list(self, names: Sequence[str]) -> str:
        return f"({', '.join(map(self.quote, names))})" if names else ""

    def _parenthesized(self, node: exp.Subquery, scope: Scope) -> Query:
        only(node, ("this", "with", "order", "limit", "offset"))
        query = self.query(node.this, scope)
        tail = self._order_by_position(node, query.columns) + self._limit(node)
        return Query(f"({query.sql}){tail}", query.columns) if tail else query

    def _values(self, node: exp.Values, names: Sequence[str] = ()) -> Query:
        rows = [
            [self.expression(cell, Scope()) for cell in (row.expressions if isinstance(row, exp.Tuple) else [row])]
            for row in node.expressions
        ]
        types = [self.common(column, "VALUES") for column in zip(*rows, strict=True)]
        texts = ["(" + ", ".join(self.coerce(c, k).sql for c, k in zip(row, types, strict=True)) + ")" for row in rows]
        first = self.first_value_column
        names = names or [f"col{number}" for number in range(first, first + len(types))]
        columns = [Column(name, type_) for name, type_ in zip(names, types, strict=True)]
        alias = self.quote("values")
        listed = f"{alias}{self._column_list([str(c.name) for c in columns])}"
        return Query(f"SELECT * FROM (VALUES {', '.join(texts)}) AS {listed}", tuple(columns))

    # -- set operations

    def _set_operation(self, node: Any, scope: Scope) -> Query:
        only(node, ("this", "expression", "distinct", "with", "order", "limit", "offset"))
        left, right = node.this, node.expression
        if isinstance(node, exp.Intersect) and isinstance(left, exp.Union | exp.Except):
            raise Untranslatable("INTERSECT after UNION or EXCEPT without parentheses")
        queries = [self.query(operand, scope) for operand in (left, right)]
        if len(queries[0].columns) != len(queries[1].columns):
            raise Untranslatable("a set operation on queries with different numbers of columns")
        pairs = list(zip(queries[0].columns, queries[1].columns, strict=True))
        if any(c.type is None or c.cast_in_duckdb or c.is_opaque for pair in pairs for c in pair):
            raise Untranslatable("a set operation on a column of a type that the engines read differently")
        types = [
            self.common_type([k for k in (one.type, other.type) if k is not None], "a set operation")
            for one, other in pairs
        ]
        texts = [self._as_types(query, types) for query in queries]
        columns = tuple(Column(c.name, k) for c, k in zip(queries[0].columns, types, strict=True))
        operation = _SET_OPERATIONS[node.key] + ("" if node.args.get("distinct") else " ALL")
        tail = self._order_by_position(node, columns) + self._limit(node)
        return Query(f"({texts[0]}) {operation} ({texts[1]}){tail}", columns)

    def _as_types(self, query: Query, types: Sequence[DataType]) -> str:
        """Returns the query with its columns cast."""
        if all(c.type is not None and t.same_type(c.type, k) for c, k in zip(query.columns, types, strict=True)):
            return query.sql
        alias, names = self.quote("q"), [f"c{number}" for number in range(1, len(types) + 1)]
        items = []
        for column, name, type_ in zip(query.columns, names, types, strict=True):
            assert column.type is not None
            expression = Expression(f"{alias}.{self.quote(name)}", column.type)
            text = self.coerce(expression, type_).sql
            items.append(text if column.name is None else f"{text} AS {self.quote(column.name)}")
        return f"SELECT {', '.join(items)} FROM ({query.sql}) AS {alias}{self._column_list(names)}"

    # -- FROM

    def _from(self, node: exp.Select | exp.Table, scope: Scope) -> str:
        """Returns what follows FROM, and adds its sources to the scope."""
        source = arg(node, "from")
        text = self._source(source.this, scope)
        return self._joins(text, node.args.get("joins") or [], scope)

    def _joins(self, text: str, joins: Sequence[exp.Join], scope: Scope) -> str:
        had_cross = False
        for join in joins:
            only(join, ("this", "side", "kind", "on", "using"))
            side, kind = str(join.side).upper(), str(join.kind).upper()
            if had_cross and side in ("RIGHT", "FULL"):
                raise Untranslatable("RIGHT or FULL JOIN after a comma or a CROSS JOIN")
            had_cross = had_cross or kind == "CROSS"
            left = scope.visible_sources()
            right_start = len(scope.sources)
            right = self._source(join.this, scope)
            added = scope.sources[right_start:]
            words = self._join_words(side, kind)
            condition = self._join_condition(join, words, left, added, scope)
            text = f"{text} {words} {right}{condition}"
            if kind in ("SEMI", "ANTI"):
                for source in added:
                    source.is_visible = False
        return text

    def _join_words(self, side: str, kind: str) -> str:
        if kind in ("SEMI", "ANTI") and side in ("", "LEFT"):
            return self.semi_join_words(kind)
        if kind not in ("", "INNER", "OUTER", "CROSS") or (kind == "CROSS" and side):
            raise Untranslatable(f"{side} {kind} JOIN".strip())
        return " ".join(word for word in (side, "CROSS" if kind == "CROSS" else "", "JOIN") if word)

    @abstractmethod
    def semi_join_words(self, kind: str) -> str:
        """Returns the words of a SEMI or ANTI join."""

    def _join_condition(self, join: exp.Join, words: str, left: list[Source], right: list[Source], scope: Scope) -> str:
        using, on = join.args.get("using"), join.args.get("on")
        if using:
            conditions = [self._merge_column(column.name, words, left, right, scope) for column in using]
            return f" ON {' AND '.join(conditions)}"
        if words == "CROSS JOIN":
            if on is not None:
                raise Untranslatable("CROSS JOIN with a condition")
            return ""
        return " ON " + ("TRUE" if on is None else self.expression(on, scope).sql)

    def _merge_column(self, name: str, words: str, left: list[Source], right: list[Source], scope: Scope) -> str:
        """Adds the column that USING makes of two to the scope. Returns the condition of the join."""
        earlier = [m for m in scope.merged if m.name.lower() == name.lower()]
        sides = []
        if earlier:
            sides.append((earlier[-1].expression, earlier[-1].sources))
        for sources in (right,) if earlier else (left, right):
            found = [(source, column) for source in sources for column in source.find(name)]
            if len(found) != 1:
                raise Untranslatable(f"the column {name} of USING, which is not in one relation on each side")
            sides.append((self._column_of(*found[0]), (found[0][0],)))
        (one, one_sources), (other, other_sources) = sides
        condition = self.comparison(exp.EQ, one, other)
        if words.startswith(("SEMI", "ANTI", "LEFT SEMI", "LEFT ANTI")):
            return condition.operand
        type_ = self.common_type([one.type, other.type], "USING")
        if words == "FULL JOIN":
            merged = self.coalesce([self.coerce(one, type_), self.coerce(other, type_)])
        else:
            merged = other if words == "RIGHT JOIN" else one
        scope.merged.append(MergedColumn(name, merged, (*one_sources, *other_sources)))
        return condition.operand

    def _source(self, node: Node, scope: Scope) -> str:
        if isinstance(node, exp.Table):
            text = self._table(node, scope)
            return text if not node.args.get("joins") else f"({self._joins(text, node.args['joins'], scope)})"
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            only(node, ("this",), "an alias of a join in parentheses")
            return self._source(node.this, scope)
        if isinstance(node, exp.Subquery):
            only(node, ("this", "alias", "with", "order", "limit", "offset"))
            inner = Scope(parent=scope.parent, common_tables=scope.common_tables)
            query = self.query(self._without_alias(node), inner)
            return f"({query.sql}) AS " + self._add_source(node, query.columns, scope, "q")
        if isinstance(node, exp.Values):
            only(node, ("expressions", "alias"))
            names = [identifier.name for identifier in node.args["alias"].columns] if node.args.get("alias") else []
            query = self._values(node, names)
            alias = self._add_named_source((node.alias or "values",), query.columns, scope)
            return f"({query.sql}) AS {self.quote(alias)}"
        raise Untranslatable(f"{node.key.upper()} in FROM")

    @staticmethod
    def _without_alias(node: exp.Subquery) -> Node:
        if not any(arg(node, name) for name in ("with", "order", "limit", "offset")):
            return node.this  # type: ignore[no-any-return]
        copy = node.copy()
        copy.set("alias", None)
        return copy

    def _add_source(self, node: exp.Subquery | exp.Table, columns: Sequence[Column], scope: Scope, name: str) -> str:
        alias_node = node.args.get("alias")
        names = [identifier.name for identifier in alias_node.columns] if alias_node else []
        alias = self._add_named_source((node.alias or name,), self._renamed(columns, names), scope)
        return self.quote(alias) + self._column_list(names)

    def _add_named_source(self, names: Sequence[str], columns: Sequence[Column], scope: Scope) -> str:
        alias = scope.unique_alias(names[-1])
        scope.sources.append(Source(alias, tuple(names), tuple(columns)))
        return alias

    def _table(self, node: exp.Table, scope: Scope) -> str:
        only(node, ("this", "db", "catalog", "alias", "joins", "version", "when"))
        version = node.args.get("version") or node.args.get("when")
        if not isinstance(node.this, exp.Identifier):
            query, name = self.table_function(node, scope)
            return f"({query.sql}) AS " + self._add_source(node, query.columns, scope, name)
        alias_node = node.args.get("alias")
        renamed = [identifier.name for identifier in alias_node.columns] if alias_node else []
        common_table = None if node.args.get("db") else scope.common_table(node.name)
        if common_table is not None:
            if version:
                raise Untranslatable("a version of a common table expression")
            relation, columns = None, common_table.columns
            names: tuple[str, ...] = (node.name,)
        else:
            relation = self._resolve(tuple(part.name for part in node.parts))
            columns, names = relation.columns, (relation.lake, relation.schema, relation.name)
        if node.alias:
            names = (node.alias,)
        alias = self.quote(self._add_named_source(names, self._renamed(columns, renamed), scope))
        alias += self._column_list(renamed)
        if relation is None:
            return f"{self.quote(node.name)} AS {alias}"
        return self.source_text(relation, version, alias)

    def _lateral_view(self, node: exp.Lateral, scope: Scope) -> str:
        only(node, ("this", "view", "outer", "alias"))
        if not node.args.get("view") or not isinstance(node.this, exp.Anonymous) or len(node.this.expressions) != 1:
            raise Untranslatable("LATERAL")
        rows, type_ = self.lateral_view(str(node.this.this).lower(), self.expression(node.this.expressions[0], scope))
        alias_node = node.args.get("alias")
        names = [identifier.name for identifier in alias_node.columns] if alias_node else []
        columns = self._renamed([Column("col", type_)], names)
        alias = self._add_named_source((node.alias or "col",), columns, scope)
        join = "LEFT JOIN" if node.args.get("outer") else "JOIN"
        listed = self._column_list([str(c.name) for c in columns])
        return f"{join} LATERAL ({rows}) AS {self.quote(alias)}{listed} ON TRUE"

    @abstractmethod
    def lateral_view(self, function: str, value: Expression) -> tuple[str, DataType]:
        """Returns the query for the rows that a function makes of each row, and the type of its column."""

    # -- SELECT

    def _select(self, node: exp.Select, scope: Scope) -> Query:
        only(
            node,
            (
                *("expressions", "from", "joins", "where", "group", "having", "qualify", "windows", "distinct"),
                *("order", "limit", "offset", "with", "laterals"),
            ),
        )
        parts = []
        if arg(node, "from") is not None:
            parts.append("FROM " + self._from(node, scope))
        for lateral in node.args.get("laterals") or []:
            parts.append(self._lateral_view(lateral, scope))
        if node.args.get("where"):
            self._filters |= set(map(id, _queries_that_filter(node.args["where"].this)))
            parts.append("WHERE " + self.expression(node.args["where"].this, scope).sql)
        scope.windows = {window.name.lower(): window for window in node.args.get("windows") or []}
        items = self._items(node.expressions, scope, self._final_names if node is self._first_select else ())
        if node.args.get("group"):
            parts.append("GROUP BY " + self._group_by(node.args["group"], items, scope))
        scope.aliases_are_visible = True
        for name in ("having", "qualify"):
            if node.args.get(name):
                if name == "having":
                    self._filters |= set(map(id, _queries_that_filter(node.args[name].this)))
                condition = self._resolve_with_aliases(node.args[name].this, scope)
                parts.append(f"{name.upper()} {condition.sql}")
        distinct = node.args.get("distinct")
        if distinct:
            only(distinct, (), "DISTINCT ON")
        if node.args.get("order"):
            parts.append(self._order_by(node.args["order"], items, scope, bool(distinct)).strip())
        head = "SELECT " + ("DISTINCT " if distinct else "") + ", ".join(items.texts)
        return Query(" ".join([head, *parts]) + self._limit(node), tuple(items.columns))

    def _items(self, nodes: Sequence[Node], scope: Scope, final_names: Sequence[str]) -> _Items:
        items = _Items([], [], [], [])
        scope.aliases_are_visible = True  # of the columns before
        for node in nodes:
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                texts, columns = self._star(node, scope)
                items.texts += texts
                items.columns += columns
                items.expressions += [None] * len(columns)
                items.aggregates += [False] * len(columns)
                continue
            before = self.aggregate_count
            inner = node.this if isinstance(node, exp.Alias) else node
            expression = self.expression(inner, scope)
            name = node.alias if isinstance(node, exp.Alias) else self.output_name(inner, expression)
            position = len(items.columns)
            final_name = final_names[position] if name is None and position < len(final_names) else name
            items.texts.append(self._aliased(expression, final_name))
            items.columns.append(Column(final_name, expression.type, is_opaque=expression.is_opaque))
            items.expressions.append(expression)
            items.aggregates.append(self.aggregate_count > before)
            if name is not None:
                scope.add_alias(name, expression)
        return items

    def output_name(self, node: Node, expression: Expression) -> str | None:
        """Returns the name of a column of SELECT without an alias; None if the engine makes one up."""
        while isinstance(node, exp.Paren):
            node = node.this
        return str(node.name) if isinstance(node, exp.Column | exp.Dot) else None

    def _aliased(self, expression: Expression, name: str | None) -> str:
        return (
            expression.sql if name is None or expression.column == name else f"{expression.sql} AS {self.quote(name)}"
        )

    def _star(self, node: Node, scope: Scope) -> tuple[list[str], list[Column]]:
        star = node.this if isinstance(node, exp.Column) else node
        only(star, ("except", "except_"), "REPLACE or RENAME in a star")
        qualifier = [part.name for part in node.parts[:-1]] if isinstance(node, exp.Column) else []
        sources = [s for s in scope.visible_sources() if not qualifier or s.answers_to(qualifier)]
        if not sources or (qualifier and len(sources) > 1):
            raise Untranslatable("a star that stands for no relation in FROM")
        excluded = self._excluded(arg(star, "except") or [], sources)
        merged = [] if qualifier else [m for m in scope.merged if any(s in sources for s in m.sources)]
        if not qualifier and not merged:
            text = self.star_without("*", [name for _, name in excluded])
            left_out = [name for _, name in excluded]
            return [text], [c for s in sources for c in s.columns if c.name not in left_out or c.name is None]
        texts, columns = [], []
        final = {m.name.lower(): m for m in merged}  # of a column merged twice, the last one
        for column in final.values():
            if any(name.lower() == column.name.lower() for _, name in excluded):
                continue
            texts.append(self._aliased(column.expression, column.name))
            columns.append(Column(column.name, column.expression.type))
        for source in sources:
            hidden = [c.name for c in source.columns if c.name and c.name.lower() in final] if merged else []
            hidden += [name for owner, name in excluded if owner is source and name not in hidden]
            rest = [c for c in source.columns if c.name is None or c.name not in hidden]
            if rest:
                texts.append(self.star_without(f"{self.quote(source.alias)}.*", hidden))
                columns += rest
        return texts, columns

    def _excluded(self, nodes: Sequence[Node], sources: Sequence[Source]) -> list[tuple[Source, str]]:
        excluded = []
        for node in nodes:
            parts = [part.name for part in node.parts] if isinstance(node, exp.Column) else [node.name]
            found = [(s, c.name) for s in sources for c in s.find(parts[0])]
            if len(parts) != 1 or len(found) != 1 or found[0][1] is None:
                raise Untranslatable(f"EXCEPT of {'.'.join(parts)}, which is not one column of the star")
            excluded.append((found[0][0], str(found[0][1])))
        return excluded

    # -- GROUP BY, HAVING, ORDER BY, LIMIT

    def _group_by(self, node: exp.Group, items: _Items, scope: Scope) -> str:
        only(node, ("expressions", "all", "rollup", "cube", "grouping_sets"))
        if node.args.get("all"):
            return ", ".join(self._group_by_all(items)) or self.constant_group()
        texts = [self._group(item, items, scope) for item in node.expressions]
        for kind in ("rollup", "cube"):
            for item in node.args.get(kind) or []:
                if not item.expressions:  # GROUP BY a, b WITH ROLLUP
                    texts = [f"{kind.upper()} ({', '.join(texts)})"]
                else:
                    texts.append(self._group(item, items, scope))
        texts += [self._group(item, items, scope) for item in node.args.get("grouping_sets") or []]
        return ", ".join(texts)

    def _group_by_all(self, items: _Items) -> list[str]:
        texts = []
        for expression, is_aggregate in zip(items.expressions, items.aggregates, strict=True):
            if expression is None:
                raise Untranslatable("GROUP BY ALL with a star")
            if not is_aggregate:
                texts.append(self._group_text(expression))
        return texts

    @abstractmethod
    def constant_group(self) -> str:
        """Returns what stands in GROUP BY to make one group of all rows, and none of no rows."""

    def _group_text(self, expression: Expression) -> str:
        """Returns a grouping expression; a bare number would be a position."""
        return self.typed(expression) if expression.is_constant else expression.sql

    def _group(self, node: Node, items: _Items, scope: Scope) -> str:
        if isinstance(node, exp.Rollup | exp.Cube):
            return f"{node.key.upper()} ({', '.join(self._group(e, items, scope) for e in node.expressions)})"
        if isinstance(node, exp.GroupingSets):
            return f"GROUPING SETS ({', '.join(self._group(e, items, scope) for e in node.expressions)})"
        if isinstance(node, exp.Tuple):
            return f"({', '.join(self._group(e, items, scope) for e in node.expressions)})"
        if isinstance(node, exp.Paren) and not isinstance(node.this, exp.Column | exp.Literal):
            node = node.this
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._group_text(self._item_at(node, items))
        scope.aliases_are_visible = True  # where no relation has a column of the name
        return self._group_text(self.expression(node, scope))

    def _item_at(self, node: exp.Literal, items: _Items) -> Expression:
        position = int(node.name) if node.name.isdigit() else 0
        found = items.expressions[position - 1] if 0 < position <= len(items.expressions) else None
        if found is None:
            raise Untranslatable("a position in GROUP BY that stands for a column of a star")
        return found

    def _resolve_with_aliases(self, node: Node, scope: Scope) -> Expression:
        """Translates a condition on groups, in which a name is a column or an alias, but must not be either."""
        for column in node.find_all(exp.Column):
            name = column.name.lower()
            if column.table or column.find_ancestor(exp.Query) is not node.find_ancestor(exp.Query):
                continue
            alias = scope.aliases.get(name)
            own = scope.find_column([column.name])
            if alias is not None and own is not None and self._column_of_found(own, [column.name]).sql != alias.sql:
                raise Untranslatable(f"the name {column.name}, which is both a column and an alias")
        return self.expression(node, scope)

    def _order_by(self, node: exp.Order, items: _Items, scope: Scope, is_distinct: bool) -> str:
        only(node, ("expressions",))
        texts = []
        for ordered in node.expressions:
            only(ordered, ("this", "desc", "nulls_first"))
            item = ordered.this
            position = self._position(item, items.columns)
            is_number = isinstance(item, exp.Literal)
            # Where a star comes before it, a column may move later.
            if position is not None and (is_number or None not in items.expressions[:position]):
                texts.append(f"{position}{self.direction(ordered)}")
                continue
            scope.aliases_first = True
            try:
                expression = self.expression(item, scope)
            finally:
                scope.aliases_first = False
            if is_distinct and position is None:
                raise Untranslatable("ORDER BY of something else than a column of SELECT DISTINCT")
            if expression.is_constant:
                continue
            texts.append(f"{expression.operand}{self.direction(ordered)}")
        return f" ORDER BY {', '.join(texts)}" if texts else ""

    def _order_by_position(self, node: Any, columns: Sequence[Column]) -> str:
        """Translates the ORDER BY of a query whose columns have names but no expressions."""
        order = node.args.get("order")
        if order is None:
            return ""
        only(order, ("expressions",))
        texts = []
        for ordered in order.expressions:
            only(ordered, ("this", "desc", "nulls_first"))
            position = self._position(ordered.this, columns)
            if position is None:
                raise Untranslatable("ORDER BY of an expression after a set operation")
            name = None if isinstance(ordered.this, exp.Literal) else columns[position - 1].name
            texts.append(f"{position if name is None else self.quote(name)}{self.direction(ordered)}")
        return f" ORDER BY {', '.join(texts)}"

    def _position(self, node: Node, columns: Sequence[Column]) -> int | None:
        """Returns the position of the column of SELECT that an item of ORDER BY is."""
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            position = int(node.name)
            if not 0 < position <= len(columns):
                raise Untranslatable("a position in ORDER BY")
            return position
        if not isinstance(node, exp.Column) or node.table:
            return None
        found = [n for n, c in enumerate(columns, start=1) if c.name and c.name.lower() == node.name.lower()]
        if len(found) > 1:
            raise Untranslatable(f"the name {node.name} in ORDER BY, which several columns have")
        return found[0] if found else None

    def _limit(self, node: Node) -> str:
        text = ""
        for name in ("limit", "offset"):
            clause = node.args.get(name)
            if clause is None:
                continue
            only(clause, ("expression",))
            if not isinstance(clause.expression, exp.Literal) or not clause.expression.name.isdigit():
                raise Untranslatable(f"{name.upper()} that is no number")
            text += f" {name.upper()} {clause.expression.name}"
        return text

    # -- expressions with queries in them

    def scalar_subquery(self, node: exp.Subquery, scope: Scope) -> Expression:
        only(node, ("this", "with", "order", "limit", "offset"))
        query = self.query(self._without_alias(node), scope)
        if len(query.columns) != 1 or query.columns[0].type is None or query.columns[0].cast_in_duckdb:
            raise Untranslatable("a subquery in an expression that has not one column")
        return Expression(f"({query.sql})", query.columns[0].type)

    def exists(self, node: exp.Exists, scope: Scope) -> Expression:
        inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
        if not isinstance(inner, _QUERIES):
            raise Untranslatable("EXISTS of something else than a query")
        return Expression(f"EXISTS ({self.query(inner, scope).sql})", t.BOOLEAN)

    def in_subquery(self, value: Expression, node: Node, scope: Scope) -> Expression:
        query = self.query(node, scope)
        if len(query.columns) != 1 or query.columns[0].type is None or query.columns[0].cast_in_duckdb:
            raise Untranslatable("IN a query that has not one column")
        type_ = self.common_type([value.type, query.columns[0].type], "IN")
        operand, values = self.coerce(value, type_).operand, self._as_types(query, [type_])
        sql = f"{operand} IN ({values})"
        return Expression(sql if id(node) in self._filters else self.in_values(operand, values, sql, scope), t.BOOLEAN)

    @abstractmethod
    def in_values(self, operand: str, query: str, filter_: str, scope: Scope) -> str:
        """Returns IN (SELECT ...) where NULL is not FALSE. Spark's is never NULL there, and DuckDB's is.

        `filter_` is its text in WHERE.
        """

    # -- columns

    def column(self, node: exp.Column, scope: Scope) -> Expression:
        parts = [part.name for part in node.parts]
        if scope.aliases_first and len(parts) == 1 and (alias := scope.alias(parts[0])) is not None:
            return alias
        parameter = scope.parameter(parts[0])
        if parameter is not None:
            return self._fields(parameter, parts[1:])
        for level, around in enumerate(scope.ancestors()):
            found = around.find_column(parts)
            if found is not None:
                if level and self._is_shadowed(parts, scope, around):
                    raise Untranslatable(f"the column {'.'.join(parts)} of a query around, whose relation is hidden")
                return self._column_of_found(found, parts)
            if around.aliases_are_visible and (alias := around.alias(parts[0])) is not None:
                return self._fields(replace(alias, sql=alias.operand), parts[1:])
        without_parentheses = self.name_without_parentheses(parts)
        if without_parentheses is not None:
            return without_parentheses
        raise Untranslatable(f"the column {'.'.join(parts)}, which no relation in FROM has")

    @staticmethod
    def _is_shadowed(parts: Sequence[str], scope: Scope, owner: Scope) -> bool:
        """Whether a relation nearer than the column's own has the name that qualifies the column."""
        for nearer in scope.ancestors():
            if nearer is owner:
                return False
            if any(s.answers_to(parts[:n]) for s in nearer.visible_sources() for n in range(1, len(parts))):
                return True
        return False

    def name_without_parentheses(self, parts: Sequence[str]) -> Expression | None:
        """Returns the function that a name stands for, such as CURRENT_DATE."""
        return None

    def _column_of_found(self, found: tuple[Source | MergedColumn, Column | None, int], parts: list[str]) -> Expression:
        origin, column, count = found
        if isinstance(origin, MergedColumn):
            return origin.expression
        assert column is not None
        expression = self._column_of(origin, column)
        if count < len(parts):
            return self._fields(expression, parts[count:])
        # Written as the query has it, a name is the name of the output.
        return expression

    def _column_of(self, source: Source, column: Column) -> Expression:
        assert column.name is not None
        if column.type is None:
            raise Untranslatable(f"the column {column.name}, whose type the engines read differently")
        text = f"{self.quote(source.alias)}.{self.quote(column.name)}"
        if column.cast_in_duckdb:
            return self.cast_column(text, column.type, column.is_opaque)
        return Expression(text, column.type, column=column.name, is_opaque=column.is_opaque)

    def _fields(self, expression: Expression, names: Sequence[str]) -> Expression:
        for name in names:
            expression = self.field(expression, name)
        return expression


def _queries_that_filter(condition: Node) -> Iterator[Node]:
    """Yields the queries of those IN (SELECT ...) and NOT IN that a condition consists of, joined by AND."""
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.And):
        yield from _queries_that_filter(condition.this)
        yield from _queries_that_filter(condition.expression)
        return
    if isinstance(condition, exp.Not):
        condition = condition.this
    while isinstance(condition, exp.Paren):
        condition = condition.this
    query = arg(condition, "query") if isinstance(condition, exp.In) else None
    if isinstance(condition, exp.EQ) and isinstance(condition.expression, exp.Any):
        query = condition.expression.this
    if query is not None:
        yield query
        yield query.this
