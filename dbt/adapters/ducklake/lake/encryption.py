"""Encrypted Parquet files: their keys, and how the driver reads and writes them.

Each file has a key, which the catalog holds. With it the footer, and the header and the data of each page are
encrypted: these are its modules, as Parquet's specification calls them. DuckDB leaves out the additional authenticated
data (AAD) that the specification demands. So no other Parquet library reads its files, and its own reading of files
with AAD fails for nested columns, filters and longer columns. Hence files are written here as DuckDB writes them, from
the plain files that Arrow makes, and become plain again for Arrow.

`spark/engine/parquet_encryption` does the same for Spark.
"""

from __future__ import annotations

import base64
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from .errors import LakeError
from .thrift import Struct, read_struct, write_struct

_KEY_BYTES = 16
"""The length of a key, as DuckDB makes them."""
_LENGTH_BYTES, _NONCE_BYTES, _TAG_BYTES = 4, 12, 16

_MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"
_TAIL_BYTES = 8
"""The length of the footer, and the magic bytes."""

_MOST_FOOTERS = 64 * 1024
"""The bytes at the end of a file in which most footers are."""

_ALGORITHM = bytes([0x1C, 0x1C, 0, 0, 0])
"""AES_GCM_V1 without AAD, as Thrift's compact protocol has Parquet's FileCryptoMetaData."""

# Ids of fields in Parquet's metadata.
_ENCRYPTION_ALGORITHM = 8
_ROW_GROUPS, _COLUMNS, _GROUP_FILE_OFFSET, _GROUP_COMPRESSED_SIZE = 4, 1, 5, 6
_CHUNK_FILE_OFFSET, _CHUNK_METADATA, _CHUNK_INDEXES = 2, 3, (4, 5, 6, 7)
_COMPRESSED_SIZE, _DATA_PAGE, _DICTIONARY_PAGE, _BLOOM_FILTER = 7, 9, 11, (14, 15)
_PAGE_COMPRESSED_SIZE = 3


@dataclass(frozen=True, repr=False)
class FileKey:
    """The key of an encrypted file, which no text of the object shows."""

    value: bytes

    @classmethod
    def new(cls) -> FileKey:
        return cls(os.urandom(_KEY_BYTES))

    @classmethod
    def from_catalog(cls, text: str | None) -> FileKey | None:
        """The key in a catalog's `encryption_key`; None for a file that is not encrypted."""
        return cls(base64.b64decode(text)) if text else None

    def catalog_text(self) -> str:
        return base64.b64encode(self.value).decode()

    def __repr__(self) -> str:
        return "FileKey(...)"


@dataclass(frozen=True)
class Footer:
    """The footer of a Parquet file, its length in the file, and that of the file."""

    metadata: pq.FileMetaData
    size: int
    file_size: int


def read_plain_footer(source: pa.NativeFile, path: str) -> Footer:
    """The footer of a plain file, with one read of the file's end. `path` names the file in errors.

    A plain footer may describe encrypted columns. Arrow ends the process when it is asked for those.
    """
    length = source.size()
    end = source.read_at(min(length, _MOST_FOOTERS), max(0, length - _MOST_FOOTERS))
    size = int.from_bytes(end[-_TAIL_BYTES:-4], "little")
    if len(end) < min(size + _TAIL_BYTES, length):
        end = source.read_at(size + _TAIL_BYTES, length - size - _TAIL_BYTES)
    metadata = pq.read_metadata(pa.BufferReader(end))
    if size != metadata.serialized_size:  # it is signed, or a writer left room
        footer, _ = read_struct(end, len(end) - _TAIL_BYTES - size)
        if footer.get(_ENCRYPTION_ALGORITHM) is not None:
            raise LakeError(f"{path} has encrypted columns, which only their writer can read")
    return Footer(metadata, size, length)


def read_encrypted_footer(source: pa.NativeFile, key: FileKey, path: str) -> Footer:
    """The footer of an encrypted file. `path` names the file in errors."""
    length = source.size()
    size = _footer_size(source.read_at(_TAIL_BYTES, max(0, length - _TAIL_BYTES)), path)
    footer = _decrypt_footer(source.read_at(size, max(0, length - _TAIL_BYTES - size)), _Modules(key, path))
    return Footer(_arrow_metadata(footer), size, length)


def decrypted_file(content: bytes, key: FileKey, path: str) -> bytes:
    """The plain Parquet file for an encrypted one. `path` names the file in errors."""
    modules = _Modules(key, path)
    end = len(content) - _TAIL_BYTES - _footer_size(content[-_TAIL_BYTES:], path)
    footer, _ = read_struct(_decrypt_footer(content[max(0, end) : -_TAIL_BYTES], modules))

    def decrypt_page(at: int) -> tuple[bytes, int]:
        header, data_start = modules.decrypt(content, at)
        data, page_end = modules.decrypt(content, data_start)
        return header + data, page_end

    plain = _with_converted_pages(footer, decrypt_page)
    return _MAGIC + plain + _with_tail(write_struct(footer), _MAGIC)


def encrypted_file(content: bytes, key: FileKey) -> bytes:
    """The encrypted file for a plain Parquet file."""
    modules = _Modules(key, "")
    size = int.from_bytes(content[-_TAIL_BYTES:-4], "little")
    footer, _ = read_struct(content, len(content) - _TAIL_BYTES - size)

    def encrypt_page(at: int) -> tuple[bytes, int]:
        header, data_start = read_struct(content, at)
        page_end = data_start + header.get(_PAGE_COMPRESSED_SIZE)
        return modules.encrypt(content[at:data_start]) + modules.encrypt(content[data_start:page_end]), page_end

    encrypted = _with_converted_pages(footer, encrypt_page)
    end = _ALGORITHM + modules.encrypt(write_struct(footer))
    return _ENCRYPTED_MAGIC + encrypted + _with_tail(end, _ENCRYPTED_MAGIC)


def _with_converted_pages(footer: Struct, convert: Callable[[int], tuple[bytes, int]]) -> bytes:
    """The converted pages of all column chunks, with the footer changed to say where they stand.

    `convert` returns the converted page for the one at a position, and where that one ends.
    """
    result = bytearray()
    for group in footer.get(_ROW_GROUPS).values:
        group_start = len(_MAGIC) + len(result)
        for column in group.get(_COLUMNS).values:
            chunk = column.get(_CHUNK_METADATA)
            data_page, dictionary_page = chunk.get(_DATA_PAGE), chunk.get(_DICTIONARY_PAGE)
            at = min(data_page, dictionary_page) if dictionary_page else data_page
            end = at + chunk.get(_COMPRESSED_SIZE)
            start = len(_MAGIC) + len(result)
            while at < end:
                for field_id, position in ((_DATA_PAGE, data_page), (_DICTIONARY_PAGE, dictionary_page)):
                    if position == at:
                        chunk.set(field_id, len(_MAGIC) + len(result))
                page, at = convert(at)
                result += page
            chunk.set(_COMPRESSED_SIZE, len(_MAGIC) + len(result) - start)
            column.set(_CHUNK_FILE_OFFSET, start)
            column.remove(*_CHUNK_INDEXES)
            chunk.remove(*_BLOOM_FILTER)
        group.set(_GROUP_FILE_OFFSET, group_start)
        group.set(_GROUP_COMPRESSED_SIZE, len(_MAGIC) + len(result) - group_start)
    return bytes(result)


@dataclass(frozen=True)
class _Modules:
    """Encrypts and decrypts the modules of a file. A module is its length, a nonce, encrypted bytes and a tag."""

    key: FileKey
    path: str

    def encrypt(self, plain: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE_BYTES)
        content = nonce + AESGCM(self.key.value).encrypt(nonce, plain, None)
        return struct.pack("<I", len(content)) + content

    def decrypt(self, content: bytes, at: int) -> tuple[bytes, int]:
        """The plain bytes of the module at a position, and where the module ends."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        start = at + _LENGTH_BYTES
        nonce_end, end = start + _NONCE_BYTES, start + int.from_bytes(content[at:start], "little")
        if nonce_end + _TAG_BYTES <= end <= len(content):
            try:
                return AESGCM(self.key.value).decrypt(content[start:nonce_end], content[nonce_end:end], None), end
            except InvalidTag:
                pass  # the error below says what that means
        raise LakeError(
            f"the encrypted file {self.path} can not be decrypted with its key in the catalog: the file is damaged, or"
            " another one stands in its place"
        )


def _footer_size(tail: bytes, path: str) -> int:
    if len(tail) < _TAIL_BYTES or tail[-4:] != _ENCRYPTED_MAGIC:
        raise LakeError(f"the file {path} has a key in the catalog, but is no encrypted Parquet file")
    return int.from_bytes(tail[:4], "little")


def _decrypt_footer(content: bytes, modules: _Modules) -> bytes:
    """The footer in Thrift, from the bytes between the pages and the tail."""
    if not content.startswith(_ALGORITHM):
        raise LakeError(
            f"the encrypted file {modules.path} has additional authenticated data, which files of a lake do not have,"
            " or another algorithm than AES_GCM_V1; write it again with DuckDB or Spark"
        )
    footer, _ = modules.decrypt(content, len(_ALGORITHM))
    return footer


def _arrow_metadata(footer: bytes) -> pq.FileMetaData:
    return pq.read_metadata(pa.BufferReader(_MAGIC + _with_tail(footer, _MAGIC)))


def _with_tail(footer: bytes, magic: bytes) -> bytes:
    return footer + struct.pack("<I", len(footer)) + magic
