"""Statements that change rows: INSERT, UPDATE, DELETE, MERGE, TRUNCATE, and WITH before any of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .tokens import QUERY_WORDS, Cursor, Name

ClauseKind: TypeAlias = Literal["matched", "not matched", "not matched by source"]


@dataclass(frozen=True)
class Query:
    """Text that Spark answers with rows, once the lake's relations in it have been found."""

    text: str


@dataclass(frozen=True)
class PartitionValue:
    """One entry of INSERT's PARTITION clause; without an expression the query brings the value."""

    column: str
    expression: str | None = None


@dataclass(frozen=True)
class Insert:
    """INSERT; the rows come from `query`, which may use the common tables of `with_clause`."""

    name: Name
    query: str
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    overwrite: bool = False
    partition: tuple[PartitionValue, ...] = ()
    replace_where: str | None = None
    """Rows for which it holds give way."""
    replace_using: tuple[str, ...] = ()
    """Columns: rows whose values in them are those of a new row give way, if `replace_where` holds too."""
    replace_partitions: bool = False
    """Whether the partitions that the new rows are in give way."""
    schema_evolution: bool = False
    with_clause: str | None = None
    alias: str | None = None
    """What a condition of REPLACE calls the table."""

    @property
    def replaces(self) -> bool:
        return bool(self.overwrite or self.replace_where or self.replace_using or self.replace_partitions)

    @property
    def full_query(self) -> str:
        """The query with the common tables that the statement began with."""
        return self.query if self.with_clause is None else f"{self.with_clause} ({self.query})"


@dataclass(frozen=True)
class Assignment:
    """`column = expression` of a SET; the column's path as written, possibly with the table's alias."""

    column: Name
    expression: str


@dataclass(frozen=True)
class Update:
    name: Name
    assignments: tuple[Assignment, ...]
    alias: str | None = None
    condition: str | None = None
    with_clause: str | None = None


@dataclass(frozen=True)
class Delete:
    name: Name
    alias: str | None = None
    condition: str | None = None
    with_clause: str | None = None


@dataclass(frozen=True)
class Truncate:
    name: Name


@dataclass(frozen=True)
class MergeUpdate:
    """UPDATE SET; None assigns every column of the target from the source's column of the same name."""

    assignments: tuple[Assignment, ...] | None


@dataclass(frozen=True)
class MergeDelete:
    """DELETE of the matched row."""


@dataclass(frozen=True)
class MergeInsert:
    """INSERT; None takes every column of the target from the source's column of the same name."""

    columns: tuple[Name, ...] | None = None
    values: tuple[str, ...] | None = None


MergeAction: TypeAlias = MergeUpdate | MergeDelete | MergeInsert


@dataclass(frozen=True)
class MergeClause:
    """One WHEN ... THEN; of the clauses of its kind, the first whose condition holds acts on a row."""

    kind: ClauseKind
    action: MergeAction
    condition: str | None = None


@dataclass(frozen=True)
class Merge:
    """MERGE INTO; `source` is what may stand in FROM: a name, a function, or a query in parentheses."""

    name: Name
    source: str
    condition: str
    clauses: tuple[MergeClause, ...]
    alias: str | None = None
    source_alias: str | None = None
    schema_evolution: bool = False
    with_clause: str | None = None


RowStatement: TypeAlias = Insert | Update | Delete | Merge


def parse_with(cursor: Cursor) -> Query | RowStatement:
    """WITH: a query, or a change of rows that uses the common tables named first."""
    if not _skip_common_tables(cursor):
        cursor.index = 0
        return Query(cursor.rest("a query"))
    parser = _ROW_STATEMENTS.get(cursor.token.key)
    if parser:
        return parser(cursor, cursor.text_since(0))
    if cursor.at("FROM"):
        refuse_insert_after_from(cursor)
    cursor.index = 0
    return Query(cursor.rest("a query"))


def parse_from(cursor: Cursor) -> Query:
    """FROM x ...: a query that begins with its source."""
    refuse_insert_after_from(cursor)
    return Query(cursor.rest("a query"))


def parse_insert(cursor: Cursor, with_clause: str | None = None) -> Insert:
    cursor.begin("INSERT")
    schema_evolution = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    word = cursor.take_any("INTO", "OVERWRITE")
    if not word:
        raise cursor.unexpected("INTO or OVERWRITE")
    cursor.statement += f" {word}"
    if cursor.at("LOCAL", "DIRECTORY") or (cursor.at("DIRECTORY") and cursor.look(1).kind == "string"):
        raise cursor.refused(cursor.token.key, "a lake has tables. Write files with Spark's DataFrame writer")
    cursor.take("TABLE")
    name = cursor.subject("a table")
    alias = cursor.part("an alias") if cursor.take("AS") else None
    partition = _partition_values(cursor) if cursor.take("PARTITION") else ()
    if partition and cursor.at("IF", "NOT", "EXISTS"):
        raise cursor.refused("IF NOT EXISTS", "a lake's partitions are values of rows. Leave it out")
    columns: tuple[str, ...] | None = None
    if cursor.at("(") and not cursor.at_query():
        columns = cursor.parenthesised(lambda: cursor.part("a column"))
    by_name = cursor.take("BY", "NAME")
    if by_name and columns is not None:
        raise cursor.error(
            "a list of columns and BY NAME exclude each other. Keep BY NAME and name the query's columns"
        )
    replace_where, replace_partitions = None, False
    replace_using: tuple[str, ...] = ()
    if word == "INTO" and cursor.take("REPLACE"):
        if cursor.take("USING"):
            replace_using = cursor.parenthesised(lambda: cursor.part("a column"))
            if cursor.take("WHERE"):
                replace_where = cursor.expression("a condition", *QUERY_WORDS)
        elif cursor.take("PARTITIONS"):
            replace_partitions = True
        elif cursor.take("WHERE"):
            replace_where = cursor.expression("a condition", *QUERY_WORDS)
        else:
            raise cursor.unexpected("WHERE, USING or PARTITIONS")
    return Insert(
        name,
        cursor.query(),
        columns,
        by_name,
        word == "OVERWRITE",
        partition,
        replace_where,
        replace_using,
        replace_partitions,
        schema_evolution,
        with_clause,
        alias,
    )


def parse_update(cursor: Cursor, with_clause: str | None = None) -> Update:
    cursor.begin("UPDATE")
    name = cursor.subject("a table")
    alias = cursor.alias("SET")
    cursor.expect("SET")
    assignments = cursor.listed(lambda: _assignment(cursor, "WHERE", "FROM"))
    if cursor.at("FROM"):
        raise cursor.refused("FROM", "UPDATE sets columns from their own row. Write MERGE INTO ... USING")
    condition = cursor.rest("a condition") if cursor.take("WHERE") else None
    cursor.finish()
    return Update(name, assignments, alias, condition, with_clause)


def parse_delete(cursor: Cursor, with_clause: str | None = None) -> Delete:
    cursor.begin("DELETE", "FROM")
    name = cursor.subject("a table")
    alias = cursor.alias("WHERE", "USING")
    if cursor.at("USING"):
        raise cursor.refused("USING", "write WHERE EXISTS (SELECT ...), or MERGE INTO ... THEN DELETE")
    condition = cursor.rest("a condition") if cursor.take("WHERE") else None
    cursor.finish()
    return Delete(name, alias, condition, with_clause)


def parse_truncate(cursor: Cursor) -> Truncate:
    cursor.begin("TRUNCATE")
    cursor.take("TABLE")
    name = cursor.subject("a table")
    if cursor.at("PARTITION"):
        raise cursor.refused("PARTITION", "write DELETE FROM ... WHERE with the partition's values")
    cursor.finish()
    return Truncate(name)


def parse_merge(cursor: Cursor, with_clause: str | None = None) -> Merge:
    cursor.begin("MERGE")
    schema_evolution = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    cursor.begin("INTO")
    name = cursor.subject("a table")
    alias = cursor.alias("USING")
    cursor.expect("USING")
    source, source_alias = _merge_source(cursor)
    if cursor.at("USING"):
        raise cursor.refused("USING (columns)", "write ON target.column = source.column")
    cursor.expect("ON")
    condition = cursor.expression("a condition", "WHEN")
    clauses = []
    while cursor.at("WHEN"):
        clauses.append(_merge_clause(cursor))
    if not clauses:
        raise cursor.unexpected("WHEN")
    cursor.finish()
    _refuse_unreachable(cursor, clauses)
    return Merge(name, source, condition, tuple(clauses), alias, source_alias, schema_evolution, with_clause)


_ROW_STATEMENTS: dict[str, Callable[[Cursor, str | None], RowStatement]] = {
    "INSERT": parse_insert,
    "UPDATE": parse_update,
    "DELETE": parse_delete,
    "MERGE": parse_merge,
}


def refuse_insert_after_from(cursor: Cursor) -> None:
    """Raises if an INSERT follows the FROM that a statement begins with."""
    depth = 0
    for index in range(cursor.index, len(cursor.tokens) - 1):
        key = cursor.tokens[index].key
        depth += (key == "(") - (key == ")")
        if depth == 0 and key == "INSERT" and cursor.tokens[index + 1].key in ("INTO", "OVERWRITE"):
            cursor.statement, cursor.index = "FROM", index
            raise cursor.refused("INSERT", "write INSERT INTO ... SELECT ... FROM, once for each table")


def _skip_common_tables(cursor: Cursor) -> bool:
    """Steps behind `WITH a AS (...), b AS (...)`; False if it is not written that way."""
    cursor.expect("WITH")
    cursor.take("RECURSIVE")
    while True:
        if not cursor.at_name():
            return False
        cursor.index += 1
        if cursor.at("(") and not cursor.at_query():
            cursor.skip_parentheses()
        if cursor.take("MAX", "RECURSION", "LEVEL") and not cursor.at_end():
            cursor.index += 1
        cursor.take("AS")
        if not cursor.at("("):
            return False
        cursor.skip_parentheses()
        if not cursor.take(","):
            return True


def _partition_values(cursor: Cursor) -> tuple[PartitionValue, ...]:
    def one() -> PartitionValue:
        column = cursor.part("a partition column")
        return PartitionValue(column, cursor.expression("a value") if cursor.take("=") else None)

    return cursor.parenthesised(one)


def _assignment(cursor: Cursor, *stops: str) -> Assignment:
    column = cursor.name("a column to assign")
    cursor.expect("=")
    return Assignment(column, cursor.expression("a value", *stops))


def _merge_source(cursor: Cursor) -> tuple[str, str | None]:
    """The source's text and its alias: the name at its end that belongs to nothing before it."""
    first = cursor.index
    text = cursor.expression("a table or a query in parentheses", "ON", "USING")
    last, before, earlier = (cursor.tokens[cursor.index - back] for back in (1, 2, 3))
    named = last.kind in ("word", "quoted") and cursor.index - first > 1
    if not named or before.key in (".", "OF"):
        return text, None
    alias_at = cursor.index - 1
    end = earlier.end if before.key == "AS" else before.end
    cursor.index = alias_at
    alias = cursor.part("an alias")
    return cursor.sql[cursor.tokens[first].start : end], alias


def _merge_clause(cursor: Cursor) -> MergeClause:
    cursor.expect("WHEN")
    kind: ClauseKind = "matched"
    if cursor.take("NOT"):
        kind = "not matched"
    cursor.expect("MATCHED")
    if kind == "not matched" and cursor.take("BY"):
        side = cursor.take_any("SOURCE", "TARGET")
        if not side:
            raise cursor.unexpected("SOURCE or TARGET")
        kind = "not matched by source" if side == "SOURCE" else kind
    condition = cursor.expression("a condition", "THEN") if cursor.take("AND") else None
    cursor.expect("THEN")
    if kind == "not matched":
        if not cursor.take("INSERT"):
            raise cursor.unexpected("INSERT, what WHEN NOT MATCHED can do")
        return MergeClause(kind, _merge_insert(cursor), condition)
    if cursor.take("DELETE"):
        return MergeClause(kind, MergeDelete(), condition)
    if not cursor.take("UPDATE"):
        raise cursor.unexpected(f"UPDATE or DELETE, what WHEN {kind.upper()} can do")
    update = _merge_update(cursor)
    if kind == "not matched by source" and update.assignments is None:
        raise cursor.error("WHEN NOT MATCHED BY SOURCE has no row to UPDATE SET * from. List the columns")
    return MergeClause(kind, update, condition)


def _merge_update(cursor: Cursor) -> MergeUpdate:
    takes_all = not cursor.take("SET")  # UPDATE alone is DuckDB's word for UPDATE SET *
    if cursor.take("*") or takes_all:
        return MergeUpdate(None)
    return MergeUpdate(cursor.listed(lambda: _assignment(cursor, "WHEN")))


def _merge_insert(cursor: Cursor) -> MergeInsert:
    if cursor.take("*") or cursor.at_any("WHEN") or cursor.at_end():
        return MergeInsert()
    columns = cursor.parenthesised(lambda: cursor.name("a column")) if not cursor.at("VALUES") else None
    cursor.expect("VALUES")
    values = cursor.parenthesised(lambda: cursor.expression("a value"))
    if columns is not None and len(columns) != len(values):
        raise cursor.error(f"INSERT names {len(columns)} columns and gives {len(values)} values")
    return MergeInsert(columns, values)


def _refuse_unreachable(cursor: Cursor, clauses: list[MergeClause]) -> None:
    without_condition: set[str] = set()
    for clause in clauses:
        if clause.kind in without_condition:
            raise cursor.error(
                f"a WHEN {clause.kind.upper()} without a condition comes before another one, which would "
                "never act. Put the one without a condition last"
            )
        if clause.condition is None:
            without_condition.add(clause.kind)
