"""Durations, and the moments that lie as long ago."""

from __future__ import annotations

import datetime

import pytest

from dbt.adapters.ducklake.lake.durations import is_duration, moment_before


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        ("7 days", "2026-03-24 12:00:00"),
        ("1w 12h", "2026-03-24 00:00:00"),
        ("90m", "2026-03-31 10:30:00"),
        ("1.5 hours 30 secs", "2026-03-31 10:29:30"),
        ("1 month", "2026-02-28 12:00:00"),
        ("1 quarter 1mon", "2025-11-30 12:00:00"),
        ("2 years", "2024-03-31 12:00:00"),
        ("0.5 months", "2026-03-16 12:00:00"),
        ("5ms 3us", "2026-03-31 11:59:59.994997"),
        ("0 days", "2026-03-31 12:00:00"),
        ("100000 years", "1970-01-01 00:00:00"),
        ("999999999999 days", "1970-01-01 00:00:00"),
    ],
)
def test_a_duration_leads_to_a_moment_before_now(duration: str, expected: str) -> None:
    utc = datetime.timezone.utc
    now = datetime.datetime(2026, 3, 31, 12, tzinfo=utc)
    assert moment_before(now, duration) == datetime.datetime.fromisoformat(expected).replace(tzinfo=utc)


@pytest.mark.parametrize("text", ["", "7", "days", "-1 day", "7 dayz", "7 days ago", "2026-01-01"])
def test_what_is_no_duration_is_not_taken_for_one(text: str) -> None:
    assert not is_duration(text)
    with pytest.raises(ValueError, match="a duration such as 7 days"):
        moment_before(datetime.datetime.now(datetime.timezone.utc), text)
