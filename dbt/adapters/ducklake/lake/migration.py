"""Migration of a lake to a later format version, by the rules of the reference.

All changes of the catalog are one transaction, in which no data file is touched. MySQL commits each change of a table
by itself; there, a migration that was interrupted goes on where it was when it is run again.

Each step looks at what the catalog has and lists the changes that are missing, so all steps are planned before any
change is made.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from . import tables as t
from .databases.base import Database, driver_message
from .errors import CatalogError
from .format_versions import FORMAT_VERSIONS, V1_0, V1_1, WRITABLE_VERSIONS
from .lake_creation import load_settings

_PARTIAL_SNAPSHOTS = re.compile(r"partial_max:(\d+)|(?:^|\|)(\d+):")
"""The snapshots in `partial_file_info`: the last one alone, or each with its last row: `10:1|11:2|12:3`."""


@dataclass(frozen=True)
class Change:
    """A change of the catalog."""

    description: str
    make: Callable[[sa.Connection], object]


@dataclass(frozen=True)
class Migration:
    """What a migration did, or would do."""

    location: str
    from_version: str
    to_version: str
    changes: tuple[str, ...]
    """Descriptions of the changes; none if the lake has the version already."""


def migrate(
    database: Database, to_version: str | None = None, *, metadata_schema: str | None = None, dry_run: bool = False
) -> Migration:
    """Brings a lake to a later format version, by default the latest one. There is no way back."""
    engine = database.engine()
    if metadata_schema:
        engine = engine.execution_options(lake_schema=metadata_schema)
    try:
        settings = load_settings(engine, database, metadata_schema)
        if settings is None:
            raise CatalogError(f"there is no lake in {database.location}")
        found, wanted = settings.get("version", "unknown"), to_version or WRITABLE_VERSIONS[-1]
        steps = _steps(found, wanted, database)
        with database.transaction(engine, write=not dry_run) as connection:
            changes = [change for step in steps for change in step(_CatalogLayout.read(connection, database))]
            if steps:
                changes.append(Change(f"set the version to {wanted}", lambda c: _set_version(c, wanted)))
            if not dry_run:
                for change in changes:
                    change.make(connection)
                _check_complete(connection, database, wanted)
    except sa.exc.DBAPIError as error:
        raise CatalogError(
            f"the lake in {database.location} can not be migrated: {driver_message(error)}; nothing was changed"
        ) from error
    finally:
        engine.dispose()
    return Migration(database.location, found, wanted, tuple(change.description for change in changes))


@dataclass(frozen=True)
class _CatalogLayout:
    """What the catalog has before the migration."""

    connection: sa.Connection
    database: Database
    columns: Mapping[str, frozenset[str]]
    """The columns of each table."""

    @classmethod
    def read(cls, connection: sa.Connection, database: Database) -> _CatalogLayout:
        columns = defaultdict(set)
        for table, column in database.catalog_columns(connection):
            columns[table].add(column)
        return cls(connection, database, {table: frozenset(names) for table, names in columns.items()})

    def missing_tables(self, *tables: sa.Table) -> Iterator[Change]:
        for table in tables:
            if table.name not in self.columns:
                yield Change(
                    f"create the table {table.name}",
                    lambda c, table=table: c.execute(sa.schema.CreateTable(table)),  # type: ignore[misc]
                )

    def missing_columns(self, *columns: sa.Column[Any], default: str | None = None) -> Iterator[Change]:
        for column in columns:
            table = column.table.name
            if column.name not in self.columns.get(table, ()):
                type_ = column.type.compile(self.connection.dialect)
                clause = "" if default is None else f" DEFAULT {default}"
                yield self.statement(
                    f"add the column {column.name} to {table}",
                    f"ALTER TABLE {self.quote(table)} ADD COLUMN {self.quote(column.name)} {type_}{clause}",
                )

    def statement(self, description: str, sql: str) -> Change:
        return Change(description, lambda c: c.exec_driver_sql(sql.replace("%", "%%")))

    def quote(self, name: str) -> str:
        return self.database.quote(name)


_Step = Callable[[_CatalogLayout], Iterator[Change]]


def _to_0_3(layout: _CatalogLayout) -> Iterator[Change]:
    if "ducklake_file_column_statistics" in layout.columns:
        yield layout.statement(
            "rename the table ducklake_file_column_statistics to ducklake_file_column_stats",
            "ALTER TABLE ducklake_file_column_statistics RENAME TO ducklake_file_column_stats",
        )
    changes = t.snapshot_changes.c
    yield from layout.missing_columns(t.name_mapping.c.is_partition, default="false")
    yield from layout.missing_columns(changes.author, changes.commit_message, changes.commit_extra_info)
    yield from layout.missing_columns(t.file_column_stats.c.extra_stats, t.table_column_stats.c.extra_stats)
    if t.schema_versions.name not in layout.columns:
        yield from layout.missing_tables(t.schema_versions)
        yield Change("list the schema versions", _list_schema_versions)


def _list_schema_versions(connection: sa.Connection) -> None:
    """Adds the first snapshot of each schema version, for no table in particular."""
    snapshot = t.snapshot.c
    first = sa.select(sa.func.min(snapshot.snapshot_id), snapshot.schema_version).group_by(snapshot.schema_version)
    connection.execute(sa.insert(t.schema_versions).from_select(["begin_snapshot", "schema_version"], first))


def _to_0_4(layout: _CatalogLayout) -> Iterator[Change]:
    yield from layout.missing_tables(
        t.macro, t.macro_impl, t.macro_parameters, t.sort_info, t.sort_expression, t.file_variant_stats
    )
    yield from layout.missing_columns(t.column.c.default_value_type, default="'literal'")
    yield from layout.missing_columns(t.column.c.default_value_dialect)
    if t.schema_versions.name in layout.columns:  # a new one has the column
        yield from layout.missing_columns(t.schema_versions.c.table_id)
    yield from layout.missing_columns(t.data_file.c.partial_max, t.delete_file.c.partial_max)
    if "partial_file_info" in layout.columns[t.data_file.name]:
        yield Change("replace the column partial_file_info of ducklake_data_file", _replace_partial_file_info)
    yield Change("list the schema versions of each table", _split_schema_versions)


def _replace_partial_file_info(connection: sa.Connection) -> None:
    """Sets the last snapshot of files that hold rows of several.

    The reference forgets the second form, and then shows the rows of all these snapshots at the first one.
    """
    info = sa.column("partial_file_info", sa.String)
    rows = connection.execute(sa.select(t.data_file.c.data_file_id, info).where(info.is_not(None))).all()
    # DuckDB takes no update of a table before its columns change in the same transaction.
    connection.exec_driver_sql("ALTER TABLE ducklake_data_file DROP COLUMN partial_file_info")
    for row in rows:
        snapshots = [int(last or each) for last, each in _PARTIAL_SNAPSHOTS.findall(row.partial_file_info)]
        if snapshots:
            of_file = t.data_file.c.data_file_id == row.data_file_id
            connection.execute(sa.update(t.data_file).where(of_file).values(partial_max=max(snapshots)))


def _split_schema_versions(connection: sa.Connection) -> None:
    """Replaces the schema versions of the lake by those of each table that existed then."""
    versions, table = t.schema_versions.c, t.table.c
    of_tables = (
        sa.select(table.table_id, versions.begin_snapshot, versions.schema_version)
        .join_from(
            t.schema_versions,
            t.table,
            versions.begin_snapshot.between(
                table.begin_snapshot, sa.func.coalesce(table.end_snapshot, versions.begin_snapshot)
            ),
        )
        .where(versions.table_id.is_(None))
    )
    rows = [tuple(row) for row in connection.execute(of_tables)]
    connection.execute(sa.delete(t.schema_versions).where(versions.table_id.is_(None)))
    if rows:
        names = ("table_id", "begin_snapshot", "schema_version")
        connection.execute(sa.insert(t.schema_versions), [dict(zip(names, row, strict=True)) for row in rows])


def _to_1_0(layout: _CatalogLayout) -> Iterator[Change]:
    yield from ()


def _to_1_1(layout: _CatalogLayout) -> Iterator[Change]:
    yield from _inlined_renames(layout)
    yield from layout.missing_columns(t.data_file_1_1.c.row_group_count, t.delete_file_1_1.c.row_group_count)
    yield from layout.missing_tables(t.view_column_tag)
    yield Change("add the missing schema versions of tables with inlined rows", _add_missing_schema_versions)


def _inlined_renames(layout: _CatalogLayout) -> Iterator[Change]:
    """Renames the system columns of inlined rows. Raises where a column of the user has a new name."""
    registry, table = t.inlined_data_tables.c, t.table.c
    current = sa.and_(table.table_id == registry.table_id, table.end_snapshot.is_(None))
    query = sa.select(registry.table_name.label("inlined"), table.table_name)
    renames = list(zip(V1_0.inlined_system_columns, V1_1.inlined_system_columns, strict=True))
    for row in layout.connection.execute(query.outerjoin_from(t.inlined_data_tables, t.table, current)):
        select = sa.select(sa.text("*")).select_from(sa.table(sa.quoted_name(row.inlined, quote=True)))
        names = [name.lower() for name in layout.connection.execute(select.limit(0)).mappings().keys()]  # noqa: SIM118
        system, own = names[: len(renames)], names[len(renames) :]
        for (old, new), name in zip(renames, system, strict=True):
            if name == new:
                continue
            if name != old:
                raise CatalogError(
                    f"the lake can not be migrated: its catalog table {row.inlined} begins with the column {name},"
                    f" and not with {old}"
                )
            if new in own:
                raise CatalogError(
                    f"the lake can not be migrated: table {row.table_name or row.inlined} has a column {new}, which is"
                    f" the name of a system column in DuckLake {V1_1.name}; rename the column, call"
                    " ducklake_flush_inlined_data in DuckDB, and migrate again"
                )
            yield layout.statement(
                f"rename the column {old} of {row.inlined} to {new}",
                f"ALTER TABLE {layout.quote(row.inlined)} RENAME COLUMN {layout.quote(name)} TO {layout.quote(new)}",
            )


def _add_missing_schema_versions(connection: sa.Connection) -> None:
    """Adds the schema versions of inlined rows that no row of `ducklake_schema_versions` has."""
    registry, versions, snapshot = t.inlined_data_tables, t.schema_versions, t.snapshot
    known = sa.exists().where(
        versions.c.table_id == registry.c.table_id, versions.c.schema_version == registry.c.schema_version
    )
    first = sa.select(sa.func.min(snapshot.c.snapshot_id)).where(snapshot.c.schema_version == registry.c.schema_version)
    query = sa.select(registry.c.table_id, registry.c.schema_version, first.scalar_subquery().label("begin_snapshot"))
    rows = [
        dict(row) for row in connection.execute(query.where(~known)).mappings() if row["begin_snapshot"] is not None
    ]
    if rows:
        connection.execute(sa.insert(versions), rows)


_STEPS: Mapping[str, tuple[str, _Step]] = {
    "0.2": ("0.3", _to_0_3),
    "0.3-dev1": ("0.3", _to_0_3),
    "0.3": ("0.4", _to_0_4),
    "0.4-dev1": ("0.4", _to_0_4),
    "0.4": (V1_0.name, _to_1_0),
    V1_0.name: (V1_1.name, _to_1_1),
}
"""The next version of each version, and the step that leads to it."""


def can_migrate(version: str) -> bool:
    """Whether a lake of this version can be brought to a later one."""
    return version in _STEPS


def _steps(found: str, wanted: str, database: Database) -> list[_Step]:
    """The steps from one version to another."""
    if wanted not in WRITABLE_VERSIONS:
        raise CatalogError(f"a lake can be migrated to version {' or '.join(WRITABLE_VERSIONS)}, not to {wanted!r}")
    steps, version = [], found
    while version != wanted and version in _STEPS:
        version, step = _STEPS[version]
        steps.append(step)
    if version != wanted:
        raise CatalogError(
            f"the lake in {database.location} has format version {found}, from which no migration leads to {wanted}"
        )
    return steps


def _set_version(connection: sa.Connection, version: str) -> None:
    setting = t.ducklake_metadata
    is_version = sa.and_(setting.c.key == "version", setting.c.scope.is_(None))
    connection.execute(sa.update(setting).where(is_version).values(value=version))


def _check_complete(connection: sa.Connection, database: Database, version: str) -> None:
    """Raises if the catalog lacks anything that its new version has."""
    layout = _CatalogLayout.read(connection, database)
    for name, table in FORMAT_VERSIONS[version].tables.items():
        for column in table.columns:
            if column.name not in layout.columns.get(name, ()):
                raise CatalogError(
                    f"the lake in {database.location} can not be migrated: {name} has no column {column.name}, which"
                    " lakes of its version have; nothing was changed"
                )
