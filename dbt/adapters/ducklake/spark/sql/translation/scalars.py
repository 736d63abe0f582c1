"""Translates expressions: what both directions share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from pyspark.sql.types import DataType
from sqlglot import exp

from . import types as t
from .expressions import Expression, Untranslatable
from .nodes import Node
from .parsing import Parsed, only
from .scopes import Scope

COMPARISONS: dict[type[Node], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_BINARY = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor),
)
MAX_LENGTH = 200_000
"""Of a translated expression. Some rules repeat their arguments."""


class ScalarTranslator(ABC):
    """Translates expressions; subclasses have the rules of one direction."""

    def __init__(self, parsed: Parsed) -> None:
        self.parsed = parsed
        self.aggregate_count = 0
        """How many aggregate functions were translated so far."""
        self._handlers: dict[type[Node], Callable[[Any, Scope], Expression]] = {
            exp.Column: self.column,
            exp.Paren: lambda node, scope: self.expression(node.this, scope),
            exp.Null: lambda node, scope: Expression("NULL", t.NULL, None),
            exp.Boolean: lambda node, scope: Expression("TRUE" if node.this else "FALSE", t.BOOLEAN, bool(node.this)),
            exp.Literal: self._literal,
            exp.And: lambda node, scope: self._logical(node, "AND", scope),
            exp.Or: lambda node, scope: self._logical(node, "OR", scope),
            exp.Not: self._not,
            exp.Is: self._is,
            exp.Case: self._case,
            exp.If: self._if,
            exp.In: self._in,
            exp.Between: self._between,
            exp.Like: self._like,
            exp.ILike: self._like,
            exp.Escape: self._like,
            exp.RegexpLike: self._regexp_like,
            exp.Neg: self._negative,
            exp.BitwiseNot: lambda node, scope: self.bitwise_not(self.operand(node, scope)),
            exp.Cast: lambda node, scope: self.cast_node(node, scope),
            exp.TryCast: lambda node, scope: self.cast_node(node, scope),
            exp.Anonymous: self._function,
            exp.Extract: self._extract,
            exp.Trim: self._trim,
            exp.Substring: self._substring,
            exp.StrPosition: self._position_of,
            exp.Any: self._any,
            exp.Window: self._window,
            exp.Filter: lambda node, scope: self._aggregate_call(node, scope, None),
            exp.WithinGroup: lambda node, scope: self._aggregate_call(node, scope, None),
            exp.IgnoreNulls: lambda node, scope: self._aggregate_call(node, scope, None),
            exp.RespectNulls: lambda node, scope: self._aggregate_call(node, scope, None),
            exp.Subquery: self.scalar_subquery,
            exp.Exists: self.exists,
            exp.Bracket: self._bracket,
            exp.Dot: self._dot,
            **dict.fromkeys(COMPARISONS, self._comparison),
            **dict.fromkeys(_BINARY, self._binary),
        }

    # -- hooks: the language

    @abstractmethod
    def quote(self, name: str) -> str: ...

    @abstractmethod
    def string(self, value: str) -> Expression:
        """Returns a string literal."""

    @abstractmethod
    def number(self, text: str) -> Expression:
        """Returns the number of a literal, which may have a minus."""

    @abstractmethod
    def typed(self, expression: Expression) -> str:
        """Returns an expression with its type written out, where the engine would choose another."""

    @abstractmethod
    def coerce(self, expression: Expression, type_: DataType) -> Expression:
        """Returns the expression cast as the engine of its author casts it without being asked."""

    @abstractmethod
    def common_type(self, types: Sequence[DataType], what: str) -> DataType:
        """Returns the type in which the author's engine combines types."""

    def common(self, values: Sequence[Expression], what: str) -> DataType:
        """Returns the type in which the author's engine combines values, of which some may be literals."""
        return self.common_type([value.type for value in values], what)

    @abstractmethod
    def cast_node(self, node: exp.Cast, scope: Scope) -> Expression: ...

    @abstractmethod
    def compare(self, operator: str, left: Expression, right: Expression) -> Expression: ...

    @abstractmethod
    def binary(self, operator: type[Node], left: Expression, right: Expression) -> Expression: ...

    @abstractmethod
    def negative(self, operand: Expression) -> Expression: ...

    @abstractmethod
    def bitwise_not(self, operand: Expression) -> Expression: ...

    @abstractmethod
    def like(self, value: Expression, pattern: Expression, escape: str | None, ignores_case: bool) -> Expression: ...

    @abstractmethod
    def call(self, name: str, arguments: Sequence[Expression]) -> Expression:
        """Translates a function of one row, whose name is in lower case."""

    @abstractmethod
    def special_call(self, name: str, nodes: Sequence[Node], scope: Scope) -> Expression | None:
        """Translates a function with arguments that are no expressions; None if it is an ordinary one."""

    @abstractmethod
    def extract(self, field: str, source: Expression) -> Expression: ...

    @abstractmethod
    def field(self, expression: Expression, name: str) -> Expression:
        """Returns a field of a struct."""

    @abstractmethod
    def element(self, collection: Expression, index: Expression) -> Expression:
        """Returns an element of an array or a map."""

    @abstractmethod
    def aggregate(self, call: AggregateCall) -> Expression: ...

    @abstractmethod
    def is_aggregate(self, name: str) -> bool: ...

    # -- hooks: queries

    @abstractmethod
    def column(self, node: exp.Column, scope: Scope) -> Expression: ...

    @abstractmethod
    def scalar_subquery(self, node: exp.Subquery, scope: Scope) -> Expression: ...

    @abstractmethod
    def exists(self, node: exp.Exists, scope: Scope) -> Expression: ...

    @abstractmethod
    def in_subquery(self, value: Expression, node: Node, scope: Scope) -> Expression: ...

    # -- dispatch

    def expression(self, node: Node, scope: Scope) -> Expression:
        handler = self._handlers.get(type(node))
        if handler is None:
            raise Untranslatable(_NAMES.get(node.key, node.key.upper()))
        found = handler(node, scope)
        if len(found.sql) > MAX_LENGTH:
            raise Untranslatable("an expression that becomes too long")
        return found

    def operand(self, node: Node, scope: Scope) -> Expression:
        only(node, ("this",))
        return self.expression(node.this, scope)

    # -- literals and logic

    def _literal(self, node: exp.Literal, scope: Scope) -> Expression:
        return self.string(self.parsed.string(node)) if node.is_string else self.number(node.name)

    def boolean(self, node: Node, scope: Scope) -> Expression:
        found = self.expression(node, scope)
        return found if found.type == t.BOOLEAN else self.coerce(found, t.BOOLEAN)

    def _logical(self, node: exp.Connector, word: str, scope: Scope) -> Expression:
        # Iteratively: a list of conditions is a tree as deep as it is long.
        operands: list[Expression] = []
        left: Node = node
        while type(left) is type(node):
            operands.append(self.boolean(left.expression, scope))
            left = left.this
        operands.append(self.boolean(left, scope))
        return Expression(f" {word} ".join(o.operand for o in reversed(operands)), t.BOOLEAN)

    def _not(self, node: exp.Not, scope: Scope) -> Expression:
        if isinstance(node.this, exp.Is):
            inner = self._is(node.this, scope, " NOT")
            return inner
        return Expression(f"NOT {self.boolean(node.this, scope).operand}", t.BOOLEAN)

    def _is(self, node: exp.Is, scope: Scope, negation: str = "") -> Expression:
        only(node, ("this", "expression"))
        right = node.expression
        if isinstance(right, exp.Null):
            return Expression(f"{self.expression(node.this, scope).operand} IS{negation} NULL", t.BOOLEAN)
        if isinstance(right, exp.Boolean):
            value = self.boolean(node.this, scope)
            return Expression(f"{value.operand} IS{negation} {'TRUE' if right.this else 'FALSE'}", t.BOOLEAN)
        raise Untranslatable("IS")

    def _case(self, node: exp.Case, scope: Scope) -> Expression:
        only(node, ("this", "ifs", "default"))
        subject = None if node.this is None else self.expression(node.this, scope)
        conditions = []
        for branch in node.args["ifs"]:
            if subject is None:
                conditions.append(self.boolean(branch.this, scope))
            else:
                conditions.append(self.comparison(exp.EQ, subject, self.expression(branch.this, scope)))
        values = [self.expression(branch.args["true"], scope) for branch in node.args["ifs"]]
        default = node.args.get("default")
        return self.case(conditions, values, None if default is None else self.expression(default, scope))

    def _if(self, node: exp.If, scope: Scope) -> Expression:
        only(node, ("this", "true", "false"))
        default = node.args.get("false")
        return self.case(
            [self.boolean(node.this, scope)],
            [self.expression(node.args["true"], scope)],
            None if default is None else self.expression(default, scope),
        )

    def case(
        self, conditions: Sequence[Expression], values: Sequence[Expression], default: Expression | None
    ) -> Expression:
        every = [*values, *([] if default is None else [default])]
        type_ = self.common(every, "CASE")
        if len(conditions) == 1 and conditions[0].is_constant and default is not None:
            return self.coerce(values[0] if conditions[0].constant else default, type_)
        branches = "".join(
            f" WHEN {condition.sql} THEN {self.coerce(value, type_).sql}"
            for condition, value in zip(conditions, values, strict=True)
        )
        tail = "" if default is None else f" ELSE {self.coerce(default, type_).sql}"
        return Expression(f"CASE{branches}{tail} END", type_)

    def coalesce(self, arguments: Sequence[Expression]) -> Expression:
        type_ = self.common(arguments, "COALESCE")
        return Expression(f"coalesce({', '.join(self.coerce(a, type_).sql for a in arguments)})", type_)

    def _negative(self, node: exp.Neg, scope: Scope) -> Expression:
        only(node, ("this",))
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self.number(f"-{node.this.name}")
        return self.negative(self.expression(node.this, scope))

    # -- comparisons

    def comparison(self, operator: type[Node], left: Expression, right: Expression) -> Expression:
        return self.compare(COMPARISONS[operator], left, right)

    def _comparison(self, node: exp.Binary, scope: Scope) -> Expression:
        only(node, ("this", "expression"))
        left, right = (self.expression(side, scope) for side in (node.this, node.expression))
        return self.comparison(type(node), left, right)

    def _in(self, node: exp.In, scope: Scope) -> Expression:
        only(node, ("this", "expressions", "query"))
        value = self.expression(node.this, scope)
        if node.args.get("query"):
            query = node.args["query"]
            return self.in_subquery(value, query.this if isinstance(query, exp.Subquery) else query, scope)
        items = [self.expression(item, scope) for item in node.expressions]
        type_ = self.common([value, *items], "IN")
        if not t.is_atomic_type(type_):
            raise Untranslatable("IN with values that are not simple")
        texts = ", ".join(self.coerce(item, type_).sql for item in items)
        return Expression(f"{self.coerce(value, type_).operand} IN ({texts})", t.BOOLEAN)

    def _between(self, node: exp.Between, scope: Scope) -> Expression:
        only(node, ("this", "low", "high"))
        value, low, high = (self.expression(e, scope) for e in (node.this, node.args["low"], node.args["high"]))
        first, second = self.comparison(exp.GTE, value, low), self.comparison(exp.LTE, value, high)
        return Expression(f"{first.operand} AND {second.operand}", t.BOOLEAN)

    def _like(self, node: Node, scope: Scope) -> Expression:
        escape = None
        if isinstance(node, exp.Escape):
            if not isinstance(node.expression, exp.Literal):
                raise Untranslatable("LIKE with an ESCAPE that is no literal")
            escape, node = self.parsed.string(node.expression), node.this
        if not isinstance(node, exp.Like | exp.ILike):
            raise Untranslatable("ESCAPE")
        only(node, ("this", "expression", "negate"))
        value, pattern = (self.expression(side, scope) for side in (node.this, node.expression))
        found = self.like(value, pattern, escape, isinstance(node, exp.ILike))
        return Expression(f"NOT {found.operand}", t.BOOLEAN) if node.args.get("negate") else found

    def _regexp_like(self, node: exp.RegexpLike, scope: Scope) -> Expression:
        only(node, ("this", "expression"))
        return self.call("regexp_like", [self.expression(side, scope) for side in (node.this, node.expression)])

    # -- operators and functions

    def _binary(self, node: exp.Binary, scope: Scope) -> Expression:
        only(node, ("this", "expression", "safe", "typed"))
        operands = [node.expression]
        left: Node = node.this
        while type(left) is type(node):  # iteratively, as for AND
            operands.append(left.expression)
            left = left.this
        values = [self.interval_or_expression(operand, scope) for operand in (left, *reversed(operands))]
        return reduce(lambda one, other: self.binary(type(node), one, other), values)

    def interval_or_expression(self, node: Node, scope: Scope) -> Expression:
        return self.interval(node) if isinstance(node, exp.Interval) else self.expression(node, scope)

    def interval(self, node: exp.Interval) -> Expression:
        raise Untranslatable("INTERVAL")

    def _function(self, node: exp.Anonymous, scope: Scope) -> Expression:
        name = function_name(node)
        if self.is_aggregate(name):
            return self._aggregate_call(node, scope, None)
        found = self.special_call(name, node.expressions, scope)
        if found is not None:
            return found
        return self.call(name, [self.expression(argument, scope) for argument in node.expressions])

    def _extract(self, node: exp.Extract, scope: Scope) -> Expression:
        only(node, ("this", "expression"))
        field = node.this
        name = self.parsed.string(field) if isinstance(field, exp.Literal) else field.name
        return self.extract(name.lower(), self.expression(node.expression, scope))

    def _trim(self, node: exp.Trim, scope: Scope) -> Expression:
        only(node, ("this", "expression", "position"))
        name = {"LEADING": "trim_leading", "TRAILING": "trim_trailing"}.get(
            str(node.args.get("position") or "").upper(), "btrim"
        )
        arguments = [node.this, *([node.args["expression"]] if node.args.get("expression") else [])]
        return self.call(name, [self.expression(argument, scope) for argument in arguments])

    def _substring(self, node: exp.Substring, scope: Scope) -> Expression:
        only(node, ("this", "start", "length"))
        arguments = [node.this, node.args["start"], *([node.args["length"]] if node.args.get("length") else [])]
        return self.call("substring", [self.expression(argument, scope) for argument in arguments])

    def _position_of(self, node: exp.StrPosition, scope: Scope) -> Expression:
        only(node, ("this", "substr", "position"))
        arguments = [node.args["substr"], node.this, *([node.args["position"]] if node.args.get("position") else [])]
        return self.call("position", [self.expression(argument, scope) for argument in arguments])

    def _any(self, node: exp.Any, scope: Scope) -> Expression:
        """ANY(x) is read as the operator of that name."""
        inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
        return self._aggregate_call(exp.Anonymous(this="any", expressions=[inner]), scope, None)

    def _bracket(self, node: exp.Bracket, scope: Scope) -> Expression:
        only(node, ("this", "expressions"))
        if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
            raise Untranslatable("a slice")
        return self.element(self.expression(node.this, scope), self.expression(node.expressions[0], scope))

    def _dot(self, node: exp.Dot, scope: Scope) -> Expression:
        if not isinstance(node.expression, exp.Identifier):
            raise Untranslatable("a function of a schema")
        return self.field(self.expression(node.this, scope), node.expression.name)

    # -- aggregates and windows

    def _window(self, node: exp.Window, scope: Scope) -> Expression:
        only(node, ("this", "partition_by", "order", "spec", "alias", "over"))
        return self._aggregate_call(node.this, scope, self._over(node, scope))

    def _over(self, node: exp.Window, scope: Scope) -> Over:
        if node.args.get("alias") is not None:
            name = node.args["alias"].name
            definition = scope.windows.get(name.lower())
            if node.args.get("partition_by") or node.args.get("order") or node.args.get("spec"):
                raise Untranslatable("a window that extends another one")
            if not isinstance(definition, exp.Window):
                raise Untranslatable(f"the window {name}")
            node = definition
            if node.args.get("alias") is not None:
                raise Untranslatable("a window that extends another one")
        parts = []
        if node.args.get("partition_by"):
            keys = [self.expression(key, scope) for key in node.args["partition_by"]]
            keys = [key for key in keys if not key.is_constant]
            if keys:
                parts.append("PARTITION BY " + ", ".join(key.sql for key in keys))
        has_order = False
        if node.args.get("order"):
            only(node.args["order"], ("expressions",))
            texts = []
            for ordered in node.args["order"].expressions:
                only(ordered, ("this", "desc", "nulls_first"))
                key = self.expression(ordered.this, scope)
                # All rows are peers in an order by a constant. A number would not be a constant, but a position.
                texts.append(f"{'NULL' if key.is_constant else key.operand}{self.direction(ordered)}")
            parts.append("ORDER BY " + ", ".join(texts))
            has_order = True
        frame = self._frame(node.args.get("spec"))
        return Over(" ".join(parts), frame, has_order)

    @staticmethod
    def direction(ordered: exp.Ordered) -> str:
        """Returns the direction of a sort key, with the place of NULL written out."""
        direction = " DESC" if ordered.args.get("desc") else ""
        return f"{direction} NULLS {'FIRST' if ordered.args.get('nulls_first') else 'LAST'}"

    def _frame(self, node: exp.WindowSpec | None) -> str:
        if node is None:
            return ""
        only(node, ("kind", "start", "start_side", "end", "end_side"))
        kind = str(node.args.get("kind") or "").upper()
        bounds = [self._bound(node, kind, name) for name in ("start", "end") if node.args.get(name)]
        if kind not in ("ROWS", "RANGE") or not bounds:
            raise Untranslatable(f"a frame in {kind}")
        # A single bound is the start.
        return f"{kind} BETWEEN {bounds[0]} AND {bounds[1] if len(bounds) > 1 else 'CURRENT ROW'}"

    @staticmethod
    def _bound(node: exp.WindowSpec, kind: str, name: str) -> str:
        bound, side = node.args[name], str(node.args.get(f"{name}_side") or "").upper()
        if isinstance(bound, str):
            return f"{bound.upper()} {side}".strip()
        if kind == "ROWS" and isinstance(bound, exp.Literal) and bound.name.isdigit():
            return f"{bound.name} {side}"
        raise Untranslatable(f"a frame in {kind} with such a bound")

    def _aggregate_call(self, node: Node, scope: Scope, over: Over | None) -> Expression:
        condition = order = ignores_nulls = None
        while not isinstance(node, exp.Anonymous):
            if isinstance(node, exp.Filter):
                condition, node = self.boolean(node.expression.this, scope), node.this
            elif isinstance(node, exp.WithinGroup):
                order, node = node.expression, node.this
            elif isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
                ignores_nulls, node = isinstance(node, exp.IgnoreNulls), node.this
            elif isinstance(node, exp.Any):
                node = exp.Anonymous(this="any", expressions=[node.this])
            else:
                raise Untranslatable(f"{node.key.upper()} as an aggregate")
        name = function_name(node)
        nodes = list(node.expressions)
        is_distinct = len(nodes) == 1 and isinstance(nodes[0], exp.Distinct)
        if is_distinct:
            only(nodes[0], ("expressions",))
            nodes = list(nodes[0].expressions)
        if nodes and isinstance(nodes[0], exp.IgnoreNulls | exp.RespectNulls):
            ignores_nulls, nodes[0] = isinstance(nodes[0], exp.IgnoreNulls), nodes[0].this
        if nodes and isinstance(nodes[-1], exp.Order):
            only(nodes[-1], ("this", "expressions"))
            order, nodes[-1] = nodes[-1], nodes[-1].this
        has_star = len(nodes) == 1 and isinstance(nodes[0], exp.Star)
        if has_star:
            only(nodes[0], ())
        arguments = [] if has_star else [self.expression(n, scope) for n in nodes]
        keys = []
        for ordered in order.expressions if order is not None else ():
            only(ordered, ("this", "desc", "nulls_first"))
            keys.append((self.expression(ordered.this, scope), self.direction(ordered)))
        if over is None:
            self.aggregate_count += 1
        elif not self.is_aggregate(name):
            raise Untranslatable(f"{name}() over a window")
        return self.aggregate(
            AggregateCall(name, arguments, has_star, is_distinct, condition, keys, bool(ignores_nulls), over)
        )


def function_name(node: exp.Anonymous) -> str:
    """Returns the name of a function in lower case; in the text it may be quoted."""
    return str(node.name if isinstance(node.this, exp.Identifier) else node.this).lower()


class Over:
    """The window of a window function."""

    def __init__(self, keys: str, frame: str, has_order: bool) -> None:
        self.keys = keys
        """PARTITION BY and ORDER BY."""
        self.frame = frame
        self.has_order = has_order

    @property
    def sql(self) -> str:
        return " OVER (" + " ".join(part for part in (self.keys, self.frame) if part) + ")"


class AggregateCall:
    """A call of an aggregate or window function, with its arguments translated."""

    def __init__(
        self,
        name: str,
        arguments: list[Expression],
        has_star: bool,
        is_distinct: bool,
        condition: Expression | None,
        order: list[tuple[Expression, str]],
        ignores_nulls: bool,
        over: Over | None,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.has_star = has_star
        self.is_distinct = is_distinct
        self.condition = condition
        self.order = order
        """The keys of WITHIN GROUP or of ORDER BY between the parentheses, each with its direction."""
        self.ignores_nulls = ignores_nulls
        self.over = over

    def text(self, template: str, condition: Expression | None = None, order: str = "") -> str:
        """Returns the call, with FILTER and OVER; `{}` in the template is what DISTINCT applies to.

        `condition` restricts the rows further.
        """
        distinct = "DISTINCT " if self.is_distinct else ""
        conditions = [c.operand for c in (self.condition, condition) if c is not None]
        text = template.replace("{d}", distinct).replace("{o}", order)
        if conditions:
            text += f" FILTER (WHERE {' AND '.join(conditions)})"
        return text + ("" if self.over is None else self.over.sql)


_NAMES = {
    "interval": "INTERVAL outside of an addition",
    "lambda": "a lambda function",
    "tuple": "a row in parentheses",
    "regexplike": "RLIKE",
    "placeholder": "the path of a VARIANT",
    "hexstring": "a binary literal",
    "rawstring": "a raw string",
}
