"""Predicate pushdown: the predicates that a query allows to apply to each relation that it reads.

Rows that do not satisfy a predicate cannot influence the result, so files without other rows need not be read. What is
not understood for certain is left out: a predicate may be weaker than the query, never stronger.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ...lake.predicates import (
    And,
    ColumnPath,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Unknown,
    Value,
)
from .name_reader import find_names
from .names import Names, RelationRef
from .predicate_literals import UNCERTAIN, literal_value, without_parentheses
from .query_tokens import query_tokens


def pushdown_predicates(
    sql: str,
    columns_of: Callable[[RelationRef], Sequence[str] | None],
    names: Names | None = None,
) -> Mapping[RelationRef, Predicate]:
    """Returns the predicates that `sql` allows to apply to its relations; a relation without one has no key.

    >>> columns = {"orders": ["id", "day"], "items": ["sku"]}
    >>> def pushed_down(sql):
    ...     predicates = pushdown_predicates(sql, lambda ref: columns[ref.parts[-1]])
    ...     return {ref.parts[-1]: predicate for ref, predicate in predicates.items()}
    >>> pushed_down("select * from orders where id = 5 and f(day)")
    {'orders': Comparison(column=('id',), operator='=', value=5)}
    >>> pushed_down("select * from orders where id = 5 or f(day)")
    {}

    A predicate on the nullable side of an outer join applies only if it is in the ON clause, or rejects NULLs:

    >>> pushed_down("select * from orders left join items on sku is null")
    {'items': IsNull(column=('sku',))}
    >>> pushed_down("select * from orders left join items on true where sku is null")
    {}

    `columns_of` returns the columns of a relation, and None for one that needs no predicate. `names` are the names in
    `sql`, if the caller has them. Columns are spelled as in `columns_of`, with the fields of structs as further parts.
    A naive datetime is a literal without a zone, to be read in the session's time zone.
    """
    names = names or find_names(sql)
    if not names.relations or names.query_start is None or _has_pipes(sql):
        return {}
    text = _parseable(sql, names)
    try:
        trees = sqlglot.parse(text, read="spark")
        selects = [select for tree in trees if tree is not None for select in tree.find_all(exp.Select)]
        refs = {ref.start: ref for ref in names.relations}
        known = {ref: columns for ref in names.relations if (columns := columns_of(ref)) is not None}
        return {ref: predicate for select in selects for ref, predicate in _select_predicates(select, refs, known)}
    except (SqlglotError, RecursionError):
        return {}


def _has_pipes(sql: str) -> bool:
    """Whether a query uses `|>`: in such a query a WHERE may come after a LIMIT."""
    return any(token.text == "|>" for token in query_tokens(sql))


def _parseable(sql: str, names: Names) -> str:
    """Returns the query in `sql` as sqlglot can parse it, with every name at its position in `sql`.

    Comments, hints, time travel clauses and a leading command become blanks. `UNCERTAIN` replaces the characters of
    strings whose value depends on escapes or on the session's settings, and the first digit of a name like `0x1F`.
    """
    text = [" "] * len(sql)
    for token in query_tokens(sql):
        written = sql[token.start : token.end]
        if token.kind == "string" and not re.fullmatch(r"'[^'\\]*'|\"[^\"\\]*\"", written):
            written = f"'{UNCERTAIN * (len(written) - 2)}'" if len(written) > 1 else " "
        elif token.kind == "word" and written[0].isdigit():
            written = UNCERTAIN + written[1:]
        text[token.start : token.end] = written
    for ref in names.relations:
        text[ref.name_end : ref.end] = " " * (ref.end - ref.name_end)
    start = names.query_start or 0
    text[:start] = " " * start
    return "".join(text)


# The relations of one SELECT


@dataclass
class _Source:
    """One item of a FROM."""

    names: tuple[str, ...]
    """The alias, or else the parts of the name, in lower case; empty if unknown."""
    aliased: bool
    ref: RelationRef | None
    """The relation, if its columns are known."""
    columns: dict[str, str]
    """The columns of the relation as the table spells them, by their names in lower case."""
    visible: bool = True
    """False for the right side of a semi or anti join."""
    nullable: bool = False
    """Whether an outer join may put NULLs in place of its rows."""

    def may_match(self, qualifier: tuple[str, ...]) -> bool:
        """Whether a qualifier could mean this source, whatever its full name is."""
        if not self.names:
            return True
        if self.aliased:
            return qualifier == self.names
        shared = min(len(qualifier), len(self.names))
        return qualifier[-shared:] == self.names[-shared:]

    def matches(self, qualifier: tuple[str, ...]) -> bool:
        return len(qualifier) <= len(self.names) and self.may_match(qualifier)


def _source(
    node: exp.Expression, refs: Mapping[int, RelationRef], known: Mapping[RelationRef, Sequence[str]]
) -> _Source:
    alias = node.alias.lower()
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        # Without an alias, the name of a table in parentheses still qualifies its columns.
        is_wrapped_table = isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table) and not alias
        return _Source((alias,) if alias and not is_wrapped_table else (), bool(alias), None, {})
    identifiers = list(node.parts)
    parts = tuple(part.name.lower() for part in identifiers)
    ref = refs.get(identifiers[0].meta.get("start", -1))
    names = (alias,) if alias else parts
    plain = not any(node.args.get(key) for key in ("joins", "laterals", "pivots", "sample", "rows_from"))
    renamed = bool(node.alias_column_names)
    if ref is None or ref not in known or not plain or renamed or not _is_same(ref, parts, alias):
        return _Source(names, bool(alias), None, {})
    columns = {column.lower(): column for column in known[ref]}
    if len(columns) < len(known[ref]):
        return _Source(names, bool(alias), None, {})
    return _Source(names, bool(alias), ref, columns)


def _is_same(ref: RelationRef, parts: tuple[str, ...], alias: str) -> bool:
    """Whether sqlglot read the same name and alias as `find_names`."""
    return tuple(part.lower() for part in ref.parts) == parts and (ref.alias or "").lower() == alias


def _select_predicates(
    select: exp.Select, refs: Mapping[int, RelationRef], known: Mapping[RelationRef, Sequence[str]]
) -> Iterator[tuple[RelationRef, Predicate]]:
    """Yields the predicates of one SELECT, from its joins and its WHERE, on the relations in its own FROM."""
    from_ = select.args.get("from_") or select.args.get("from")
    if from_ is None or any(select.args.get(key) for key in ("sample", "pivots", "match", "connect")):
        return
    joins = select.args.get("joins") or []
    nodes = [from_.this, *(join.this for join in joins)]
    if any(isinstance(node, exp.Expression) and node.args.get("pivots") for node in nodes):
        return  # a WHERE behind a pivot is about the columns of the pivot
    sources = [_source(node, refs, known) for node in nodes]
    found: dict[RelationRef, list[Predicate]] = {}

    def push(condition: exp.Expression | None, targets: Sequence[_Source], scope: _Scope, sees_nulls: bool) -> None:
        nullable = {target.ref: target.nullable and sees_nulls for target in targets}
        for conjunct in _operands(condition, exp.And):
            for ref, predicate in _condition_predicates(conjunct, scope).items():
                # An outer join puts NULLs in place of rows that are not read, and the condition must reject these.
                if ref in nullable and (not nullable[ref] or _rejects_nulls(predicate)):
                    found.setdefault(ref, []).append(predicate)

    # A comma binds weaker than JOIN, and sqlglot parses it to the same as a join without ON. So an ON is pushed down
    # only to the relations since the last join that may have been a comma.
    group_start = 0
    for index, join in enumerate(joins, start=1):
        right = sources[index]
        left = [source for source in sources[:index] if source.visible]
        kind = _join_kind(join)
        if kind is None:
            return
        on = join.args.get("on")
        if kind == "INNER" and on is None and not join.args.get("using") and not join.args.get("method"):
            group_start = index
        group = [source for source in sources[group_start:index] if source.visible]
        scope = _Scope([*left, right], [*group, right])
        if kind in ("INNER", "RIGHT", "SEMI"):
            push(on, group, scope, sees_nulls=True)
        if kind in ("INNER", "LEFT", "SEMI", "ANTI"):
            push(on, [right], scope, sees_nulls=False)
        if kind in ("SEMI", "ANTI"):
            right.visible = False
        if kind in ("RIGHT", "FULL"):
            for source in left:
                source.nullable = True
        if kind in ("LEFT", "FULL"):
            right.nullable = True

    where = select.args.get("where")
    if where is not None:
        visible = [source for source in sources if source.visible]
        if select.args.get("laterals"):
            visible.append(_Source((), False, None, {}))
        push(where.this, visible, _Scope(visible, visible), sees_nulls=True)
    for ref, predicates in found.items():
        yield ref, _conjunction(predicates)


def _join_kind(join: exp.Join) -> str | None:
    """Returns INNER, LEFT, RIGHT, FULL, SEMI or ANTI; None for any other kind of join."""
    words = {str(join.args.get(key) or "").upper() for key in ("side", "kind", "method")}
    words -= {"", "OUTER", "NATURAL"}
    if any(join.args.get(key) for key in ("global", "hint", "match_condition", "expressions", "pivots")):
        return None
    if words <= {"INNER", "CROSS"}:
        return "INNER"
    if words <= {"LEFT", "SEMI"} or words <= {"LEFT", "ANTI"}:
        return "LEFT" if words == {"LEFT"} else (words - {"LEFT"}).pop()
    return words.pop() if words in ({"RIGHT"}, {"FULL"}) else None


# Columns


@dataclass(frozen=True)
class _Scope:
    """The sources whose columns a condition can name, and those to which it may be pushed down."""

    sources: Sequence[_Source]
    targets: Sequence[_Source]

    def column(self, expression: object) -> tuple[RelationRef, ColumnPath] | None:
        """Returns the relation and the path of a column; None if that is uncertain, or it is no column of a target."""
        name = _column_name(without_parentheses(expression)) if isinstance(expression, exp.Expression) else None
        if not name:
            return None
        lower = tuple(part.lower() for part in name)
        for count in range(len(name) - 1, 0, -1):
            qualifier = lower[:count]
            candidates = [source for source in self.sources if source.may_match(qualifier)]
            if not candidates:
                continue
            matching = [source for source in candidates if source.ref and source.matches(qualifier)]
            owners = [source for source in matching if lower[count] in source.columns]
            # If another candidate has the column too, the query is ambiguous and fails. But Spark prefers a source
            # for which more parts of the name are the qualifier.
            if len(owners) == 1 and (len(matching) == len(candidates) or len(name) == 2):
                return self._path(owners[0], name[count:])
            return None
        owners = [source for source in self.sources if lower[0] in source.columns]
        if len(owners) == 1 and all(source.ref for source in self.sources):
            return self._path(owners[0], name)
        return None

    def _path(self, owner: _Source, name: Sequence[str]) -> tuple[RelationRef, ColumnPath] | None:
        if owner.ref is None or not any(owner is source for source in self.targets):
            return None
        return owner.ref, (owner.columns[name[0].lower()], *name[1:])


def _column_name(node: exp.Expression) -> list[str] | None:
    """Returns the parts of `a.b.c`; None if the expression is no column."""
    fields: list[str] = []
    while isinstance(node, exp.Dot):
        if not isinstance(node.expression, exp.Identifier):
            return None
        fields.append(node.expression.name)
        node = node.this
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        return None
    if node.args.get("join_mark"):
        return None
    return [part.name for part in node.parts] + fields[::-1]


# Conditions


_OPERATORS: dict[type[exp.Expression], Operator] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED: dict[Operator, Operator] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _operands(condition: exp.Expression | None, connector: type[exp.And] | type[exp.Or]) -> list[exp.Expression]:
    """Returns the operands of a chain of ANDs or ORs in order, without recursion: chains may be long."""
    operands: list[exp.Expression] = []
    rest = [condition] if condition is not None else []
    while rest:
        node = without_parentheses(rest.pop())
        if isinstance(node, connector):
            rest += [node.args["expression"], node.args["this"]]
        else:
            operands.append(node)
    return operands


def _conjunction(predicates: Sequence[Predicate]) -> Predicate:
    return predicates[0] if len(predicates) == 1 else And(tuple(predicates))


def _condition_predicates(condition: exp.Expression, scope: _Scope) -> dict[RelationRef, Predicate]:
    """Returns what a condition implies for each relation; relations for which it implies nothing have no key."""
    node = without_parentheses(condition)
    if isinstance(node, exp.And):
        conjuncts: dict[RelationRef, list[Predicate]] = {}
        for operand in _operands(node, exp.And):
            for ref, predicate in _condition_predicates(operand, scope).items():
                conjuncts.setdefault(ref, []).append(predicate)
        return {ref: _conjunction(predicates) for ref, predicates in conjuncts.items()}
    if isinstance(node, exp.Or):
        choices = [_condition_predicates(operand, scope) for operand in _operands(node, exp.Or)]
        in_each = [ref for ref in choices[0] if all(ref in choice for choice in choices)]
        return {ref: Or(tuple(choice[ref] for choice in choices)) for ref in in_each}
    operator = _OPERATORS.get(type(node))
    if operator is not None:
        left, right = node.args["this"], node.args["expression"]
        value, side = literal_value(right), left
        if value is None:
            value, side, operator = literal_value(left), right, _MIRRORED[operator]
        column = scope.column(side)
        return {column[0]: Comparison(column[1], operator, value)} if column and value is not None else {}
    negated = isinstance(node, exp.Not)
    if negated:
        node = without_parentheses(node.this)
    column = scope.column(node.args.get("this"))
    if column is None:
        return {}
    ref, path = column
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return {ref: IsNotNull(path) if negated else IsNull(path)}
    predicate = Unknown() if negated else _column_predicate(node, path)
    return {} if isinstance(predicate, Unknown) else {ref: predicate}


def _column_predicate(node: exp.Expression, path: ColumnPath) -> Predicate:
    """Returns the predicate of IN, BETWEEN, LIKE or startswith on a column."""
    if isinstance(node, exp.In) and not any(node.args.get(key) for key in ("query", "unnest", "field")):
        # A NULL in the list makes IN true for no row.
        items = [item for item in node.expressions if not isinstance(without_parentheses(item), exp.Null)]
        values = tuple(value for item in items if (value := literal_value(item)) is not None)
        if values and len(values) == len(items) and _are_of_one_type(values):
            return In(path, values)
    elif isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low, high = literal_value(node.args["low"]), literal_value(node.args["high"])
        bounds: list[Predicate] = [Comparison(path, ">=", low)] if low is not None else []
        bounds += [Comparison(path, "<=", high)] if high is not None else []
        return _conjunction(bounds) if bounds else Unknown()
    elif isinstance(node, exp.StartsWith):
        return _starts_with(path, literal_value(node.expression))
    elif type(node) is exp.Like and not node.args.get("negate"):
        pattern = literal_value(node.expression)
        if isinstance(pattern, str):
            prefix = re.split("[%_]", pattern, maxsplit=1)[0]
            return Comparison(path, "=", pattern) if prefix == pattern else _starts_with(path, prefix)
    return Unknown()


def _are_of_one_type(values: Sequence[Value]) -> bool:
    """Whether Spark compares with each value as it is, rather than cast all to a common type."""
    types = {type(value) for value in values}
    return len(types) == 1 or types == {int, decimal.Decimal}


def _starts_with(path: ColumnPath, prefix: Value | None) -> Predicate:
    return StartsWith(path, prefix) if isinstance(prefix, str) and prefix else Unknown()


def _rejects_nulls(predicate: Predicate) -> bool:
    """Whether the predicate cannot be true for a row of NULLs."""
    if isinstance(predicate, And):
        return any(_rejects_nulls(part) for part in predicate.parts)
    if isinstance(predicate, Or):
        return all(_rejects_nulls(part) for part in predicate.parts)
    return not isinstance(predicate, IsNull | Unknown)
