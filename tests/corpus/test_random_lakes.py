"""Lakes that DuckDB makes from a seed: Spark reads the same rows, row ids, changes and views at every snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession

from .comparison import DIFFERENT, EQUAL, NOT_COMPARABLE, REFUSED, Finding, compare, spark_answers
from .grammar import STEPS, TYPES, Writer
from .judging import judged
from .making import MadeLake, make_all

SEEDS = range(80, 190)  # which have every feature
LAKES_A_TEST = 10
"""The lakes of one test are attached to one session, and asked together."""

MOST_CRASHES = 1
"""How many of the lakes of a test DuckDB may crash on."""


def _findings(made: Sequence[MadeLake], spark: SparkSession) -> list[Finding]:
    asked = [question for lake in made for question in lake.asked]
    theirs = [answer for lake in made for answer in lake.answers]
    main, *others = (lake.lake for lake in made)
    attached = [{"name": lake.name, "catalog": lake.catalog} for lake in others]
    with LakeSession(main.catalog, database=main.name, spark=spark, attach=attached) as session:
        findings = compare(asked, spark_answers(session, asked), theirs).items
    return judged(findings, {lake.lake.name: lake.lake for lake in made})


def _check(seeds: Sequence[int], steps: int, spark: SparkSession, folder: Path) -> None:
    made = make_all(seeds, steps, folder)
    assert len(made) >= len(seeds) - MOST_CRASHES, f"DuckDB crashed on {set(seeds) - {lake.seed for lake in made}}"
    findings = _findings(made, spark)
    wrong = [finding for finding in findings if finding.outcome == DIFFERENT]
    lines = [str(finding) for finding in wrong]
    for lake in made:
        if any(finding.question.lake == lake.lake.name for finding in wrong):
            lines += [f"\nseed {lake.seed}:", *lake.statements]
    assert not wrong, "\n".join(["", *lines])
    counts = Counter(finding.outcome for finding in findings)
    unasked = [str(finding) for finding in findings if finding.outcome in (REFUSED, NOT_COMPARABLE)]
    assert counts[EQUAL] > 10 * len(unasked), "\n".join(unasked)


@pytest.mark.parametrize("first", SEEDS[::LAKES_A_TEST])
def test_lakes_of_a_seed_read_the_same(first: int, interpreting_spark: SparkSession, tmp_path: Path) -> None:
    _check(range(first, first + LAKES_A_TEST), STEPS, interpreting_spark, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 3000, LAKES_A_TEST))
def test_longer_lakes_of_more_seeds_read_the_same(first: int, interpreting_spark: SparkSession, tmp_path: Path) -> None:
    _check(range(first, first + LAKES_A_TEST), 3 * STEPS, interpreting_spark, tmp_path)


FEATURES = {
    "add column", "add column with default", "add files", "change default", "change not null", "clean up",
    "column dropped and added again", "comment", "comment on a view", "default", "delete", "deletion vectors",
    "drop column", "drop field", "drop table", "drop view", "dropped and created again", "expire", "field",
    "field with default", "flush", "inlining off", "inlining on", "insert", "insert of defaults", "macro", "merge",
    "merge files", "not null", "option", "partition", "partitioned by bucket", "partitioned by day",
    "partitioned by hour", "partitioned by month", "partitioned by value", "partitioned by year", "partitioned twice",
    "rename column", "rename field", "rename table", "reset partitioned by", "reset sorted by", "retype", "rewrite",
    "rollback", "schema", "sort", "struct", "table", "table as", "transaction", "truncate", "update", "view",
}  # fmt: skip


def test_the_lakes_have_every_feature() -> None:
    found: set[str] = set()
    for seed in SEEDS:
        writer = Writer(seed)
        writer.write()
        found |= writer.features
    assert found >= FEATURES | {f"type {name}" for name in TYPES}
