"""ducklake_add_data_files without Spark: which files are added, refused, and what the snapshot says."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.errors import ConflictError, LakeError, NotFoundError

from ....lakes import Lake, LakeAddress


@pytest.fixture
def address(new_lake: Callable[[str], LakeAddress]) -> LakeAddress:
    address = new_lake("sqlite")
    lake = Lake(address)
    lake.create("t", id="int64", v="varchar")
    lake.create("other", id="int64", v="varchar")
    return address


@pytest.fixture
def session(address: LakeAddress) -> Iterator[LakeSession]:
    with LakeSession(address.catalog, author="us") as session:
        yield session
        assert not session._engine.started, "adding files needs no Spark"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def write(path: Path, *ids: int, **more: Any) -> str:
    values = {"v": pa.array([f"v{i}" for i in ids], pa.string()), **more}
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), **values}), path)
    return str(path)


def add(session: LakeSession, *files: str, table: str = "main.t", **arguments: Any) -> list[str]:
    added: list[str] = session.call("ducklake_add_data_files", table, list(files), **arguments)["filename"].to_pylist()
    return added


def rows(session: LakeSession, table: sa.Table) -> list[dict[str, Any]]:
    with session.lake().catalog.read() as connection:
        return [dict(row) for row in connection.execute(sa.select(table)).mappings()]


def test_all_files_are_one_snapshot_that_says_what_was_done(session: LakeSession, folder: Path) -> None:
    first, second = write(folder / "1.parquet", 1, 2), write(folder / "2.parquet", 3)
    assert add(session, f"{folder}/?.parquet", first) == [first, second]
    files = rows(session, t.data_file)
    assert [(f["path"], f["path_is_relative"], f["record_count"], f["row_id_start"]) for f in files] == [
        (first, False, 2, 0),
        (second, False, 1, 2),
    ]
    assert [f["file_size_bytes"] for f in files] == [Path(p).stat().st_size for p in (first, second)]
    assert len({f["begin_snapshot"] for f in files}) == 1
    last = rows(session, t.snapshot_changes)[-1]
    assert (last["author"], last["commit_message"]) == ("us", "ducklake_add_data_files: main.t")
    assert last["changes_made"] == f"inserted_into_table:{files[0]['table_id']}"


def test_sql_calls_it_with_a_list_or_a_text(session: LakeSession, folder: Path) -> None:
    first, second = write(folder / "1.parquet", 1), write(folder / "2.parquet", 2)
    session.execute(f"call ducklake_add_data_files('t', ['{first}'], schema => 'main', allow_missing => true)")
    session.execute(f"call lake.ducklake_add_data_files('lake', 'main.t', '{second}')")
    assert [f["path"] for f in rows(session, t.data_file)] == [first, second]


def test_a_file_in_the_tables_folder_has_a_relative_path(
    session: LakeSession, address: LakeAddress, tmp_path: Path
) -> None:
    inside = Path(address.data_path) / "main" / "t"
    inside.mkdir(parents=True)
    named = "ducklake-01a1f6c0-cd22-7f24-8982-a52dccc00506.parquet"
    write(inside / "mine.parquet", 1)
    write(inside / named, 2)
    add(session, str(inside))
    assert {(f["path"], f["path_is_relative"]) for f in rows(session, t.data_file)} == {
        ("mine.parquet", True),
        (f"{inside}/{named}", False),
    }


def test_a_dry_run_says_what_each_file_would_give(session: LakeSession, folder: Path, address: LakeAddress) -> None:
    path = folder / "1.parquet"
    pq.write_table(pa.table({"ID": [1, 2], "x": [1, 2]}), path)
    given = {"allow_missing": True, "ignore_extra_columns": True, "dry_run": True}
    expected = {
        "filename": [str(path)],
        "record_count": [2],
        "file_size_bytes": [path.stat().st_size],
        "missing_columns": [["v"]],
        "ignored_columns": [["x"]],
    }
    assert session.call("ducklake_add_data_files", "t", str(folder), **given).to_pydict() == expected
    with LakeSession(address.catalog, read_only=True) as reader:
        assert reader.call("ducklake_add_data_files", "t", str(folder), **given).to_pydict() == expected
    assert rows(session, t.data_file) == []


def test_a_file_without_rows_is_not_added(session: LakeSession, folder: Path) -> None:
    snapshots = len(rows(session, t.snapshot))
    assert add(session, write(folder / "empty.parquet")) == []
    assert len(rows(session, t.snapshot)) == snapshots
    full = write(folder / "full.parquet", 1)
    assert add(session, str(folder)) == [full]


def test_one_bad_file_keeps_all_from_being_added(session: LakeSession, folder: Path) -> None:
    write(folder / "good.parquet", 1)
    bad = write(folder / "bad.parquet", 1, v=[1])
    with pytest.raises(LakeError) as raised:
        add(session, str(folder))
    assert str(raised.value).splitlines() == [
        "1 of 2 files can not be added to table main.t; nothing was added:",
        f"  {bad}: column v is int64 in the file and varchar in the table",
    ]
    assert rows(session, t.data_file) == []


def test_an_error_names_ten_problems_at_most(session: LakeSession, folder: Path) -> None:
    for number in range(12):
        write(folder / f"{number}.parquet", 1, v=[1])
    with pytest.raises(LakeError) as raised:
        add(session, str(folder))
    lines = str(raised.value).splitlines()
    assert len(lines) == 12
    assert lines[-1] == "  and 2 more"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"not a Parquet file at all", "the file is no Parquet file"),
        (b"x", "the file is no Parquet file"),
        (b"PARE" + b"x" * 40 + (20).to_bytes(4, "little") + b"PARE", "the file is encrypted"),
    ],
)
def test_what_is_no_plain_parquet_file_is_refused(
    session: LakeSession, folder: Path, content: bytes, reason: str
) -> None:
    (folder / "f.parquet").write_bytes(content)
    with pytest.raises(LakeError, match=f"/in/f.parquet: {reason}"):
        add(session, str(folder / "f.parquet"))


def test_encrypted_columns_under_a_plain_footer_are_refused(session: LakeSession, folder: Path) -> None:
    """Arrow ends the process when it is asked for their statistics."""

    class Keys(pe.KmsClient):  # type: ignore[misc]
        def __init__(self, _: Any) -> None:
            super().__init__()

        def wrap_key(self, key: bytes, _: str) -> bytes:
            return base64.b64encode(key)

    factory = pe.CryptoFactory(Keys)
    settings = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["id"]}, plaintext_footer=True)
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), settings)
    rows = pa.table({"id": [1], "v": ["x"]})
    with pq.ParquetWriter(folder / "f.parquet", rows.schema, encryption_properties=properties) as writer:
        writer.write_table(rows)
    with pytest.raises(LakeError, match="/in/f.parquet: the file is encrypted"):
        add(session, str(folder))


def test_a_missing_file_is_named(session: LakeSession, folder: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no file .*/in/no.parquet"):
        add(session, f"{folder}/no.parquet")


def test_a_file_is_added_twice_only_where_that_is_asked_for(session: LakeSession, folder: Path) -> None:
    file = write(folder / "1.parquet", 1)
    add(session, file)
    for spelling in (file, f"file://{file}", f"{folder}/../in/1.parquet"):
        with pytest.raises(LakeError, match="already in table main.t, and its rows would be in the table twice"):
            add(session, spelling)
    with pytest.raises(LakeError, match="already in table main.t, and a file should have one owner"):
        add(session, file, table="other")
    assert add(session, file, allow_duplicates=True) == [file]
    assert len(rows(session, t.data_file)) == 2


def test_a_file_of_a_dropped_table_can_be_added_until_clean_up_is_to_delete_it(
    session: LakeSession, address: LakeAddress
) -> None:
    Lake(address).append({"id": [1], "v": ["x"]}, "other")
    (file,) = rows(session, t.data_file)
    path = f"{address.data_path}main/other/{file['path']}"
    session.execute("drop table other")
    assert add(session, path) == [path]
    with session.lake().catalog.write() as connection:
        scheduled = {"data_file_id": file["data_file_id"], "path": f"main/other/{file['path']}"}
        connection.execute(sa.insert(t.files_scheduled_for_deletion).values(**scheduled, path_is_relative=True))
    with pytest.raises(LakeError, match="is scheduled for deletion"):
        add(session, path, allow_duplicates=True)


def test_a_file_of_another_store_is_refused(session: LakeSession) -> None:
    with pytest.raises(LakeError, match=r"s3://bucket/x/\*.parquet is not in the store of the lake's files"):
        add(session, "s3://bucket/x/*.parquet")


def test_files_in_an_object_store_keep_their_urls(folder: Path) -> None:
    """The file system has no scheme and no leading slash in its paths, and buckets are its first folders."""
    from dbt.adapters.ducklake.spark.maintenance.add_data_files import _find_files

    (folder / "bucket/in/y=1").mkdir(parents=True)
    write(folder / "bucket/in/y=1/1.parquet", 1)
    write(folder / "bucket/in/2.parquet", 2)
    lake: Any = SimpleNamespace(
        catalog=SimpleNamespace(data_path="s3://other/data/"),
        filesystem=pafs.SubTreeFileSystem(str(folder), pafs.LocalFileSystem()),
        native_path=lambda path: path.split("://", 1)[-1],
    )
    for pattern in ("s3a://bucket/in/", "s3a://bucket/in/**", "s3a://bucket/in/**/*.parquet"):
        found = [file.path for file in _find_files(lake, [pattern])]
        assert sorted(found) == ["s3a://bucket/in/2.parquet", "s3a://bucket/in/y=1/1.parquet"], pattern
    assert [f.path for f in _find_files(lake, ["s3://bucket/*/[1-3].parquet"])] == ["s3://bucket/in/2.parquet"]
    with pytest.raises(LakeError, match="/x is not in the store"):
        _find_files(lake, ["/x"])


def test_an_encrypted_lake_takes_no_plain_files(new_lake: Callable[[str], LakeAddress], folder: Path) -> None:
    address = new_lake("sqlite")
    with LakeSession(address.catalog, data_path=address.data_path, encrypted=True) as session:
        session.execute("create table t (id bigint, v string)")
        with pytest.raises(LakeError, match="DuckDB reads no plain file there"):
            add(session, write(folder / "1.parquet", 1))


def test_adding_is_no_part_of_a_transaction(session: LakeSession, folder: Path) -> None:
    file = write(folder / "1.parquet", 1)
    with session.transaction(), pytest.raises(LakeError, match="can not be part of a transaction"):
        add(session, file)


def test_it_conflicts_as_an_insert_does(
    session: LakeSession, address: LakeAddress, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer commits between the reading of the files and the commit."""
    from dbt.adapters.ducklake.spark.maintenance import add_data_files as module

    other = Lake(address)
    find_files = module._find_files

    def while_another(change: Callable[[], Any]) -> None:
        def find(*arguments: Any) -> Any:
            change()
            return find_files(*arguments)

        monkeypatch.setattr(module, "_find_files", find)

    while_another(lambda: other.append({"id": [9], "v": ["x"]}))
    add(session, write(folder / "1.parquet", 1, 2))
    assert [(f["record_count"], f["row_id_start"]) for f in rows(session, t.data_file)] == [(1, 0), (2, 1)]

    def drop() -> None:
        with other.transaction() as transaction:
            transaction.drop(other.table("t"))

    while_another(drop)
    with pytest.raises(ConflictError):
        add(session, write(folder / "2.parquet", 3))
    assert (folder / "2.parquet").exists()


def test_statistics_of_a_partitioned_tables_files(session: LakeSession, folder: Path) -> None:
    session.execute("alter table t set partitioned by (bucket(4, id), v)")
    for name in ("v=a", "v=b"):
        (folder / name).mkdir()
    pq.write_table(pa.table({"id": [7, 7]}), folder / "v=a" / "one.parquet")
    shutil.copy(folder / "v=a" / "one.parquet", folder / "v=b" / "one.parquet")
    add(session, str(folder))
    values = [(r["partition_key_index"], r["partition_value"]) for r in rows(session, t.file_partition_value)]
    bucket = values[0][1]
    assert values == [(0, bucket), (1, "a"), (0, bucket), (1, "b")]
    pq.write_table(pa.table({"id": [7, 8], "v": ["a", "b"]}), folder / "mixed.parquet")
    with pytest.raises(LakeError, match="the table is partitioned by bucket, and the file has rows of several"):
        add(session, str(folder / "mixed.parquet"))
