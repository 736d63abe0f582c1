"""Deletion vectors: the deleted positions of one data file as a Roaring bitmap, in the bytes of a Puffin file.

A vector is a blob of Iceberg's type `deletion-vector-v1`. A file of one vector is the bare blob. A container holds a
vector for each of several snapshots, and each is cumulative: all positions that are deleted as of its snapshot.

Nothing here touches a file. What is read is checked before it is decoded: lengths against the bytes that there are,
and every vector against its checksum.
"""

from __future__ import annotations

import json
import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

CONTAINER_MAGIC = b"PFA1"
VECTOR_MAGIC = b"\xd1\xd3\x39\x64"
BLOB_TYPE = "deletion-vector-v1"
SNAPSHOT_PROPERTY = "ducklake-snapshot-id"

_BLOB_OVERHEAD = 4 + len(VECTOR_MAGIC) + 4  # the length, the magic and the checksum
_FOOTER_TAIL = 4 + 4 + len(CONTAINER_MAGIC)  # the payload's size, the flags and the magic
FOOTER_OVERHEAD = len(CONTAINER_MAGIC) + _FOOTER_TAIL
_COMPRESSED_FOOTER = 1
_MAX_POSITION = 2**63 - 1


class CorruptVectorError(ValueError):
    """The bytes are no deletion vector. The text says what is wrong with them."""


@dataclass(frozen=True)
class DeletionVector:
    """The positions of a data file that are deleted as of a snapshot."""

    bitmap: BitMap64
    snapshot: int | None = None
    """None in a file without snapshots: then the catalog has the snapshot."""


@dataclass(frozen=True)
class VectorFile:
    """The vectors of a Puffin file, in the order of their snapshots."""

    vectors: tuple[DeletionVector, ...]
    data_file: str | None = None
    """The data file that a container refers to. A bare vector names none."""

    def deletes(self) -> Iterator[tuple[int | None, pa.Array]]:
        """The snapshots with the positions that each of them deleted, sorted."""
        before = BitMap64()
        for vector in self.vectors:
            yield vector.snapshot, _positions(vector.bitmap - before)
            before |= vector.bitmap


# -- one vector


def encode(positions: pa.Array) -> bytes:
    """The blob for these positions."""
    longs = array("Q")
    longs.frombytes(_values(positions.cast(pa.uint64())))
    return _encode(BitMap64(longs))


def _encode(bitmap: BitMap64) -> bytes:
    bitmap.run_optimize()
    body = VECTOR_MAGIC + bitmap.serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def decode(blob: bytes | memoryview) -> pa.Array:
    """The sorted positions in a blob."""
    return _positions(_decode(memoryview(blob)))


def _decode(blob: memoryview) -> BitMap64:
    if len(blob) < _BLOB_OVERHEAD:
        raise CorruptVectorError(f"it has {len(blob)} bytes, and a vector has more")
    length, *_ = struct.unpack_from(">I", blob)
    if length != len(blob) - 8:
        raise CorruptVectorError(f"its length is given as {length} bytes, and {len(blob) - 8} are there")
    body = blob[4:-4]
    if body[:4] != VECTOR_MAGIC:
        raise CorruptVectorError(f"it begins with {bytes(body[:4]).hex()} instead of {VECTOR_MAGIC.hex()}")
    checksum, *_ = struct.unpack_from(">I", blob, len(blob) - 4)
    if zlib.crc32(body) != checksum:
        raise CorruptVectorError(f"its checksum is {zlib.crc32(body):08x} instead of {checksum:08x}")
    try:
        bitmap = BitMap64.deserialize(bytes(body[4:]))
    except (ValueError, IndexError):
        raise CorruptVectorError("it holds no Roaring bitmap of 64 bits") from None
    if bitmap and bitmap.max() > _MAX_POSITION:
        raise CorruptVectorError(f"it holds the position {bitmap.max()}")
    return bitmap


def _positions(bitmap: BitMap64) -> pa.Array:
    longs = bitmap.to_array()
    return pa.Array.from_buffers(pa.int64(), len(longs), [None, pa.py_buffer(longs)])


def _values(positions: pa.Array) -> memoryview:
    """The bytes of an array of 64-bit integers without NULLs."""
    if not len(positions):
        return memoryview(b"")
    buffer = memoryview(positions.buffers()[1])
    return buffer[8 * positions.offset : 8 * (positions.offset + len(positions))]


# -- files


@dataclass(frozen=True)
class EncodedContainer:
    content: bytes
    footer_size: int


def encode_container(deletes: Sequence[tuple[int, pa.Array]], data_file: str) -> EncodedContainer:
    """A container with a vector for each snapshot, from the positions that each of these snapshots deleted."""
    content, blobs, bitmap = bytearray(CONTAINER_MAGIC), [], BitMap64()
    for snapshot, positions in sorted(deletes, key=lambda delete: delete[0]):
        bitmap |= BitMap64(array("Q", bytes(_values(positions.cast(pa.uint64())))))
        blob = _encode(bitmap)
        properties = {
            "referenced-data-file": data_file,
            "cardinality": str(len(bitmap)),
            SNAPSHOT_PROPERTY: str(snapshot),
        }
        blobs.append(
            {
                "type": BLOB_TYPE,
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(content),
                "length": len(blob),
                "properties": properties,
            }
        )
        content += blob
    payload = json.dumps({"blobs": blobs, "properties": {"created-by": "dbt-ducklake"}}).encode()
    content += CONTAINER_MAGIC + payload + struct.pack("<II", len(payload), 0) + CONTAINER_MAGIC
    return EncodedContainer(bytes(content), len(payload) + FOOTER_OVERHEAD)


def decode_file(content: bytes) -> VectorFile:
    """The vectors of a file, which is a container or a bare vector."""
    view = memoryview(content)
    if view[:4] != CONTAINER_MAGIC:
        return VectorFile((DeletionVector(_decode(view)),))
    blobs_end, payload = _footer(view)
    found = [blob for blob in _blobs(payload) if blob.get("type") == BLOB_TYPE]
    if not found:
        raise CorruptVectorError("it is a container without a deletion vector")
    vectors = [_vector(view[:blobs_end], blob) for blob in found]
    snapshots = [vector.snapshot for vector in vectors if vector.snapshot is not None]
    if snapshots and len(snapshots) < len(vectors):
        raise CorruptVectorError("some of its vectors name their snapshot, and others do not")
    vectors.sort(key=lambda vector: vector.snapshot or 0)
    return VectorFile(tuple(vectors), _property(found[0], "referenced-data-file"))


def _footer(view: memoryview) -> tuple[int, bytes]:
    """Where the blobs of a container end, and the footer's payload."""
    if len(view) < len(CONTAINER_MAGIC) + FOOTER_OVERHEAD or view[-4:] != CONTAINER_MAGIC:
        raise CorruptVectorError("it is a container without its end")
    size, flags = struct.unpack_from("<II", view, len(view) - _FOOTER_TAIL)
    if flags & _COMPRESSED_FOOTER:
        raise CorruptVectorError("its footer is compressed, which DuckLake does not allow")
    start = len(view) - _FOOTER_TAIL - size
    if start < 2 * len(CONTAINER_MAGIC) or view[start - 4 : start] != CONTAINER_MAGIC:
        raise CorruptVectorError(f"its footer is not where its size of {size} bytes puts it")
    return start - 4, bytes(view[start : start + size])


def _blobs(payload: bytes) -> list[dict[str, Any]]:
    try:
        blobs = json.loads(payload)["blobs"]
    except (ValueError, KeyError, TypeError):
        blobs = None
    if not isinstance(blobs, list) or not all(isinstance(blob, dict) for blob in blobs):
        raise CorruptVectorError("its footer has no list of blobs")
    return blobs


def _vector(blobs: memoryview, blob: dict[str, Any]) -> DeletionVector:
    offset, length = blob.get("offset"), blob.get("length")
    if not isinstance(offset, int) or not isinstance(length, int) or not 4 <= offset <= offset + length <= len(blobs):
        raise CorruptVectorError(f"its footer puts a vector of {length} bytes at {offset}")
    snapshot = _property(blob, SNAPSHOT_PROPERTY)
    if snapshot is not None and not (snapshot.isascii() and snapshot.isdigit()):
        raise CorruptVectorError(f"a vector names the snapshot {snapshot!r}")
    bitmap = _decode(blobs[offset : offset + length])
    return DeletionVector(bitmap, None if snapshot is None else int(snapshot))


def _property(blob: dict[str, Any], name: str) -> str | None:
    properties = blob.get("properties")
    value = properties.get(name) if isinstance(properties, dict) else None
    return value if isinstance(value, str) else None
