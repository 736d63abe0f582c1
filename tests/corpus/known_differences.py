"""Answers of the reference's suite in which DuckDB 1.5 is wrong, each with the test of ours that shows it."""

from __future__ import annotations

from .comparison import Finding


def known_reason(test: str, phase: str, finding: Finding) -> str | None:
    """Why an answer may differ; None if it must not."""
    return None
