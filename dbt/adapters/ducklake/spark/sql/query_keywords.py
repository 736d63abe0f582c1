"""What a keyword or a `*` means at its position in a query. Spark reserves few keywords: most can be names too."""

from __future__ import annotations

from .query_tokens import QueryTokens

SET_OPERATIONS = {"UNION", "EXCEPT", "INTERSECT", "MINUS", "SETMINUS"}
_BY_KEYWORDS = {"BIN", "GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"}
_FROM_END_KEYWORDS = {"SELECT", "WHERE", "HAVING", "QUALIFY", "INSERT"}
NO_ALIAS_KEYWORDS = {
    *SET_OPERATIONS,
    *_FROM_END_KEYWORDS,
    *("ANTI", "CROSS", "FULL", "INNER", "JOIN", "LATERAL", "LEFT", "NATURAL", "ON", "RIGHT", "SEMI"),
    *("ASOF", "AS", "FROM", "LIMIT", "MATCH_CONDITION", "OFFSET", "TABLESAMPLE", "USING", "WITH"),
}
COLUMN_DROPPING_KEYWORDS = {"SEMI", "ANTI", "NATURAL", "PIVOT", "UNPIVOT"}
"""Keywords in a FROM after which `*` no longer stands for every column of every source."""


def is_operator_from(tokens: QueryTokens, i: int, in_from: bool) -> bool:
    """Whether the FROM at `i` belongs to `is distinct from`, or to `t changes from version 1`."""
    before, earlier = tokens[max(i - 1, 0)].text, tokens[max(i - 2, 0)].text
    return (before == "DISTINCT" and earlier in ("IS", "NOT")) or (before == "CHANGES" and in_from)


def is_set_operation(tokens: QueryTokens, i: int) -> bool:
    """Whether the keyword of a set operation at `i` is one: EXCEPT may belong to a `*`."""
    if tokens[i - 1].text == "*":  # select * except (column)
        return False
    following = tokens.word(i + 1)
    return (
        tokens.starts_query(tokens.inside[i + 1])
        or following in ("ALL", "DISTINCT")
        or (following == "BY" and tokens.word(i + 2) == "NAME")
    )


def ends_from(tokens: QueryTokens, i: int, word: str) -> bool:
    """Whether the `word` at `i` begins the clause behind a FROM."""
    following = tokens.word(i + 1)
    return (
        word in _FROM_END_KEYWORDS
        or (word in _BY_KEYWORDS and following == "BY")
        or (word == "WINDOW" and tokens.is_identifier(i + 1) and tokens.word(i + 2) == "AS")
        or (word in ("MAP", "REDUCE") and tokens.is_identifier(i + 1))
    )


def starts_join(tokens: QueryTokens, i: int) -> bool:
    """Whether a join starts at `i`: at most three words come before JOIN."""
    for j in range(i, i + 4):
        if tokens.word(j) == "JOIN":
            return True
        if not tokens.word(j):
            return False
    return False


def names_table_argument(tokens: QueryTokens, i: int) -> bool:
    """Whether a relation's name, and no query, follows the TABLE before `i`."""
    if tokens[i].text != "(":
        return tokens.is_identifier(i) and tokens[i + 1].text != "=>"
    return tokens.is_identifier(tokens.inside[i]) and not tokens.starts_query(tokens.inside[i])


def is_column_star(tokens: QueryTokens, i: int) -> bool:
    """Whether the `*` at `i` stands for columns, rather than multiply or belong to `count(*)`."""
    before = tokens[i - 1].text if i else ""
    is_count = before == "(" and i > 1 and tokens[i - 2].text == "COUNT"
    return before in ("SELECT", "DISTINCT", "ALL", ",", "(") and not is_count


def is_clause(tokens: QueryTokens, i: int) -> bool:
    """Whether the word at `i`, behind a relation, begins a join or a clause and is not the relation's alias."""
    word, following = tokens.word(i), tokens[i + 1].text
    return (
        word in NO_ALIAS_KEYWORDS
        or ends_from(tokens, i, word)
        or (word in ("PIVOT", "UNPIVOT") and following in ("(", "INCLUDE", "EXCLUDE"))
    )


def is_join_or_clause(tokens: QueryTokens, i: int) -> bool:
    """Whether the token at `i` begins a join or a clause; LEFT and RIGHT are functions too."""
    return tokens.is_identifier(i) and is_clause(tokens, i) and tokens[i + 1].text != "("
