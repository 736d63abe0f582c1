"""Rows of data files, delete files, inlined rows, name mappings and statistics."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import sqlalchemy as sa

from .. import inlined
from .. import tables as t
from ..deletes import Mask, NewDeleteFile
from ..files import NameMap, NewDataFile, name_maps
from ..paths import relative_to, resolve
from ..snapshot import Table
from ..stats import TableColumnStats, widen, widest
from .definitions import add_partition
from .rows import MAX_IDS, SnapshotRows
from .staged import Staged, TableData


class DataRows:
    """Writes what a transaction added to and removed from the data of tables."""

    def __init__(self, rows: SnapshotRows, base_id: int, staged: Staged) -> None:
        self.rows = rows
        self.base_id = base_id
        self.staged = staged

    def write(self) -> None:
        order = sorted(self.staged.data.items(), key=lambda item: (item[0] < 0, abs(item[0])))
        inserted = [self.rows.catalog_id(key) for key, data in order if data.added]
        deleted = [key for key, data in order if data.deletes]
        inlined_deleted = [key for key, data in order if self._end_inlined(key, data) or data.deletes_inlined]
        self.rows.changes += [f"inserted_into_table:{table_id}" for table_id in inserted]
        self.rows.changes += [f"deleted_from_table:{table_id}" for table_id in deleted]
        self.rows.changes += [f"inlined_delete:{table_id}" for table_id in inlined_deleted]
        for provisional, data in order:
            table_id = self.rows.catalog_id(provisional)
            if data.truncated:
                file = t.data_file
                self.rows.end(file, file.c.table_id == table_id, file.c.begin_snapshot <= self.base_id)
            ended = sorted(data.ended)
            for start in range(0, len(ended), MAX_IDS):
                self.rows.end(t.data_file, t.data_file.c.data_file_id.in_(ended[start : start + MAX_IDS]))
            if data.masks:
                self._mask(table_id, data.masks)
            if data.settled:
                self._settle(table_id, data.settled)
            if data.added:
                self._append(table_id, self.staged.state.tables[provisional], data.added)

    def _end_inlined(self, table_id: int, data: TableData) -> bool:
        """Ends inlined rows of a table; says whether there were any."""
        if not data.truncated and not data.inlined:
            return False
        ended = 0
        for name in inlined.tables_of(self.rows.connection, table_id).values():
            rows = t.inlined_data(name, [])
            ending = sa.update(rows).where(rows.c.end_snapshot.is_(None), rows.c.begin_snapshot <= self.base_id)
            ending = ending.values(end_snapshot=self.rows.snapshot_id)
            if data.truncated:
                ended += self.rows.connection.execute(ending).rowcount
                continue
            row_ids = sorted(data.inlined)
            for start in range(0, len(row_ids), MAX_IDS):
                some = row_ids[start : start + MAX_IDS]
                ended += self.rows.connection.execute(ending.where(rows.c.row_id.in_(some))).rowcount
        return ended != 0

    def _mask(self, table_id: int, masks: Mapping[int, Mask]) -> None:
        """Puts the masks on data files that are there: each has one delete file at most."""
        replaced = [file_id for file_id, mask in masks.items() if mask.file is not None]
        table = self.staged.state.tables[table_id]
        folder = self.staged.state.folder(self.rows.catalog.data_path, table)
        for start in range(0, len(replaced), MAX_IDS):
            self._replace_delete_files(folder, replaced[start : start + MAX_IDS])
        positions = []
        for file_id, mask in masks.items():
            self._add_delete_file(table_id, file_id, mask)
            positions += [
                {"file_id": file_id, "row_id": position, "begin_snapshot": self.rows.snapshot_id}
                for position in mask.positions
            ]
        if positions:
            source = inlined.create_delete_table(self.rows.connection, self.rows.catalog, table_id)
            self.rows.connection.execute(sa.insert(source), positions)

    def _settle(self, table_id: int, files: Mapping[int, NewDeleteFile]) -> None:
        """Puts positions that the catalog kept into delete files, which say of each when it was deleted."""
        self._mask(table_id, {file_id: Mask(file) for file_id, file in files.items()})
        source = t.inlined_delete(table_id)
        self.rows.connection.execute(sa.delete(source).where(source.c.file_id.in_(sorted(files))))

    def _replace_delete_files(self, folder: str, file_ids: Sequence[int]) -> None:
        """Takes the delete files of data files out of the catalog: what takes their place says all that they said."""
        source = t.delete_file
        there = sa.and_(source.c.data_file_id.in_(file_ids), source.c.end_snapshot.is_(None))
        for row in self.rows.connection.execute(sa.select(source).where(there)):
            path = resolve(folder, row.path, bool(row.path_is_relative))
            relative, is_relative = relative_to(path, self.rows.catalog.data_path)
            self.rows.add(
                t.files_scheduled_for_deletion,
                data_file_id=row.delete_file_id,
                path=relative,
                path_is_relative=is_relative,
                schedule_start=datetime.datetime.now(datetime.timezone.utc),
            )
        self.rows.connection.execute(sa.delete(source).where(there))

    def _add_delete_file(self, table_id: int, file_id: int, mask: Mask) -> None:
        if mask.file is None:
            return
        self.rows.add(
            t.delete_file,
            delete_file_id=self.rows.file_id(),
            table_id=table_id,
            begin_snapshot=mask.file.first or self.rows.snapshot_id,
            data_file_id=file_id,
            path=mask.file.path,
            path_is_relative=mask.file.path_is_relative,
            format="parquet",
            delete_count=mask.file.delete_count,
            file_size_bytes=mask.file.file_size_bytes,
            footer_size=mask.file.footer_size,
            partial_max=mask.file.last,
        )

    def _append(self, table_id: int, table: Table, files: tuple[NewDataFile, ...]) -> None:
        types = {c.id: c.type for c in table.leaves()}
        stats = t.table_stats
        known = self.rows.connection.execute(sa.select(stats).where(stats.c.table_id == table_id)).first()
        record_count = known.record_count if known else 0
        next_row_id = known.next_row_id if known else 0
        size = known.file_size_bytes if known else 0
        columns = self._column_stats(table_id, types)
        fresh = not columns and next_row_id == 0
        mappings = self._mappings(table_id, files)
        self._passing_partitions(table_id, table, files)
        exact = all(column.exact for column in columns.values())
        for file in files:
            file_id = self.rows.file_id()
            self.rows.add(
                t.data_file,
                data_file_id=file_id,
                table_id=table_id,
                begin_snapshot=self.rows.snapshot_id,
                path=file.path,
                path_is_relative=file.path_is_relative,
                file_format="parquet",
                record_count=file.record_count,
                file_size_bytes=file.file_size_bytes,
                footer_size=file.footer_size,
                row_id_start=next_row_id,
                partition_id=None if file.partition_id is None else self.rows.catalog_id(file.partition_id),
                mapping_id=mappings.get(file.name_map) if file.name_map else None,
            )
            if file.mask is not None:
                self._add_delete_file(table_id, file_id, file.mask)
            for index, value in enumerate(file.partition_values):
                self.rows.add(
                    t.file_partition_value,
                    data_file_id=file_id,
                    table_id=table_id,
                    partition_key_index=index,
                    partition_value=value,
                )
            for column_id, column_stats in file.stats.items():
                self.rows.add(
                    t.file_column_stats,
                    data_file_id=file_id,
                    table_id=table_id,
                    column_id=column_id,
                    column_size_bytes=column_stats.column_size_bytes,
                    value_count=column_stats.value_count,
                    null_count=column_stats.null_count,
                    min_value=column_stats.min_value,
                    max_value=column_stats.max_value,
                    contains_nan=column_stats.contains_nan,
                    extra_stats=column_stats.extra_stats,
                )
                # A column added later has no row here, since rows from before hold its default: what
                # is not known of them must not be narrowed to what this file holds.
                is_there = column_id in types  # and was not dropped after the file was staged
                if is_there and (fresh or column_id in columns):
                    columns[column_id] = widen(columns.get(column_id), column_stats, types[column_id])
                    exact = exact and columns[column_id].exact
            record_count += file.record_count
            next_row_id += file.record_count
            size += file.file_size_bytes
        if not exact:
            # The reference takes MIN and MAX from these bounds where this count is that of the live rows.
            record_count += 1
        values = {"record_count": record_count, "next_row_id": next_row_id, "file_size_bytes": size}
        if known:
            self.rows.connection.execute(sa.update(stats).where(stats.c.table_id == table_id).values(**values))
        else:
            self.rows.add(stats, table_id=table_id, **values)
        self._put_column_stats(table_id, columns, fresh)

    def _passing_partitions(self, table_id: int, table: Table, files: Iterable[NewDataFile]) -> None:
        """Partitionings that were staged and given up in one transaction, but have files."""
        specs = {file.partition.id: file.partition for file in files if file.partition}
        for spec in specs.values():
            if spec.id < 0 and spec != table.partition:
                add_partition(self.rows, table_id, spec, self.rows.snapshot_id)

    def _column_stats(self, table_id: int, types: Mapping[int, str]) -> dict[int, TableColumnStats]:
        """The table's statistics, in which no bounds mean that there is no value yet."""
        stats, file_stats = t.table_column_stats, t.file_column_stats
        found = {
            r.column_id: TableColumnStats(r.contains_null, r.contains_nan, r.min_value, r.max_value, r.extra_stats)
            for r in self.rows.connection.execute(sa.select(stats).where(stats.c.table_id == table_id))
        }
        # The reference forgets bounds that it can not compare, after a change of type for example.
        bare = [i for i, s in found.items() if s.min_value is None and s.max_value is None]
        if bare:
            with_values = (
                sa.select(file_stats.c.column_id)
                .distinct()
                .where(
                    file_stats.c.table_id == table_id, file_stats.c.column_id.in_(bare), file_stats.c.value_count > 0
                )
            )
            column_id: int
            for column_id in self.rows.connection.scalars(with_values):
                least, greatest = widest(types[column_id]) if column_id in types else (None, None)
                found[column_id] = replace(found[column_id], min_value=least, max_value=greatest, exact=False)
        return found

    def _put_column_stats(self, table_id: int, columns: Mapping[int, TableColumnStats], fresh: bool) -> None:
        stats = t.table_column_stats
        if not fresh:
            self.rows.connection.execute(
                sa.delete(stats).where(stats.c.table_id == table_id, stats.c.column_id.in_(list(columns)))
            )
        for column_id, column in columns.items():
            self.rows.add(
                stats,
                table_id=table_id,
                column_id=column_id,
                contains_null=column.contains_null,
                contains_nan=column.contains_nan,
                min_value=column.min_value,
                max_value=column.max_value,
                extra_stats=column.extra_stats,
            )

    def _mappings(self, table_id: int, files: Iterable[NewDataFile]) -> dict[NameMap, int]:
        """An id for each name map of the files; those the table has already are used again."""
        wanted = {file.name_map for file in files if file.name_map}
        if not wanted:
            return {}
        found = {name_map: mapping_id for mapping_id, name_map in name_maps(self.rows.connection, table_id).items()}
        result: dict[NameMap, int] = {}
        for name_map in wanted:
            if name_map in found:
                result[name_map] = found[name_map]
                continue
            mapping_id = result[name_map] = self.rows.file_id()
            self.rows.add(t.column_mapping, mapping_id=mapping_id, table_id=table_id, type="map_by_name")
            self._name_map(mapping_id, name_map, None, 0)
        return result

    def _name_map(self, mapping_id: int, entries: NameMap, parent: int | None, next_id: int) -> int:
        for entry in entries:
            own, next_id = next_id, next_id + 1
            self.rows.add(
                t.name_mapping,
                mapping_id=mapping_id,
                column_id=own,
                source_name=entry.source_name,
                target_field_id=entry.column_id,
                parent_column=parent,
                is_partition=entry.is_partition,
            )
            next_id = self._name_map(mapping_id, entry.children, own, next_id)
        return next_id
