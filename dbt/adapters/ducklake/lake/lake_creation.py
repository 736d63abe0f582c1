"""Create a lake: the tables of the specification, the schema `main` and snapshot 0."""

from __future__ import annotations

import datetime
import uuid
from importlib.metadata import PackageNotFoundError, version

import sqlalchemy as sa

from . import tables as t
from .databases.base import Database, driver_message
from .errors import CatalogError
from .format_versions import FormatVersion


def load_settings(engine: sa.Engine, database: Database, metadata_schema: str | None) -> dict[str, str] | None:
    """The global settings in `ducklake_metadata`; None if the database holds no lake."""
    if not database.exists():
        return None
    # A schema that does not exist cannot be entered, so the check runs outside of it.
    with database.transaction(engine.execution_options(lake_schema=None), write=False) as connection:
        if metadata_schema and not database.has_schema(connection, metadata_schema):
            return None
    with database.transaction(engine, write=False) as connection:
        if not database.has_table(connection, t.ducklake_metadata.name):
            return None
        # Lakes before version 0.3 have no column `scope`, so the columns are not named here.
        rows = connection.execute(sa.select(sa.text("*")).select_from(t.ducklake_metadata)).mappings().all()
    return {str(row["key"]): str(row["value"]) for row in rows if row.get("scope") is None} or None


def create_lake(
    engine: sa.Engine,
    database: Database,
    metadata_schema: str | None,
    data_path: str,
    format_version: FormatVersion,
    encrypted: bool = False,
) -> dict[str, str]:
    """Creates a lake and returns its global settings, or those of a lake that another process creates meanwhile."""
    settings = {
        "version": format_version.name,
        "created_by": _creator(),
        "data_path": data_path,
        "encrypted": "true" if encrypted else "false",
    }
    database.create_folder()
    try:
        if metadata_schema:
            _create_metadata_schema(engine.execution_options(lake_schema=None), database, metadata_schema)
        with database.transaction(engine, write=True) as connection:
            # In a database without transactional DDL each CREATE TABLE commits by itself. There the process that
            # inserts snapshot 0 has created the lake.
            for table in format_version.tables.values():
                connection.execute(sa.schema.CreateTable(table, if_not_exists=True))
            _insert_first_snapshot(connection, settings)
    except sa.exc.DBAPIError as error:
        # If two processes create the lake at once, the second one finds it here.
        existing = load_settings(engine, database, metadata_schema)
        if existing is None and database.is_unreachable(error):
            raise
        if existing is None:
            raise CatalogError(f"no lake can be created in {database.location}: {driver_message(error)}") from error
        return existing
    return settings


def _creator() -> str:
    try:
        return f"dbt-ducklake {version('dbt-ducklake')}"
    except PackageNotFoundError:
        return "dbt-ducklake"


def _insert_first_snapshot(connection: sa.Connection, settings: dict[str, str]) -> None:
    connection.execute(
        t.snapshot.insert(),
        {
            "snapshot_id": 0,
            "snapshot_time": datetime.datetime.now(datetime.timezone.utc),
            "schema_version": 0,
            "next_catalog_id": 1,
            "next_file_id": 0,
        },
    )
    connection.execute(
        t.ducklake_metadata.insert(),
        [{"key": key, "value": value} for key, value in settings.items()],
    )
    connection.execute(t.snapshot_changes.insert(), {"snapshot_id": 0, "changes_made": 'created_schema:"main"'})
    connection.execute(
        t.schema.insert(),
        {
            "schema_id": 0,
            "schema_uuid": str(uuid.uuid4()),
            "begin_snapshot": 0,
            "schema_name": "main",
            "path": "main/",
            "path_is_relative": True,
        },
    )


def _create_metadata_schema(engine: sa.Engine, database: Database, schema: str) -> None:
    try:
        with database.transaction(engine, write=True) as connection:
            if not database.has_schema(connection, schema):
                database.create_schema(connection, schema)
    except sa.exc.DBAPIError as error:
        # Of two concurrent creators, the second one may get a duplicate key error in spite of IF NOT EXISTS.
        if not database.is_write_conflict(error):
            raise
