"""The results as tables of text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .systems import BASELINE, BY_NAME

Results = Mapping[str, Mapping[str, float]]
"""By system and the name of a row. Seconds, unless the name begins with one of UNITS."""

UNITS = {"CPU": "s", "peak memory": "MiB", "on disk": "MiB", "files": ""}


def seconds_table(results: Results) -> str:
    """What each system took."""

    def cell(system: str, name: str) -> str:
        value = results[system].get(name)
        return "" if value is None else number_text(value, _unit(name))

    return _table(results, cell)


def ratio_table(results: Results) -> str:
    """What each system took, compared with dbt-ducklake: above 1 is more."""
    base = results[BASELINE.name]

    def cell(system: str, name: str) -> str:
        value, ours = results[system].get(name), base.get(name)
        return f"{value / ours:.2f}" if value is not None and ours else ""

    return _table(results, cell)


def number_text(value: float, unit: str) -> str:
    digits = (2 if value < 10 else 1 if value < 100 else 0) if unit == "s" else 0
    return f"{value:.{digits}f} {unit}".rstrip()


def _unit(name: str) -> str:
    return next((unit for start, unit in UNITS.items() if name.startswith(start)), "s")


def _row_names(results: Results) -> list[str]:
    """The rows of all systems: the steps in the order in which they ran, then the rest."""
    names = dict.fromkeys(name for values in results.values() for name in values)
    starts = list(UNITS)
    return sorted(names, key=lambda name: next((n for n, start in enumerate(starts) if name.startswith(start)), -1))


def _table(results: Results, cell: Callable[[str, str], str]) -> str:
    head = ["", *(BY_NAME[system].label for system in results)]
    rows = [head, *([name, *(cell(system, name) for system in results)] for name in _row_names(results))]
    return _markdown(rows)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in rows]
    return "\n".join([lines[0], "| " + " | ".join("-" * width for width in widths) + " |", *lines[1:]])
