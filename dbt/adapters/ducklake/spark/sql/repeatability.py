"""Whether a query gives the same rows again, for the same versions of what it reads: as far as its text tells."""

from __future__ import annotations

from collections.abc import Iterator

from .query_tokens import QueryTokens

_WITHOUT_PARENTHESES = frozenset(
    [
        "current_catalog",
        "current_database",
        "current_date",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtime",
        "localtimestamp",
        "session_user",
        "user",
    ]
)
_UNREPEATABLE = _WITHOUT_PARENTHESES | frozenset(
    [
        "any_value",
        "approx_percentile",
        "array_agg",
        "collect_list",
        "collect_set",
        "curdate",
        "current_timezone",
        "first",
        "first_value",
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "java_method",
        "last",
        "last_value",
        "listagg",
        "monotonically_increasing_id",
        "now",
        "percentile_approx",
        "rand",
        "randn",
        "random",
        "randstr",
        "reflect",
        "shuffle",
        "spark_partition_id",
        "string_agg",
        "try_reflect",
        "uniform",
        "unix_timestamp",
        "uuid",
        "version",
    ]
)
"""Spark's functions of the moment, the user, chance, or the order in which rows happen to come."""
_OF_THE_CATALOG = frozenset(
    [
        "ducklake_snapshots",
        "ducklake_table_info",
        "ducklake_list_files",
        "ducklake_options",
        "ducklake_settings",
        "ducklake_current_snapshot",
        "ducklake_last_committed_snapshot",
    ]
)
_KEYWORDS = frozenset(
    [
        "all",
        "for",
        "identifier",
        "interval",
        "timestampadd",
        "timestampdiff",
        "try_cast",
        "and",
        "any",
        "array",
        "as",
        "between",
        "by",
        "case",
        "cross",
        "cube",
        "distinct",
        "else",
        "end",
        "except",
        "exists",
        "filter",
        "from",
        "full",
        "group",
        "grouping",
        "having",
        "in",
        "inner",
        "intersect",
        "is",
        "join",
        "lateral",
        "left",
        "like",
        "limit",
        "map",
        "materialized",
        "minus",
        "not",
        "offset",
        "on",
        "or",
        "order",
        "outer",
        "over",
        "partition",
        "pivot",
        "qualify",
        "range",
        "recursive",
        "right",
        "rlike",
        "rollup",
        "rows",
        "select",
        "semi",
        "sets",
        "sort",
        "some",
        "struct",
        "table",
        "tablesample",
        "then",
        "union",
        "unpivot",
        "using",
        "values",
        "when",
        "where",
        "window",
        "with",
        "within",
    ]
)
"""Words that may stand before a parenthesis and call nothing."""


def normalized(sql: str) -> str:
    """A text without its comments, with one space between tokens."""
    tokens = QueryTokens(sql)
    return " ".join(sql[tokens[i].start : tokens[i].end] for i in range(tokens.count))


def unrepeatable_function(sql: str) -> str | None:
    """A function in a query that may give something else the next time, or `tablesample`; None if there is none."""
    tokens = QueryTokens(sql)
    for i in range(tokens.count):
        word = tokens.word(i).lower()
        if word in _WITHOUT_PARENTHESES and (i == 0 or tokens[i - 1].text not in (".", "AS")):
            return word
        if word == "tablesample":
            return word
    return next((name for name in called_functions(sql) if name in _UNREPEATABLE or name in _OF_THE_CATALOG), None)


def called_functions(sql: str) -> Iterator[str]:
    """The names, in lower case, of what a query calls: functions, and what only looks like one, such as CTEs."""
    tokens = QueryTokens(sql)
    for i in range(tokens.count - 1):
        name = tokens.word(i).lower()
        # Behind these stand parts of a name, types, and aliases with a list of columns.
        before = tokens[i - 1].text if i else ""
        if tokens[i + 1].text == "(" and name and name not in _KEYWORDS and before not in (".", "AS", "::", ")"):
            yield name
