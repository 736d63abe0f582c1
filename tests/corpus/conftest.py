"""What the reference's suite came to, in one table at the end of a run, also of several processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from .comparison import OUTCOMES
from .replay import PHASES

RECORD = "replayed"


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    records = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
        if name == RECORD
    ]
    if records:
        terminalreporter.section("the reference's suite, replayed")
        for line in summary(records):
            terminalreporter.write_line(line)


def summary(records: list[dict[str, Any]]) -> Iterator[str]:
    """Counts of answers by phase and kind, what was left out by reason, and every answer that differs."""
    executed, lakes = (sum(record[key] for record in records) for key in ("executed", "lakes"))
    yield f"{len(records)} tests, {executed} statements, {lakes} lakes"
    yield f"{'':22}{'':10}" + "".join(f"{outcome:>16}" for outcome in OUTCOMES)
    for phase in PHASES:
        counts: Counter[tuple[str, str]] = Counter()
        for record in records:
            counts.update({(kind, outcome): n for p, kind, outcome, n in record["counts"] if p == phase})
        for kind in sorted({kind for kind, _ in counts}):
            yield f"{phase:22}{kind:10}" + "".join(f"{counts[kind, outcome]:16}" for outcome in OUTCOMES)
    left_out: Counter[str] = Counter()
    for record in records:
        left_out.update(record["left_out"])
    yield from _section("left out", (f"{count:6}  {reason}" for reason, count in left_out.most_common()))
    yield from _section("not run to the end", (f"{r['test']}: {r['stopped']}" for r in records if r["stopped"]))
    yield from _section("unlike its file", (f"{r['test']}: {line}" for r in records for line in r["surprises"]))
    for outcome in OUTCOMES[1:]:
        lines = (f"{r['test']}: {phase}: {line}" for r in records for phase, o, line in r["details"] if o == outcome)
        yield from _section(outcome, lines)


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield f"\n{title}:"
        yield from (f"  {line}" for line in found)
