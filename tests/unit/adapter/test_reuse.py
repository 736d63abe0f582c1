"""Fingerprints: what of a node counts, and what does not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.ducklake.reuse.recipe import Recipes
from dbt.adapters.ducklake.reuse.settings import check_reuse, is_configured


def _macro(name: str, text: str, package: str = "shop", uses: tuple[str, ...] = ()) -> SimpleNamespace:
    return SimpleNamespace(
        name=name, package_name=package, macro_sql=text, depends_on=SimpleNamespace(macros=list(uses))
    )


MACROS = {
    "macro.shop.cents": _macro("cents", "{% macro cents() %}1{% endmacro %}", uses=("macro.shop.rate",)),
    "macro.shop.rate": _macro("rate", "{% macro rate() %}2{% endmacro %}"),
    "macro.shop.other": _macro("other", "{% macro other() %}3{% endmacro %}"),
    "macro.dbt.persist_docs": _macro("persist_docs", "", "dbt"),
}


def _fingerprint(
    code: str = "select 1", macros: dict[str, Any] | None = None, spark: Any = None, **changes: Any
) -> str:
    node = {
        "resource_type": "model",
        "config": {"materialized": "table", "tags": ["a"], **changes.pop("config", {})},
        "columns": {},
        "description": "text",
        "depends_on": SimpleNamespace(macros=["macro.shop.cents"]),
        **changes,
    }
    config = SimpleNamespace(credentials=SimpleNamespace(spark=spark))
    manifest = SimpleNamespace(macros={**MACROS, **(macros or {})})
    return Recipes(config, lambda: manifest).of(SimpleNamespace(**node), code, fetches_rows=False).fingerprint


def _changed(macro: str) -> dict[str, Any]:
    return {macro: SimpleNamespace(**{**vars(MACROS[macro]), "macro_sql": "{# another text #}"})}


@pytest.mark.parametrize(
    "same",
    [
        {"code": "select   1 -- a comment"},
        {"config": {"tags": ["b"], "meta": {"owner": "x"}, "commit_message": "m", "maintenance": "auto"}},
        {"description": "another"},
        {"macros": _changed("macro.shop.other")},
        {"columns": {"id": SimpleNamespace(data_type=None, constraints=[], description="d")}, "code": "select 1"},
    ],
)
def test_what_makes_no_other_table_does_not_count(same: dict[str, Any]) -> None:
    base = (
        {"columns": {"id": SimpleNamespace(data_type=None, constraints=[], description="")}}
        if "columns" in same
        else {}
    )
    assert _fingerprint(**same) == _fingerprint(**base)


@pytest.mark.parametrize(
    "other",
    [
        {"code": "select 2"},
        {"config": {"partition_by": ["day(at)"]}},
        {"config": {"post-hook": [{"sql": "select 1"}]}},
        {"macros": _changed("macro.shop.cents")},
        {"macros": _changed("macro.shop.rate")},
        {"macros": {"macro.shop.persist_docs": _macro("persist_docs", "mine")}},
        {"macros": {"macro.shop.materialization_mine": _macro("materialization_mine", "mine")}},
        {"spark": {"config": {"spark.sql.session.timeZone": "Asia/Tokyo"}}},
        {"columns": {"id": SimpleNamespace(data_type="bigint", constraints=[], description="")}},
    ],
)
def test_what_may_make_another_table_counts(other: dict[str, Any]) -> None:
    assert _fingerprint(**other) != _fingerprint()


def test_descriptions_count_where_they_become_comments() -> None:
    config = {"persist_docs": {"relation": True}}
    assert _fingerprint(config=config) != _fingerprint(config=config, description="another")


def test_a_large_seed_counts_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "big.csv").write_text("id\n1\n")
    checksum = SimpleNamespace(name="path", checksum="seeds/big.csv")
    seed = {"resource_type": "seed", "checksum": checksum, "root_path": str(tmp_path), "original_file_path": "big.csv"}
    before = _fingerprint(**seed)
    (tmp_path / "big.csv").write_text("id\n2\n")
    assert _fingerprint(**seed) != before


@pytest.mark.parametrize("value", ["always", 1.5, ["x"]])
def test_unknown_words_are_refused(value: Any) -> None:
    with pytest.raises(CompilationError, match="reuse takes true, false or deterministic, and it is"):
        check_reuse(value)


def test_spark_waits_only_where_the_project_sets_reuse() -> None:
    def project(**kinds: Any) -> SimpleNamespace:
        return SimpleNamespace(**{"models": {}, "seeds": {}, **kinds})

    assert is_configured(project(models={"shop": {"marts": {"+reuse": True}}}))
    assert is_configured(project(seeds={"reuse": "deterministic"}))
    assert not is_configured(project(models={"shop": {"+materialized": "table", "+reuse": False}}))
