"""WKT, as in `POINT Z (1 2 3)`, to WKB: SQL that Spark computes, since it has no function for it.

The SQL turns the coordinates of a text into JSON lists, and these into the hexadecimal digits of big-endian WKB.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from ..sql.quoting import string_literal

_POINT, _LINESTRING, _POLYGON, _MULTIPOINT, _MULTILINESTRING, _MULTIPOLYGON = range(1, 7)
_TEXT = "(?s)^(MULTI)?(POINT|LINESTRING|POLYGON)[ \\t\\r\\n]*(ZM|Z|M)?[ \\t\\r\\n]*(EMPTY|[(].*[)])$"
_NAN = "7FF8000000000000"
"""The hexadecimal digits of a coordinate of `POINT EMPTY`."""


def wkb_of_text(sql: str, column: str) -> str:
    """Returns the Spark SQL for the WKB of a text in WKT. What is none is an error that names the column.

    Geometry collections are such an error: no expression of SQL recurses as deeply as they may.
    """
    before = string_literal(f"a value for column {column} is no shape that can be read from WKT: ")
    behind = string_literal("; give it as WKB")
    error = f"raise_error(concat({before}, {sql}, {behind}))"
    part = {
        name: f"regexp_extract(wkt, {string_literal(_TEXT)}, {group})"
        for group, name in enumerate(("multi", "shape", "dimensions", "body"), start=1)
    }
    digits = _Digits(f"length({part['dimensions']})", part["dimensions"], part["body"], error)
    kind = f"concat({part['multi']}, {part['shape']})"
    cases = " ".join(f"when {string_literal(name)} then {hexadecimal}" for name, hexadecimal in digits.by_shape())
    value = f"case {kind} {cases} else {error} end"
    return f"case when {sql} is not null then unhex({_bind('wkt', f'upper(trim({sql}))', value)}) end"


class _Digits:
    """The SQL for the digits of a shape's WKB, from the SQL for the parts of its WKT."""

    def __init__(self, extra_axes: str, dimensions: str, body: str, error: str) -> None:
        self.axes = f"(2 + {extra_axes})"
        self.dimensions = f"case {dimensions} when 'Z' then 1000 when 'M' then 2000 when 'ZM' then 3000 else 0 end"
        self.body = body
        self.error = error

    def by_shape(self) -> list[tuple[str, str]]:
        """The digits for each kind of shape, by its name."""
        point = f"if(size(list) = 1, {self._coordinates('list[0]')}, {self.error})"
        rings = self._counted(lambda ring: self._counted(self._coordinates, ring, 2), "list", 1)
        line = self._counted(self._coordinates, "list", 1)
        return [
            ("POINT", self._shape(_POINT, 2, point)),
            ("LINESTRING", self._shape(_LINESTRING, 2, line)),
            ("POLYGON", self._shape(_POLYGON, 3, rings)),
            ("MULTIPOINT", self._shape(_MULTIPOINT, 2, self._parts(_POINT, self._coordinates))),
            ("MULTILINESTRING", self._shape(_MULTILINESTRING, 3, self._parts(_LINESTRING, self._line))),
            ("MULTIPOLYGON", self._shape(_MULTIPOLYGON, 4, self._parts(_POLYGON, self._rings))),
        ]

    def _line(self, line: str) -> str:
        return self._counted(self._coordinates, line, 3)

    def _rings(self, rings: str) -> str:
        return self._counted(self._line, rings, 2)

    def _shape(self, code: int, depth: int, content: str) -> str:
        """The digits of a shape, whose text holds lists of this depth. `content` has those of what it names `list`."""
        empty = f"repeat('{_NAN}', {self.axes})" if code == _POINT else "'00000000'"
        # The parentheses around each point of a MULTIPOINT may be left out.
        body = f"concat('(', regexp_replace({self.body}, '[()]', ''), ')')" if code == _MULTIPOINT else self.body
        tight = f"regexp_replace({body}, '[ \\\\t\\\\r\\\\n]*([(),])[ \\\\t\\\\r\\\\n]*', '$1')"
        quoted = f"regexp_replace({tight}, '[^(), \\\\t\\\\r\\\\n]+', '\"$0\"')"
        listed = f"regexp_replace({quoted}, '[^(),]+', '[$0]')"
        json = f"translate(regexp_replace({listed}, '[ \\\\t\\\\r\\\\n]+', ','), '()', '[]')"
        type_ = "array<" * depth + "string" + ">" * depth
        found = _bind("list", f"from_json({json}, '{type_}')", f"if(list is null, {self.error}, {content})")
        return f"concat({self._head(code)}, if({self.body} = 'EMPTY', {empty}, {found}))"

    def _head(self, code: int) -> str:
        return f"concat('00', lpad(hex({code} + {self.dimensions}), 8, '0'))"

    def _parts(self, code: int, part: Callable[[str], str]) -> str:
        """The digits of the shapes in a `list`, each with its own head."""
        return self._counted(lambda item: f"concat({self._head(code)}, {part(item)})", "list", 1)

    def _counted(self, part: Callable[[str], str], items: str, depth: int) -> str:
        item = f"part{depth}"
        digits = f"concat_ws('', transform({items}, {item} -> {part(item)}))"
        return f"concat(lpad(hex(size({items})), 8, '0'), {digits})"

    def _coordinates(self, numbers: str) -> str:
        is_number = f"abs(try_cast(n as double)) between 0 and {sys.float_info.max!r}D or isnan(try_cast(n as double))"
        is_valid = f"size({numbers}) = {self.axes} and forall({numbers}, n -> {is_number})"
        digits = f"concat_ws('', transform({numbers}, n -> {_bind('x', 'cast(n as double)', _double_digits())}))"
        return f"if(coalesce({is_valid}, false), {digits}, {self.error})"


def _double_digits() -> str:
    """The SQL for the hexadecimal digits of the eight bytes of a double `x`: its sign, exponent and fraction."""
    # The logarithm may be rounded to the next integer; powers of two and divisions by them are exact.
    estimate = "cast(floor(log2(abs(x))) as int)"
    exponent = "e + case when abs(x) < pow(2D, e) then -1 when abs(x) >= pow(2D, e + 1) then 1 else 0 end"
    fraction = f"cast((abs(x) / pow(2D, e) - 1D) * {2**52}D as bigint)"
    digits = f"concat(lpad(hex(if(x < 0, 2048, 0) + e + 1023), 3, '0'), lpad(hex({fraction}), 13, '0'))"
    is_zero = f"abs(x) < {sys.float_info.min!r}D"  # zero, and what is so small that it has fewer digits
    value = _bind("e", _bind("e", estimate, exponent), digits)
    return f"case when isnan(x) then '{_NAN}' when {is_zero} then '{'0' * 16}' else {value} end"


def _bind(name: str, value: str, body: str) -> str:
    """The SQL of an expression in which a name stands for a value."""
    return f"transform(array({value}), {name} -> {body})[0]"
