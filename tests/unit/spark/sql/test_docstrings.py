"""The examples in docstrings of the SQL modules."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import dbt.adapters.ducklake.spark.sql as package

MODULES = [module.name for module in pkgutil.iter_modules(package.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    module = importlib.import_module(f"{package.__name__}.{name}")
    assert doctest.testmod(module).failed == 0
