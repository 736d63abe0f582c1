"""Rows of data files and delete files; the end of files and of inlined rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from .. import inlined
from .. import tables as t
from ..deletes import NewDeleteFile, PositionDeletes
from ..files import NameMap, NewDataFile
from ..inlined_inserts import NewInlinedRows
from ..paths import resolve
from ..snapshot import Table
from .definitions import add_partition_spec, column_rows
from .difference import is_provisional
from .name_mappings import add_name_mappings
from .rows import SnapshotRows, id_batches
from .staged import Compaction, DataChanges, Flush, Staged
from .table_statistics import TableStatistics, load_statistics


class DataRows:
    """Writes the staged changes to the rows of tables."""

    def __init__(self, rows: SnapshotRows, base_id: int, staged: Staged, inlined_tables: Mapping[int, str]) -> None:
        self.rows = rows
        self.base_id = base_id
        self.staged = staged
        self.inlined_tables = inlined_tables
        """The catalog table for inlined rows of each table that gets some, by its real id."""
        self._statistics: Mapping[int, TableStatistics] = {}
        """The statistics of each table that gets rows, by its real id."""

    def write(self) -> None:
        changed_tables = sorted(
            self.staged.data_changes.items(), key=lambda item: (is_provisional(item[0]), abs(item[0]))
        )
        inserted = [self.rows.catalog_id(table_id) for table_id, changes in changed_tables if changes.added_files]
        inlined_inserted = [
            self.rows.catalog_id(table_id) for table_id, changes in changed_tables if changes.inlined_inserts
        ]
        deleted = [table_id for table_id, changes in changed_tables if changes.has_file_deletes]
        inlined_deleted = [
            table_id
            for table_id, changes in changed_tables
            if self._end_inlined_rows(table_id, changes) or changes.has_inlined_deletes
        ]
        self.rows.changes += [f"inserted_into_table:{table_id}" for table_id in inserted]
        self.rows.changes += [f"inlined_insert:{table_id}" for table_id in inlined_inserted]
        self.rows.changes += [f"deleted_from_table:{table_id}" for table_id in deleted]
        self.rows.changes += [f"inlined_delete:{table_id}" for table_id in inlined_deleted]
        flushed = [table_id for table_id, c in changed_tables if c.flushes or c.flushed_deletes]
        self.rows.changes += [f"inline_flush:{table_id}" for table_id in flushed]
        for kind, is_merge in (("merge_adjacent", True), ("rewrite_delete", False)):
            self.rows.changes += [
                f"{kind}:{table_id}"
                for table_id, changes in changed_tables
                if any(compaction.is_merge == is_merge for compaction in changes.compactions)
            ]
        with_new_rows = {
            staged_id: {column.id: column.type for column in self.staged.state.tables[staged_id].walk_columns()}
            for staged_id, changes in changed_tables
            if changes.adds_rows
        }
        self._statistics = load_statistics(
            self.rows, {self.rows.catalog_id(staged_id): types for staged_id, types in with_new_rows.items()}
        )
        for staged_id, changes in changed_tables:
            self._write_table(staged_id, changes)

    def _write_table(self, staged_id: int, changes: DataChanges) -> None:
        table_id, file = self.rows.catalog_id(staged_id), t.data_file
        if changes.truncated:
            self.rows.end(file, file.c.table_id == table_id, file.c.begin_snapshot <= self.base_id)
        for file_ids in id_batches(changes.ended_file_ids):
            self.rows.end(file, file.c.data_file_id.in_(file_ids))
        if changes.position_deletes:
            self._add_position_deletes(table_id, changes.position_deletes)
        if changes.moved_inlined_deletes:
            self._move_inlined_deletes(table_id, changes.moved_inlined_deletes)
        if changes.added_files:
            self._add_data_files(table_id, self.staged.state.tables[staged_id], changes.added_files)
        if changes.inlined_inserts:
            self._insert_inlined(table_id, changes.inlined_inserts)
        if changes.adds_rows:
            self._statistics[table_id].write()
        if changes.compactions:
            self._compact(table_id, changes.compactions)
        if changes.flushed_deletes:
            delete_files = {i: d.delete_file for i, d in changes.flushed_deletes.items() if d.delete_file is not None}
            self._move_inlined_deletes(table_id, delete_files)
        if changes.flushes:
            self._flush(table_id, changes.flushes)

    def _end_inlined_rows(self, table_id: int, changes: DataChanges) -> bool:
        """Ends inlined rows of a table. Returns whether there were any."""
        if not changes.truncated and not changes.ended_inlined_row_ids:
            return False
        ended_count = 0
        for name in inlined.table_names(self.rows.connection, table_id).values():
            rows = t.inlined_data(name, (), self.rows.catalog.format.inlined_system_columns)
            end = (
                sa.update(rows)
                .where(rows.c.end_snapshot.is_(None), rows.c.begin_snapshot <= self.base_id)
                .values(end_snapshot=self.rows.snapshot_id)
            )
            if changes.truncated:
                ended_count += self.rows.connection.execute(end).rowcount
                continue
            for row_ids in id_batches(changes.ended_inlined_row_ids):
                ended_count += self.rows.connection.execute(end.where(rows.c.row_id.in_(row_ids))).rowcount
        return ended_count != 0

    def _add_position_deletes(self, table_id: int, position_deletes: Mapping[int, PositionDeletes]) -> None:
        """Adds deletes to committed data files. A data file has at most one current delete file."""
        table = self.staged.state.tables[table_id]
        folder = self.staged.state.table_folder(self.rows.catalog.data_path, table)
        with_delete_file = [i for i, deletes in position_deletes.items() if deletes.delete_file is not None]
        for file_ids in id_batches(with_delete_file):
            self._remove_delete_files(folder, file_ids)
        inlined_deletes = []
        for file_id, deletes in position_deletes.items():
            if deletes.delete_file is not None:
                self._add_delete_file(table_id, file_id, deletes.delete_file)
            inlined_deletes += [
                {"file_id": file_id, "row_id": position, "begin_snapshot": self.rows.snapshot_id}
                for position in deletes.inlined_positions
            ]
        if inlined_deletes:
            source = inlined.create_delete_table(self.rows.connection, self.rows.catalog, table_id)
            self.rows.connection.execute(sa.insert(source), inlined_deletes)

    def _move_inlined_deletes(self, table_id: int, delete_files: Mapping[int, NewDeleteFile]) -> None:
        """Replaces inlined deletes by delete files, which name the snapshot that deleted each position."""
        self._add_position_deletes(table_id, {i: PositionDeletes(file) for i, file in delete_files.items()})
        source = t.inlined_delete(table_id)
        for file_ids in id_batches(delete_files):
            moved = sa.and_(source.c.file_id.in_(file_ids), source.c.begin_snapshot <= self.base_id)
            self.rows.connection.execute(sa.delete(source).where(moved))

    def _remove_delete_files(self, folder: str, file_ids: Sequence[int]) -> None:
        """Removes the current delete files of data files from the catalog and schedules them for deletion.

        Earlier versions of the table do not need them: the delete files that replace them name the snapshot of every
        position.
        """
        source = t.delete_file
        current = sa.and_(source.c.data_file_id.in_(file_ids), source.c.end_snapshot.is_(None))
        self.rows.schedule_for_deletion(
            (row.delete_file_id, resolve(folder, row.path, bool(row.path_is_relative)))
            for row in self.rows.connection.execute(sa.select(source).where(current))
        )
        self.rows.connection.execute(sa.delete(source).where(current))

    def _add_delete_file(self, table_id: int, data_file_id: int, file: NewDeleteFile) -> None:
        self.rows.add(
            self.rows.catalog.format.delete_file,
            delete_file_id=self.rows.new_file_id(),
            table_id=table_id,
            begin_snapshot=file.first_snapshot or self.rows.snapshot_id,
            data_file_id=data_file_id,
            path=file.path,
            path_is_relative=file.path_is_relative,
            format=file.format,
            delete_count=file.delete_count,
            file_size_bytes=file.file_size_bytes,
            footer_size=file.footer_size,
            partial_max=file.last_snapshot,
            row_group_count=file.row_group_count,
            encryption_key=file.encryption_key and file.encryption_key.catalog_text(),
        )

    def _add_data_files(self, table_id: int, table: Table, files: Sequence[NewDataFile]) -> None:
        statistics = self._statistics[table_id]
        mapping_ids = add_name_mappings(self.rows, table_id, files)
        self._add_abandoned_partition_specs(table_id, table, files)
        self._add_abandoned_columns(table_id, table, files)
        for file in files:
            self._add_data_file(table_id, file, statistics.next_row_id, mapping_ids)
            statistics.add(file.stats, file.record_count, file.file_size_bytes)

    def _insert_inlined(self, table_id: int, inserts: Sequence[NewInlinedRows]) -> None:
        statistics, database = self._statistics[table_id], self.rows.catalog.database
        name = self.inlined_tables[table_id]
        for insert in inserts:
            stored = database.inlined_names(self.rows.connection, name, [c.name for c in insert.columns])
            source = t.inlined_data(name, stored, self.rows.catalog.format.inlined_system_columns)
            keys = [column.key for column in source.columns]
            self.rows.insert(
                source,
                [
                    dict(zip(keys, (row_id, self.rows.snapshot_id, None, *values), strict=True))
                    for row_id, values in enumerate(insert.values(database), start=statistics.next_row_id)
                ],
            )
            statistics.add(insert.stats, len(insert))
        # DuckDB keeps the statistics of a table for as long as this id stays, and reads wrong rows with old ones.
        self.rows.new_file_id()

    def _add_data_file(
        self, table_id: int, file: NewDataFile, row_id_start: int | None, mapping_ids: Mapping[NameMap, int]
    ) -> int:
        """Adds a data file and returns its id. Each of its rows holds its row id if the file has no first one."""
        file_id = self.rows.new_file_id()
        self.rows.add(
            self.rows.catalog.format.data_file,
            data_file_id=file_id,
            table_id=table_id,
            begin_snapshot=self.rows.snapshot_id if file.begin_snapshot is None else file.begin_snapshot,
            path=file.path,
            path_is_relative=file.path_is_relative,
            file_format="parquet",
            record_count=file.record_count,
            file_size_bytes=file.file_size_bytes,
            footer_size=file.footer_size,
            row_id_start=row_id_start,
            partition_id=None if file.partition_id is None else self.rows.catalog_id(file.partition_id),
            mapping_id=mapping_ids.get(file.name_map or ()),
            partial_max=file.partial_max,
            row_group_count=file.row_group_count,
            encryption_key=file.encryption_key and file.encryption_key.catalog_text(),
        )
        if file.position_deletes is not None and file.position_deletes.delete_file is not None:
            self._add_delete_file(table_id, file_id, file.position_deletes.delete_file)
        for index, value in enumerate(file.partition_values):
            self.rows.add(
                t.file_partition_value,
                data_file_id=file_id,
                table_id=table_id,
                partition_key_index=index,
                partition_value=value,
            )
        self.rows.add_column_stats(table_id, file_id, file.stats)
        return file_id

    def _flush(self, table_id: int, flushes: Sequence[Flush]) -> None:
        """Puts files in the place of inlined rows. Their values are in the statistics of the table already."""
        new_files = [file for flush in flushes for file in flush.files]
        mapping_ids = add_name_mappings(self.rows, table_id, new_files)
        connection, catalog = self.rows.connection, self.rows.catalog
        late_deletes: list[dict[str, int]] = []
        for flush in flushes:
            file_ids = [self._add_data_file(table_id, file, None, mapping_ids) for file in flush.files]
            # Rows that others deleted while the files were written are deleted in these files, too.
            for row_id, begin, end in inlined.rows_ended_since(connection, catalog, flush.source, self.base_id):
                index, position = flush.places[row_id, begin]
                late_deletes.append({"file_id": file_ids[index], "row_id": position, "begin_snapshot": end})
        if late_deletes:
            source = inlined.create_delete_table(connection, catalog, table_id)
            connection.execute(sa.insert(source), late_deletes)
        size = sum(file.file_size_bytes for file in new_files)
        stats = t.table_stats
        update = sa.update(stats).where(stats.c.table_id == table_id)
        connection.execute(update.values(file_size_bytes=stats.c.file_size_bytes + size))
        for flush in flushes:
            source = t.inlined_data(flush.source, (), catalog.format.inlined_system_columns)
            connection.execute(sa.delete(source).where(source.c.begin_snapshot <= self.base_id))
        inlined.drop_empty_tables(connection, catalog, table_id)

    def _compact(self, table_id: int, compactions: Sequence[Compaction]) -> None:
        """Puts files in the place of others. The statistics of the table stay true: its rows are the same."""
        new_files = [file for compaction in compactions for file in compaction.files]
        mapping_ids = add_name_mappings(self.rows, table_id, new_files)
        for file in new_files:
            self._add_data_file(table_id, file, None, mapping_ids)
        merged = [source for c in compactions if c.is_merge for source in c.sources]
        self.rows.schedule_for_deletion((source.id, source.path) for source in merged)
        for file_ids in id_batches([source.id for source in merged]):
            for table in (t.data_file, t.file_column_stats, t.file_partition_value, t.file_variant_stats):
                self.rows.connection.execute(sa.delete(table).where(table.c.data_file_id.in_(file_ids)))
        for file_ids in id_batches([source.id for c in compactions if not c.is_merge for source in c.sources]):
            for table in (t.data_file, t.delete_file):
                self.rows.end(table, table.c.data_file_id.in_(file_ids))

    def _add_abandoned_columns(self, table_id: int, table: Table, files: Iterable[NewDataFile]) -> None:
        """Adds columns as they were when a file was written, if this transaction changed them afterwards.

        They begin and end in this snapshot. So it is known by which names the file has its columns, and no later column
        gets the id of one that was dropped. The reference has such rows for tables that a transaction creates.
        """
        # By identity: the files of one write share their columns, whose hash would be computed for each file.
        written = {id(file.written_columns): file.written_columns for file in files}.values()
        changed = [columns for columns in written if columns != table.columns]
        current = column_rows(table.columns) if changed else {}
        abandoned = {
            (column_id, row["column_name"], row["column_type"]): row
            for columns in changed
            for column_id, row in column_rows(columns).items()
        }
        for (column_id, name, type_), row in abandoned.items():
            now = current.get(column_id)
            if now is None or (now["column_name"], now["column_type"]) != (name, type_):
                snapshot_id = self.rows.snapshot_id
                self.rows.add(t.column, table_id=table_id, begin_snapshot=snapshot_id, end_snapshot=snapshot_id, **row)

    def _add_abandoned_partition_specs(self, table_id: int, table: Table, files: Iterable[NewDataFile]) -> None:
        """Adds partition specs that were set and replaced in this transaction, if files were written with them."""
        specs = {file.partition_spec.id: file.partition_spec for file in files if file.partition_spec}
        for spec in specs.values():
            if is_provisional(spec.id) and spec != table.partition:
                add_partition_spec(self.rows, table_id, spec, end_snapshot=self.rows.snapshot_id)
