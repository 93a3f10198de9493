"""Settings: options before the environment, unknown and unsafe ones refused in one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from service.config import Config, default_archive, is_loopback
from spark_hooks.settings import Settings
from streamgauge.environment import HOOKS
from streamgauge.errors import SettingError


def refusal(environ: dict[str, str], **options: object) -> str:
    with pytest.raises(SettingError) as error:
        Config.read(environ, **options)
    message = str(error.value)
    assert "\n" not in message
    return message


def test_defaults_are_loopback_and_flinks_port() -> None:
    """What `streamgauge serve` alone does."""
    assert Config.read({}) == Config(
        "127.0.0.1", 8081, "", False, (), 32 * 1024 * 1024, "", 250_000, default_archive(), 7, 1_000
    )


def test_environment_sets_and_options_override() -> None:
    """Every setting has a variable; an option that was not given leaves it."""
    environ = {
        "STREAMGAUGE_HOST": "0.0.0.0",
        "STREAMGAUGE_PORT": "9000",
        "STREAMGAUGE_PUSH_TOKEN": "secret",
        "STREAMGAUGE_READ_TOKEN": "readers",
        "STREAMGAUGE_INSECURE": "yes",
        "STREAMGAUGE_ALLOWED_HOSTS": "a.test, b.test,",
        "STREAMGAUGE_MAX_PUSH_BYTES": "5",
        "STREAMGAUGE_METRICS_MAX_SERIES": "7",
        "STREAMGAUGE_ARCHIVE": "none",
        "STREAMGAUGE_ARCHIVE_DAYS": "8",
        "STREAMGAUGE_ARCHIVE_JOBS": "9",
        "PATH": "/bin",
    }
    assert Config.read(environ) == Config(
        "0.0.0.0", 9000, "secret", True, ("a.test", "b.test"), 5, "readers", 7, "none", 8, 9
    )
    overridden = Config.read(environ, port=1, host=None, allowed_hosts=(), push_token="other")
    assert overridden == Config("0.0.0.0", 1, "other", True, ("a.test", "b.test"), 5, "readers", 7, "none", 8, 9)


def test_the_hooks_token_serves_for_pushes_unless_the_service_has_its_own() -> None:
    """One variable for a driver and a service in one environment; empty is not set."""
    assert Config.read({"STREAMGAUGE_TOKEN": "shared"}).push_token == "shared"
    assert Config.read({"STREAMGAUGE_PUSH_TOKEN": "own", "STREAMGAUGE_TOKEN": "shared"}).push_token == "own"
    assert Config.read({"STREAMGAUGE_PUSH_TOKEN": "", "STREAMGAUGE_TOKEN": ""}).push_token == ""


def test_unknown_setting_is_refused_with_the_nearest_name() -> None:
    """A typo must not be a default silently taken."""
    assert refusal({"STREAMGAUGE_PROT": "1"}) == "unknown setting STREAMGAUGE_PROT; did you mean STREAMGAUGE_PORT?"


def test_what_kubernetes_tells_of_a_service_called_streamgauge_is_no_setting() -> None:
    """Every pod of its namespace has these; the one named like a setting does not become one."""
    links = {
        "STREAMGAUGE_SERVICE_HOST": "10.0.0.11",
        "STREAMGAUGE_SERVICE_PORT": "8081",
        "STREAMGAUGE_SERVICE_PORT_HTTP": "8081",
        "STREAMGAUGE_PORT": "tcp://10.0.0.11:8081",
        "STREAMGAUGE_PORT_8081_TCP": "tcp://10.0.0.11:8081",
        "STREAMGAUGE_PORT_8081_TCP_PROTO": "tcp",
        "STREAMGAUGE_PORT_8081_TCP_PORT": "8081",
        "STREAMGAUGE_PORT_8081_TCP_ADDR": "10.0.0.11",
        "STREAMGAUGE_WEB_SERVICE_HOST": "10.0.0.12",
        "STREAMGAUGE_WEB_PORT": "tcp://10.0.0.12:80",
    }
    assert Config.read(links) == Config()
    assert Settings.read({}, {}, links) == Settings()


@pytest.mark.parametrize("variable", ["STREAMGAUGE_SERVICE_HOSTS", "STREAMGAUGE_WEB_PORT", "STREAMGAUGE_PORT_TCP"])
def test_what_only_looks_like_kubernetes_is_refused(variable: str) -> None:
    """A typo of ours stays one."""
    assert refusal({variable: "8081"}).startswith(f"unknown setting {variable}; ")


def test_settings_of_the_hooks_are_let_be() -> None:
    """They may share the environment."""
    assert Config.read(dict.fromkeys(HOOKS - {"STREAMGAUGE_TOKEN"}, "x")) == Config()


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("STREAMGAUGE_PORT", "http", "STREAMGAUGE_PORT='http': a whole number was expected"),
        ("STREAMGAUGE_PORT", "65536", "port 65536: a port is a number from 0 to 65535"),
        ("STREAMGAUGE_INSECURE", "maybe", "STREAMGAUGE_INSECURE='maybe': true or false was expected"),
        ("STREAMGAUGE_MAX_PUSH_BYTES", "0", "max-push-bytes 0: a push needs at least 1 byte"),
        ("STREAMGAUGE_METRICS_MAX_SERIES", "0", "metrics-max-series 0: a page needs at least 1 series"),
    ],
)
def test_mistyped_value_names_setting_value_and_expectation(variable: str, value: str, expected: str) -> None:
    """So that it can be put right without the manual."""
    assert refusal({variable: value}) == expected


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.7", "streamgauge.test"])
def test_beyond_loopback_a_token_or_insecure_is_needed(host: str) -> None:
    """The refusal names every remedy."""
    message = refusal({}, host=host) if host else ""
    assert not host or all(
        remedy in message for remedy in ("--push-token", "STREAMGAUGE_PUSH_TOKEN", "--insecure", "127.0.0.1")
    )
    assert Config(host=host, push_token="t").host == host
    assert Config(host=host, insecure=True).host == host
    with pytest.raises(SettingError):
        Config(host=host)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("LOCALHOST", True),
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("", False),
        ("0.0.0.0", False),
        ("::", False),
        ("localhost.evil.test", False),
        ("127.0.0.1.evil.test", False),
        ("10.0.0.1", False),
    ],
)
def test_loopback_is_this_machine_only(host: str, loopback: bool) -> None:
    """A name that merely looks like it is not."""
    assert is_loopback(host) is loopback


def test_ended_jobs_are_kept_in_a_file_of_this_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the system wants what a program keeps from one start to the next."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert default_archive() == str(tmp_path / "streamgauge" / "archive.db")
    assert Config().archive == default_archive()
    assert default_archive().endswith("archive.db")


@pytest.mark.parametrize("name", ["archive_days", "archive_jobs"])
def test_an_archive_keeps_at_least_one(name: str) -> None:
    """What keeps nothing is another setting."""
    told = refusal({}, **{name: 0})
    assert told.startswith(f"{name.replace('_', '-')} 0: at least 1 ")
    assert told.endswith("--archive none keeps nothing")
