"""Where the data files of a table are written, and with which options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow.fs as pafs

from ...lake.file_store import FileStore
from ...lake.options import Options
from ...lake.snapshot import Macro, Table


@dataclass(frozen=True)
class WriteTarget:
    """The folder, the options and the file store for the files of a table."""

    table: Table
    folder: str
    options: Options
    store: FileStore
    find_macro: Callable[[Sequence[str]], Macro | None]
    """Finds the macros that the table's sort keys may call."""

    @property
    def filesystem(self) -> pafs.FileSystem:
        return self.store.filesystem

    def native_path(self, path: str) -> str:
        """Turns a path of the lake into one of the file system."""
        return self.store.native_path(path)

    def option(self, name: str) -> str | None:
        return self.options.get(name, self.table.schema_id, self.table.id)

    @property
    def names_folders_by_values(self) -> bool:
        """Whether partitions have Hive folders. In an encrypted lake only if the option says so: they show values."""
        name = "hive_file_pattern"
        is_set = self.options.explicit_value(name, self.table.schema_id, self.table.id) is not None
        return self.flag(name) and (is_set or not self.store.encrypts)

    def flag(self, name: str) -> bool:
        return self.options.flag(name, self.table.schema_id, self.table.id)
