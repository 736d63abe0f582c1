"""Functions on texts, from DuckDB to Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql.types import ArrayType

from .. import types as t
from ..expressions import Expression, Untranslatable
from ..signatures import table
from . import arithmetic
from .casts import cast
from .regular_expressions import translate_pattern
from .words import cast_to, string

_SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""What DuckDB's trim removes: Unicode's space separators."""

TABLE = table(
    *((f"{name}(string) -> bigint", "cast(length({0}) as bigint)") for name in ("length", "len", "char_length")),
    ("strlen(string) -> bigint", "cast(octet_length({0}) as bigint)"),
    *(
        (f"trim{end}(string) -> string", f"trim({where} {string(_SPACES)} from {{0}})")
        for end, where in (("", "both"),)
    ),
    ("ltrim(string) -> string", f"trim(leading {string(_SPACES)} from {{0}})"),
    ("rtrim(string) -> string", f"trim(trailing {string(_SPACES)} from {{0}})"),
    ("trim(string, string) -> string", "trim(both {1} from {0})"),
    ("ltrim(string, string) -> string", "trim(leading {1} from {0})"),
    ("rtrim(string, string) -> string", "trim(trailing {1} from {0})"),
    ("replace(string, string, string) -> string", "replace({0}, {1}, {2})"),
    *(
        (f"{name}(string, string) -> bigint", "cast(locate({1}, {0}) as bigint)")
        for name in ("instr", "strpos", "position")
    ),
    ("contains(string, string) -> boolean", "contains({0}, {1})"),
    *((f"{name}(string, string) -> boolean", "startswith({0}, {1})") for name in ("starts_with", "prefix")),
    *((f"{name}(string, string) -> boolean", "endswith({0}, {1})") for name in ("ends_with", "suffix")),
    ("md5(string) -> string", "md5({0})"),
    ("sha1(string) -> string", "sha1({0})"),
    ("sha256(string) -> string", "sha2({0}, 256)"),
)

# Letters for which Spark's ICU and DuckDB's utf8proc disagree; see the other direction.
_UPPER = (
    r"[\x{149}\x{19B}\x{1F0}\x{264}\x{390}\x{3B0}\x{587}\x{1C80}-\x{1C8F}\x{1E96}-\x{1E9A}\x{1F50}-\x{1FFF}"
    r"\x{A7C0}-\x{A7DF}\x{FB00}-\x{FB17}\x{10D40}-\x{10D8F}\x{16EA0}-\x{16EFF}]"
)
_LOWER = r"[\x{130}\x{3A3}\x{1C80}-\x{1C8F}\x{A7C0}-\x{A7DF}\x{10D40}-\x{10D8F}\x{16EA0}-\x{16EFF}]"


def _cased(function: str, letters: str) -> Callable[[Expression], Expression]:
    def rule(value: Expression) -> Expression:
        _require_text(value, function)
        condition = f"regexp_like({value.sql}, {string(letters)})"
        # DuckDB makes one capital letter of ß, and Spark two.
        text = f"replace({value.sql}, 'ß', 'ẞ')" if function == "upper" else value.sql
        return Expression(arithmetic.guarded(condition, f"the {function} case", f"{function}({text})"), t.STRING)

    return rule


def _require_text(value: Expression, function: str) -> None:
    if value.type != t.STRING:
        raise Untranslatable(f"{function}() of {value.type.simpleString()}")


def _natural(value: Expression | None, what: str, least: int = 0) -> int:
    number = None if value is None else value.constant
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise Untranslatable(f"{what} that is no literal from {least} on")
    return number


def substring(value: Expression, start: Expression, length: Expression | None = None) -> Expression:
    _require_text(value, "substring")
    arguments = [value.sql, str(_natural(start, "substring() from a position", 1))]
    if length is not None:
        arguments.append(str(_natural(length, "substring() with a length")))
    return Expression(f"substring({', '.join(arguments)})", t.STRING)


def _sized(function: str) -> Callable[..., Expression]:
    """Returns the rule of a function of a text and a number of characters."""

    def rule(value: Expression, count: Expression) -> Expression:
        _require_text(value, function)
        return Expression(f"{function}({value.sql}, {_natural(count, f'{function}() with a number')})", t.STRING)

    return rule


def _padded(function: str) -> Callable[..., Expression]:
    def rule(value: Expression, length: Expression, padding: Expression) -> Expression:
        _require_text(value, function)
        if not isinstance(padding.constant, str) or not padding.constant:
            raise Untranslatable(f"{function}() with a padding that is no literal")
        size = _natural(length, f"{function}() with a length")
        return Expression(f"{function}({value.sql}, {size}, {padding.sql})", t.STRING)

    return rule


def split_part(value: Expression, delimiter: Expression, part: Expression) -> Expression:
    _require_text(value, "split_part")
    if not isinstance(delimiter.constant, str) or not delimiter.constant or not isinstance(part.constant, int):
        raise Untranslatable("split_part() of something else than literals")
    if part.constant == 0:
        raise Untranslatable("split_part() with the part 0")
    return Expression(f"split_part({value.sql}, {delimiter.sql}, {part.constant})", t.STRING)


def concat(*values: Expression) -> Expression:
    """Returns texts in a row, NULL as ''."""
    if any(isinstance(v.type, ArrayType) or v.type == t.BINARY for v in values) or not values:
        raise Untranslatable("concat() of something else than texts")
    texts = [cast(v, t.STRING).sql for v in values if v.type != t.NULL]
    return Expression(" || ".join(f"coalesce({text}, '')" for text in texts) or "''", t.STRING)


def concat_ws(delimiter: Expression, *values: Expression) -> Expression:
    if not isinstance(delimiter.constant, str) or any(v.type not in (t.STRING, t.NULL) for v in values) or not values:
        raise Untranslatable("concat_ws() of something else than texts")
    return Expression(f"concat_ws({', '.join(v.sql for v in (delimiter, *values))})", t.STRING)


def _pattern(pattern: Expression) -> str:
    if not isinstance(pattern.constant, str):
        raise Untranslatable("a regular expression that is no literal")
    return translate_pattern(pattern.constant)


def regexp_matches(value: Expression, pattern: Expression) -> Expression:
    _require_text(value, "regexp_matches")
    return Expression(f"regexp_like({value.sql}, {string(_pattern(pattern))})", t.BOOLEAN)


def regexp_full_match(value: Expression, pattern: Expression) -> Expression:
    _require_text(value, "regexp_full_match")
    return Expression(f"regexp_like({value.sql}, {string(f'^(?:{_pattern(pattern)})' + chr(92) + 'z')})", t.BOOLEAN)


def like_escape(value: Expression, pattern: Expression, escape: Expression) -> Expression:
    if not isinstance(escape.constant, str):
        raise Untranslatable("LIKE with an ESCAPE that is no literal")
    return arithmetic.like(value, pattern, escape.constant)


def not_like_escape(value: Expression, pattern: Expression, escape: Expression) -> Expression:
    return Expression(f"NOT ({like_escape(value, pattern, escape).sql})", t.BOOLEAN)


def json_text(value: Expression, path: str) -> Expression:
    """Returns a text, a whole number or a boolean in a JSON text, as a text."""
    _require_text(value, "json_extract_string")
    parsed = f"variant_get(parse_json({value.sql}), {string(path)}, 'variant')"
    kind = f"schema_of_variant({parsed})"
    error = f"{kind} not in ('STRING', 'BIGINT', 'BOOLEAN', 'VOID')"
    return Expression(
        arithmetic.guarded(error, "json_extract_string()", cast_to(parsed, t.STRING)),
        t.STRING,
    )


FUNCTIONS: Mapping[str, Callable[..., Expression]] = {
    "upper": _cased("upper", _UPPER),
    "ucase": _cased("upper", _UPPER),
    "lower": _cased("lower", _LOWER),
    "lcase": _cased("lower", _LOWER),
    "substring": substring,
    "substr": substring,
    "left": _sized("left"),
    "right": _sized("right"),
    "repeat": _sized("repeat"),
    "lpad": _padded("lpad"),
    "rpad": _padded("rpad"),
    "split_part": split_part,
    "concat": concat,
    "concat_ws": concat_ws,
    "regexp_matches": regexp_matches,
    "regexp_full_match": regexp_full_match,
    "like_escape": like_escape,
    "not_like_escape": not_like_escape,
}
