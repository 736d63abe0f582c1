"""A catalog database that is a local file."""

from __future__ import annotations

import os
from typing import Any

from sqlalchemy.pool import NullPool

from .base import Database


class FileDatabase(Database):
    is_server = False

    def _engine_options(self) -> dict[str, Any]:
        # A pooled connection would keep the file open: locked for other processes, or alive after its deletion.
        return {"poolclass": NullPool}

    def exists(self) -> bool:
        return os.path.exists(self.url.database or "")

    def create_folder(self) -> None:
        os.makedirs(os.path.dirname(os.path.abspath(self.url.database or "")), exist_ok=True)

    def is_own_file(self, path: str) -> bool:
        own, path = os.path.realpath(self.url.database or ""), os.path.realpath(path)
        return path in {own + suffix for suffix in _SUFFIXES} or path.startswith(own + ".tmp/")


_SUFFIXES = ("", "-wal", "-shm", "-journal", ".wal", ".tmp")
"""The ends of the names of files that SQLite and DuckDB keep beside a database."""
