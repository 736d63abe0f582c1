"""Statements about the session: USE, transactions, CALL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .ddl import SCHEMA_KEYWORDS
from .literals import LiteralValue, parse_literal
from .tokens import Cursor, Name

UseKind: TypeAlias = Literal["schema", "catalog"]


@dataclass(frozen=True)
class Use:
    """USE, which changes the current schema or catalog."""

    name: Name
    kind: UseKind | None = None
    """None if the statement has no keyword: a name of one part is then a schema or a catalog."""


@dataclass(frozen=True)
class Begin:
    """BEGIN of a transaction, whose statements become one snapshot."""


@dataclass(frozen=True)
class Commit:
    """COMMIT of the transaction."""


@dataclass(frozen=True)
class Rollback:
    """ROLLBACK of the transaction."""


@dataclass(frozen=True)
class Argument:
    """One argument of a CALL."""

    name: str | None
    """None for a positional argument."""
    text: str
    literal: LiteralValue | None = None
    """The value, if the text is a literal."""


@dataclass(frozen=True)
class Call:
    name: Name
    arguments: tuple[Argument, ...] = ()


def parse_set_catalog(cursor: Cursor) -> Use:
    cursor.begin("SET", "CATALOG")
    name = (cursor.string("a catalog"),) if cursor.at_string() else cursor.name("a catalog")
    cursor.finish()
    return Use(name, "catalog")


def parse_use(cursor: Cursor) -> Use:
    cursor.begin("USE")
    word = cursor.take_any("CATALOG", *SCHEMA_KEYWORDS) if cursor.peek(1).kind in ("word", "quoted") else ""
    kind: UseKind | None = "catalog" if word == "CATALOG" else "schema" if word else None
    name = cursor.subject("a schema")
    if len(name) > (1 if kind == "catalog" else 2):
        raise cursor.error("too many parts; write a schema, or a catalog and its schema")
    cursor.finish()
    return Use(name, kind)


def parse_begin(cursor: Cursor) -> Begin:
    if cursor.at("START"):
        cursor.begin("START", "TRANSACTION")
    else:
        cursor.begin("BEGIN")
        cursor.take_any("TRANSACTION", "WORK")
    cursor.finish()
    return Begin()


def parse_commit(cursor: Cursor) -> Commit:
    cursor.begin("COMMIT")
    cursor.take_any("TRANSACTION", "WORK")
    cursor.finish()
    return Commit()


def parse_rollback(cursor: Cursor) -> Rollback:
    cursor.begin(cursor.token.key)
    cursor.take_any("TRANSACTION", "WORK")
    cursor.finish()
    return Rollback()


def parse_call(cursor: Cursor) -> Call:
    cursor.begin("CALL")
    name = cursor.subject("a procedure")

    def parse_argument() -> Argument:
        keyword = cursor.identifier("an argument's name") if _at_argument_name(cursor) else None
        if keyword is not None:
            cursor.expect("=", ">")
        text = cursor.expression("an argument")
        return Argument(keyword, text, parse_literal(text))

    arguments: tuple[Argument, ...] = ()
    if not cursor.take("(", ")"):
        arguments = cursor.parenthesized(parse_argument)
    cursor.finish()
    return Call(name, arguments)


def _at_argument_name(cursor: Cursor) -> bool:
    """Whether `name =>` comes next; = and > with a space between them are no arrow."""
    is_arrow = cursor.peek(1).key == "=" and cursor.peek(2).key == ">" and cursor.peek(1).end == cursor.peek(2).start
    return cursor.at_name() and is_arrow
