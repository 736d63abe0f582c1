"""What a query asks of each relation it reads, so that files without such rows can stay unread.

A predicate holds for every row of the relation that can influence the query's result. Whatever is
not understood for certain is left out, so that a predicate is weaker than the query, never stronger.
"""

from __future__ import annotations

import datetime
import decimal
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ...lake.predicates import (
    And,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Operator,
    Or,
    Path,
    Predicate,
    StartsWith,
    Unknown,
    Value,
)
from .names import Names, RelationRef, find_names, has_pipes, without_clutter


def predicates_of(
    sql: str,
    columns_of: Callable[[RelationRef], Sequence[str] | None],
    names: Names | None = None,
) -> Mapping[RelationRef, Predicate]:
    """What `sql` asks of the relations in it that `columns_of` gives columns for, and not None.

    The keys are the refs of `find_names(sql)`, which may be given as `names`; a relation of which
    nothing is asked has no key. The first part of a column's path is spelled as `columns_of` spells
    it. A naive datetime is a literal without a zone, for the session's time zone to place.
    """
    names = names or find_names(sql)
    if not names.relations or names.query_at is None:
        return {}
    if has_pipes(sql):  # where a WHERE may come after a LIMIT
        return {}
    text = without_clutter(sql, names, _UNCERTAIN)
    try:
        trees = sqlglot.parse(text, read="spark")
        selects = [select for tree in trees if tree is not None for select in tree.find_all(exp.Select)]
        refs = {ref.start: ref for ref in names.relations}
        known = {ref: columns for ref in names.relations if (columns := columns_of(ref)) is not None}
        return {ref: predicate for select in selects for ref, predicate in _asked_by(select, refs, known)}
    except (SqlglotError, RecursionError):
        return {}


_UNCERTAIN = "\ue000"  # stands in strings whose value depends on escapes or settings


# The relations of one SELECT


@dataclass
class _Source:
    """One relation of a FROM; without a ref, its columns and even its names may be anything."""

    names: tuple[str, ...]  # the alias, or else the name's parts, in lower case
    aliased: bool
    ref: RelationRef | None
    columns: dict[str, str]  # the table's spelling by the lower case
    visible: bool = True  # not the right side of a semi or anti join
    nullable: bool = False  # an outer join may have put nulls in place of its rows

    def may_be_called(self, qualifier: tuple[str, ...]) -> bool:
        """Whether the qualifier could mean this source, for all that is known of its full name."""
        if not self.names:
            return True
        if self.aliased:
            return qualifier == self.names
        shared = min(len(qualifier), len(self.names))
        return qualifier[-shared:] == self.names[-shared:]

    def is_called(self, qualifier: tuple[str, ...]) -> bool:
        return len(qualifier) <= len(self.names) and self.may_be_called(qualifier)


def _source(
    node: exp.Expression, refs: Mapping[int, RelationRef], known: Mapping[RelationRef, Sequence[str]]
) -> _Source:
    alias = node.alias.lower()
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        inner_names_show = isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table) and not alias
        return _Source((alias,) if alias and not inner_names_show else (), bool(alias), None, {})
    identifiers = list(node.parts)
    parts = tuple(part.name.lower() for part in identifiers)
    ref = refs.get(identifiers[0].meta.get("start", -1))
    names = (alias,) if alias else parts
    plain = not any(node.args.get(key) for key in ("joins", "laterals", "pivots", "sample", "rows_from"))
    renamed = bool(node.alias_column_names)
    if ref is None or ref not in known or not plain or renamed or not _agrees(ref, parts, alias):
        return _Source(names, bool(alias), None, {})
    columns = {column.lower(): column for column in known[ref]}
    if len(columns) < len(known[ref]):
        return _Source(names, bool(alias), None, {})
    return _Source(names, bool(alias), ref, columns)


def _agrees(ref: RelationRef, parts: tuple[str, ...], alias: str) -> bool:
    return tuple(part.lower() for part in ref.parts) == parts and (ref.alias or "").lower() == alias


def _asked_by(
    select: exp.Select, refs: Mapping[int, RelationRef], known: Mapping[RelationRef, Sequence[str]]
) -> Iterator[tuple[RelationRef, Predicate]]:
    """What one SELECT's joins and its WHERE ask of the relations in its own FROM."""
    from_ = select.args.get("from_") or select.args.get("from")
    if from_ is None or any(select.args.get(key) for key in ("sample", "pivots", "match", "connect")):
        return
    joins = select.args.get("joins") or []
    nodes = [from_.this, *(join.this for join in joins)]
    if any(isinstance(node, exp.Expression) and node.args.get("pivots") for node in nodes):
        return  # a WHERE behind a pivot speaks of the pivot's columns
    sources = [_source(node, refs, known) for node in nodes]
    asked: dict[RelationRef, list[Predicate]] = {}

    def ask(condition: exp.Expression | None, targets: Sequence[_Source], scope: _Scope, may_see_nulls: bool) -> None:
        nullable = {target.ref: target.nullable and may_see_nulls for target in targets}
        for conjunct in _parts_of(condition, exp.And):
            for ref, predicate in _predicates(conjunct, scope).items():
                # Without the rows an outer join finds nothing, and puts nulls there instead.
                if ref in nullable and (not nullable[ref] or _rejects_nulls(predicate)):
                    asked.setdefault(ref, []).append(predicate)

    # A comma binds weaker than JOIN, and sqlglot tells it from a join without ON by nothing: an ON
    # is trusted with the relations since the last one that may have been a comma.
    group = 0
    for place, join in enumerate(joins, start=1):
        right = sources[place]
        left = [source for source in sources[:place] if source.visible]
        kind = _kind(join)
        if kind is None:
            return
        on = join.args.get("on")
        if kind == "INNER" and on is None and not join.args.get("using") and not join.args.get("method"):
            group = place
        near = [source for source in sources[group:place] if source.visible]
        scope = _Scope([*left, right], [*near, right])
        if kind in ("INNER", "RIGHT", "SEMI"):
            ask(on, near, scope, may_see_nulls=True)
        if kind in ("INNER", "LEFT", "SEMI", "ANTI"):
            ask(on, [right], scope, may_see_nulls=False)
        if kind in ("SEMI", "ANTI"):
            right.visible = False
        if kind in ("RIGHT", "FULL"):
            for source in left:
                source.nullable = True
        if kind in ("LEFT", "FULL"):
            right.nullable = True

    where = select.args.get("where")
    if where is not None:
        shown = [source for source in sources if source.visible]
        if select.args.get("laterals"):
            shown.append(_Source((), False, None, {}))
        ask(where.this, shown, _Scope(shown, shown), may_see_nulls=True)
    for ref, predicates in asked.items():
        yield ref, _all(predicates)


def _kind(join: exp.Join) -> str | None:
    """INNER, LEFT, RIGHT, FULL, SEMI or ANTI; None for a join of another kind."""
    words = {str(join.args.get(key) or "").upper() for key in ("side", "kind", "method")}
    words -= {"", "OUTER", "NATURAL"}
    if any(join.args.get(key) for key in ("global", "hint", "match_condition", "expressions", "pivots")):
        return None
    if words <= {"INNER", "CROSS"}:
        return "INNER"
    if words <= {"LEFT", "SEMI"} or words <= {"LEFT", "ANTI"}:
        return "LEFT" if words == {"LEFT"} else (words - {"LEFT"}).pop()
    return words.pop() if words in ({"RIGHT"}, {"FULL"}) else None


# Whose column


@dataclass(frozen=True)
class _Scope:
    """The sources a condition can speak of, and those of them it can be trusted with."""

    sources: Sequence[_Source]
    trusted: Sequence[_Source]

    def column(self, expression: object) -> tuple[RelationRef, Path] | None:
        """The relation an expression is a column of, and its path there; None if unsure."""
        name = _dotted(_bare(expression)) if isinstance(expression, exp.Expression) else None
        if not name:
            return None
        lower = tuple(part.lower() for part in name)
        for count in range(len(name) - 1, 0, -1):
            qualifier = lower[:count]
            callable_so = [source for source in self.sources if source.may_be_called(qualifier)]
            if not callable_so:
                continue
            called = [source for source in callable_so if source.ref and source.is_called(qualifier)]
            owners = [source for source in called if lower[count] in source.columns]
            # Someone else who goes by the same qualifier and has the column would make the query
            # ambiguous; but to a longer qualifier the relation would lose.
            if len(owners) == 1 and (len(called) == len(callable_so) or len(name) == 2):
                return self._path(owners[0], name[count:])
            return None
        owners = [source for source in self.sources if lower[0] in source.columns]
        if len(owners) == 1 and all(source.ref for source in self.sources):
            return self._path(owners[0], name)
        return None

    def _path(self, owner: _Source, name: Sequence[str]) -> tuple[RelationRef, Path] | None:
        if owner.ref is None or not any(owner is source for source in self.trusted):
            return None
        return owner.ref, (owner.columns[name[0].lower()], *name[1:])


def _dotted(node: exp.Expression) -> list[str] | None:
    """The names in `a.b.c`, or None when the expression is no column."""
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
_TURNED: dict[Operator, Operator] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _parts_of(condition: exp.Expression | None, connector: type[exp.And] | type[exp.Or]) -> list[exp.Expression]:
    """The operands of a chain of ANDs or ORs, in order, however long the chain."""
    parts: list[exp.Expression] = []
    rest = [condition] if condition is not None else []
    while rest:
        node = _bare(rest.pop())
        if isinstance(node, connector):
            rest += [node.args["expression"], node.args["this"]]
        else:
            parts.append(node)
    return parts


def _bare(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _all(predicates: Sequence[Predicate]) -> Predicate:
    return predicates[0] if len(predicates) == 1 else And(tuple(predicates))


def _predicates(condition: exp.Expression, scope: _Scope) -> dict[RelationRef, Predicate]:
    """What the condition asks of each relation that it asks something of."""
    node = _bare(condition)
    if isinstance(node, exp.And):
        asked: dict[RelationRef, list[Predicate]] = {}
        for part in _parts_of(node, exp.And):
            for ref, predicate in _predicates(part, scope).items():
                asked.setdefault(ref, []).append(predicate)
        return {ref: _all(predicates) for ref, predicates in asked.items()}
    if isinstance(node, exp.Or):
        choices = [_predicates(part, scope) for part in _parts_of(node, exp.Or)]
        in_each = [ref for ref in choices[0] if all(ref in choice for choice in choices)]
        return {ref: Or(tuple(choice[ref] for choice in choices)) for ref in in_each}
    operator = _OPERATORS.get(type(node))
    if operator is not None:
        left, right = node.args["this"], node.args["expression"]
        value, side = literal_value(right), left
        if value is None:
            value, side, operator = literal_value(left), right, _TURNED[operator]
        owned = scope.column(side)
        return {owned[0]: Comparison(owned[1], operator, value)} if owned and value is not None else {}
    negated = isinstance(node, exp.Not)
    if negated:
        node = _bare(node.this)
    owned = scope.column(node.args.get("this"))
    if owned is None:
        return {}
    ref, path = owned
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return {ref: IsNotNull(path) if negated else IsNull(path)}
    asked_of = Unknown() if negated else _asked_of(node, path)
    return {} if isinstance(asked_of, Unknown) else {ref: asked_of}


def _asked_of(node: exp.Expression, path: Path) -> Predicate:
    """What IN, BETWEEN, LIKE or startswith asks of a column."""
    if isinstance(node, exp.In) and not any(node.args.get(key) for key in ("query", "unnest", "field")):
        # IN is never true because of a null in its list
        listed = [item for item in node.expressions if not isinstance(_bare(item), exp.Null)]
        values = tuple(value for item in listed if (value := literal_value(item)) is not None)
        if values and len(values) == len(listed) and _of_one_kind(values):
            return In(path, values)
    elif isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low, high = literal_value(node.args["low"]), literal_value(node.args["high"])
        bounds: list[Predicate] = [Comparison(path, ">=", low)] if low is not None else []
        bounds += [Comparison(path, "<=", high)] if high is not None else []
        return _all(bounds) if bounds else Unknown()
    elif isinstance(node, exp.StartsWith):
        return _starts_with(path, literal_value(node.expression))
    elif type(node) is exp.Like and not node.args.get("negate"):
        pattern = literal_value(node.expression)
        if isinstance(pattern, str):
            prefix = re.split("[%_]", pattern, maxsplit=1)[0]
            return Comparison(path, "=", pattern) if prefix == pattern else _starts_with(path, prefix)
    return Unknown()


def _of_one_kind(values: Sequence[Value]) -> bool:
    """Whether comparing with each value is what Spark does, rather than with a type common to all."""
    kinds = {type(value) for value in values}
    return len(kinds) == 1 or kinds == {int, decimal.Decimal}


def _starts_with(path: Path, prefix: Value | None) -> Predicate:
    return StartsWith(path, prefix) if isinstance(prefix, str) and prefix else Unknown()


def _rejects_nulls(predicate: Predicate) -> bool:
    """Whether the predicate can not be true of a row of nulls."""
    if isinstance(predicate, And):
        return any(_rejects_nulls(part) for part in predicate.parts)
    if isinstance(predicate, Or):
        return all(_rejects_nulls(part) for part in predicate.parts)
    return not isinstance(predicate, IsNull | Unknown)


# Literals


_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "BIGINT": 64}
_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"}
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?"
    r" ?(Z|UTC|GMT|[+-]\d{1,2}:\d{2})?)?",
    re.ASCII,
)


def literal_value(expression: exp.Expression) -> Value | None:
    """The value of a literal, as Spark reads it; None for anything else, and for a null."""
    node = _bare(expression)
    if isinstance(node, exp.Neg):
        value = literal_value(node.this)
        is_number = isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool)
        return -cast(int, value) if is_number else None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.HexString):
        digits = str(node.this)
        return bytes.fromhex(digits) if re.fullmatch(r"(?:[0-9a-fA-F]{2})*", digits) else None
    if isinstance(node, exp.Literal):
        return _string(node) if node.is_string else _number(node.name)
    if isinstance(node, exp.Cast):
        return _cast(node)
    if isinstance(node, exp.Date | exp.TsOrDsToDate) and isinstance(node.this, exp.Literal):
        others = [key for key, argument in node.args.items() if argument and key not in ("this", "safe")]
        return _date(_string(node.this)) if not others else None
    return None


def _string(node: exp.Expression) -> str | None:
    if not isinstance(node, exp.Literal) or not node.is_string or _UNCERTAIN in node.name:
        return None
    return node.name


def _number(text: str) -> Value | None:
    if re.fullmatch(r"\d+", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"\d+\.\d*|\.\d+", text, re.ASCII):
        return decimal.Decimal(text)
    if re.fullmatch(r"(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+", text, re.ASCII):
        return float(text)
    return None


def _cast(node: exp.Cast) -> Value | None:
    """The value of `date '...'`, `'...'::timestamp`, `5L`, `1.5D` and what sqlglot makes the same."""
    kind = node.to.this.name if isinstance(node.to.this, exp.DataType.Type) else ""
    literal = _bare(node.this)
    if node.args.get("format") or node.to.expressions or not isinstance(literal, exp.Literal):
        return None
    if literal.is_string:
        if kind == "DATE":
            return _date(_string(literal))
        return _timestamp(_string(literal), kind) if kind in _TIMESTAMPS else None
    value = _number(literal.name)
    if kind in _INTEGERS and isinstance(value, int):
        return value if value < 2 ** (_INTEGERS[kind] - 1) else None
    if kind == "DOUBLE" and value is not None:
        return float(literal.name)
    if kind == "FLOAT" and value is not None:
        try:
            return cast(float, struct.unpack("f", struct.pack("f", float(literal.name)))[0])
        except OverflowError:
            return None
    return None


def _date(text: str | None) -> datetime.date | None:
    found = _DATE.fullmatch(text or "")
    if not found:
        return None
    try:
        return datetime.date(*map(int, found.groups()))
    except ValueError:
        return None


def _timestamp(text: str | None, kind: str) -> datetime.datetime | None:
    found = _TIMESTAMP.fullmatch(text or "")
    day = _date(found[1]) if found else None
    if found is None or day is None:
        return None
    hour, minute, second = (int(found[group] or 0) for group in (2, 3, 4))
    microsecond = int((found[5] or "").ljust(6, "0"))
    zone = found[6]
    if zone is not None and kind == "TIMESTAMPNTZ":
        return None
    try:
        moment = datetime.datetime(day.year, day.month, day.day, hour, minute, second, microsecond)
        return moment if zone is None else moment.replace(tzinfo=_zone(zone))
    except ValueError:
        return None


def _zone(zone: str) -> datetime.timezone:
    if zone[0] not in "+-":
        return datetime.timezone.utc
    hours, minutes = zone[1:].split(":")
    offset = datetime.timedelta(hours=int(hours), minutes=int(minutes))
    return datetime.timezone(-offset if zone[0] == "-" else offset)
