"""The results as tables of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .systems import BASELINE, BY_NAME

UNITS = {"peak memory": "MiB", "on disk": "MiB", "files": ""}
"""By the beginning of a row's name; all others are seconds."""

Results = Mapping[str, Mapping[str, float]]


def row_names(results: Results) -> list[str]:
    """The rows of all systems: the steps in the order in which they ran, then the rest."""
    names = dict.fromkeys(name for values in results.values() for name in values)
    return sorted(names, key=lambda name: any(name.startswith(unit) for unit in UNITS))


def unit_of(name: str) -> str:
    return next((unit for start, unit in UNITS.items() if name.startswith(start)), "s")


def seconds_table(results: Results) -> str:
    """What each system took."""
    return _table(results, lambda system, name: _number(results[system].get(name), unit_of(name)))


def ratio_table(results: Results) -> str:
    """What each system took, compared with dbt-ducklake: above 1 is more."""
    base = results.get(BASELINE.name, {})

    def ratio(system: str, name: str) -> str:
        value, ours = results[system].get(name), base.get(name)
        return f"{value / ours:.2f}" if value is not None and ours else ""

    return _table(results, ratio)


def _table(results: Results, cell: object) -> str:
    head = ["", *(BY_NAME[system].label for system in results)]
    rows = [[name, *(cell(system, name) for system in results)] for name in row_names(results)]  # type: ignore[operator]
    return markdown([head, *rows])


def markdown(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in rows]
    return "\n".join([lines[0], "| " + " | ".join("-" * width for width in widths) + " |", *lines[1:]])


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    text = f"{value:.2f}" if value < 10 and unit == "s" else f"{value:.1f}" if value < 100 and unit == "s" else f"{value:.0f}"
    return f"{text} {unit}".rstrip()
