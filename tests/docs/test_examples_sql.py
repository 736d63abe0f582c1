"""Every SQL block runs: in Spark on a copy of the prepared lake, or in DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.spark.sql.tokens import split_statements

from .. import reference
from .blocks import ROOT, Block, run_blocks, variants
from .conftest import BUCKET

_CREATED = re.compile(r"\A\s*create\s+(table|view|schema|function)\s+(?!if\s)([\w.]+)", re.IGNORECASE)

SQL = [b for b in run_blocks("sql") if b.file is None]


def run_all(lake: LakeSession, statements: list[str]) -> None:
    for statement in statements:
        result = lake.execute(statement)
        if result.snapshot_id is None:
            result.arrow()


def make_room(lake: LakeSession, statements: list[str]) -> None:
    """Drops what the statements create."""
    for kind, name in (found for statement in statements for found in _CREATED.findall(statement)):
        lake.execute(f"drop {kind} if exists {name}")


def runs_in_spark(marks: set[str | None]) -> list[Block]:
    return [b for b in SQL if b.statements and not b.is_duckdb and b.mark in marks]


@pytest.mark.parametrize("block", runs_in_spark({None}), ids=lambda block: block.id)
def test_a_statement_runs_in_spark(
    block: Block, spark: SparkSession, lake_copy: Callable[[str], str], tmp_path: Path
) -> None:
    statements = split_statements(block.statements.replace(BUCKET, str(tmp_path)))
    with LakeSession(lake_copy("metadata.sqlite"), spark=spark) as lake:
        make_room(lake, statements)
        run_all(lake, statements)


@pytest.mark.parametrize("block", runs_in_spark({"syntax"}), ids=lambda block: block.id)
def test_every_variant_of_a_syntax_runs(block: Block, spark: SparkSession, lake_copy: Callable[[str], str]) -> None:
    with LakeSession(lake_copy("metadata.sqlite"), spark=spark) as lake:
        for syntax in split_statements(block.text):
            base, *others = variants(syntax)
            for statement in others:
                lake.execute("begin")
                make_room(lake, [statement])
                run_all(lake, [statement])
                lake.execute("rollback")
            make_room(lake, [base])
            run_all(lake, [base])


@pytest.mark.parametrize("block", [b for b in SQL if b.is_duckdb], ids=lambda block: block.id)
def test_a_statement_runs_in_duckdb(block: Block, lake_copy: Callable[[str], str], monkeypatch: Any) -> None:
    """On the lake in the working directory. INSTALL is left out: the tests bring the extensions."""
    catalog = lake_copy("lake/metadata.sqlite")
    monkeypatch.chdir(Path(catalog.removeprefix("sqlite:")).parents[1])
    statements = [s for s in block.statements.split(";") if s.strip() and not s.strip().startswith("INSTALL")]
    connection = reference.connect(catalog)
    try:
        if any("ATTACH" in s for s in statements):
            connection.execute("USE memory")
            connection.execute("DETACH lake")
        for statement in statements:
            connection.execute(statement).fetchall()
    finally:
        connection.close()


_CODE = re.compile(r"(`+)(.+?)\1")
_VERB = re.compile(r"(select|insert|update|delete|merge|create|alter|call|show|describe) ")
COMPARISONS = sorted((ROOT / "docs" / "coming-from").glob("*.md"))


def own_statements(page: Path) -> list[str]:
    """The statements in the last column of a page's tables: what replaces the other system's statements."""
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    codes = [code.strip() for row in rows for _, code in _CODE.findall(row.strip("| ").split(" | ")[-1])]
    return [code for code in codes if _VERB.match(code)]


@pytest.mark.parametrize("page", COMPARISONS, ids=lambda page: page.name)
def test_the_statements_of_a_comparison_run(page: Path, spark: SparkSession, lake_copy: Callable[[str], str]) -> None:
    statements = own_statements(page)
    assert len(statements) > 3
    with LakeSession(lake_copy("metadata.sqlite"), spark=spark) as lake:
        for statement in statements:
            lake.execute("begin")
            make_room(lake, [statement])
            run_all(lake, [statement])
            lake.execute("rollback")
