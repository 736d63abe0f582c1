"""`publish: run`: what is published after which failures, and what run_results.json says then."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError, DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.ducklake.credentials import DucklakeCredentials
from dbt.adapters.ducklake.project_graph import ProjectGraph
from dbt.adapters.ducklake.publish.outcome import RunOutcome, left_out
from dbt.adapters.ducklake.publish.publication import Publication
from dbt.adapters.ducklake.publish.run_results import amend_run_results


def _node(kind: str, *parents: str, attached: str | None = None) -> SimpleNamespace:
    return SimpleNamespace(
        resource_type=kind, depends_on=SimpleNamespace(nodes=list(parents)), attached_node=attached, config={}
    )


MANIFEST = SimpleNamespace(
    nodes={
        "model.p.a": _node("model"),
        "model.p.e": _node("model", "model.p.a"),  # ephemeral
        "model.p.b": _node("model", "model.p.e"),
        "model.p.c": _node("model"),
        "test.p.unique_a.1": _node("test", "model.p.a", attached="model.p.a"),
        "test.p.b_of_c.2": _node("test", "model.p.b", "model.p.c", attached="model.p.b"),
        "test.p.singular": _node("test", "model.p.b", "model.p.c"),
    },
    functions={},
    unit_tests={"unit_test.p.c.3": SimpleNamespace(resource_type="unit_test", tested_node_unique_id="model.p.c")},
)
GRAPH = ProjectGraph.of(MANIFEST)
PASSED = {
    **dict.fromkeys(("model.p.a", "model.p.b", "model.p.c"), "success"),
    **dict.fromkeys(("test.p.unique_a.1", "test.p.b_of_c.2", "test.p.singular", "unit_test.p.c.3"), "pass"),
}


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({}, {}),
        ({"test.p.unique_a.1": "warn"}, {}),
        ({"test.p.unique_a.1": "fail"}, {"a": "the test unique_a failed", "b": "it stands on a"}),
        ({"test.p.b_of_c.2": "error"}, {"b": "the test b_of_c failed"}),
        ({"test.p.b_of_c.2": "skipped"}, {"b": "the test b_of_c did not run"}),
        ({"test.p.singular": "fail"}, {"b": "the test singular failed", "c": "the test singular failed"}),
        ({"model.p.a": "error", "model.p.b": "skipped"}, {"a": "it failed", "b": "it was skipped"}),
        ({"model.p.c": "partial success"}, {"c": "it failed"}),
        ({"unit_test.p.c.3": "fail"}, {"c": "the test c failed"}),
    ],
)
def test_a_node_is_published_with_its_tests_and_all_that_it_stands_on(
    statuses: dict[str, str], expected: dict[str, str]
) -> None:
    found = left_out(RunOutcome({**PASSED, **statuses}), GRAPH, [])
    assert {node.split(".")[-1]: reason for node, reason in found.items()} == expected


def test_tests_that_never_ran_count_when_dbt_stopped_early() -> None:
    statuses = {node: status for node, status in PASSED.items() if node != "test.p.unique_a.1"}
    assert left_out(RunOutcome(statuses), GRAPH, []) == {}
    cut_short = left_out(RunOutcome(statuses, is_cut_short=True), GRAPH, [])
    assert cut_short["model.p.a"] == "the test unique_a did not run"


def _results(folder: Path, *results: dict[str, Any]) -> Path:
    path = folder / "run_results.json"
    path.write_text(json.dumps({"metadata": {"invocation_id": get_invocation_id()}, "results": list(results)}))
    return path


def test_results_name_the_snapshot_and_what_was_not_published(tmp_path: Path) -> None:
    staged = {"_message": "staged, 3 rows", "rows_affected": 3}
    path = _results(
        tmp_path,
        {"unique_id": "model.p.c", "status": "success", "message": "staged, 3 rows", "adapter_response": dict(staged)},
        {"unique_id": "model.p.a", "status": "success", "message": "staged, 3 rows", "adapter_response": dict(staged)},
        {"unique_id": "model.p.b", "status": "partial success", "batch_results": {"successful": [1]}},
        {"unique_id": "test.p.unique_a.1", "status": "pass", "message": None},
        {"unique_id": "unit_test.p.c.3", "status": "pass", "message": None},
    )
    amend_run_results(path, 58, {"model.p.a": "it failed", "model.p.b": "it stands on a"}, GRAPH.tests)
    content = json.loads(path.read_text())
    c, a, b, unique_a, of_c = content["results"]
    assert (c["status"], c["message"]) == ("success", "snapshot 58, 3 rows")
    assert c["adapter_response"] == {"_message": "snapshot 58, 3 rows", "rows_affected": 3, "snapshot_id": 58}
    assert (a["status"], a["message"]) == ("skipped", "not published: it failed")
    assert (b["status"], b["batch_results"]) == ("partial success", None)
    assert (unique_a["status"], unique_a["message"]) == ("skipped", "not published: model.p.a was not published")
    assert of_c["status"] == "pass"
    assert [p.name for p in tmp_path.iterdir()] == ["run_results.json"]


@pytest.mark.parametrize(("name", "value"), [("publish", "all"), ("publish", True), ("publish_on_failure", "some")])
def test_settings_take_known_words(name: str, value: Any) -> None:
    with pytest.raises(DbtRuntimeError, match=f"the field {name} takes .* or "):
        DucklakeCredentials.validate({"catalog": "sqlite:x", "type": "ducklake", name: value})


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"ducklake_preview": "only"}, "ducklake_preview needs a run that is published as one snapshot"),
        ({"ducklake_preview": "all", "ducklake_publish": "run"}, "ducklake_preview is rows or only, and it is 'all'"),
        ({"ducklake_publish": "always"}, "ducklake_publish is node or run, and it is 'always'"),
    ],
)
def test_variables_that_would_publish_what_should_not_be_are_refused(variables: dict[str, str], words: str) -> None:
    project = SimpleNamespace(
        args=SimpleNamespace(which="build"),
        cli_vars=variables,
        credentials=SimpleNamespace(publish="node", publish_on_failure="nothing"),
    )
    with pytest.raises(CompilationError, match=words):
        Publication(project, lambda: None, lambda: None)  # type: ignore[arg-type, return-value]
