"""Service and hooks share the prefix of their environment, so each must know the other's names."""

from __future__ import annotations

from dataclasses import fields

import streamgauge
from service.config import Config
from spark_hooks.settings import Settings
from streamgauge.environment import HOOKS, PREFIX, SERVICE


def test_the_known_variables_are_those_that_are_read() -> None:
    """And none besides: what is neither's is a typo."""
    assert {f"{PREFIX}{field.name.upper()}" for field in fields(Settings)} == HOOKS
    # The token of the hooks serves the service for pushes too.
    assert {f"{PREFIX}{field.name.upper()}" for field in fields(Config)} | {f"{PREFIX}TOKEN"} == SERVICE


def test_every_setting_of_the_hooks_is_in_their_manual() -> None:
    """The docstring of `attach` lists argument and variable, once, and says how the configuration calls them."""
    manual = streamgauge.attach.__doc__ or ""
    assert "is called spark.streamgauge.<argument>." in manual
    for field in fields(Settings):
        row = f"| `{field.name}`"
        assert manual.count(row) == 1
        told = next(line for line in manual.splitlines() if row in line)
        assert f" {PREFIX}{field.name.upper()} " in told


def test_every_setting_of_the_service_is_in_its_manual() -> None:
    """The class's docstring lists option, variable and default."""
    for field in fields(Config):
        option = "allowed-host" if field.name == "allowed_hosts" else field.name.replace("_", "-")
        assert f"`--{option}`" in (Config.__doc__ or "")
        assert f"{PREFIX}{field.name.upper()}" in (Config.__doc__ or "")
