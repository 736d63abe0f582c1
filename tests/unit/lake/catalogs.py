"""Catalog databases and odd names for tests of the format."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ...conftest import LakeAddress

NewLake = Callable[[str], LakeAddress]
CATALOGS = ["sqlite", "postgres", "duckdb", "mysql"]
every_catalog = pytest.mark.parametrize("kind", CATALOGS)
every_reference_catalog = pytest.mark.parametrize("kind", ["sqlite", "postgres", "duckdb"])
ODD_NAMES = ["plain", 'q"uote', "do.t", "com,ma", 'a","b', '".,"', "sp ace", "ünï\U0001f986", "x" * 200, "colon:1"]
