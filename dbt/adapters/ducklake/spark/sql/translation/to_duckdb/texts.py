"""Functions on texts, from Spark to DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from .. import types as t
from ..expressions import Expression, Untranslatable
from ..signatures import table
from .arithmetic import concat
from .casts import cast
from .regular_expressions import regexp_extract, regexp_like, regexp_replace, split
from .words import only_spark, string

TABLE = table(
    ("length(string) -> int", "CAST(length({0}) AS INTEGER)"),
    ("char_length(string) -> int", "CAST(length({0}) AS INTEGER)"),
    ("character_length(string) -> int", "CAST(length({0}) AS INTEGER)"),
    ("len(string) -> int", "CAST(length({0}) AS INTEGER)"),
    ("octet_length(string) -> int", "CAST(strlen({0}) AS INTEGER)"),
    ("trim(string) -> string", "trim({0}, ' ')"),
    ("btrim(string) -> string", "trim({0}, ' ')"),
    ("ltrim(string) -> string", "ltrim({0}, ' ')"),
    ("rtrim(string) -> string", "rtrim({0}, ' ')"),
    ("btrim(string, string) -> string", "trim({0}, {1})"),
    ("trim_leading(string) -> string", "ltrim({0}, ' ')"),
    ("trim_trailing(string) -> string", "rtrim({0}, ' ')"),
    ("trim_leading(string, string) -> string", "ltrim({0}, {1})"),
    ("trim_trailing(string, string) -> string", "rtrim({0}, {1})"),
    ("ltrim(string, string) -> string", "ltrim({1}, {0})"),
    ("rtrim(string, string) -> string", "rtrim({1}, {0})"),
    ("replace(string, string, string) -> string", "replace({0}, {1}, {2})"),
    ("replace(string, string) -> string", "replace({0}, {1}, '')"),
    ("translate(string, string, string) -> string", "translate({0}, {1}, {2})"),
    ("concat_ws(string, string, ...) -> string", "concat_ws({*})"),
    ("instr(string, string) -> int", "CAST(instr({0}, {1}) AS INTEGER)"),
    ("locate(string, string) -> int", "CAST(instr({1}, {0}) AS INTEGER)"),
    ("position(string, string) -> int", "CAST(instr({1}, {0}) AS INTEGER)"),
    ("contains(string, string) -> boolean", "contains({0}, {1})"),
    ("startswith(string, string) -> boolean", "starts_with({0}, {1})"),
    ("endswith(string, string) -> boolean", "suffix({0}, {1})"),
    ("md5(string) -> string", "md5({0})"),
    ("md5(binary) -> string", "md5({0})"),
    ("sha(string) -> string", "sha1({0})"),
    ("sha1(string) -> string", "sha1({0})"),
    ("encode_utf8(string) -> binary", "encode({0})"),
)

# Letters for which Spark's ICU and DuckDB's utf8proc disagree: those whose other case is several letters or depends on
# the letters around, and those that are newer than DuckDB's tables.
_UPPER = (
    r"[\x{149}\x{19B}\x{1F0}\x{264}\x{390}\x{3B0}\x{587}\x{1C80}-\x{1C8F}\x{1E96}-\x{1E9A}\x{1F50}-\x{1FFF}"
    r"\x{A7C0}-\x{A7DF}\x{FB00}-\x{FB17}\x{10D40}-\x{10D8F}\x{16EA0}-\x{16EFF}]"
)
_LOWER = r"[\x{130}\x{3A3}\x{1C80}-\x{1C8F}\x{A7C0}-\x{A7DF}\x{10D40}-\x{10D8F}\x{16EA0}-\x{16EFF}]"


def upper(value: Expression) -> Expression:
    text = _uncased(value)
    plain = f"upper(replace({text.sql}, 'ß', 'SS'))"
    return _unless(f"regexp_matches({text.sql}, {string(_UPPER)})", "the upper case", plain)


def lower(value: Expression) -> Expression:
    text = _uncased(value)
    return _unless(f"regexp_matches({text.sql}, {string(_LOWER)})", "the lower case", f"lower({text.sql})")


def _uncased(value: Expression) -> Expression:
    if re.search(r"\b(?:upper|lower)\(", value.sql):
        raise Untranslatable("upper() and lower() in each other")  # Spark leaves out the inner one, which changes ß
    return cast(value, t.STRING)


def _unless(condition: str, what: str, sql: str) -> Expression:
    return Expression(f"CASE WHEN {condition} THEN {only_spark(what)} ELSE {sql} END", t.STRING)


def substring(value: Expression, start: Expression, length: Expression | None = None) -> Expression:
    """Returns characters from a position on, which counts from 1, or from the end if it is negative."""
    text, first = cast(value, t.STRING), _integer(start)
    if length is not None:
        length = _integer(length)
    if first.is_constant and isinstance(first.constant, int) and first.constant >= 0:
        arguments = [text.sql, str(max(first.constant, 1))]
        if length is not None:
            arguments.append(_not_negative(length))
        return Expression(f"substring({', '.join(arguments)})", t.STRING)
    # Positions before the first character shorten the result.
    position = f"CASE WHEN {first.sql} < 0 THEN length({text.sql}) + {first.operand} + 1"
    position += f" WHEN {first.sql} = 0 THEN 1 ELSE {first.sql} END"
    if length is None:
        rest = f"substring({text.sql}, greatest({position}, CAST(1 AS BIGINT)))"
        return Expression(f"CASE WHEN {first.operand} IS NULL THEN NULL ELSE {rest} END", t.STRING)
    count = f"({position}) + {_not_negative(length)} - greatest({position}, CAST(1 AS BIGINT))"
    sql = f"substring({text.sql}, greatest({position}, CAST(1 AS BIGINT)), greatest({count}, CAST(0 AS BIGINT)))"
    missing = " OR ".join(f"{e.operand} IS NULL" for e in (text, first, length))
    return Expression(f"CASE WHEN {missing} THEN NULL ELSE {sql} END", t.STRING)


def left(value: Expression, count: Expression) -> Expression:
    return Expression(f"left({cast(value, t.STRING).sql}, {_not_negative(_integer(count))})", t.STRING)


def right(value: Expression, count: Expression) -> Expression:
    return Expression(f"right({cast(value, t.STRING).sql}, {_not_negative(_integer(count))})", t.STRING)


def repeat(value: Expression, count: Expression) -> Expression:
    return Expression(f"repeat({cast(value, t.STRING).sql}, {_not_negative(_integer(count))})", t.STRING)


def _integer(value: Expression) -> Expression:
    if value.is_constant and isinstance(value.constant, int):
        return value
    if not t.is_integral(value.type) or value.type == t.LONG:
        raise Untranslatable("a position or a length that is no integer")
    return value


def _not_negative(count: Expression) -> str:
    if count.is_constant and isinstance(count.constant, int):
        return str(max(count.constant, 0))
    return f"CASE WHEN {count.operand} < 0 THEN 0 ELSE {count.sql} END"


def pad(function: str) -> Callable[..., Expression]:
    def rule(value: Expression, length: Expression, padding: Expression | None = None) -> Expression:
        with_ = " " if padding is None else padding.constant
        if not isinstance(with_, str) or not with_:
            raise Untranslatable(f"{function}() with a padding that is no literal")
        return Expression(
            f"{function}({cast(value, t.STRING).sql}, {_not_negative(_integer(length))}, {string(with_)})", t.STRING
        )

    return rule


def split_part(value: Expression, delimiter: Expression, part: Expression) -> Expression:
    if not delimiter.is_constant or not delimiter.constant:
        raise Untranslatable("split_part() with a delimiter that is no literal")
    if not isinstance(part.constant, int) or part.constant == 0:
        raise Untranslatable("split_part() with a part that is no number other than 0")
    return Expression(f"split_part({cast(value, t.STRING).sql}, {delimiter.sql}, {part.sql})", t.STRING)


def substring_index(value: Expression, delimiter: Expression, count: Expression) -> Expression:
    """Returns what comes before some delimiter, or behind it if the count is negative."""
    if not isinstance(delimiter.constant, str) or not delimiter.constant or not isinstance(count.constant, int):
        raise Untranslatable("substring_index() of something else than literals")
    number = count.constant
    parts = f"string_split({cast(value, t.STRING).sql}, {delimiter.sql})"
    kept = f"[1:{number}]" if number >= 0 else f"[{number}:]"
    return Expression(f"array_to_string({parts}{kept}, {delimiter.sql})", t.STRING)


def sha2(value: Expression, bits: Expression) -> Expression:
    if bits.constant not in (0, 256):
        raise Untranslatable("sha2() of other lengths than 256 bits")
    text = value if value.type == t.BINARY else cast(value, t.STRING)
    return Expression(f"sha256({text.sql})", t.STRING)


def get_json_object(value: Expression, path: Expression) -> Expression:
    """Returns a value in a JSON text: texts, whole numbers and booleans, which both engines write alike."""
    text = cast(value, t.STRING)
    if not isinstance(path.constant, str) or not _is_plain_path(path.constant):
        raise Untranslatable("get_json_object() with such a path")
    found = f"json_extract({text.sql}, {path.sql})"
    kind = f"json_type({found})"
    plain = f"CASE WHEN {kind} = 'NULL' THEN NULL ELSE {found} ->> '$' END"
    alike = "('VARCHAR', 'BIGINT', 'UBIGINT', 'BOOLEAN', 'NULL')"
    error = only_spark("get_json_object()")
    return Expression(
        f"CASE WHEN NOT json_valid({text.sql}) THEN {error} WHEN {kind} NOT IN {alike} THEN {error} ELSE {plain} END",
        t.STRING,
    )


def _is_plain_path(path: str) -> bool:
    names = path.split(".")
    return names[0] == "$" and len(names) > 1 and all(n.isascii() and n.replace("_", "a").isalnum() for n in names[1:])


FUNCTIONS: Mapping[str, Callable[..., Expression]] = {
    "upper": upper,
    "ucase": upper,
    "lower": lower,
    "lcase": lower,
    "substring": substring,
    "substr": substring,
    "left": left,
    "right": right,
    "repeat": repeat,
    "lpad": pad("lpad"),
    "rpad": pad("rpad"),
    "split_part": split_part,
    "substring_index": substring_index,
    "sha2": sha2,
    "get_json_object": get_json_object,
    "regexp_like": regexp_like,
    "regexp": regexp_like,
    "rlike": regexp_like,
    "regexp_replace": regexp_replace,
    "regexp_extract": regexp_extract,
    "split": split,
}


def concat_call(values: Sequence[Expression]) -> Expression:
    return concat(list(values)) if values else Expression("''", t.STRING, "")
