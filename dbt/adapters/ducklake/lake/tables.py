"""The 28 tables of the DuckLake 1.0 specification, as the reference creates them, and those that 1.1 changes.

`format_versions` says which tables a lake has."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine

UTC = datetime.timezone.utc

_OFFSET = re.compile(r"([+-]\d{2})(?::?(\d{2}))?$")


def format_instant(value: datetime.datetime) -> str:
    """The text that DuckDB writes for a moment: `2026-11-18 09:42:36.353713+00`."""
    utc = value.astimezone(UTC)
    fraction = f".{utc.microsecond:06d}".rstrip("0") if utc.microsecond else ""
    return f"{utc:%Y-%m-%d %H:%M:%S}{fraction}+00"


def parse_instant(text: str) -> datetime.datetime:
    """The moment that a text in the catalog stands for. The text may have any UTC offset."""
    offset = _OFFSET.search(text)
    seconds, _, fraction = _OFFSET.sub("", text).partition(".")
    moment = datetime.datetime.fromisoformat(seconds).replace(microsecond=int(fraction.ljust(6, "0")[:6]))
    if not offset:
        return moment.replace(tzinfo=UTC)
    sign = -1 if offset[1].startswith("-") else 1
    ahead = datetime.timedelta(hours=abs(int(offset[1])), minutes=int(offset[2] or 0))
    return (moment - sign * ahead).replace(tzinfo=UTC)


class Flag(sa.types.TypeDecorator[bool]):
    """BOOLEAN; 0 or 1 in SQLite, which has no booleans."""

    impl = sa.Boolean
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(sa.BigInteger() if dialect.name == "sqlite" else sa.Boolean())

    def process_bind_param(self, value: bool | None, dialect: Dialect) -> Any:
        return value if value is None else int(value) if dialect.name == "sqlite" else bool(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> bool | None:
        return None if value is None else bool(int(value))


class Instant(sa.types.TypeDecorator[datetime.datetime]):
    """TIMESTAMP WITH TIME ZONE; text in SQLite, DATETIME in UTC in MySQL."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(sa.String())
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(sa.DateTime(timezone=True))

    def process_bind_param(self, value: datetime.datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if dialect.name == "sqlite":
            return format_instant(value)
        if dialect.name in ("mysql", "mariadb"):
            return value.astimezone(UTC).replace(tzinfo=None)
        return value

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime.datetime | None:
        if value is None:
            return None
        if isinstance(value, str):
            return parse_instant(value)
        moment: datetime.datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _text() -> TypeEngine[Any]:
    return sa.String().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")


def _uuid() -> TypeEngine[Any]:
    return sa.Uuid(as_uuid=False).with_variant(sa.String(36), "sqlite", "mysql", "mariadb")


metadata = sa.MetaData()
metadata_1_1 = sa.MetaData()
"""What version 1.1 has in addition, or instead."""

_TYPES: dict[str, Callable[[], TypeEngine[Any]]] = {
    "id": sa.BigInteger,
    "text": _text,
    "flag": Flag,
    "uuid": _uuid,
    "instant": Instant,
}

# Whatever the defaults of the database, any character is stored and names are compared with their case.
_MYSQL_COLLATION: dict[str, Any] = {
    f"{dialect}_{option}": value
    for dialect in ("mysql", "mariadb")
    for option, value in (("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
}


def _table(name: str, **columns: str) -> sa.Table:
    """A table of the specification, from column names and types. `*id` is a primary key, `text!` is NOT NULL."""
    return sa.Table(name, metadata, *_columns(columns), **_MYSQL_COLLATION)


def _columns(kinds: Mapping[str, str]) -> list[sa.Column[Any]]:
    return [
        sa.Column(
            name,
            _TYPES[kind.strip("*!")](),
            primary_key=kind.startswith("*"),
            autoincrement=False,
            nullable=not kind.endswith("!") and not kind.startswith("*"),
        )
        for name, kind in kinds.items()
    ]


ducklake_metadata = _table("ducklake_metadata", key="text!", value="text!", scope="text", scope_id="id")
snapshot = _table(
    "ducklake_snapshot",
    snapshot_id="*id",
    snapshot_time="instant",
    schema_version="id",
    next_catalog_id="id",
    next_file_id="id",
)
snapshot_changes = _table(
    "ducklake_snapshot_changes",
    snapshot_id="*id",
    changes_made="text",
    author="text",
    commit_message="text",
    commit_extra_info="text",
)
schema = _table(
    "ducklake_schema",
    schema_id="*id",
    schema_uuid="uuid",
    begin_snapshot="id",
    end_snapshot="id",
    schema_name="text",
    path="text",
    path_is_relative="flag",
)
table = _table(
    "ducklake_table",
    table_id="id",
    table_uuid="uuid",
    begin_snapshot="id",
    end_snapshot="id",
    schema_id="id",
    table_name="text",
    path="text",
    path_is_relative="flag",
)
view = _table(
    "ducklake_view",
    view_id="id",
    view_uuid="uuid",
    begin_snapshot="id",
    end_snapshot="id",
    schema_id="id",
    view_name="text",
    dialect="text",
    sql="text",
    column_aliases="text",
)
tag = _table("ducklake_tag", object_id="id", begin_snapshot="id", end_snapshot="id", key="text", value="text")
column_tag = _table(
    "ducklake_column_tag",
    table_id="id",
    column_id="id",
    begin_snapshot="id",
    end_snapshot="id",
    key="text",
    value="text",
)
data_file = _table(
    "ducklake_data_file",
    data_file_id="*id",
    table_id="id",
    begin_snapshot="id",
    end_snapshot="id",
    file_order="id",
    path="text",
    path_is_relative="flag",
    file_format="text",
    record_count="id",
    file_size_bytes="id",
    footer_size="id",
    row_id_start="id",
    partition_id="id",
    encryption_key="text",
    mapping_id="id",
    partial_max="id",
)
file_column_stats = _table(
    "ducklake_file_column_stats",
    data_file_id="id",
    table_id="id",
    column_id="id",
    column_size_bytes="id",
    value_count="id",
    null_count="id",
    min_value="text",
    max_value="text",
    contains_nan="flag",
    extra_stats="text",
)
file_variant_stats = _table(
    "ducklake_file_variant_stats",
    data_file_id="id",
    table_id="id",
    column_id="id",
    variant_path="text",
    shredded_type="text",
    column_size_bytes="id",
    value_count="id",
    null_count="id",
    min_value="text",
    max_value="text",
    contains_nan="flag",
    extra_stats="text",
)
delete_file = _table(
    "ducklake_delete_file",
    delete_file_id="*id",
    table_id="id",
    begin_snapshot="id",
    end_snapshot="id",
    data_file_id="id",
    path="text",
    path_is_relative="flag",
    format="text",
    delete_count="id",
    file_size_bytes="id",
    footer_size="id",
    encryption_key="text",
    partial_max="id",
)
column = _table(
    "ducklake_column",
    column_id="id",
    begin_snapshot="id",
    end_snapshot="id",
    table_id="id",
    column_order="id",
    column_name="text",
    column_type="text",
    initial_default="text",
    default_value="text",
    nulls_allowed="flag",
    parent_column="id",
    default_value_type="text",
    default_value_dialect="text",
)
table_stats = _table("ducklake_table_stats", table_id="id", record_count="id", next_row_id="id", file_size_bytes="id")
table_column_stats = _table(
    "ducklake_table_column_stats",
    table_id="id",
    column_id="id",
    contains_null="flag",
    contains_nan="flag",
    min_value="text",
    max_value="text",
    extra_stats="text",
)
partition_info = _table(
    "ducklake_partition_info", partition_id="id", table_id="id", begin_snapshot="id", end_snapshot="id"
)
partition_column = _table(
    "ducklake_partition_column",
    partition_id="id",
    table_id="id",
    partition_key_index="id",
    column_id="id",
    transform="text",
)
file_partition_value = _table(
    "ducklake_file_partition_value",
    data_file_id="id",
    table_id="id",
    partition_key_index="id",
    partition_value="text",
)
files_scheduled_for_deletion = _table(
    "ducklake_files_scheduled_for_deletion",
    data_file_id="id",
    path="text",
    path_is_relative="flag",
    schedule_start="instant",
)
inlined_data_tables = _table("ducklake_inlined_data_tables", table_id="id", table_name="text", schema_version="id")
column_mapping = _table("ducklake_column_mapping", mapping_id="id", table_id="id", type="text")
name_mapping = _table(
    "ducklake_name_mapping",
    mapping_id="id",
    column_id="id",
    source_name="text",
    target_field_id="id",
    parent_column="id",
    is_partition="flag",
)
schema_versions = _table("ducklake_schema_versions", begin_snapshot="id", schema_version="id", table_id="id")
macro = _table(
    "ducklake_macro",
    schema_id="id",
    macro_id="id",
    macro_name="text",
    begin_snapshot="id",
    end_snapshot="id",
)
macro_impl = _table("ducklake_macro_impl", macro_id="id", impl_id="id", dialect="text", sql="text", type="text")
macro_parameters = _table(
    "ducklake_macro_parameters",
    macro_id="id",
    impl_id="id",
    column_id="id",
    parameter_name="text",
    parameter_type="text",
    default_value="text",
    default_value_type="text",
)
sort_info = _table("ducklake_sort_info", sort_id="id", table_id="id", begin_snapshot="id", end_snapshot="id")
sort_expression = _table(
    "ducklake_sort_expression",
    sort_id="id",
    table_id="id",
    sort_key_index="id",
    expression="text",
    dialect="text",
    sort_direction="text",
    null_order="text",
)


def _extended(table: sa.Table, **columns: str) -> sa.Table:
    """A table of version 1.0 with the columns that version 1.1 adds at its end."""
    extended = table.to_metadata(metadata_1_1)
    for column in _columns(columns):
        extended.append_column(column)
    return extended


data_file_1_1 = _extended(data_file, row_group_count="id")
delete_file_1_1 = _extended(delete_file, row_group_count="id")
view_column_tag = sa.Table(
    "ducklake_view_column_tag",
    metadata_1_1,
    *_columns(
        {
            "view_id": "id",
            "column_name": "text",
            "begin_snapshot": "id",
            "end_snapshot": "id",
            "key": "text",
            "value": "text",
        }
    ),
    **_MYSQL_COLLATION,
)


def alive(versioned: sa.Table | sa.TableClause, at: int) -> sa.ColumnElement[bool]:
    """The condition for rows of a versioned table that are visible at snapshot `at`."""
    return sa.and_(
        versioned.c.begin_snapshot <= at,
        sa.or_(versioned.c.end_snapshot.is_(None), versioned.c.end_snapshot > at),
    )


def inlined_data(name: str, columns: Sequence[str], system_columns: Sequence[str]) -> sa.TableClause:
    """A table of inlined rows. Each table of the lake has its own, with its own columns.

    `system_columns` are the names of the first columns, whose keys are `row_id`, `begin_snapshot` and `end_snapshot`.
    The keys of the user's columns are `c0`, `c1` and so on. Their names are quoted always: no list of reserved words
    is complete for every database.
    """
    system: list[sa.Column[Any]] = [
        sa.Column(column, key=key)
        for column, key in zip(system_columns, ("row_id", "begin_snapshot", "end_snapshot"), strict=True)
    ]
    own: list[sa.Column[Any]] = [
        sa.Column(sa.quoted_name(column, quote=True), key=f"c{i}") for i, column in enumerate(columns)
    ]
    return sa.table(sa.quoted_name(name, quote=True), *system, *own)


def inlined_delete(table_id: int, name: str | None = None) -> sa.TableClause:
    """The table of inlined deletes of one table: deleted positions of its data files."""
    return sa.table(
        sa.quoted_name(name or f"ducklake_inlined_delete_{table_id}", quote=True),
        *(sa.column(c) for c in ("file_id", "row_id", "begin_snapshot")),
    )
