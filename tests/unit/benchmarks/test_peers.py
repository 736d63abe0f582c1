"""The benchmark of peers: what it compares, and what it draws."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from xml.etree import ElementTree

import pytest

from benchmarks.peers.answers import Disagreement, answer, compare
from benchmarks.peers.chart import svg
from benchmarks.peers.tables import ratio_table


def test_answers_do_not_depend_on_the_order_of_rows_or_on_the_types_of_numbers_and_dates() -> None:
    ours = answer([(1, "a", Decimal("0.10"), date(2026, 1, 31)), (2, "b", None, None)])
    theirs = answer([(2, "b", None, None), (1.0, "a", 0.1 + 1e-14, datetime(2026, 1, 31))])
    compare("queries", {"q01": ours}, {"q01": theirs}, ("one", "two"))


@pytest.mark.parametrize(
    "theirs",
    [{"q01": answer([(1, "b")])}, {"q01": answer([(2, "a")])}, {"q01": answer([(1, "a"), (0, "")])}, {}],
    ids=["text", "number", "count", "no table"],
)
def test_a_difference_is_an_error_that_names_the_table(theirs: dict[str, list[object]]) -> None:
    with pytest.raises(Disagreement, match="one and two differ after the step 'queries':\n  q01"):
        compare("queries", {"q01": answer([(1, "a")])}, theirs, ("one", "two"))


def test_table_and_chart_have_ratios_to_dbt_ducklake_and_leave_out_what_was_not_measured() -> None:
    results = {"ducklake": {"load": 2.0, "queries": 10.0}, "iceberg": {"load": 3.0}}
    assert ratio_table(results).splitlines()[2:] == [
        "| load    | 1.00         | 1.50               |",
        "| queries | 1.00         |                    |",
    ]
    texts = [element.text for element in ElementTree.fromstring(svg(results, "scale < 1")).iter()]
    assert "1.50  (3.00 s)" in texts
    assert "scale < 1" in texts


def test_the_chart_shows_the_measure_that_is_asked_for() -> None:
    results = {"ducklake": {"load": 2.0, "CPU, load": 4.0}, "iceberg": {"load": 3.0, "CPU, load": 5.0}}
    assert "1.25  (5.00 s)" in svg(results, "", "CPU")
    assert "1.25" not in svg(results, "", "time")
