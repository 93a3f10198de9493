"""Service and hooks share the prefix of their environment, so each must know the other's names."""

from __future__ import annotations

from dataclasses import fields

from service.config import HOOKS_SETTINGS, Config
from spark_hooks.settings import Settings


def test_service_lets_every_setting_of_the_hooks_be() -> None:
    """And none besides: what is neither's is a typo."""
    assert {f"STREAMGAUGE_{field.name.upper()}" for field in fields(Settings)} == HOOKS_SETTINGS


def test_every_setting_of_the_service_is_in_its_manual() -> None:
    """The class's docstring lists option, variable and default."""
    for field in fields(Config):
        option = "allowed-host" if field.name == "allowed_hosts" else field.name.replace("_", "-")
        assert f"`--{option}`" in (Config.__doc__ or "")
        assert f"STREAMGAUGE_{field.name.upper()}" in (Config.__doc__ or "")
