"""No secret of a configuration leaves the driver: not in its setting, and not anywhere else."""

from __future__ import annotations

import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spark_hooks.redaction import KNOWN_CHARS, REPLACEMENT, Redaction

R = REPLACEMENT
redact = Redaction()

SETTINGS = [
    ("spark.x.password", "hunter2", R),
    ("spark.hadoop.fs.s3a.secret.key", "hunter2", R),
    ("spark.hadoop.fs.s3a.access.key", "AKIA", R),
    ("spark.executorEnv.AWS_SECRET_ACCESS_KEY", "hunter2", R),
    ("spark.executorEnv.AWS_ACCESS_KEY_ID", "AKIA", R),
    ("spark.streamgauge.token", "hunter2", R),
    ("spark.executorEnv.STREAMGAUGE_TOKEN", "hunter2", R),
    ("spark.driver.extraJavaOptions", "-Xmx1g -Dmy.password=hunter2", R),
    ("spark.sql.catalog.pg.url", "jdbc:postgresql://me:hunter2@h/db", f"jdbc:postgresql://me:{R}@h/db"),
    ("spark.master", "local[2]", "local[2]"),
    ("spark.submit.pyFiles", "", ""),
]


@pytest.mark.parametrize(("name", "value", "expected"), SETTINGS, ids=[row[0] for row in SETTINGS])
def test_setting_is_hidden_by_its_name_or_its_value(name: str, value: str, expected: str) -> None:
    """Spark hides the whole of it; a URL loses its password alone."""
    assert redact.setting(name, value) == expected


@pytest.mark.parametrize("keys", ["pin", r"\p{Alpha}pin", "(pin"])
def test_our_token_is_secret_whatever_spark_holds_for_secret(keys: str) -> None:
    """In its setting, as an argument and in text; spark.redaction.regex may name other things."""
    own = Redaction(keys)
    assert own.setting("spark.streamgauge.token", "hunter2") == R
    assert own.argument("-Dspark.streamgauge.token=hunter2") == f"-Dspark.streamgauge.token={R}"
    assert own("STREAMGAUGE_PUSH_TOKEN=hunter2, x") == f"STREAMGAUGE_PUSH_TOKEN={R}, x"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("-Dmy.password=hunter2", f"-Dmy.password={R}"),
        ("-Dx=a password=hunter2", f"-Dx={R}"),
        ("-javaagent:/a.jar=token=hunter2", f"-javaagent:/a.jar={R}"),
        ("-Dfoo=bar", "-Dfoo=bar"),
        ("-Xmx1g", "-Xmx1g"),
    ],
)
def test_argument_of_a_process_is_a_setting(word: str, expected: str) -> None:
    """Up to its first '='."""
    assert redact.argument(word) == expected


def test_secret_of_the_configuration_is_secret_wherever_it_stands() -> None:
    """A driver's exception repeats a password without saying so."""
    own = Redaction.of(
        {
            "spark.x.password": "correct-horse",
            "spark.driver.extraJavaOptions": "-Da.secret=battery-staple -Db=c",
            "spark.sql.catalog.pg.url": "jdbc:x://me:open-sesame@h/db",
            "spark.app.name": "flights",
        },
        ["our-own-token"],
    )
    text = "login failed: correct-horse, battery-staple; open-sesame our-own-token flights"
    assert own(text) == f"login failed: {R}, {R}; {R} {R} flights"


def test_short_secret_is_no_reason_to_hide_words() -> None:
    """'true' or '256' may be the value of a setting whose name says token."""
    own = Redaction.of({"spark.token.enabled": "true", "spark.secret.bits": "256"})
    assert own("it is true that 256 is a number") == "it is true that 256 is a number"


def test_longer_secret_is_hidden_whole() -> None:
    """Where one begins with another."""
    own = Redaction(known=["secretabc", "secretabcdef"])
    assert own("a secretabcdef b") == f"a {R} b"


def test_sparks_string_regex_falls_back_to_the_one_for_all() -> None:
    """spark.sql.redaction.string.regex has spark.redaction.string.regex behind it, as in Spark."""
    assert Redaction.of({"spark.redaction.string.regex": r"\d{4}"})("card 1234") == f"card {R}"
    both = {"spark.redaction.string.regex": r"\d{4}", "spark.sql.redaction.string.regex": "x+"}
    assert Redaction.of(both)("1234 xx") == f"1234 {R}"


KEYS = st.sampled_from(["spark.a.password", "my.SECRET.key", "apiToken", "x.access.key", "spark.streamgauge.token"])
VALUES = st.text(st.sampled_from(string.ascii_letters + string.digits + "/+=-_.@:; "), min_size=1, max_size=60).map(
    lambda value: f"Z9{value}9Z"
)
WORDS = st.text(st.sampled_from(string.ascii_letters + " .,()[]="), max_size=30)


@given(KEYS, VALUES)
def test_no_value_of_a_secret_setting_survives(name: str, value: str) -> None:
    """As a setting, and as an argument of the JVM."""
    assert value not in redact.setting(name, value)
    assert value not in redact.argument(f"-D{name}={value}")


@given(KEYS, VALUES, WORDS, WORDS)
def test_no_secret_of_the_configuration_survives_in_any_text(name: str, value: str, before: str, after: str) -> None:
    """However it stands there, and in whatever setting it stands again."""
    assume(len(value) >= KNOWN_CHARS)
    own = Redaction.of({name: value})
    text = f"{before}{value}{after}"
    assert value not in own(text)
    assert value not in own.setting("spark.other", text)
    assert value not in own.argument(f"-Dother={text}")


@given(st.dictionaries(KEYS, VALUES), WORDS)
def test_redacting_again_changes_nothing(settings: dict[str, str], text: str) -> None:
    """Also with secrets that are known."""
    own = Redaction.of(settings)
    once = own(text + " ".join(settings.values()))
    assert own(once) == once
