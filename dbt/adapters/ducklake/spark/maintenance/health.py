"""`ducklake_health`: what the tables of a lake need, what would mend it, and what that costs and saves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import sqlalchemy as sa

from ...lake import tables as t
from ...lake.maintenance.health import Limits, TableHealth, table_health
from ...lake.snapshot import Table
from ...lake.transaction import Transaction
from ..sql.quoting import string_literal
from .cleanup import delete_orphaned_files
from .context import MaintenanceContext


@dataclass(frozen=True)
class _Remedy:
    command: str
    cost_bytes: int
    """What it reads and writes."""
    saves: str


def health(
    context: MaintenanceContext,
    table_name: str | None = None,
    *,
    schema: str | None = None,
    small_files: int = Limits.small_files,
    deleted_share: float = Limits.deleted_share,
    inlined_rows: int = Limits.inlined_rows,
    orphans: bool = True,
) -> pa.Table:
    """Measures tables, or the whole lake, and names the commands that mend what is beyond the limits.

    The limits are those of `ducklake_maintain`. The last row is about the lake: its snapshots, the files that wait for
    their deletion, and, unless `orphans` is false, the files in the data path that no catalog knows.
    """
    limits = Limits(small_files, deleted_share, inlined_rows)
    transaction = context.lake.begin()
    state = transaction.state
    if table_name is not None:
        tables = [context.table(state, table_name, schema)]
    else:  # also those that opted out of compaction
        in_schema = None if schema is None else state.schema(schema).id
        tables = [table for table in state.tables.values() if in_schema in (None, table.schema_id)]
    found = measure(context, transaction, tables, deleted_share)
    rows = []
    for table in sorted(tables, key=lambda table: state.qualified_name(table)):
        schema_name, measured = state.schema_of(table).name, found[table.id]
        name = string_literal(state.qualified_name(table))
        remedies = list(_remedies(measured, name, limits))
        rows.append(
            {
                "schema_name": schema_name,
                "table_name": table.name,
                "files": measured.files,
                "bytes": measured.bytes,
                "small_files": measured.small_files,
                "deleted_share": round(measured.deleted_share, 4),
                "inlined_rows": measured.inlined_rows + measured.inlined_deletes,
                "old_bytes": measured.old_bytes,
                "files_without_statistics": measured.files_without_statistics,
                **_advice(remedies),
            }
        )
    if table_name is None and schema is None:
        rows.append(_lake_row(context, orphans))
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def measure(
    context: MaintenanceContext, transaction: Transaction, tables: Sequence[Table], deleted_share: float
) -> dict[int, TableHealth]:
    """The health of tables at the snapshot of a transaction, by table id."""
    catalog = context.lake.catalog
    with catalog.read() as connection:
        return table_health(connection, catalog, tables, transaction.options, transaction.base.id, deleted_share)


_SCHEMA = pa.schema(
    [
        *[(name, pa.string()) for name in ("schema_name", "table_name")],
        *[(name, pa.int64()) for name in ("files", "bytes", "small_files")],
        ("deleted_share", pa.float64()),
        *[(name, pa.int64()) for name in ("inlined_rows", "old_bytes", "files_without_statistics")],
        *[(name, pa.int64()) for name in ("snapshots", "scheduled_files", "orphan_files", "orphan_bytes")],
        ("command", pa.string()),
        ("cost_bytes", pa.int64()),
        ("saves", pa.string()),
    ]
)


def _remedies(health: TableHealth, name: str, limits: Limits) -> Iterator[_Remedy]:
    if health.needs_flush(limits):
        count = health.inlined_rows + health.inlined_deletes
        yield _Remedy(f"call ducklake_flush_inlined_data({name})", 0, f"{count} rows in the catalog")
    if health.needs_rewrite(limits):
        yield _Remedy(
            f"call ducklake_rewrite_data_files({name}, delete_threshold => {limits.deleted_share})",
            health.rewritable_bytes,
            f"{health.deleted_rows} deleted rows",
        )
    if health.needs_merge(limits):
        saved = health.small_files - health.merged_files
        yield _Remedy(f"call ducklake_merge_adjacent_files({name})", health.small_bytes, f"{saved} files")
    if health.files_without_statistics:
        count = health.files_without_statistics
        yield _Remedy(f"call ducklake_analyze({name})", 0, f"scans of {count} files that statistics would leave out")


def _advice(remedies: list[_Remedy]) -> dict[str, object]:
    if not remedies:
        return {}
    return {
        "command": "; ".join(remedy.command for remedy in remedies),
        "cost_bytes": sum(remedy.cost_bytes for remedy in remedies),
        "saves": ", ".join(remedy.saves for remedy in remedies),
    }


def _lake_row(context: MaintenanceContext, with_orphans: bool) -> dict[str, object]:
    catalog = context.lake.catalog
    with catalog.read() as connection:
        snapshots = connection.scalar(sa.select(sa.func.count()).select_from(t.snapshot)) or 0
        scheduled_query = sa.select(sa.func.count()).select_from(t.files_scheduled_for_deletion)
        scheduled = connection.scalar(scheduled_query) or 0
        old_query = sa.select(sa.func.sum(t.data_file.c.file_size_bytes)).where(t.data_file.c.end_snapshot.is_not(None))
        old = int(connection.scalar(old_query) or 0)
        expires = catalog.options(connection).get("expire_older_than")
    row: dict[str, object] = {"snapshots": snapshots, "scheduled_files": scheduled, "old_bytes": old}
    remedies = []
    if old and snapshots > 1:
        when = "" if expires else "older_than => '30 days'"
        remedies.append(_Remedy(f"call ducklake_expire_snapshots({when})", 0, f"up to {old} bytes of old versions"))
    if scheduled:
        remedies.append(_Remedy("call ducklake_cleanup_old_files()", 0, f"{scheduled} files that no snapshot needs"))
    if with_orphans:
        orphans = delete_orphaned_files(context, dry_run=True)
        size = sum(found or 0 for found in orphans.column("bytes").to_pylist())
        row |= {"orphan_files": orphans.num_rows, "orphan_bytes": size}
        if orphans.num_rows:
            saves = f"{orphans.num_rows} orphan files, {size} bytes"
            remedies.append(_Remedy("call ducklake_delete_orphaned_files()", 0, saves))
    return row | _advice(remedies)
