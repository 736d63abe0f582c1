"""The change feed: table functions that tell which rows came into a table and which went."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import sqlalchemy as sa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.catalog import SnapshotInfo
from ...lake.deletes import SNAPSHOT_COLUMN
from ...lake.errors import ConflictError, ExpiredError, LakeError, NotFoundError, UnsupportedError
from ...lake.facts import table_facts
from ...lake.feed import Deleted, Feed, missing_snapshots, read_feed
from ...lake.snapshot import LakeState, Table
from ..sql.definitions import parse_literal
from ..sql.virtual_columns import ROW_ID, SNAPSHOT_ID
from .context import Consumed, Found
from .lakes import Lake
from .local_rows import few
from .parquet import Storage, read_parquet
from .row_positions import place_keys
from .scan import FILE, POSITION, TableScan, dataframe, file_keys

if TYPE_CHECKING:
    from .table_functions import Arguments, Call

CHANGE_TYPE = "change_type"

_ROW_ID, _SNAPSHOT, _PLACE = "_lake_row_id", "_lake_snapshot", "_lake_place"
_FEW_POSITIONS = 2_000_000
"""So many deleted positions are sent to every task."""


# -- the functions


def table_changes(call: Call) -> DataFrame:
    """Each row that came or went: `insert`, `delete`, or an update as its two images."""
    lake, feed = _asked(call)
    return _changes(call.planner.spark, lake.storage, feed)


def table_insertions(call: Call) -> DataFrame:
    lake, feed = _asked(call)
    return _shown(_insertions(call.planner.spark, lake.storage, feed), feed.table, call.virtual)


def table_deletions(call: Call) -> DataFrame:
    lake, feed = _asked(call)
    return _shown(_deletions(call.planner.spark, lake.storage, feed), feed.table, call.virtual)


def new_changes(call: Call) -> DataFrame:
    """What changed after one snapshot, up to another; after NULL, all rows that there are, as inserts."""
    name = table_name_of(call.arguments)
    since, until = (_version(call.arguments, which) for which in ("since", "until"))
    if until is None:
        raise LakeError(f"{call.arguments.name} needs the snapshot up to which changes are read")
    lake, schema, table_name = call.place(name)
    end, state = _at(call, lake, until)
    table = call.table(lake, schema, table_name, end, state)
    call.context.saw(Found(lake, schema, table, state, end, None, Consumed(since, until)))
    _guard(call)
    if since is None:
        scan = lake.scan(table, end, state)
        rows = _named(dataframe(call.planner.spark, lake.storage, scan, virtual=True), table)
        return _as_changes(rows.withColumn(CHANGE_TYPE, F.lit("insert")), table)
    with lake.catalog.read() as connection:
        missing = missing_snapshots(connection, since, until)
    if missing:
        raise ExpiredError(
            f"what changed in {table.name} since snapshot {since} can not be told: {missing} of the snapshots up to"
            f" {until} were expired; read the whole table once (dbt: --full-refresh), and expire later than you read"
        )
    return _changes(call.planner.spark, lake.storage, _feed(lake, table, state, since + 1, until))


def _guard(call: Call) -> None:
    """Sees to it that nobody else consumes the same for the same table."""
    name, asked_at = call.arguments.value("consumer"), call.arguments.value("asked_at")
    if name is None or asked_at is None:
        return
    lake, schema, table_name = call.place(name)
    transaction = call.context.transactions(lake.name)
    table = transaction.state.find(schema, table_name)
    if not isinstance(table, Table) or table.id < 0:
        return
    transaction.rewrites(table)
    with lake.catalog.read() as connection:
        facts = table_facts(connection, lake.catalog, transaction.base.id, [table.id])
    changed = facts[table.id].last_change if table.id in facts else None
    if changed is not None and changed > asked_at:
        raise ConflictError(
            f"{schema}.{table_name} was changed in snapshot {changed}, after it was asked what there is to consume for"
            " it; run it again"
        )


def _asked(call: Call) -> tuple[Lake, Feed]:
    """The feed that a call asks for by a table, a start and an end."""
    name = table_name_of(call.arguments)
    start_text, end_text = bound_of(call.arguments, "start"), bound_of(call.arguments, "end")
    lake, schema, table_name = call.place(name)
    start = moment_of(call, lake, start_text, lake.catalog.first_since)[0]
    end, state = moment_of(call, lake, end_text, lake.catalog.at_timestamp)
    table = call.table(lake, schema, table_name, end, state)
    call.context.saw(Found(lake, schema, table, state, end, None))
    return lake, _feed(lake, table, state, start.id, end.id)


def _feed(lake: Lake, table: Table, state: LakeState, start: int, end: int) -> Feed:
    with lake.catalog.read() as connection:
        return read_feed(connection, lake.catalog, table, state.folder(lake.catalog.data_path, table), start, end)


def table_name_of(arguments: Arguments) -> str:
    name = arguments.value("table_name", positional=True)
    if not isinstance(name, str):
        raise LakeError(f"{arguments.name} needs a table's name first, as in {arguments.name}('main.orders', 3, 7)")
    return name


def bound_of(arguments: Arguments, which: str) -> str:
    text = arguments.text(which, positional=True) or arguments.text(f"{which}_snapshot")
    if text is None or text.strip().lower() == "null":
        raise LakeError(f"{arguments.name} needs a {which}: the number of a snapshot, or a timestamp")
    return text


def _version(arguments: Arguments, which: str) -> int | None:
    value = arguments.value(which, positional=True)
    if value is not None and not isinstance(value, int):
        raise LakeError(f"{arguments.name}: {which} is the number of a snapshot, not {value!r}")
    return value


def moment_of(
    call: Call, lake: Lake, text: str, of_time: Callable[[sa.Connection, datetime.datetime], SnapshotInfo]
) -> tuple[SnapshotInfo, LakeState]:
    """The snapshot that a bound means: its number, or what a timestamp means as this bound."""
    literal = parse_literal(text)
    if literal is not None and isinstance(literal.value, int) and not isinstance(literal.value, bool):
        return _at(call, lake, literal.value)
    moment = call.planner.moment(text)
    with lake.catalog.read() as connection:
        found = of_time(connection, moment)
    base = call.context.transactions(lake.name).base
    return lake.past(version=min(found.id, base.id))


def _at(call: Call, lake: Lake, version: int) -> tuple[SnapshotInfo, LakeState]:
    info, state = lake.past(version=version)
    base = call.context.transactions(lake.name).base
    if info.id > base.id:
        raise NotFoundError(f"snapshot {info.id} came after this transaction began, which reads snapshot {base.id}")
    return info, state


# -- the rows


def _changes(spark: SparkSession, storage: Storage, feed: Feed) -> DataFrame:
    came, went = _insertions(spark, storage, feed), _deletions(spark, storage, feed)
    kinds = (came, went, "insert", "update_postimage"), (went, came, "delete", "update_preimage")
    parts = []
    for rows, others, alone, both in kinds:
        if not (feed.deleted or feed.deleted_rows) or not (feed.inserted or feed.inserted_rows):
            parts.append(rows.withColumn(CHANGE_TYPE, F.lit(alone)))
            continue
        # A row that comes and goes in one snapshot is updated in it; some transactions do that more than once.
        keys = others.select(
            F.col(_ROW_ID).alias("_lake_other"), F.col(_SNAPSHOT).alias("_lake_then"), F.lit(True).alias("_lake_both")
        ).distinct()
        same = (F.col(_ROW_ID) == F.col("_lake_other")) & (F.col(_SNAPSHOT) == F.col("_lake_then"))
        kind = F.when(F.col("_lake_both"), F.lit(both)).otherwise(F.lit(alone))
        parts.append(rows.join(keys, same, "left").select(*rows.columns, kind.alias(CHANGE_TYPE)))
    return _as_changes(parts[0].union(parts[1]), feed.table)


def _insertions(spark: SparkSession, storage: Storage, feed: Feed) -> DataFrame:
    scan = TableScan(feed.table, feed.end, feed.inserted, feed.name_maps or {}, feed.inserted_rows)
    rows = _named(dataframe(spark, storage, scan, virtual=True), feed.table)
    return rows.where(F.col(_SNAPSHOT).between(feed.start, feed.end))


def lost_rows(spark: SparkSession, storage: Storage, feed: Feed, row_id: str) -> DataFrame:
    """The rows that a feed tells to be gone, as the table has them, each with its row id."""
    rows = _deletions(spark, storage, feed).select(*_names(feed.table), _ROW_ID)
    return rows.toDF(*(c.name for c in feed.table.columns), row_id)


def _deletions(spark: SparkSession, storage: Storage, feed: Feed) -> DataFrame:
    scan = TableScan(feed.table, feed.end, (), {}, feed.deleted_rows)
    rows = _named(dataframe(spark, storage, scan, virtual=True), feed.table)
    return rows.union(_of_files(spark, storage, feed)) if feed.deleted else rows


def _of_files(spark: SparkSession, storage: Storage, feed: Feed) -> DataFrame:
    """The rows of data files that went, each with the snapshot in which it did.

    What is deleted once stays deleted, so a position's first snapshot counts, whatever later files repeat;
    the end of a file takes those that were left.
    """
    keys = file_keys([d.file for d in feed.deleted])
    salt, starts = place_keys({key: f.record_count for key, f in keys.items()})
    key_of = {f.id: key for key, f in keys.items()}
    scan = TableScan(feed.table, feed.end, tuple(keys.values()), feed.name_maps or {})
    whole = dataframe(spark, storage, scan, virtual=True, places=True)
    rows = whole.toDF(*_names(feed.table), _ROW_ID, "_lake_begun", FILE, POSITION, "_lake_own")
    if feed.born is not None:
        rows = rows.where(F.col("_lake_begun") <= feed.born)
    place = F.xxhash64(F.concat(FILE, F.lit(salt)) if salt else F.col(FILE)) + F.col(POSITION)
    gone = _positions(spark, storage, feed.deleted, {d.file.id: starts[key_of[d.file.id]] for d in feed.deleted})
    ends = [(key_of[d.file.id], d.ended) for d in feed.deleted if d.ended is not None]
    rows = rows.withColumn(_PLACE, place).join(gone, _PLACE, "left" if ends else "inner")
    then = F.col("_lake_gone")
    if ends:
        known = few(spark, ends, _lake_key=pa.string(), _lake_ended=pa.int64())
        rows = rows.join(F.broadcast(known), F.col(FILE) == F.col("_lake_key"), "left")
        then = F.coalesce(then, F.col("_lake_ended"))
    rows = rows.withColumn(_SNAPSHOT, then).where(F.col(_SNAPSHOT).between(feed.start, feed.end))
    return rows.select(*_names(feed.table), _ROW_ID, _SNAPSHOT)


def _positions(spark: SparkSession, storage: Storage, deleted: Sequence[Deleted], starts: dict[int, int]) -> DataFrame:
    """Each deleted position, as one number with its data file, and the snapshot that deleted it."""
    kept = [(starts[d.file.id] + position, then) for d in deleted for position, then in d.positions]
    parts = [few(spark, kept, _lake_place=pa.int64(), _lake_gone=pa.int64())]
    files = [(f, starts[d.file.id]) for d in deleted for f in d.delete_files]
    count = len(kept) + sum(f.delete_count for f, _ in files)
    if files:
        for file, _ in files:
            if file.format != "parquet":
                raise UnsupportedError(
                    f"{file.path} is a deletion vector (a puffin file), which Spark can not read; set the option"
                    " write_deletion_vectors to false in DuckDB and rewrite the files with ducklake_rewrite_data_files"
                )
        schema = s.StructType([s.StructField(name, s.LongType(), True) for name in ("pos", SNAPSHOT_COLUMN)])
        rows = read_parquet(spark, schema, [storage.spark_path(f.path) for f, _ in files])
        begun = few(
            spark,
            [(f.path.rsplit("/", 1)[-1], start, f.begin_snapshot) for f, start in files],
            _lake_name=pa.string(),
            _lake_start=pa.int64(),
            _lake_then=pa.int64(),
        )
        rows = rows.withColumn("_lake_file_name", F.col("_metadata.file_name"))
        rows = rows.join(F.broadcast(begun), F.col("_lake_file_name") == F.col("_lake_name"))
        then = F.coalesce(F.col(SNAPSHOT_COLUMN), F.col("_lake_then"))
        parts.append(rows.select((F.col("_lake_start") + F.col("pos")).alias(_PLACE), then.alias("_lake_gone")))
    both = parts[0] if len(parts) == 1 else parts[0].union(parts[1])
    found = both.groupBy(_PLACE).agg(F.min("_lake_gone").alias("_lake_gone"))
    return F.broadcast(found) if count <= _FEW_POSITIONS else found


# -- their columns


def _names(table: Table) -> list[str]:
    return [f"_lake_c{index}" for index in range(len(table.columns))]


def _named(rows: DataFrame, table: Table) -> DataFrame:
    """Rows with their row id and snapshot, under names that no column of a table has."""
    return rows.toDF(*_names(table), _ROW_ID, _SNAPSHOT)


def _as_changes(rows: DataFrame, table: Table) -> DataFrame:
    """The columns of a change feed; one of the table's that is called like one of them has a number behind."""
    taken = {SNAPSHOT_ID, ROW_ID, CHANGE_TYPE}
    names = []
    for column in table.columns:
        numbered = (f"{column.name}_{number}" for number in range(1, len(table.columns) + 4))
        name = column.name if column.name.lower() not in taken else next(n for n in numbered if n.lower() not in taken)
        taken.add(name.lower())
        names.append(name)
    return rows.select(_SNAPSHOT, _ROW_ID, CHANGE_TYPE, *_names(table)).toDF(SNAPSHOT_ID, ROW_ID, CHANGE_TYPE, *names)


def _shown(rows: DataFrame, table: Table, virtual: bool) -> DataFrame:
    """A table's columns; the row id and the snapshot behind them where the query asks for them."""
    own = [c.name for c in table.columns]
    if not virtual or {ROW_ID, SNAPSHOT_ID} & {name.lower() for name in own}:
        return rows.select(*_names(table)).toDF(*own)
    return rows.select(*_names(table), _ROW_ID, _SNAPSHOT).toDF(*own, ROW_ID, SNAPSHOT_ID)
