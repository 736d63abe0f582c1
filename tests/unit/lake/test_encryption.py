"""Encrypted Parquet files: what the driver writes and reads, with DuckDB as the judge."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as arrow_encryption
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.ducklake.lake.encryption import FileKey, decrypted_file, encrypted_file, read_encrypted_footer
from dbt.adapters.ducklake.lake.errors import LakeError
from dbt.adapters.ducklake.lake.file_store import FileStore
from dbt.adapters.ducklake.lake.thrift import Field, Struct, ThriftList, read_struct, write_struct

ROWS = pa.table(
    {
        "id": list(range(70_000)),
        "s": [None if i % 7 == 0 else str(i % 100) for i in range(70_000)],
        "l": [[i, None] if i % 2 else [] for i in range(70_000)],
        "st": [{"a": i, "b": {"c": i / 2}} for i in range(70_000)],
        "none": pa.nulls(70_000, pa.string()),
    }
)
WRITERS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "no dictionaries": {"use_dictionary": False, "compression": "zstd"},
    "many row groups": {"row_group_size": 9_999, "compression": "none"},
    "many pages": {"data_page_size": 1_000, "write_page_index": True},
}
READ = "read_parquet(?, encryption_config = {footer_key_value: ?::blob})"


def plain_file(rows: pa.Table, **options: Any) -> bytes:
    target = io.BytesIO()
    pq.write_table(rows, target, **options)
    return target.getvalue()


def connection() -> duckdb.DuckDBPyConnection:
    result = duckdb.connect()
    result.execute("set force_mbedtls_unsafe = true")
    return result


@pytest.fixture
def duckdbs_file(tmp_path: Path) -> tuple[Path, FileKey]:
    key = FileKey.new()
    text = "".join(f"\\x{byte:02x}" for byte in key.value)
    path = tmp_path / "theirs.parquet"
    connection().execute(
        "copy (select i as id, 'n' || i as name, [i] as list from range(5000) t(i))"
        f" to '{path}' (row_group_size 2048, encryption_config {{footer_key_value: '{text}'::blob}})"
    )
    return path, key


@pytest.mark.parametrize("options", WRITERS.values(), ids=WRITERS)
def test_duckdb_reads_an_encrypted_file(options: dict[str, Any], tmp_path: Path) -> None:
    key, path = FileKey.new(), tmp_path / "ours.parquet"
    path.write_bytes(encrypted_file(plain_file(ROWS, **options), key))
    query = "select count(*), sum(id), count(s), sum(len(l)), sum(st.b.c), count(none) from {} where id % 3 <> 1"
    (tmp_path / "plain.parquet").write_bytes(plain_file(ROWS))
    expected = connection().execute(query.format(f"'{tmp_path}/plain.parquet'")).fetchall()
    assert connection().execute(query.format(READ), [str(path), key.value]).fetchall() == expected
    assert connection().execute(f"select id from {READ} where s = '5' limit 1", [str(path), key.value]).fetchall()


@pytest.mark.parametrize("options", WRITERS.values(), ids=WRITERS)
def test_an_encrypted_file_becomes_the_plain_one_again(options: dict[str, Any]) -> None:
    key = FileKey.new()
    encrypted = encrypted_file(plain_file(ROWS, **options), key)
    assert b"PAR1" not in encrypted
    plain = decrypted_file(encrypted, key, "f")
    assert pq.read_table(pa.BufferReader(plain)).equals(ROWS)


def test_a_file_of_duckdb_is_read(duckdbs_file: tuple[Path, FileKey]) -> None:
    path, key = duckdbs_file
    rows = pq.read_table(pa.BufferReader(decrypted_file(path.read_bytes(), key, "f")))
    assert rows.num_rows == 5000
    assert rows.slice(4321, 1).to_pylist() == [{"id": 4321, "name": "n4321", "list": [4321]}]
    with pa.OSFile(str(path)) as source:
        footer = read_encrypted_footer(source, key, "f")
    assert (footer.metadata.num_rows, footer.metadata.num_row_groups) == (5000, 3)
    assert footer.metadata.row_group(0).column(0).statistics.max == 2047


def test_the_footer_size_is_what_the_file_says(duckdbs_file: tuple[Path, FileKey]) -> None:
    path, key = duckdbs_file
    with pa.OSFile(str(path)) as source:
        footer = read_encrypted_footer(source, key, "f")
    assert path.read_bytes()[-8:-4] == footer.size.to_bytes(4, "little")


def test_a_damaged_file_or_another_key_is_an_error_that_names_the_file() -> None:
    key = FileKey.new()
    content = encrypted_file(plain_file(ROWS.slice(0, 100)), key)
    wrong: list[tuple[bytes, FileKey]] = [
        (content, FileKey.new()),
        (content[:200] + bytes([content[200] ^ 1]) + content[201:], key),
        (content[:4] + content[40:], key),
    ]
    for damaged, given_key in wrong:
        with pytest.raises(LakeError, match=r"the encrypted file a/b\.parquet can not be decrypted with its key"):
            decrypted_file(damaged, given_key, "a/b.parquet")
    for no_file in (b"", b"PARE", plain_file(ROWS.slice(0, 1))):
        with pytest.raises(LakeError, match=r"a/b\.parquet has a key in the catalog, but is no encrypted Parquet file"):
            decrypted_file(no_file, key, "a/b.parquet")


def test_a_file_with_additional_authenticated_data_is_refused() -> None:
    if not hasattr(arrow_encryption, "create_encryption_properties"):
        pytest.skip("pyarrow before 25 encrypts with keys of its own only")
    key = FileKey.new()
    properties = arrow_encryption.create_encryption_properties(footer_key=key.value)
    content = plain_file(ROWS.slice(0, 10), encryption_properties=properties)
    with pytest.raises(LakeError, match=r"f has additional authenticated data, .* write it again with DuckDB or Spark"):
        decrypted_file(content, key, "f")


def test_a_key_shows_itself_in_no_text() -> None:
    key = FileKey.new()
    for text in (repr(key), str(key), f"{key}", repr({"key": [key]})):
        assert text.count("FileKey(...)") == 1
        assert key.catalog_text() not in text
    assert FileKey.from_catalog(key.catalog_text()) == key
    assert FileKey.from_catalog(None) is None
    assert len({key, FileKey(key.value), FileKey.new()}) == 2


def test_a_store_encrypts_new_files_only_in_an_encrypted_lake(tmp_path: Path) -> None:
    for encrypts in (False, True):
        store = FileStore(pafs.LocalFileSystem(), str, encrypts)
        path, key = f"{tmp_path}/new folder/{encrypts}.parquet", store.new_key()
        store.write_table(ROWS, path, key, compression="zstd")
        assert Path(path).read_bytes().startswith(b"PARE" if encrypts else b"PAR1")
        assert store.read_table(path, key).equals(ROWS)
        assert store.read_footer(path, key).metadata.num_rows == ROWS.num_rows


integers = st.integers(-(2**63), 2**63 - 1)
leaves = st.one_of(
    st.tuples(st.just(6), integers),
    st.tuples(st.just(8), st.binary(max_size=200)),
    st.tuples(st.just(1), st.booleans()),
)


def _structs(values: st.SearchStrategy[tuple[int, Any]]) -> st.SearchStrategy[Struct]:
    fields = st.dictionaries(st.integers(1, 400), values, max_size=6)
    return fields.map(lambda found: Struct([Field(i, *found[i]) for i in sorted(found)]))


structs = st.recursive(
    _structs(leaves),
    lambda inner: _structs(
        st.one_of(
            leaves,
            st.tuples(st.just(12), inner),
            st.tuples(st.just(9), st.lists(inner, max_size=20).map(lambda values: ThriftList(12, values))),
            st.tuples(st.just(9), st.lists(integers, max_size=20).map(lambda values: ThriftList(6, values))),
        )
    ),
    max_leaves=20,
)


def _as_read(struct: Struct) -> Struct:
    """Booleans have their value in their type."""

    def value(found: Any) -> Any:
        if isinstance(found, Struct):
            return _as_read(found)
        return (
            ThriftList(found.element_type, list(map(value, found.values))) if isinstance(found, ThriftList) else found
        )

    return Struct(
        [Field(f.id, (1 if f.value else 2) if f.type == 1 else f.type, value(f.value)) for f in struct.fields]
    )


@given(structs)
def test_any_struct_of_thrift_is_read_as_it_was_written(struct: Struct) -> None:
    content = write_struct(struct)
    assert read_struct(b"before" + content + b"after", 6) == (_as_read(struct), 6 + len(content))
