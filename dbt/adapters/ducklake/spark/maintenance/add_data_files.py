"""`ducklake_add_data_files`: existing Parquet files become data files of a table, where they are.

The driver reads their footers. No row is read, no file is copied, and no Spark is started.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from ...lake.added_file_partition import FilePartition, partition_of_file
from ...lake.added_file_stats import added_file_stats, check_values
from ...lake.added_files import MatchRules, match_file
from ...lake.encryption import Footer
from ...lake.errors import LakeError
from ...lake.file_globs import FoundFile, find_files
from ...lake.files import NewDataFile
from ...lake.owned_files import files_to_be_deleted, tables_of_files
from ...lake.path_values import path_values
from ...lake.paths import (
    has_data_file_name,
    is_in_same_store,
    local_path,
    relative_to,
    scheme_of,
    storage_root,
)
from ...lake.snapshot import Table
from ...lake.transaction import Transaction
from ..read.lakes import Lake
from ..read.parquet import FILE_POOL
from .context import MaintenanceContext

_MAX_PROBLEMS = 10
"""An error names so many; a folder of one wrong schema has as many problems as files."""

_ENCRYPTED = "the file is encrypted; only plain Parquet files can be added"


def add_data_files(
    context: MaintenanceContext,
    table_name: str,
    files: Sequence[str],
    *,
    schema: str | None = None,
    allow_missing: bool = False,
    ignore_extra_columns: bool = False,
    hive_partitioning: bool = True,
    allow_duplicates: bool = False,
    dry_run: bool = False,
) -> pa.Table:
    """Adds Parquet files to a table in one snapshot. Each of `files` is a file, a folder or a glob.

    Returns a row for each file; of a dry run also what the table would get from it. Files without rows are not added.
    """
    _refuse_encrypted_lake(context.lake)
    transaction = context.lake.begin() if dry_run else context.begin("ducklake_add_data_files")
    table = context.table(transaction.state, table_name, schema)
    found = _find_files(context.lake, files)
    if not allow_duplicates:
        _refuse_known_files(transaction, table, found)
    _refuse_files_to_be_deleted(transaction, found)
    describe = partial(
        _describe,
        context.lake,
        transaction,
        table,
        MatchRules(allow_missing, ignore_extra_columns),
        hive_partitioning,
    )
    described = list(FILE_POOL.map(describe, found))
    name = transaction.state.qualified_name(table)
    _raise_problems(name, described)
    added = [d.data_file for d in described if d.data_file is not None]
    if dry_run:
        return _rows_of_dry_run(described)
    if added:
        transaction.append(table, added)
        transaction.commit_info = replace(transaction.commit_info, message=f"ducklake_add_data_files: {name}")
        transaction.commit()
    return pa.table({"filename": pa.array([d.path for d in described if d.data_file is not None], pa.string())})


@dataclass(frozen=True)
class _Described:
    """A file, as the table would get it."""

    path: str
    size: int
    record_count: int = 0
    missing_names: tuple[str, ...] = ()
    ignored_names: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    data_file: NewDataFile | None = None
    """None if the file has no rows."""


def _refuse_encrypted_lake(lake: Lake) -> None:
    if lake.catalog.is_encrypted:
        raise LakeError(
            f"lake {lake.name} is encrypted, and DuckDB reads no plain file there;"
            " insert the rows of the files instead: insert into ... select * from parquet.`...`"
        )


def _find_files(lake: Lake, patterns: Sequence[str]) -> list[FoundFile]:
    """The files of all patterns, each once, under their paths in the lake."""
    if not patterns:
        raise LakeError("argument files of ducklake_add_data_files is empty; it takes files, folders and globs")
    found: dict[str, FoundFile] = {}
    for pattern in patterns:
        path = pattern if scheme_of(pattern) not in (None, "file") else local_path(pattern)
        if not is_in_same_store(path, lake.catalog.data_path):
            raise LakeError(
                f"{pattern} is not in the store of the lake's files, {lake.catalog.data_path};"
                " a lake reads files of one store only, so copy the file there first"
            )
        root = storage_root(path)
        native_root = lake.native_path(root)
        for file in find_files(lake.filesystem, lake.native_path(path), FILE_POOL):
            full_path = root + file.path[len(native_root) :]
            found[full_path] = replace(file, path=full_path)
    return list(found.values())


def _refuse_known_files(transaction: Transaction, table: Table, found: Sequence[FoundFile]) -> None:
    catalog, state = transaction.catalog, transaction.state
    with catalog.read() as connection:
        known = tables_of_files(connection, state, catalog.data_path, [file.path for file in found])
    if known:
        path, table_id = next(iter(known.items()))
        more = f" and {len(known) - 1} more are" if len(known) > 1 else " is"
        owner = state.qualified_name(state.tables[table_id])
        effect = "its rows would be in the table twice" if table_id == table.id else "a file should have one owner"
        raise LakeError(
            f"{path}{more} already in table {owner}, and {effect};"
            " with allow_duplicates => true it is added nevertheless"
        )


def _refuse_files_to_be_deleted(transaction: Transaction, found: Sequence[FoundFile]) -> None:
    catalog = transaction.catalog
    with catalog.read() as connection:
        doomed = files_to_be_deleted(connection, catalog.data_path, [file.path for file in found])
    if doomed:
        raise LakeError(
            f"{min(doomed)} is scheduled for deletion, and ducklake_cleanup_old_files will delete it;"
            " copy the file and add the copy"
        )


def _describe(
    lake: Lake, transaction: Transaction, table: Table, rules: MatchRules, hive_partitioning: bool, file: FoundFile
) -> _Described:
    """A file as a data file of the table, or why it can be none."""
    try:
        footer = lake.file_store.read_footer(file.path, None)
        return _described(transaction, table, rules, hive_partitioning, file, footer)
    except LakeError:  # of a plain footer with encrypted columns
        return _Described(file.path, file.size, problems=(_ENCRYPTED,))
    except (OSError, pa.ArrowException) as error:
        return _Described(file.path, file.size, problems=(_unreadable(error),))


def _described(
    transaction: Transaction,
    table: Table,
    rules: MatchRules,
    hive_partitioning: bool,
    file: FoundFile,
    footer: Footer,
) -> _Described:
    values = path_values(file.path) if hive_partitioning else {}
    metadata, columns = footer.metadata, table.columns
    match = match_file(metadata, columns, values, rules)
    description = _Described(
        file.path, file.size, metadata.num_rows, match.missing_names, match.ignored_names, match.problems
    )
    if match.problems or not metadata.num_rows:
        return description
    stats = added_file_stats(metadata, columns, match, values)
    partition = FilePartition(None)
    if table.partition is not None:
        partition = partition_of_file(table.partition, columns, values, stats)
    problems = (*check_values(metadata, columns, match, stats), *partition.problems)
    if problems:
        return replace(description, problems=problems)
    path, is_relative = _catalog_path(transaction, table, file.path)
    spec = table.partition if partition.values is not None else None
    data_file = NewDataFile(
        path=path,
        path_is_relative=is_relative,
        record_count=metadata.num_rows,
        file_size_bytes=file.size,
        footer_size=footer.size,
        stats=stats,
        partition_id=spec.id if spec else None,
        partition_values=partition.values or (),
        name_map=match.name_map,
        partition_spec=spec,
        row_group_count=metadata.num_row_groups,
        written_columns=columns,
    )
    return replace(description, data_file=data_file)


def _catalog_path(transaction: Transaction, table: Table, path: str) -> tuple[str, bool]:
    """The path for the catalog, and whether it is relative to the table's folder.

    A file with the name of one that was written for a table keeps its whole path, since scans take a file of such a
    name in the table's folder for one that has the table's own types.
    """
    folder = transaction.state.table_folder(transaction.catalog.data_path, table)
    return (path, False) if has_data_file_name(path) else relative_to(path, folder)


def _unreadable(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    text = str(error)
    if "crypt" in text.lower():
        return _ENCRYPTED
    if isinstance(error, pa.ArrowInvalid):
        return f"the file is no Parquet file: {text}"
    return f"the file can not be read: {text}"


def _raise_problems(table_name: str, described: Sequence[_Described]) -> None:
    """Raises if a file has a problem. Nothing is added then."""
    problems = [f"{d.path}: {problem}" for d in described for problem in d.problems]
    if not problems:
        return
    count = sum(1 for d in described if d.problems)
    files = "1 file" if len(described) == 1 else f"{count} of {len(described)} files"
    more = [f"and {len(problems) - _MAX_PROBLEMS} more"] if len(problems) > _MAX_PROBLEMS else []
    lines = "\n  ".join([*problems[:_MAX_PROBLEMS], *more])
    raise LakeError(f"{files} can not be added to table {table_name}; nothing was added:\n  {lines}")


def _rows_of_dry_run(described: Sequence[_Described]) -> pa.Table:
    names = pa.list_(pa.string())
    return pa.table(
        {
            "filename": pa.array([d.path for d in described], pa.string()),
            "record_count": pa.array([d.record_count for d in described], pa.int64()),
            "file_size_bytes": pa.array([d.size for d in described], pa.int64()),
            "missing_columns": pa.array([d.missing_names for d in described], names),
            "ignored_columns": pa.array([d.ignored_names for d in described], names),
        }
    )
