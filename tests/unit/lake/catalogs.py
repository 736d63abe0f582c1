"""The catalog databases that tests of the format run on, and odd names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ...lakes import LakeAddress

NewLake = Callable[[str], LakeAddress]

every_catalog = pytest.mark.parametrize("kind", ["sqlite", "postgres", "duckdb", "mysql"])

# The reference does not support MySQL.
every_reference_catalog = pytest.mark.parametrize("kind", ["sqlite", "postgres", "duckdb"])

ODD_NAMES = ["plain", 'q"uote', "do.t", "com,ma", 'a","b', '".,"', "sp ace", "ünï\U0001f986", "x" * 200, "colon:1"]
