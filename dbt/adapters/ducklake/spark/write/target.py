"""Where the data files of a table are written, and with which options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow.fs as pafs

from ...lake.options import Options
from ...lake.snapshot import Macro, Table


@dataclass(frozen=True)
class WriteTarget:
    """The folder, the options and the file system for the files of a table."""

    table: Table
    folder: str
    options: Options
    filesystem: pafs.FileSystem
    native_path: Callable[[str], str]
    """Turns a path of the lake into one of the file system."""
    spark_write_path: Callable[[str], str]
    find_macro: Callable[[Sequence[str]], Macro | None]
    """Finds the macros that the table's sort keys may call."""

    def option(self, name: str) -> str | None:
        return self.options.get(name, self.table.schema_id, self.table.id)

    def flag(self, name: str) -> bool:
        return self.options.flag(name, self.table.schema_id, self.table.id)
