"""The official suite: sample mode."""

from __future__ import annotations

from dbt.tests.adapter.sample_mode import test_sample_mode as sample_mode


class TestSampleMode(sample_mode.BaseSampleModeTest):
    pass
