"""Statements that change rows: INSERT, UPDATE, DELETE, MERGE, TRUNCATE, also behind a WITH clause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .tokens import QUERY_KEYWORDS, Cursor, Name

ClauseKind: TypeAlias = Literal["matched", "not matched", "not matched by source"]


@dataclass(frozen=True)
class Query:
    """A query, which Spark runs once the relations of the lake in it are resolved."""

    text: str


@dataclass(frozen=True)
class PartitionValue:
    """One entry of the PARTITION clause of an INSERT."""

    column: str
    expression: str | None = None
    """None if the query provides the value."""


@dataclass(frozen=True)
class Insert:
    """INSERT of the rows of a query."""

    name: Name
    query: str
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    overwrite: bool = False
    partition: tuple[PartitionValue, ...] = ()
    replace_where: str | None = None
    """REPLACE WHERE: the condition on the rows to delete."""
    replace_using: tuple[str, ...] = ()
    """REPLACE USING: rows are deleted that have the values of a new row in these columns, and meet `replace_where`."""
    replace_partitions: bool = False
    """REPLACE PARTITIONS: the partitions of the new rows are deleted."""
    schema_evolution: bool = False
    with_clause: str | None = None
    """The common table expressions before the INSERT, which the query may use."""
    alias: str | None = None
    """The name of the table in the condition of REPLACE WHERE."""
    text: str = field(default="", compare=False, repr=False)
    """The whole statement."""

    @property
    def is_overwrite(self) -> bool:
        return bool(self.overwrite or self.replace_where or self.replace_using or self.replace_partitions)

    @property
    def full_query(self) -> str:
        """The query with the common table expressions before the INSERT."""
        return self.query if self.with_clause is None else f"{self.with_clause} ({self.query})"


@dataclass(frozen=True)
class Assignment:
    """`column = expression` of a SET."""

    column: Name
    """The path as written, possibly with the table's alias."""
    expression: str


@dataclass(frozen=True)
class Update:
    name: Name
    assignments: tuple[Assignment, ...]
    alias: str | None = None
    condition: str | None = None
    with_clause: str | None = None
    text: str = field(default="", compare=False, repr=False)
    """The whole statement."""


@dataclass(frozen=True)
class Delete:
    name: Name
    alias: str | None = None
    condition: str | None = None
    with_clause: str | None = None
    text: str = field(default="", compare=False, repr=False)
    """The whole statement."""


@dataclass(frozen=True)
class Truncate:
    name: Name


@dataclass(frozen=True)
class MergeUpdate:
    """UPDATE SET of the matched row."""

    assignments: tuple[Assignment, ...] | None
    """None for `*`: every column of the target gets the value of the source's column of the same name."""


@dataclass(frozen=True)
class MergeDelete:
    """DELETE of the matched row."""


@dataclass(frozen=True)
class MergeInsert:
    """INSERT of the source row."""

    columns: tuple[Name, ...] | None = None
    """None for the columns of the target in their order."""
    values: tuple[str, ...] | None = None
    """None for `*`: every column of the target gets the value of the source's column of the same name."""


MergeAction: TypeAlias = MergeUpdate | MergeDelete | MergeInsert


@dataclass(frozen=True)
class MergeClause:
    """One WHEN ... THEN: for each row the first clause of its kind whose condition holds acts."""

    kind: ClauseKind
    action: MergeAction
    condition: str | None = None


@dataclass(frozen=True)
class Merge:
    name: Name
    source: str
    """The text of the source: a name, a table function or a query in parentheses."""
    condition: str
    clauses: tuple[MergeClause, ...]
    alias: str | None = None
    source_alias: str | None = None
    schema_evolution: bool = False
    with_clause: str | None = None
    text: str = field(default="", compare=False, repr=False)
    """The whole statement."""


RowStatement: TypeAlias = Insert | Update | Delete | Merge


def parse_with(cursor: Cursor) -> Query | RowStatement:
    """Parses WITH: a query, or a statement that changes rows."""
    if not _skip_common_tables(cursor):
        cursor.index = 0
        return Query(cursor.rest("a query"))
    parser = _ROW_STATEMENTS.get(cursor.token.key)
    if parser:
        return parser(cursor, cursor.text_since(0))
    if cursor.at("FROM"):
        _refuse_insert_after_from(cursor)
    cursor.index = 0
    return Query(cursor.rest("a query"))


def parse_from(cursor: Cursor) -> Query:
    """Parses a query that begins with FROM."""
    _refuse_insert_after_from(cursor)
    return Query(cursor.rest("a query"))


def parse_insert(cursor: Cursor, with_clause: str | None = None) -> Insert:
    cursor.begin("INSERT")
    schema_evolution = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    word = cursor.take_any("INTO", "OVERWRITE")
    if not word:
        raise cursor.unexpected("INTO or OVERWRITE")
    cursor.statement += f" {word}"
    if cursor.at("LOCAL", "DIRECTORY") or (cursor.at("DIRECTORY") and cursor.peek(1).kind == "string"):
        raise cursor.refused(cursor.token.key, "a lake has tables. Write files with Spark's DataFrame writer")
    cursor.take("TABLE")
    name = cursor.subject("a table")
    alias = cursor.identifier("an alias") if cursor.take("AS") else None
    partition = _partition_values(cursor) if cursor.take("PARTITION") else ()
    if partition and cursor.at("IF", "NOT", "EXISTS"):
        raise cursor.refused("IF NOT EXISTS", "a lake's partitions are values of rows. Leave it out")
    columns: tuple[str, ...] | None = None
    if cursor.at("(") and not cursor.at_query():
        columns = cursor.parenthesized(lambda: cursor.identifier("a column"))
    by_name = cursor.take("BY", "NAME")
    if by_name and columns is not None:
        raise cursor.error(
            "a list of columns and BY NAME exclude each other. Keep BY NAME and name the query's columns"
        )
    replace_where, replace_partitions = None, False
    replace_using: tuple[str, ...] = ()
    if word == "INTO" and cursor.take("REPLACE"):
        if cursor.take("USING"):
            replace_using = cursor.parenthesized(lambda: cursor.identifier("a column"))
            if cursor.take("WHERE"):
                replace_where = cursor.expression("a condition", *QUERY_KEYWORDS)
        elif cursor.take("PARTITIONS"):
            replace_partitions = True
        elif cursor.take("WHERE"):
            replace_where = cursor.expression("a condition", *QUERY_KEYWORDS)
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
        cursor.whole_text(),
    )


def parse_update(cursor: Cursor, with_clause: str | None = None) -> Update:
    cursor.begin("UPDATE")
    name = cursor.subject("a table")
    alias = cursor.alias("SET")
    cursor.expect("SET")
    assignments = cursor.comma_separated(lambda: _assignment(cursor, "WHERE", "FROM"))
    if cursor.at("FROM"):
        raise cursor.refused("FROM", "UPDATE sets columns from their own row. Write MERGE INTO ... USING")
    condition = cursor.rest("a condition") if cursor.take("WHERE") else None
    cursor.finish()
    return Update(name, assignments, alias, condition, with_clause, cursor.whole_text())


def parse_delete(cursor: Cursor, with_clause: str | None = None) -> Delete:
    cursor.begin("DELETE", "FROM")
    name = cursor.subject("a table")
    alias = cursor.alias("WHERE", "USING")
    if cursor.at("USING"):
        raise cursor.refused("USING", "write WHERE EXISTS (SELECT ...), or MERGE INTO ... THEN DELETE")
    condition = cursor.rest("a condition") if cursor.take("WHERE") else None
    cursor.finish()
    return Delete(name, alias, condition, with_clause, cursor.whole_text())


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
    return Merge(
        name,
        source,
        condition,
        tuple(clauses),
        alias,
        source_alias,
        schema_evolution,
        with_clause,
        cursor.whole_text(),
    )


_ROW_STATEMENTS: dict[str, Callable[[Cursor, str | None], RowStatement]] = {
    "INSERT": parse_insert,
    "UPDATE": parse_update,
    "DELETE": parse_delete,
    "MERGE": parse_merge,
}


def _refuse_insert_after_from(cursor: Cursor) -> None:
    """Raises if an INSERT follows the FROM that a statement begins with."""
    depth = 0
    for index in range(cursor.index, len(cursor.tokens) - 1):
        key = cursor.tokens[index].key
        depth += (key == "(") - (key == ")")
        if depth == 0 and key == "INSERT" and cursor.tokens[index + 1].key in ("INTO", "OVERWRITE"):
            cursor.statement, cursor.index = "FROM", index
            raise cursor.refused("INSERT", "write INSERT INTO ... SELECT ... FROM, once for each table")


def _skip_common_tables(cursor: Cursor) -> bool:
    """Steps over `WITH a AS (...), b AS (...)`; returns False if the text has another form."""
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
    def parse_value() -> PartitionValue:
        column = cursor.identifier("a partition column")
        return PartitionValue(column, cursor.expression("a value") if cursor.take("=") else None)

    return cursor.parenthesized(parse_value)


def _assignment(cursor: Cursor, *stops: str) -> Assignment:
    column = cursor.name("a column to assign")
    cursor.expect("=")
    return Assignment(column, cursor.expression("a value", *stops))


def _merge_source(cursor: Cursor) -> tuple[str, str | None]:
    """Parses the source and its alias: a name at the end of the source that is no part of what comes before it."""
    first = cursor.index
    text = cursor.expression("a table or a query in parentheses", "ON", "USING")
    last, before, earlier = (cursor.tokens[cursor.index - back] for back in (1, 2, 3))
    ends_with_name = last.kind in ("word", "quoted") and cursor.index - first > 1
    if not ends_with_name or before.key in (".", "OF"):
        return text, None
    alias_index = cursor.index - 1
    end = earlier.end if before.key == "AS" else before.end
    cursor.index = alias_index
    alias = cursor.identifier("an alias")
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
    sets_all = not cursor.take("SET")  # in DuckDB UPDATE alone means UPDATE SET *
    if cursor.take("*") or sets_all:
        return MergeUpdate(None)
    return MergeUpdate(cursor.comma_separated(lambda: _assignment(cursor, "WHEN")))


def _merge_insert(cursor: Cursor) -> MergeInsert:
    if cursor.take("*") or cursor.at_any("WHEN") or cursor.at_end():
        return MergeInsert()
    columns = cursor.parenthesized(lambda: cursor.name("a column")) if not cursor.at("VALUES") else None
    cursor.expect("VALUES")
    values = cursor.parenthesized(lambda: cursor.expression("a value"))
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
