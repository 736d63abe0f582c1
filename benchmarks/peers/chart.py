"""The results as a bar chart, which is written as the text of an SVG file.

`python -m benchmarks.peers.chart build/peers/results.json docs/benchmarks-peers.svg CPU` draws it again.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

from .systems import BASELINE, BY_NAME
from .tables import Results, number_text

STEPS = (
    "load",
    "queries",
    "merge a refresh set",
    "snapshot, changed",
    "tests",
    "docs generate",
    "read the past",
    "build, unchanged",
    "build, 1 % changed",
    "refresh sets",
    "queries, worn",
    "maintenance",
    "queries, maintained",
)
# By system. The first three are ours, in shades of one color.
COLORS = {
    "ducklake": "#1f6f78",
    "ducklake-reuse": "#4fa3a5",
    "ducklake-postgres": "#9ccfcf",
    "iceberg": "#5b7db1",
    "delta": "#d08770",
    "duckdb": "#e3b04b",
    "parquet": "#9a9a9a",
}
LABEL_WIDTH, BAR_AREA, VALUE_WIDTH = 170, 480, 130
BAR, GAP, TOP = 11, 12, 74
MOST = 4.0
"""Bars end at this ratio; the text beside them has the value."""


@dataclass(frozen=True)
class _Bar:
    system: str
    ratio: float
    seconds: float


MEASURES = {"time": "Time", "CPU": "CPU time"}
"""What a chart may show: the time on the clock, or that of the processors, which other processes disturb less."""


def write_chart(path: Path, results: Results, conditions: str, measure: str) -> None:
    path.write_text(svg(results, conditions, measure))


def svg(results: Results, conditions: str, measure: str = "time") -> str:
    """A group of bars a step, a bar a system: its time as a multiple of dbt-ducklake's."""
    base = results[BASELINE.name]
    rows = {step: step if measure == "time" else f"{measure}, {step}" for step in STEPS}
    groups = [
        (step, [_Bar(name, r[row] / base[row], r[row]) for name, r in results.items() if row in r])
        for step, row in rows.items()
        if row in base
    ]
    parts, y = [], TOP
    for step, bars in groups:
        middle = y + len(bars) * BAR / 2 + 4
        parts.append(_text(LABEL_WIDTH - 8, middle, step, 'text-anchor="end"'))
        for bar in bars:
            width = min(bar.ratio, MOST) / MOST * BAR_AREA
            value = f"{bar.ratio:.2f}  ({number_text(bar.seconds, 's')})"
            parts.append(
                f'<rect x="{LABEL_WIDTH}" y="{y}" width="{max(width, 1):.1f}" height="{BAR - 1}" '
                f'fill="{COLORS[bar.system]}"/>'
            )
            parts.append(_text(LABEL_WIDTH + width + 5, y + BAR - 2, value, 'class="value"'))
            y += BAR
        y += GAP
    width, height = LABEL_WIDTH + BAR_AREA + VALUE_WIDTH, y + 8
    one = LABEL_WIDTH + BAR_AREA / MOST
    line = f'<line x1="{one:.1f}" y1="{TOP - 6}" x2="{one:.1f}" y2="{y - GAP}" stroke="#444" stroke-dasharray="3 3"/>'
    title = _text(8, 20, f"{MEASURES[measure]} of each step, {BASELINE.label} = 1 (shorter is better)", 'class="title"')
    note = _text(8, 36, conditions, 'class="value"')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
            "<style>text { font: 12px sans-serif; fill: #222 } .value { font-size: 9px } .title { font-weight: bold }"
            "</style>",
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            title,
            note,
            *_legend(list(results)),
            line,
            *parts,
            "</svg>",
            "",
        ]
    )


def _legend(systems: list[str]) -> list[str]:
    parts, x = [], 8.0
    for name in systems:
        label = BY_NAME[name].label
        parts.append(f'<rect x="{x:.0f}" y="46" width="9" height="9" fill="{COLORS[name]}"/>')
        parts.append(_text(x + 12, 54, label, 'class="value"'))
        x += 24 + 4.8 * len(label)
    return parts


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(text)}</text>'


if __name__ == "__main__":
    saved = json.loads(Path(sys.argv[1]).read_text())
    write_chart(Path(sys.argv[2]), saved["results"], saved["conditions"], sys.argv[3] if len(sys.argv) > 3 else "time")
