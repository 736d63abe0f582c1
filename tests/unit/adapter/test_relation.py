"""Time travel of relations: by a macro, by the setting of a source or by that of the run."""

from __future__ import annotations

import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.contracts.relation import RelationType
from dbt_common.exceptions import CompilationError

from dbt.adapters.ducklake.relation import DucklakeRelation
from dbt.adapters.ducklake.time_travel import SourceTimeTravel, change_feed_bound, time_travel_clause

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
def test_a_run_reads_its_sources_at_its_version_or_timestamp(as_of: Any, clause: str | None) -> None:
    assert SourceTimeTravel("lake", OWN, as_of).clause_for(source()) == clause


def test_a_sources_own_moment_goes_before_the_runs() -> None:
    time_travel = SourceTimeTravel("lake", OWN, 9)
    assert time_travel.clause_for(source(ducklake_as_of=3)) == "version as of 3"
    assert time_travel.clause_for(source(meta={"ducklake_as_of": 0})) == "version as of 0"
    assert time_travel.clause_for(source(config={})) == "version as of 9"


def test_a_source_outside_of_lakes_has_no_time_travel() -> None:
    assert SourceTimeTravel("lake", OWN, 9).clause_for(source("hive")) is None


def test_a_version_is_one_of_the_profiles_own_lake() -> None:
    with pytest.raises(CompilationError, match=r"orders is in raw: give a timestamp, or .*\{lake: 9, raw: ...\}"):
        SourceTimeTravel("lake", OWN, 9).clause_for(source("raw"))
    assert SourceTimeTravel("lake", OWN, "2026-01-31").clause_for(source("raw")) == "timestamp as of '2026-01-31'"
    with pytest.raises(CompilationError, match="names lago, which is none of the lakes"):
        SourceTimeTravel("lake", OWN, {"lago": 1}).clause_for(source())


@pytest.mark.parametrize("given", [{}, {"version": 1, "timestamp": "2026-01-31"}, {"version": -1}, {"version": True}])
def test_an_invalid_version_or_timestamp_is_an_error(given: dict[str, Any]) -> None:
    with pytest.raises(CompilationError):
        time_travel_clause(**given)


def test_the_time_travel_clause_follows_the_name_in_queries_only() -> None:
    relation = DucklakeRelation.create("lake", "main", "or`ders")
    then = relation.at(version=3)
    assert str(then) == "`lake`.`main`.`or``ders` version as of 3"
    assert str(then.without_identifier()) == "`lake`.`main`"
    assert then.name_literal() == "'`lake`.`main`.`or``ders`'"
    assert str(then.replace(limit=0)) == "(select * from `lake`.`main`.`or``ders` version as of 3 where false limit 0)"
    assert relation != then
    assert relation == DucklakeRelation.with_source_time_travel(SourceTimeTravel("lake", OWN, 9)).create(
        "lake", "main", "or`ders"
    )
    with pytest.raises(CompilationError, match="has no past to read"):
        DucklakeRelation.create(identifier="view").at(version=3)


def test_without_a_schema_a_relation_is_a_bare_name() -> None:
    """As dbt-spark's temporary relations are, and those of elementary."""
    orders = DucklakeRelation.create("lake", "main", "or`ders", type=RelationType.Table)
    assert str(orders.incorporate(path={"schema": None, "identifier": "tmp"})) == "`tmp`"
    assert str(orders.incorporate(path={"schema": None})) == "`or``ders`"
    assert orders.incorporate(path={"schema": None}).type == RelationType.Table
    assert str(DucklakeRelation.create("lake", "", "tmp")) == "`tmp`"
    assert str(orders.include(database=False)) == "`main`.`or``ders`"
    assert str(orders.include(schema=False)) == str(orders.include(database=False, schema=False)) == "`or``ders`"
    assert str(orders.without_identifier()) == "`lake`.`main`"
    assert str(DucklakeRelation.create("lake")) == "`lake`"


def test_bounds_of_a_change_feed_are_versions_or_timestamps() -> None:
    assert [change_feed_bound("f", "start", given) for given in (3, " 3 ", "2026-01-31")] == [
        "3",
        "3",
        "timestamp '2026-01-31'",
    ]
    with pytest.raises(CompilationError, match="end of f is the number of a snapshot or a timestamp, and it is None"):
        change_feed_bound("f", "end", None)
