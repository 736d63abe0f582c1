"""Relations as they were: by a macro, a source's own setting or the run's."""

from __future__ import annotations

import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.ducklake.relation import DucklakeRelation, Moments, feed_bound, time_travel

OWN = frozenset({"lake", "raw"})


def source(database: str = "lake", meta: dict[str, Any] | None = None, **config: Any) -> SimpleNamespace:
    return SimpleNamespace(database=database, name="orders", config=config, meta=meta or {})


@pytest.mark.parametrize(
    ("as_of", "clause"),
    [
        (None, None),
        (7, "version as of 7"),
        ("7", "version as of 7"),
        (0, "version as of 0"),
        ("2026-01-31 12:00", "timestamp as of '2026-01-31 12:00'"),
        (datetime.date(2026, 1, 31), "timestamp as of '2026-01-31'"),
        ("it's", "timestamp as of 'it\\'s'"),
        ({"LAKE": 3, "raw": "2026-01-31"}, "version as of 3"),
        ({"raw": 3}, None),
    ],
)
def test_a_run_reads_its_sources_as_of_then(as_of: Any, clause: str | None) -> None:
    assert Moments("lake", OWN, as_of).of_source(source()) == clause


def test_a_sources_own_moment_goes_before_the_runs() -> None:
    moments = Moments("lake", OWN, 9)
    assert moments.of_source(source(ducklake_as_of=3)) == "version as of 3"
    assert moments.of_source(source(meta={"ducklake_as_of": 0})) == "version as of 0"
    assert moments.of_source(source(config={})) == "version as of 9"


def test_a_source_in_no_lake_is_read_as_always() -> None:
    assert Moments("lake", OWN, 9).of_source(source("hive")) is None


def test_a_version_is_one_of_the_profiles_own_lake() -> None:
    with pytest.raises(CompilationError, match=r"orders is in raw: give a timestamp, or .*\{lake: 9, raw: ...\}"):
        Moments("lake", OWN, 9).of_source(source("raw"))
    assert Moments("lake", OWN, "2026-01-31").of_source(source("raw")) == "timestamp as of '2026-01-31'"
    with pytest.raises(CompilationError, match="names lago, which is none of the lakes"):
        Moments("lake", OWN, {"lago": 1}).of_source(source())


@pytest.mark.parametrize("given", [{}, {"version": 1, "timestamp": "2026-01-31"}, {"version": -1}, {"version": True}])
def test_a_moment_that_means_nothing_is_an_error(given: dict[str, Any]) -> None:
    with pytest.raises(CompilationError):
        time_travel(**given)


def test_the_clause_stands_behind_the_name_and_nowhere_else() -> None:
    relation = DucklakeRelation.create("lake", "main", "or`ders")
    then = relation.at(version=3)
    assert str(then) == "`lake`.`main`.`or``ders` version as of 3"
    assert str(then.without_identifier()) == "`lake`.`main`"
    assert then.name_literal() == "'`lake`.`main`.`or``ders`'"
    assert str(then.replace(limit=0)) == "(select * from `lake`.`main`.`or``ders` version as of 3 where false limit 0)"
    assert relation != then
    assert relation == DucklakeRelation.bound(Moments("lake", OWN, 9)).create("lake", "main", "or`ders")
    with pytest.raises(CompilationError, match="has no past to read"):
        DucklakeRelation.create(identifier="view").at(version=3)


def test_bounds_of_a_feed_are_versions_or_moments() -> None:
    assert [feed_bound("f", "start", given) for given in (3, " 3 ", "2026-01-31")] == [
        "3",
        "3",
        "timestamp '2026-01-31'",
    ]
    with pytest.raises(CompilationError, match="end of f is the number of a snapshot or a timestamp, and it is None"):
        feed_bound("f", "end", None)
