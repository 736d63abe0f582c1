"""Versions of the DuckLake format: what the catalogs of each version have.

Nothing else asks for a version. A catalog has the `FormatVersion` of its lake, which keeps it until it is migrated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import sqlalchemy as sa

from . import tables as t
from .partitions import EPOCH_TRANSFORMS, Transform

NEW_LAKES = "1.0"
"""The version of a new lake, unless another one is asked for. Every DuckDB since April 2026 reads it."""


class FormatVersion:
    """DuckLake 1.0, and the interface of later versions."""

    name: ClassVar[str] = "1.0"
    is_read_only: ClassVar[bool] = False
    data_file: ClassVar[sa.Table] = t.data_file
    """The table to insert data files into. Queries use that of version 1.0, whose columns every version has."""
    delete_file: ClassVar[sa.Table] = t.delete_file
    view_column_tag: ClassVar[sa.Table | None] = None
    """The table of comments on columns of views, if there is one."""
    inlined_system_columns: ClassVar[tuple[str, str, str]] = ("row_id", "begin_snapshot", "end_snapshot")
    """The first columns of a table of inlined rows. A column of such a name keeps a table's rows from being inlined."""
    transforms_of_later_versions: ClassVar[tuple[type[Transform], ...]] = EPOCH_TRANSFORMS
    vectors_name_snapshots: ClassVar[bool] = False
    """Whether a file of deletion vectors may have one for each of several snapshots."""

    @property
    def tables(self) -> Mapping[str, sa.Table]:
        """The tables of the catalog, by name."""
        return t.metadata.tables


class V1_0(FormatVersion):
    pass


class V1_1(FormatVersion):
    """DuckLake 1.1: row group counts, comments on columns of views, transforms that count since 1970, and more."""

    name = "1.1"
    data_file = t.data_file_1_1
    delete_file = t.delete_file_1_1
    view_column_tag = t.view_column_tag
    inlined_system_columns = ("_ducklake_row_id", "_ducklake_begin_snapshot", "_ducklake_end_snapshot")
    transforms_of_later_versions = ()
    vectors_name_snapshots = True

    @property
    def tables(self) -> Mapping[str, sa.Table]:
        return {**t.metadata.tables, **t.metadata_1_1.tables}


class V1_1Development(V1_1):
    """What the reference's development branch wrote before the release of 1.1."""

    name = "1.1-dev1"
    is_read_only = True


FORMAT_VERSIONS: Mapping[str, FormatVersion] = {
    version.name: version for version in (V1_0(), V1_1(), V1_1Development())
}
WRITABLE_VERSIONS = tuple(name for name, version in FORMAT_VERSIONS.items() if not version.is_read_only)
