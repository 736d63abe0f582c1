"""The table functions of the change feed: the changes, insertions and deletions of a table, and incremental reads."""

from __future__ import annotations

from pyspark.sql import DataFrame

from ...lake.change_feed import ChangeFeed, count_expired_snapshots, read_change_feed
from ...lake.errors import ConflictError, ExpiredError
from ...lake.snapshot import LakeState, Table
from ...lake.table_summary import table_summaries
from .changed_rows import all_rows_as_inserts, changes, deleted_rows, inserted_rows, staged_changes
from .context import ChangeRange, ResolvedRelation
from .function_call import TableFunctionCall
from .lakes import Lake


def table_changes(call: TableFunctionCall) -> DataFrame:
    """`ducklake_table_changes('main.orders', 3, 7)`: inserted and deleted rows, and both images of updated rows."""
    lake, feed = _feed_of(call)
    return changes(call.planner.spark, lake.file_reader, feed)


def table_insertions(call: TableFunctionCall) -> DataFrame:
    """`ducklake_table_insertions('main.orders', 3, 7)`: the inserted rows."""
    lake, feed = _feed_of(call)
    return inserted_rows(call.planner.spark, lake.file_reader, feed, call.with_virtual_columns)


def table_deletions(call: TableFunctionCall) -> DataFrame:
    """`ducklake_table_deletions('main.orders', 3, 7)`: the deleted rows."""
    lake, feed = _feed_of(call)
    return deleted_rows(call.planner.spark, lake.file_reader, feed, call.with_virtual_columns)


def new_changes(call: TableFunctionCall) -> DataFrame:
    """`ducklake_new_changes('main.orders', 3, 7)`: the changes after one snapshot, up to another.

    The changes since NULL are all rows of the table as inserts. Those until NULL are those of the transaction's
    snapshot, and what is staged in the transaction.
    """
    name = call.arguments.table_name()
    since, until = call.arguments.version("since"), call.arguments.version("until")
    lake, schema, table_name = call.resolve_name(name)
    if until is None:
        return _changes_until_now(call, lake, schema, table_name, since)
    end, state = call.snapshot_at(lake, until)
    table = call.table(lake, schema, table_name, end, state)
    call.context.record_read(ResolvedRelation(lake, schema, table, state, end, None, ChangeRange(since, until)))
    _check_consumer(call)
    if since is None:
        return all_rows_as_inserts(call.planner.spark, lake.file_reader, lake.plan_scan(table, end, state))
    return _committed_changes(call, lake, table, state, since, until)


def _changes_until_now(
    call: TableFunctionCall, lake: Lake, schema: str, table_name: str, since: int | None
) -> DataFrame:
    """The changes up to the transaction's snapshot, and those that are staged in it."""
    spark, transaction = call.planner.spark, call.context.transaction_on(lake.name)
    base, state = transaction.base, transaction.state
    table = call.table(lake, schema, table_name, base, state)
    call.context.record_read(ResolvedRelation(lake, schema, table, state, base, transaction, ChangeRange(since, None)))
    _check_consumer(call)
    # Everything counts as consumed up to the coming snapshot, so nobody else may change the table before it.
    transaction.record_read(table)
    now = lake.plan_scan(table, base, state, transaction=transaction)
    if since is None:
        return all_rows_as_inserts(spark, lake.file_reader, now)
    committed = _committed_changes(call, lake, table, state, since, base.id)
    before = lake.plan_scan(table, base, state)
    return committed.union(staged_changes(spark, lake.file_reader, before, now, base.id + 1))


def _committed_changes(
    call: TableFunctionCall, lake: Lake, table: Table, state: LakeState, since: int, until: int
) -> DataFrame:
    with lake.catalog.read() as connection:
        expired = count_expired_snapshots(connection, since, until)
    if expired:
        raise ExpiredError(
            f"what changed in {table.name} since snapshot {since} can not be told: {expired} of the snapshots up to"
            f" {until} were expired; read the whole table once (dbt: --full-refresh), and expire later than you read"
        )
    return changes(call.planner.spark, lake.file_reader, _read_feed(lake, table, state, since + 1, until, True))


def _check_consumer(call: TableFunctionCall) -> None:
    """Lets only one transaction at a time consume changes for a table, the call's `consumer`.

    The transaction conflicts with others that change that table. It fails at once if the table has changed since
    snapshot `asked_at`, at which the caller looked up what the table has consumed.
    """
    name, asked_at = call.arguments.value("consumer"), call.arguments.value("asked_at")
    if name is None or asked_at is None:
        return
    lake, schema, table_name = call.resolve_name(name)
    transaction = call.context.transaction_on(lake.name)
    table = transaction.state.find_relation(schema, table_name)
    if not isinstance(table, Table) or table.id < 0:
        return
    transaction.record_read(table)
    with lake.catalog.read() as connection:
        summaries = table_summaries(connection, lake.catalog, transaction.base.id, [table.id])
    last_change = summaries[table.id].last_change_snapshot if table.id in summaries else None
    if last_change is not None and last_change > asked_at:
        raise ConflictError(
            f"{schema}.{table_name} was changed in snapshot {last_change}, after it was asked what there is to consume"
            " for it; run it again"
        )


def _feed_of(call: TableFunctionCall) -> tuple[Lake, ChangeFeed]:
    """The change feed between the start and the end that a call names, both inclusive."""
    name = call.arguments.table_name()
    start_bound, end_bound = call.arguments.bound("start"), call.arguments.bound("end")
    lake, schema, table_name = call.resolve_name(name)
    start, _ = call.resolve_bound(lake, start_bound, lake.catalog.first_snapshot_since)
    end, state = call.resolve_bound(lake, end_bound, lake.catalog.snapshot_at_timestamp)
    table = call.table(lake, schema, table_name, end, state)
    call.context.record_read(ResolvedRelation(lake, schema, table, state, end, None))
    return lake, _read_feed(lake, table, state, start.id, end.id)


def _read_feed(
    lake: Lake, table: Table, state: LakeState, start: int, end: int, without_rewrites: bool = False
) -> ChangeFeed:
    folder = state.table_folder(lake.catalog.data_path, table)
    with lake.catalog.read() as connection:
        return read_change_feed(connection, lake.catalog, table, folder, start, end, without_rewrites)
