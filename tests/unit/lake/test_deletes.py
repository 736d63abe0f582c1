"""Delete files: writing, reading, and the data files that others changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from dbt.adapters.ducklake.lake import deletes
from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.deletes import (
    SNAPSHOT_COLUMN,
    NewDeleteFile,
    PositionDeletes,
    delete_file_for_snapshot,
    delete_file_schema,
    position_deletes_for_snapshot,
    read_delete_file,
    write_delete_file,
)
from dbt.adapters.ducklake.lake.file_store import FileStore
from dbt.adapters.ducklake.lake.files import table_files

from ...lakes import Lake, LakeAddress

STORE = FileStore(pafs.LocalFileSystem(), str)
DATA_FILE = "/lake/main/t/ducklake-1.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return f"{tmp_path}/"


def positions(*numbers: int) -> pa.Array:
    return pa.array(numbers, pa.int64())


def at_snapshots(*pairs: tuple[int, int]) -> pa.Table:
    """Returns deleted positions, each with the snapshot that deleted it."""
    return pa.table(
        [pa.array([p for p, _ in pairs], pa.int64()), pa.array([s for _, s in pairs], pa.int64())],
        ["pos", SNAPSHOT_COLUMN],
    )


def deleted_rows(folder: str, file: NewDeleteFile) -> list[tuple[int, ...]]:
    """Returns the rows of a delete file without the column of the data file."""
    table = pq.read_table(folder + file.path)
    assert set(table.column("file_path").to_pylist()) == {DATA_FILE}
    return list(zip(*(column.to_pylist() for column in table.columns[1:]), strict=True))


def on_disk(folder: str) -> set[str]:
    return {path.name for path in Path(folder).iterdir()}


# -- one file


def test_the_first_delete_file_has_the_columns_that_the_format_names(folder: str) -> None:
    file = write_delete_file(STORE, folder, DATA_FILE, positions(5, 1, 3))
    assert deleted_rows(folder, file) == [(1,), (3,), (5,)]
    schema = pq.read_schema(folder + file.path)
    assert [(f.name, str(f.type), f.metadata[b"PARQUET:field_id"]) for f in schema] == [
        ("file_path", "string", b"2147483646"),
        ("pos", "int64", b"2147483645"),
    ]
    assert [f.nullable for f in schema] == [False, False]


def test_a_delete_file_is_described_as_the_catalog_keeps_it(folder: str) -> None:
    file = write_delete_file(STORE, folder, DATA_FILE, positions(*range(1000)))
    path = Path(folder + file.path)
    assert file.path_is_relative
    assert path.name.startswith("ducklake-")
    assert path.name.endswith("-delete.parquet")
    assert (file.delete_count, file.file_size_bytes) == (1000, path.stat().st_size)
    assert file.footer_size == pq.read_metadata(path).serialized_size
    assert (file.first_snapshot, file.last_snapshot) == (None, None)


def test_further_positions_name_the_snapshot_to_come(folder: str) -> None:
    file = write_delete_file(STORE, folder, DATA_FILE, positions(2, 9), at_snapshots((7, 3), (1, 4)), snapshot=6)
    assert deleted_rows(folder, file) == [(1, 4), (2, 6), (7, 3), (9, 6)]
    assert (file.delete_count, file.first_snapshot, file.last_snapshot) == (4, 3, 6)
    assert pq.read_schema(folder + file.path).field(SNAPSHOT_COLUMN).metadata[b"PARQUET:field_id"] == b"2147483539"


def test_positions_that_are_only_staged_stay_without_a_snapshot(folder: str) -> None:
    first = write_delete_file(STORE, folder, DATA_FILE, positions(4, 2))
    before = read_delete_file(STORE, folder + first.path, None)
    second = write_delete_file(STORE, folder, DATA_FILE, positions(1), before)
    assert deleted_rows(folder, second) == [(1,), (2,), (4,)]
    assert (second.delete_count, second.first_snapshot, second.last_snapshot) == (3, None, None)


def test_positions_of_a_first_delete_file_get_the_snapshot_that_added_it(folder: str) -> None:
    file = write_delete_file(STORE, folder, DATA_FILE, positions(3, 8))
    assert read_delete_file(STORE, folder + file.path, 5).to_pylist() == [
        {"pos": 3, SNAPSHOT_COLUMN: 5},
        {"pos": 8, SNAPSHOT_COLUMN: 5},
    ]
    assert read_delete_file(STORE, folder + file.path, None).to_pylist() == [{"pos": 3}, {"pos": 8}]


def test_positions_of_a_delete_file_with_snapshots_keep_them(folder: str) -> None:
    file = write_delete_file(STORE, folder, DATA_FILE, positions(9), at_snapshots((7, 3)), snapshot=6)
    for begun in (None, 3, 99):
        assert read_delete_file(STORE, folder + file.path, begun).to_pylist() == [
            {"pos": 7, SNAPSHOT_COLUMN: 3},
            {"pos": 9, SNAPSHOT_COLUMN: 6},
        ]


def test_deletes_add_up_over_many_snapshots(folder: str) -> None:
    file = write_delete_file(STORE, folder, DATA_FILE, positions(0))
    for snapshot in range(2, 6):
        before = read_delete_file(STORE, folder + file.path, 1)
        file = write_delete_file(STORE, folder, DATA_FILE, positions(snapshot * 10), before, snapshot)
    assert deleted_rows(folder, file) == [(0, 1), (20, 2), (30, 3), (40, 4), (50, 5)]
    assert (file.first_snapshot, file.last_snapshot) == (1, 5)


@pytest.mark.large
def test_positions_of_many_row_groups_are_all_counted(folder: str) -> None:
    before = at_snapshots(*((i, 9 - (i > 500_000)) for i in range(1_200_000)))
    file = write_delete_file(STORE, folder, DATA_FILE, positions(5_000_000), before, snapshot=12)
    assert pq.read_metadata(folder + file.path).num_row_groups > 1
    assert (file.delete_count, file.first_snapshot, file.last_snapshot) == (1_200_001, 8, 12)


def test_the_schema_of_positions_is_that_of_the_format() -> None:
    assert delete_file_schema(False).names == ["file_path", "pos"]
    assert delete_file_schema(True).names == ["file_path", "pos", SNAPSHOT_COLUMN]


# -- a commit that gets another snapshot than expected


def test_a_file_that_names_no_snapshot_fits_every_commit(folder: str) -> None:
    file = write_delete_file(STORE, folder, DATA_FILE, positions(1))
    assert delete_file_for_snapshot(STORE, folder, file, 99) is file


def test_a_file_that_names_the_right_snapshot_stays(folder: str) -> None:
    file = write_delete_file(STORE, folder, DATA_FILE, positions(1), at_snapshots((0, 3)), snapshot=6)
    assert delete_file_for_snapshot(STORE, folder, file, 6) is file
    assert on_disk(folder) == {file.path}


def test_a_file_that_names_another_snapshot_is_written_anew(folder: str) -> None:
    file = write_delete_file(STORE, folder, DATA_FILE, positions(1, 5), at_snapshots((0, 3), (2, 5)), snapshot=6)
    moved = delete_file_for_snapshot(STORE, folder, file, 8)
    assert deleted_rows(folder, moved) == [(0, 3), (1, 8), (2, 5), (5, 8)]
    assert (moved.delete_count, moved.first_snapshot, moved.last_snapshot) == (4, 3, 8)
    assert moved.file_size_bytes == (Path(folder) / moved.path).stat().st_size
    assert on_disk(folder) == {moved.path}
    again = delete_file_for_snapshot(STORE, folder, moved, 11)
    assert deleted_rows(folder, again) == [(0, 3), (1, 11), (2, 5), (5, 11)]
    assert on_disk(folder) == {again.path}


def test_a_file_outside_of_the_tables_folder_is_moved_into_it(folder: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    file = write_delete_file(STORE, f"{elsewhere}/", DATA_FILE, positions(1), at_snapshots((0, 3)), snapshot=6)
    absolute = replace(file, path=f"{elsewhere}/{file.path}", path_is_relative=False)
    moved = delete_file_for_snapshot(STORE, folder, absolute, 7)
    assert deleted_rows(folder, moved) == [(0, 3), (1, 7)]
    assert on_disk(str(elsewhere)) == set()


def test_staged_delete_files_are_written_anew_for_another_snapshot(folder: str) -> None:
    named = write_delete_file(STORE, folder, DATA_FILE, positions(1), at_snapshots((0, 3)), snapshot=6)
    plain = write_delete_file(STORE, folder, DATA_FILE, positions(2))
    masks = {1: PositionDeletes(named, (7, 8)), 2: PositionDeletes(plain), 3: PositionDeletes(inlined_positions=(4,))}
    moved = position_deletes_for_snapshot(STORE, folder, masks, 9)
    assert moved[1].delete_file is not None
    assert (moved[1].delete_file.last_snapshot, moved[1].inlined_positions) == (9, (7, 8))
    assert (moved[2], moved[3]) == (masks[2], masks[3])


# -- files that others changed


@pytest.fixture
def lake(new_lake: Callable[[str], LakeAddress]) -> Lake:
    """A table of two files with five rows each."""
    lake = Lake(new_lake("sqlite"))
    lake.create(id="int64")
    lake.append({"id": [0, 1, 2, 3, 4]})
    lake.append({"id": [10, 11, 12, 13, 14]})
    return lake


def touched(lake: Lake, base: int, *file_ids: int) -> set[int]:
    with lake.catalog.read() as connection:
        return deletes.files_changed_since(connection, lake.catalog, lake.table().id, file_ids or _ids(lake), {}, base)


def _ids(lake: Lake) -> list[int]:
    return sorted({r["data_file_id"] for r in lake.rows(t.data_file)})


def _duckdb(lake: Lake, *statements: str) -> None:
    with lake.duckdb() as connection:
        for statement in statements:
            connection.execute(statement)


def test_files_that_nobody_changed_are_not_touched(lake: Lake) -> None:
    _duckdb(lake, "insert into t values (20)", "create table u as select 1 as id", "delete from u where id = 1")
    assert touched(lake, 1) == set()
    assert touched(lake, lake.latest) == set()


def test_no_files_are_not_touched(lake: Lake) -> None:
    _duckdb(lake, "delete from t")
    with lake.catalog.read() as connection:
        assert deletes.files_changed_since(connection, lake.catalog, lake.table().id, (), {}, 0) == set()


@pytest.mark.parametrize("inlined", [True, False])
def test_a_delete_touches_its_file_only(lake: Lake, inlined: bool) -> None:
    first, second = _ids(lake)
    if not inlined:
        _duckdb(lake, "call lake.set_option('data_inlining_row_limit', 0)")
    base = lake.latest
    _duckdb(lake, "delete from t where id = 3")
    assert touched(lake, base) == {first}
    assert touched(lake, base, second) == set()
    assert touched(lake, lake.latest) == set()
    _duckdb(lake, "delete from t where id in (2, 12)")
    assert touched(lake, base) == {first, second}
    assert touched(lake, base + 1) == {first, second}
    assert touched(lake, lake.latest) == set()


def test_a_file_that_is_gone_is_touched(lake: Lake) -> None:
    first, _ = _ids(lake)
    base = lake.latest
    _duckdb(lake, "delete from t where id < 10")
    assert touched(lake, base, first) == {first}
    assert touched(lake, base) == {first}


def test_merged_files_are_touched(lake: Lake) -> None:
    files, base = _ids(lake), lake.latest
    _duckdb(lake, "call ducklake_merge_adjacent_files('lake')")
    assert touched(lake, base, *files) == set(files)


def test_a_flush_of_inlined_deletes_touches_their_file(lake: Lake) -> None:
    first, _ = _ids(lake)
    _duckdb(lake, "delete from t where id = 3")
    base = lake.latest
    _duckdb(lake, "call ducklake_flush_inlined_data('lake')")
    with lake.catalog.read() as connection:
        (masked, _) = table_files(connection, lake.catalog, lake.table(), "", lake.latest)
    assert masked.delete_file is not None
    assert masked.inlined_deletes == ()
    new = deletes.NewDeleteFile("new.parquet", True, 1, 1, 1)
    table_id = lake.table().id
    with lake.catalog.read() as connection:
        for staged, changed in (
            (deletes.PositionDeletes(new), {first}),
            (deletes.PositionDeletes(new, replaced_delete_file_id=masked.delete_file.id), set()),
            (deletes.PositionDeletes(inlined_positions=(5,)), set()),
        ):
            assert deletes.files_changed_since(connection, lake.catalog, table_id, (), {first: staged}, base) == changed


def test_a_file_of_another_table_is_not_touched(lake: Lake) -> None:
    lake.create("u", id="int64")
    lake.append({"id": [1]}, "u")
    base = lake.latest
    _duckdb(lake, "delete from u where id = 1")
    assert touched(lake, base, *_ids(lake)[:2]) == set()
