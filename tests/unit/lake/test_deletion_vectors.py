"""Deletion vectors: the bytes of Puffin files, and the delete files made of them."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from dbt.adapters.ducklake.lake.deletes import (
    PUFFIN,
    SNAPSHOT_COLUMN,
    delete_file_for_snapshot,
    read_delete_file,
    write_delete_file,
)
from dbt.adapters.ducklake.lake.deletion_vectors import (
    VECTOR_MAGIC,
    CorruptVectorError,
    decode,
    decode_file,
    encode,
    encode_container,
)
from dbt.adapters.ducklake.lake.errors import LakeError
from dbt.adapters.ducklake.lake.file_store import FileStore

STORE = FileStore(pafs.LocalFileSystem(), str)
DATA_FILE = "/lake/main/t/ducklake-1.parquet"
LAKE_1_1 = Path(__file__).parents[2] / "data" / "lakes_1_1" / "vectors"

runs = st.tuples(st.integers(0, 2**40), st.integers(1, 3000)).map(lambda run: set(range(run[0], run[0] + run[1])))
position_sets = st.one_of(
    st.sets(st.integers(0, 2**40), max_size=200),
    st.sets(st.integers(0, 200_000), max_size=300),
    st.lists(runs, max_size=4).map(lambda parts: set().union(*parts)),
)


def positions(numbers: Sequence[int] | set[int]) -> pa.Array:
    return pa.array(sorted(numbers), pa.int64())


def blob(bitmap: bytes) -> bytes:
    """A vector around these bytes, with a true length and checksum."""
    body = VECTOR_MAGIC + bitmap
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


# -- one vector


@given(position_sets)
def test_a_vector_keeps_its_positions(numbers: set[int]) -> None:
    assert decode(encode(positions(numbers))).to_pylist() == sorted(numbers)


@given(position_sets)
def test_a_vector_is_a_portable_bitmap_in_an_envelope(numbers: set[int]) -> None:
    content = encode(positions(numbers))
    assert content[4:8] == VECTOR_MAGIC
    assert BitMap64.deserialize(content[8:-4]) == BitMap64(numbers)
    assert decode(blob(BitMap64(numbers).serialize())).to_pylist() == sorted(numbers)  # without runs, as DuckDB writes


def test_a_vector_of_a_sliced_array_has_the_slice() -> None:
    assert decode(encode(positions(range(100))[10:13])).to_pylist() == [10, 11, 12]


def test_runs_make_a_vector_small() -> None:
    assert len(encode(positions(range(10**6)))) < 500


@given(position_sets, st.data())
def test_a_changed_byte_is_noticed(numbers: set[int], data: st.DataObject) -> None:
    content = bytearray(encode(positions(numbers)))
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptVectorError):
        decode(bytes(content))


@given(position_sets, st.data())
def test_a_cut_vector_is_noticed(numbers: set[int], data: st.DataObject) -> None:
    content = encode(positions(numbers))
    with pytest.raises(CorruptVectorError):
        decode_file(content[: data.draw(st.integers(0, len(content) - 1))])


@given(st.binary(max_size=80))
def test_bytes_with_a_true_checksum_are_still_not_trusted(noise: bytes) -> None:
    try:
        found = decode(blob(noise)).to_pylist()
    except CorruptVectorError:
        return
    assert found == sorted(set(found))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it has 0 bytes"),
        (struct.pack(">I", 99) + encode(positions([1]))[4:], "its length is given as 99 bytes"),
        (b"\0\0\0\4PAR1\0\0\0\0", "it begins with 50415231 instead of d1d33964"),
        (encode(positions([1]))[:-4] + b"\0\0\0\0", "its checksum is [0-9a-f]{8} instead of 00000000"),
        (blob(struct.pack("<Q", 2**60)), "it holds no Roaring bitmap of 64 bits"),
        (blob(BitMap64([2**63]).serialize()), "it holds the position 9223372036854775808"),
    ],
)
def test_an_error_says_what_is_wrong_with_a_vector(content: bytes, reason: str) -> None:
    with pytest.raises(CorruptVectorError, match=reason):
        decode_file(content)


# -- containers


@given(st.dictionaries(st.integers(1, 2**40), position_sets, min_size=1, max_size=5))
def test_a_container_keeps_what_each_snapshot_deleted_first(deletes: dict[int, set[int]]) -> None:
    container = encode_container([(at, positions(numbers)) for at, numbers in deletes.items()], DATA_FILE)
    file = decode_file(container.content)
    assert file.data_file == DATA_FILE
    expected, before = [], set[int]()
    for at in sorted(deletes):
        expected.append((at, sorted(deletes[at] - before)))
        before |= deletes[at]
    assert [(at, found.to_pylist()) for at, found in file.deletes()] == expected
    assert [len(vector.bitmap) for vector in file.vectors][-1] == len(before)


def footer(content: bytes) -> Any:
    size = struct.unpack_from("<I", content, len(content) - 12)[0]
    return json.loads(content[-12 - size : -12])


def with_footer(content: bytes, payload: object, flags: int = 0) -> bytes:
    size = struct.unpack_from("<I", content, len(content) - 12)[0]
    text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return content[: -12 - size] + text + struct.pack("<II", len(text), flags) + b"PFA1"


CONTAINER = encode_container([(3, positions([1, 5])), (7, positions([2]))], DATA_FILE)


def test_a_container_is_laid_out_as_the_format_says() -> None:
    content = CONTAINER.content
    assert content[:4] == content[-4:] == content[-CONTAINER.footer_size :][:4] == b"PFA1"
    first, second = footer(content)["blobs"]
    assert (first["type"], first["fields"], first["snapshot-id"], first["sequence-number"]) == (
        "deletion-vector-v1",
        [],
        -1,
        -1,
    )
    assert second["properties"] == {
        "referenced-data-file": DATA_FILE,
        "cardinality": "3",
        "ducklake-snapshot-id": "7",
    }
    assert decode(content[second["offset"] :][: second["length"]]).to_pylist() == [1, 2, 5]


def test_other_blobs_of_a_container_are_passed_over() -> None:
    payload = footer(CONTAINER.content)
    payload["blobs"].append({"type": "apache-datasketches-theta-v1", "offset": 4, "length": 1})
    assert len(decode_file(with_footer(CONTAINER.content, payload)).vectors) == 2


def test_vectors_without_snapshots_are_one_delete_of_the_catalogs_snapshot() -> None:
    payload = footer(CONTAINER.content)
    for vector in payload["blobs"]:
        del vector["properties"]["ducklake-snapshot-id"]
    found = [
        (at, deleted.to_pylist()) for at, deleted in decode_file(with_footer(CONTAINER.content, payload)).deletes()
    ]
    assert found == [(None, [1, 5]), (None, [2])]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"offset": -1}, r"its footer puts a vector of \d+ bytes at -1"),
        ({"offset": 2**60}, "its footer puts a vector"),
        ({"length": -5}, "its footer puts a vector of -5 bytes"),
        ({"length": 2**60}, "its footer puts a vector"),
        ({"length": "34"}, "its footer puts a vector"),
        ({"offset": 5}, "its length is given"),
        ({"properties": {"ducklake-snapshot-id": "x"}}, "names the snapshot 'x'"),
        ({"properties": None}, "some of its vectors name their snapshot, and others do not"),
        ({"type": "other"}, None),
    ],
)
def test_a_footer_is_not_trusted(change: dict[str, object], reason: str | None) -> None:
    payload = footer(CONTAINER.content)
    payload["blobs"][0] |= change
    content = with_footer(CONTAINER.content, payload)
    if reason is None:
        assert len(decode_file(content).vectors) == 1
        return
    with pytest.raises(CorruptVectorError, match=reason):
        decode_file(content)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (with_footer(CONTAINER.content, {"blobs": []}), "a container without a deletion vector"),
        (with_footer(CONTAINER.content, {"blobs": {}}), "has no list of blobs"),
        (with_footer(CONTAINER.content, []), "has no list of blobs"),
        (with_footer(CONTAINER.content, b"\xff{"), "has no list of blobs"),
        (with_footer(CONTAINER.content, footer(CONTAINER.content), flags=1), "its footer is compressed"),
        (CONTAINER.content[:-1], "a container without its end"),
        (b"PFA1PFA1", "a container without its end"),
        (CONTAINER.content[:-12] + struct.pack("<II", 2**31, 0) + b"PFA1", "its footer is not where"),
        (CONTAINER.content[:-12] + struct.pack("<II", 3, 0) + b"PFA1", "its footer is not where"),
    ],
)
def test_an_error_says_what_is_wrong_with_a_container(content: bytes, reason: str) -> None:
    with pytest.raises(CorruptVectorError, match=reason):
        decode_file(content)


@given(st.data())
def test_a_changed_container_is_refused_or_read(data: st.DataObject) -> None:
    content = bytearray(CONTAINER.content)
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        list(decode_file(bytes(content)).deletes())
    except CorruptVectorError:
        return


def test_the_containers_of_the_reference_are_read() -> None:
    found = [
        [(at, len(deleted)) for at, deleted in decode_file(path.read_bytes()).deletes()]
        for path in sorted(LAKE_1_1.glob("data/main/t/*.puffin"))
    ]
    assert found == [
        [(None, 100)],
        [(2, 100), (3, 100)],
        [(2, 100), (3, 100), (4, 1)],
        [(None, 1)],
        [(2, 100), (3, 100), (4, 1), (6, 1)],
        [(6, 1), (7, 9)],
    ]


# -- delete files


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return f"{tmp_path}/"


def test_a_vector_is_described_as_the_catalog_keeps_it(folder: str) -> None:
    file = write_delete_file(STORE, folder, DATA_FILE, positions([8, 2]), format=PUFFIN)
    assert file.path.startswith("ducklake-")
    assert file.path.endswith("-delete.puffin")
    size = (Path(folder) / file.path).stat().st_size
    assert (file.format, file.delete_count, file.file_size_bytes, file.footer_size) == ("puffin", 2, size, 0)
    assert (file.first_snapshot, file.last_snapshot) == (None, None)
    assert read_delete_file(STORE, folder + file.path, 5, PUFFIN).to_pylist() == [
        {"pos": 2, SNAPSHOT_COLUMN: 5},
        {"pos": 8, SNAPSHOT_COLUMN: 5},
    ]
    assert read_delete_file(STORE, folder + file.path, None, PUFFIN).to_pylist() == [{"pos": 2}, {"pos": 8}]


def test_a_container_is_written_again_for_another_snapshot(folder: str) -> None:
    first = write_delete_file(STORE, folder, DATA_FILE, positions([8]), format=PUFFIN)
    before = read_delete_file(STORE, folder + first.path, 3, PUFFIN)
    file = write_delete_file(STORE, folder, DATA_FILE, positions([4]), before, 6, PUFFIN)
    assert (file.delete_count, file.first_snapshot, file.last_snapshot) == (2, 3, 6)
    assert file.footer_size > 0
    moved = delete_file_for_snapshot(STORE, folder, file, 9)
    assert moved.format == "puffin"
    assert not (Path(folder) / file.path).exists()
    assert read_delete_file(STORE, folder + moved.path, 3, PUFFIN).to_pylist() == [
        {"pos": 4, SNAPSHOT_COLUMN: 9},
        {"pos": 8, SNAPSHOT_COLUMN: 3},
    ]


def test_an_error_names_a_damaged_file(folder: str) -> None:
    file = write_delete_file(STORE, folder, DATA_FILE, positions([8]), format=PUFFIN)
    path = Path(folder + file.path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(LakeError, match=f"the deletion vector {path} is damaged: .* restore the file"):
        read_delete_file(STORE, str(path), 5, PUFFIN)


def test_a_delete_file_of_an_unknown_format_is_refused(folder: str) -> None:
    with pytest.raises(LakeError, match="x.orc is of the format 'orc'; known are parquet and puffin"):
        read_delete_file(STORE, folder + "x.orc", 5, "orc")
