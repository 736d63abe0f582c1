"""Errors of Spark in the words of a query's author: text, positions and names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from dbt.adapters.ducklake.spark.engine import source_text
from dbt.adapters.ducklake.spark.engine.source_text import Excerpt, SentQuery, in_author_words, remember


@pytest.fixture(autouse=True)
def no_other_queries() -> Iterator[None]:
    before = [*source_text._recent]
    source_text._recent.clear()
    yield
    source_text._recent.clear()
    source_text._recent.extend(before)


def _sent(original: str, statement: str | None = None, **replaced: str) -> SentQuery:
    """A query in which words are replaced; each is there once."""
    edits = sorted((original.index(word), original.index(word) + len(word), new) for word, new in replaced.items())
    query = SentQuery(original, edits, statement)
    remember(query)
    return query


def _shown(query: SentQuery, part: str) -> str:
    """How Spark shows a part of a query."""
    start = query.text.index(part)
    excerpt = Excerpt(query.text, start, start + len(part))
    return f"== SQL (line {excerpt.line}, position {excerpt.column + 1}) ==\n{excerpt.marked()}\n"


@dataclass
class _Context:
    """A query context as Spark's errors have it."""

    query: SentQuery
    part: str

    def startIndex(self) -> int:
        return self.query.text.index(self.part)

    def stopIndex(self) -> int:
        return self.startIndex() + len(self.part) - 1

    def fragment(self) -> str:
        return self.part


def _lines(*lines: str) -> str:
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("select 1/0 from t", "1/0", ("select 1/0 from t", "       ^^^")),
        ("select a,\n  1/0\nfrom t", "1/0", ("  1/0", "  ^^^")),
        ("select 1 /\n  0 from t", "1 /\n  0", ("select 1 /", "       ^^^", "  0 from t", "^^^")),
        (f"{'a' * 40} 1/0 {'b' * 40}", "1/0", (f"...{'a' * 31} 1/0 {'b' * 31}...", f"{' ' * 35}^^^")),
    ],
)
def test_a_part_of_a_text_is_marked(text: str, part: str, expected: Sequence[str]) -> None:
    start = text.index(part)
    assert Excerpt(text, start, start + len(part)).marked() == _lines(*expected)


@pytest.mark.parametrize(
    ("original", "replaced", "part", "expected"),
    [
        (
            "select 1/0 from orders",
            {"orders": "_lake_3 AS `orders`"},
            "1/0",
            ("(line 1, position 8) ==", "select 1/0 from orders", "       ^^^"),
        ),
        (
            "select main.t.a / 0\nfrom main.orders",
            {"main.t": "`t`", "main.orders": "_lake_3 AS `t`"},
            "`t`.a / 0",
            ("(line 1, position 8) ==", "select main.t.a / 0", "       ^^^^^^^^^^^^"),
        ),
        (
            f"select {'x, ' * 20}1/0 from orders where 'long enough to be cut off by Spark' = b",
            {"orders": "_lake_3 AS `orders`"},
            "1/0",
            (
                "(line 1, position 68) ==",
                f"...{', x' * 10}, 1/0 from orders where 'long enough ...",
                f"{' ' * 35}^^^",
            ),
        ),
    ],
)
def test_an_excerpt_shows_the_authors_text(
    original: str, replaced: dict[str, str], part: str, expected: Sequence[str]
) -> None:
    query = _sent(original, None, **replaced)
    _sent("select something from else_where", else_where="_lake_4 AS `else_where`")
    message = f"[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n{_shown(query, part)}\n\tat a.b.c(D.java:1)"
    translated = in_author_words(message)
    assert translated.startswith(f"[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL {_lines(*expected)}\n")
    assert translated.endswith("\n\tat a.b.c(D.java:1)")


STATEMENT = "update t set\n a = b, b = 1 / 0,\n bb = a\nwhere a > 0"
COMPOSED = "select _lake_file, `t`.`c` as _lake_old_3, b as _lake_value_0, 1 / 0 as _lake_value_1 from t where a > 0"


def test_an_excerpt_of_a_composed_query_shows_the_statement() -> None:
    query = _sent(COMPOSED, STATEMENT, **{"from t": "from _lake_9 AS `t`"})
    assert in_author_words(_shown(query, "1 / 0")) == _lines(
        "== SQL (line 2, position 13) ==", " a = b, b = 1 / 0,", "            ^^^^^", ""
    )
    # What stands in a statement several times is told by what is around it.
    assert in_author_words(_shown(query, "a > 0")).startswith("== SQL (line 4, position 7) ==\nwhere a > 0\n")
    # What is no text of the author's is shown alone.
    assert in_author_words(_shown(query, "_lake_old_3")) == _lines("== SQL ==", "_lake_old_3", "^^^^^^^^^^^", "")


def test_positions_are_those_in_the_authors_text() -> None:
    query = _sent("select id\nfrom orders where nope = 1", orders="_lake_3 AS `orders`")
    message = "cannot be resolved. SQLSTATE: 42703; line 2 pos 31;\n'Project"
    assert in_author_words(message, [_Context(query, "nope")]) == (
        "cannot be resolved. SQLSTATE: 42703; line 2 pos 18;\n'Project"
    )
    composed = _sent(COMPOSED, STATEMENT, **{"from t": "from _lake_9 AS `t`"})
    place = f"; line 1 pos {composed.text.index('1 / 0')}"
    assert in_author_words(f"boo{place}", [_Context(composed, "1 / 0")]) == "boo; line 2 pos 12"
    place = f"; line 1 pos {composed.text.index('_lake_old_3')}"
    assert in_author_words(f"boo{place}", [_Context(composed, "_lake_old_3")]) == "boo"
    assert in_author_words(f"boo{place}") == f"boo{place}"


def _syntax_error(query: SentQuery, token: str, position: int) -> str:
    excerpt = Excerpt(query.text, position, position)
    lines = query.text.split("\n")
    lines.insert(excerpt.line, f"{'-' * excerpt.column}^^^")
    return (
        f"[PARSE_SYNTAX_ERROR] Syntax error at or near {token}: extra input {token}. SQLSTATE: 42601"
        f" (line {excerpt.line}, pos {excerpt.column})\n\n== SQL ==\n" + "\n".join(lines) + "\n"
    )


def test_syntax_errors_show_the_authors_text_and_token() -> None:
    query = _sent("select id +\nfrom orders", orders="_lake_3 AS `orders`")
    assert in_author_words(_syntax_error(query, "'AS'", query.text.index("AS"))) == _lines(
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'orders': extra input 'orders'. SQLSTATE: 42601 (line 2, pos 5)",
        "",
        "== SQL ==",
        "select id +",
        "from orders",
        "-----^^^",
    )
    statement = "update t set a = 1 +"
    composed = _sent("select a, (1 +) as _lake_value_0 from t", statement, **{"from t": "from _lake_9 AS `t`"})
    assert in_author_words(_syntax_error(composed, "')'", composed.text.index(")"))) == (
        "[PARSE_SYNTAX_ERROR] Syntax error at or near end of input: extra input end of input. SQLSTATE: 42601"
        " (line 1, pos 20)\n\n== SQL ==\nupdate t set a = 1 +\n--------------------^^^"
    )


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("cannot read _lake_3 AS `orders`", "cannot read main.orders"),
        ("`_lake_3`.`id` and `_lake_4`.`id`", "main.orders.`id` and `id`"),
        (
            "`x` is no column. Did you mean one of the following? [`u`.`a`, `u`.`_lake_file`, `_lake_source`.`k`]."
            " SQLSTATE: 42703",
            "`x` is no column. Did you mean one of the following? [`u`.`a`, `k`]. SQLSTATE: 42703",
        ),
        (
            "`x` cannot be resolved. Did you mean one of the following? [`_lake_source_row`]. SQLSTATE: 42703",
            "`x` cannot be resolved. SQLSTATE: 42703",
        ),
        (
            'failed.\n== DataFrame ==\n"select" was called from\n/site-packages/insert.py:72\n',
            "failed.\n",
        ),
        ("a column _lake is fine", "a column _lake is fine"),
    ],
)
def test_names_of_ours_are_replaced_or_left_out(message: str, expected: str) -> None:
    _sent("select * from main.orders", **{"main.orders": "_lake_3 AS `orders`"})
    assert in_author_words(message) == expected
