"""The run that most rules are shown on."""

from __future__ import annotations

import pytest

from tests.unit.spark_hooks.spark_events import Run


@pytest.fixture
def run() -> Run:
    return Run()
