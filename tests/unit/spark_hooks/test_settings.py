"""How the hooks are set: who beats whom, and what is refused with which words."""

from __future__ import annotations

import itertools
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_hooks.settings import Settings
from streamgauge.errors import SettingError

URLS = {"argument": "http://argument:1", "conf": "http://conf:2", "environment": "http://environment:3"}
TOKENS = {"argument": "from-argument", "conf": "from-conf", "environment": "from-environment"}
INTERVALS = {"argument": 500, "conf": 600, "environment": 700}


def read(**changes: Any) -> Settings:
    given = {"arguments": {}, "conf": {}, "environment": {}}
    return Settings.read(**(given | changes))


def test_without_any_setting_there_are_the_defaults() -> None:
    """A collector on this machine, a push a second."""
    assert read() == Settings("http://127.0.0.1:8081", None, 1000)


@pytest.mark.parametrize(
    "where", [set(found) for size in range(1, 4) for found in itertools.combinations(URLS, size)], ids=sorted
)
@pytest.mark.parametrize(("name", "values"), [("url", URLS), ("token", TOKENS), ("interval_ms", INTERVALS)])
def test_environment_beats_conf_beats_argument(where: set[str], name: str, values: dict[str, Any]) -> None:
    """An operator overrides the job's code without touching it."""
    found = read(
        arguments={name: values["argument"]} if "argument" in where else {name: None},
        conf={f"spark.streamgauge.{name}": str(values["conf"])} if "conf" in where else {},
        environment={f"STREAMGAUGE_{name.upper()}": str(values["environment"])} if "environment" in where else {},
    )
    winner = next(source for source in ("environment", "conf", "argument") if source in where)
    assert getattr(found, name) == values[winner]


def test_settings_of_others_are_left_alone() -> None:
    """Spark's own configuration, and the service's environment in the same shell."""
    found = read(conf={"spark.app.name": "x", "spark.streamgaugeless": "y"}, environment={"STREAMGAUGE_PORT": "1"})
    assert found == Settings()


def test_an_empty_variable_is_none() -> None:
    """As an unset one, so that a template may leave it empty."""
    assert read(environment={"STREAMGAUGE_URL": "", "STREAMGAUGE_INTERVAL_MS": ""}) == Settings()


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("spark.streamgauge.intervalMs", "did you mean spark.streamgauge.interval_ms?"),
        ("spark.streamgauge.tokn", "did you mean spark.streamgauge.token?"),
        ("spark.streamgauge.URL", "did you mean spark.streamgauge.url?"),
        ("spark.streamgauge.", "did you mean spark.streamgauge.url?"),
    ],
)
def test_an_unknown_setting_names_the_nearest(key: str, told: str) -> None:
    """A typo must not pass for a setting."""
    with pytest.raises(SettingError) as refused:
        read(conf={key: "1"})
    assert str(refused.value) == f"{key} is no setting; {told}"


def test_an_unknown_setting_like_none_lists_them_all() -> None:
    """Then there is no nearest one."""
    with pytest.raises(SettingError) as refused:
        read(conf={"spark.streamgauge." + "quite-another-thing" * 9: "1"})
    known = ", ".join(sorted(f"spark.streamgauge.{field.name}" for field in fields(Settings)))
    assert str(refused.value).endswith(f"is no setting; there are {known}")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ({"arguments": {"urll": "x"}}, "attach(urll=…) is no setting; did you mean url?"),
        (
            {"environment": {"STREAMGAUGE_ENABLE": "1"}},
            "unknown setting STREAMGAUGE_ENABLE; did you mean STREAMGAUGE_ENABLED?",
        ),
    ],
)
def test_an_unknown_argument_or_variable_names_the_nearest(source: dict[str, Any], told: str) -> None:
    """As one of the configuration does."""
    with pytest.raises(SettingError) as refused:
        read(**source)
    assert str(refused.value) == told


@pytest.mark.parametrize(("value", "enabled"), [("false", False), ("0", False), ("TRUE", True)])
def test_the_hooks_can_be_switched_off(value: str, enabled: bool) -> None:
    """From outside, without touching the job."""
    assert read(environment={"STREAMGAUGE_ENABLED": value}).enabled is enabled
    assert read(conf={"spark.streamgauge.enabled": value}).enabled is enabled
    assert read(arguments={"enabled": enabled}).enabled is enabled
    with pytest.raises(SettingError, match="enabled='perhaps': true or false was expected"):
        read(environment={"STREAMGAUGE_ENABLED": "perhaps"})


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8081", "https://gauge.example", "http://[::1]:8081/", "http://gauge:1/prefix", "HTTP://gauge"],
)
def test_urls_of_a_collector_are_taken(url: str) -> None:
    """With or without a port, a path in front of ours, or IPv6."""
    assert read(arguments={"url": url}).url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8081",
        "gauge",
        "ftp://gauge:8081",
        "http://",
        "http://:8081",
        "http://gauge:port",
        "http://gauge:99999",
        "http://gauge:0",
        "http://[::1",
        "http://gauge:8081?x=1",
        "http://gauge:8081#x",
        "http://gauge :8081",
    ],
)
def test_urls_that_cannot_work_are_refused(url: str) -> None:
    """At once and in words, not by a warning a second later."""
    with pytest.raises(SettingError) as refused:
        read(arguments={"url": url})
    assert str(refused.value) == f"url {url!r}: expected http://host:port or https://host:port of a collector"


@pytest.mark.parametrize("url", ["http://me:hunter2@gauge:8081", "http://hunter2@gauge", "ftp://me:hunter2@gauge"])
def test_a_password_in_the_url_is_refused_and_not_repeated(url: str) -> None:
    """It would stand in every warning line, and the collector would not see it."""
    with pytest.raises(SettingError) as refused:
        read(arguments={"url": url})
    assert str(refused.value) == "url: expected no user and password in it; the collector's token is `token`"


@pytest.mark.parametrize("token", ["hunter2\n", "hunter2 x", "hunter2\r\nX: y", "hunter2é"])
def test_a_token_that_no_header_carries_is_refused_and_not_repeated(token: str) -> None:
    """A line break from a file is the usual one."""
    with pytest.raises(SettingError, match="token: expected visible ASCII") as refused:
        read(arguments={"token": token})
    assert "hunter2" not in str(refused.value)


def test_a_token_is_not_in_the_settings_text() -> None:
    """Whoever logs the settings tells no secret."""
    assert "hunter2" not in repr(Settings(token="hunter2"))


@pytest.mark.parametrize("value", [100, 60_000, "100", "60000"])
def test_the_interval_has_bounds_that_are_allowed(value: object) -> None:
    """100 to 60000, as number or text."""
    assert read(arguments={"interval_ms": value}).interval_ms == int(str(value))


@pytest.mark.parametrize("value", [99, 60_001, 0, -1, "99"])
def test_intervals_out_of_bounds_are_refused(value: object) -> None:
    """The message gives value and bounds."""
    with pytest.raises(SettingError) as refused:
        read(arguments={"interval_ms": value})
    assert str(refused.value) == f"interval_ms {value}: expected milliseconds between 100 and 60000"


@pytest.mark.parametrize("value", ["1s", "1.5", 1.5, True, "", "0x10"])
def test_intervals_that_are_no_whole_numbers_are_refused(value: object) -> None:
    """The message gives the value as it was written."""
    with pytest.raises(SettingError) as refused:
        read(arguments={"interval_ms": value})
    assert str(refused.value) == f"interval_ms {value!r}: expected a whole number"


LATENCY = {
    "latency_interval_ms": ({"argument": 500, "conf": 600, "environment": 700}, 2000),
    "latency_granularity": ({"argument": "single", "conf": "subtask", "environment": "operator"}, "operator"),
    "latency_history_size": ({"argument": 5, "conf": 6, "environment": 7}, 128),
}
"""Setting → a value for each source, and the default."""


@pytest.mark.parametrize("name", LATENCY)
def test_latency_settings_are_read_as_all_others(name: str) -> None:
    """Environment beats configuration beats argument; Flink's defaults, but for the interval, without any."""
    values, default = LATENCY[name]
    arguments = {name: values["argument"]}
    conf = {f"spark.streamgauge.{name}": str(values["conf"])}
    environment = {f"STREAMGAUGE_{name.upper()}": str(values["environment"])}
    assert getattr(read(), name) == default
    assert getattr(read(arguments=arguments), name) == values["argument"]
    assert getattr(read(arguments=arguments, conf=conf), name) == values["conf"]
    assert getattr(read(arguments=arguments, conf=conf, environment=environment), name) == values["environment"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("latency_interval_ms", value) for value in (0, "0", 100, "3600000", 3_600_000)),
        *(("latency_history_size", value) for value in (1, "1", 10_000, "10000")),
    ],
)
def test_latency_settings_have_bounds_that_are_allowed(name: str, value: object) -> None:
    """As number or text; an interval of 0 emits no markers."""
    assert getattr(read(arguments={name: value}), name) == int(str(value))


@pytest.mark.parametrize("value", [99, 1, -1, -100, 3_600_001, "99"])
def test_latency_intervals_out_of_bounds_are_refused(value: object) -> None:
    """The message gives value and bounds, and how to have no markers."""
    with pytest.raises(SettingError) as refused:
        read(arguments={"latency_interval_ms": value})
    assert str(refused.value) == (
        f"latency_interval_ms {value}: expected milliseconds between 100 and 3600000, or 0 for no latency markers"
    )


@pytest.mark.parametrize("value", [0, -1, 10_001, "0"])
def test_latency_histories_out_of_bounds_are_refused(value: object) -> None:
    """A window of no values has no statistics, one of millions no room in a driver."""
    with pytest.raises(SettingError) as refused:
        read(arguments={"latency_history_size": value})
    assert str(refused.value) == f"latency_history_size {value}: expected 1 to 10000 values"


@pytest.mark.parametrize("name", ["latency_interval_ms", "latency_history_size"])
@pytest.mark.parametrize("value", ["2s", "1.5", 1.5, True, ""])
def test_latency_numbers_that_are_not_whole_are_refused(name: str, value: object) -> None:
    """The message gives the value as it was written."""
    with pytest.raises(SettingError) as refused:
        read(arguments={name: value})
    assert str(refused.value) == f"{name} {value!r}: expected a whole number"


@pytest.mark.parametrize("value", ["legacy", "Operator", "SUBTASK", " single", "", 1, True])
def test_granularities_that_there_are_not_are_refused(value: object) -> None:
    """The message names those that there are; the legacy form is always told."""
    with pytest.raises(SettingError) as refused:
        read(arguments={"latency_granularity": value})
    assert str(refused.value) == f"latency_granularity {value!r}: expected single, operator or subtask"


@given(st.text(max_size=30), st.text(max_size=20), st.text(max_size=8))
def test_whatever_is_set_is_taken_or_refused(url: str, token: str, interval: str) -> None:
    """One error for all of it."""
    conf = {"spark.streamgauge.url": "http://" + url, "spark.streamgauge.token": token}
    try:
        found = read(conf=conf | {"spark.streamgauge.interval_ms": interval})
    except SettingError:
        return
    assert 100 <= found.interval_ms <= 60_000
    assert found.token == token
    assert found.token.isascii()
