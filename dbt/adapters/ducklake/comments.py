"""Comments of relations and columns: the difference between a model's descriptions and the lake's comments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .docs import CatalogColumn
from .lake.snapshot import Table, View
from .spark.sql.quoting import quoted, string_literal


@dataclass(frozen=True)
class CommentChanges:
    statements: tuple[str, ...]
    missing_columns: tuple[str, ...]
    """Columns that the model describes and the relation does not have."""


def comment_changes(
    name: str,
    relation: Table | View,
    existing_columns: Iterable[CatalogColumn],
    description: str | None,
    described_columns: Mapping[str, Any],
) -> CommentChanges:
    """The COMMENT statements for the descriptions that differ from the comments; `name` is the relation's in SQL.

    A model's column with `quote: true` is found by its exact name, as in dbt's `validate_doc_columns`.
    """
    statements, missing = [], []
    if description and description != relation.comment:
        kind = "table" if isinstance(relation, Table) else "view"
        statements.append(f"comment on {kind} {name} is {string_literal(description)}")
    by_lower_name = {column.name.lower(): column for column in existing_columns}
    for described_name, described in described_columns.items():
        column = by_lower_name.get(described_name.lower())
        text = described.get("description")
        if column is None or (described.get("quote") and column.name != described_name):
            missing.append(described_name)
        elif text and text != column.comment:
            statements.append(f"comment on column {name}.{quoted(column.name)} is {string_literal(text)}")
    return CommentChanges(tuple(statements), tuple(missing))
