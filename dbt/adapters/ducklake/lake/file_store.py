"""The files of a lake: the driver's access to them, plain or encrypted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from .encryption import FileKey, Footer, decrypted_file, encrypted_file, read_encrypted_footer, read_plain_footer


@dataclass(frozen=True)
class FileStore:
    """Access to the files of a lake."""

    filesystem: pafs.FileSystem
    native_path: Callable[[str], str]
    """Converts a path of the lake to a path of the file system."""
    encrypts: bool = False
    """Whether new files are encrypted."""

    def new_key(self) -> FileKey | None:
        """The key for a new file; None if it is not to be encrypted."""
        return FileKey.new() if self.encrypts else None

    def read_footer(self, path: str, key: FileKey | None) -> Footer:
        """The footer of a Parquet file."""
        with self.filesystem.open_input_file(self.native_path(path)) as source:
            return self._footer_in(source, path, key)

    def _footer_in(self, source: pa.NativeFile, path: str, key: FileKey | None) -> Footer:
        return read_plain_footer(source, path) if key is None else read_encrypted_footer(source, key, path)

    def read_table(self, path: str, key: FileKey | None) -> pa.Table:
        """All rows of a Parquet file, which is read as a whole: in an object store each read is a request."""
        with self.filesystem.open_input_file(self.native_path(path)) as source:
            content = source.read_buffer()
        if key is not None:
            content = pa.py_buffer(decrypted_file(content.to_pybytes(), key, path))
        return pq.read_table(pa.BufferReader(content), partitioning=None)

    def write_table(self, rows: pa.Table, path: str, key: FileKey | None, **options: Any) -> Footer:
        """Writes rows as a new Parquet file. Returns its footer, which then need not be read."""
        plain = pa.BufferOutputStream()
        pq.write_table(rows, plain, **options)
        content = plain.getvalue()
        if key is not None:
            content = pa.py_buffer(encrypted_file(content.to_pybytes(), key))
        with self.open_output_stream(path) as sink:
            sink.write(content)
        return self._footer_in(pa.BufferReader(content), path, key)

    def open_output_stream(self, path: str) -> pa.NativeFile:
        """Opens a new file of the lake. Creates its folder if there is none: a table of added files may have none."""
        native_path = self.native_path(path)
        try:
            return self.filesystem.open_output_stream(native_path)
        except FileNotFoundError:  # object stores have no folders, so none is missing there
            self.filesystem.create_dir(native_path.rsplit("/", 1)[0], recursive=True)
            return self.filesystem.open_output_stream(native_path)
