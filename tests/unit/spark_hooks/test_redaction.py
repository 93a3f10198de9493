"""No secret leaves the driver, and nothing else is lost."""

from __future__ import annotations

import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from spark_hooks.redaction import REPLACEMENT, Redaction

redact = Redaction()
R = REPLACEMENT

CASES = [
    ("assignment", "password=hunter2", f"password={R}"),
    ("colon", "password: hunter2, user: me", f"password: {R}, user: me"),
    ("arrow", "Map(password -> hunter2, user -> me)", f"Map(password -> {R}, user -> me)"),
    ("fat arrow", "password => hunter2", f"password => {R}"),
    ("part of a name", "spark.my.Secret-Key = hunter2;x=1", f"spark.my.Secret-Key = {R};x=1"),
    ("access key", "fs.s3a.access.key=AKIA fs.s3a.accesskey=AKIA", f"fs.s3a.access.key={R} fs.s3a.accesskey={R}"),
    ("credentials", "credentialFile=/x", f"credentialFile={R}"),
    ("JSON", '{"password": "hunter2", "user": "me"}', f'{{"password": "{R}", "user": "me"}}'),
    ("JSON with an escaped quote", r'{"password":"hunt\"er2"}', f'{{"password":"{R}"}}'),
    ("quotes with spaces", 'password="correct horse, battery" x', f'password="{R}" x'),
    ("single quotes", "password='correct horse' x", f"password='{R}' x"),
    ("quotes that a cut description lost", 'password="correct hor', f'password="{R}'),
    ("options", "Options: [password=hunter2, url=u]", f"Options: [password={R}, url=u]"),
    ("brackets in a value", "password=hun)ter]2}x, y", f"password={R}, y"),
    ("a quote in a value", "password=hun\"ter'2 y", f"password={R} y"),
    ("bearer token", "token: Bearer hunter2", f"token: {R}"),
    ("JDBC query", "jdbc:mysql://h/db?user=a&password=hunter2&ssl=1", f"jdbc:mysql://h/db?user=a&password={R}&ssl=1"),
    (
        "JDBC semicolons",
        "jdbc:sqlserver://h:1;user=me;password=hunter2;",
        f"jdbc:sqlserver://h:1;user=me;password={R};",
    ),
    ("JDBC Oracle", "jdbc:oracle:thin:scott/tiger@//h:1521/x", f"jdbc:oracle:thin:scott/{R}@//h:1521/x"),
    ("user info", "mongodb://me:hunter2@h:1/db", f"mongodb://me:{R}@h:1/db"),
    ("user info without a user", "redis://:hunter2@h:1", f"redis://:{R}@h:1"),
    ("user info with an @", "https://me:hun@ter2@h/x", f"https://me:{R}@h/x"),
    ("several", "token=a1,password=b2", f"token={R},password={R}"),
    ("several lines", "token=a1\npassword=b2", f"token={R}\npassword={R}"),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_secrets_are_replaced(text: str, expected: str) -> None:
    """The value goes, names and all else stay."""
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "HashAggregate(keys=[window#14-T1000ms, k#4L], functions=[count(1)])",
        "FileScan json [id#8L] Location: InMemoryFileIndex(1 paths)[file:/data/in], PartitionFilters: []",
        "EventTimeWatermark token_time#0: timestamp, 1 seconds",
        "kafka://broker-1:9092,broker-2:9092/topic",
        "jdbc:postgresql://host:5432/db?user=me",
        "org.apache.spark.SparkException: Job aborted at a.b.C@1f2e3d",
        "the password was wrong",
        f"password={REPLACEMENT}, user=me",
        f'Options: ["token" -> "{REPLACEMENT}"]',
    ],
)
def test_text_without_secrets_is_unchanged(text: str) -> None:
    """Also what Spark has redacted itself."""
    assert redact(text) == text


NAMES = st.sampled_from(
    ["password", "PASSWORD", "db.password", "my-secret", "secretKey", "token", "apiToken", "access.key", "passwd"]
)
SEPARATORS = st.sampled_from(["=", " = ", ":", ": ", "->", " -> ", "=>", ":="])
VALUES = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_categories=["Z", "C"], exclude_characters=",;&\"'")
).map(lambda value: f"x7{value}7x")


@given(NAMES, SEPARATORS, VALUES, st.sampled_from(["", "Options: [", "{", "jdbc:x://h?", "\n"]))
@example("password", "=", "x7))]}7x", "")
@example("password", "=", "x7:=>=7x", "")
def test_no_value_of_a_secret_name_survives(name: str, separator: str, value: str, before: str) -> None:
    """However it is written, and whatever it holds besides what separates options."""
    assert value not in redact(f"{before}{name}{separator}{value}, x")


@given(NAMES, SEPARATORS, st.text(st.characters(exclude_characters='"\\')), st.text(max_size=20))
def test_no_quoted_value_of_a_secret_name_survives(name: str, separator: str, value: str, after: str) -> None:
    """In quotes a value may hold anything."""
    assume(len(value) > 3)
    assert value not in redact(f'{name}{separator}"{value}", ').replace(REPLACEMENT, "")


@given(st.text(st.characters(exclude_characters=":/@"), min_size=1), VALUES)
def test_no_password_of_a_url_survives(user: str, value: str) -> None:
    """Up to the first slash, which no password in a URL may hold."""
    assume("/" not in value)
    assume(not any(character.isspace() for character in user))
    assert value not in redact(f"jdbc:x://{user}:{value}@host:1/db")


@given(st.text(st.sampled_from("passwordtoken=:->\"'[]{}() ,;&@/\\x7*\n")))
def test_redacting_again_changes_nothing(text: str) -> None:
    """What is told twice looks the same."""
    once = redact(text)
    assert redact(once) == once


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="=:>")))
def test_text_without_assignments_is_unchanged(text: str) -> None:
    """Only values are secret, never words."""
    assert redact(text) == text


# ---- Spark's own settings


def test_what_stands_in_a_secrets_place_is_sparks_text() -> None:
    """People know it from Spark's own page."""
    assert redact("password=hunter2") == "password=*********(redacted)"


def test_sparks_regex_names_what_is_secret() -> None:
    """spark.redaction.regex replaces the default."""
    own = Redaction(keys="(?i)pin|puk")
    assert own("PIN=1234, password=x") == f"PIN={R}, password=x"


def test_a_regex_with_groups_of_its_own_works() -> None:
    """Groups of the user's must not shift ours."""
    assert Redaction(keys="(p)(i)n|(?:puk)")("pin=1234 puk=1") == f"pin={R} puk={R}"


def test_case_counts_unless_the_regex_says_otherwise() -> None:
    """As in Java."""
    assert Redaction(keys="pin")("PIN=1234 pin=1234") == f"PIN=1234 pin={R}"


@pytest.mark.parametrize(
    "pattern",
    [r"\p{Alpha}+pass", "(?<name>pin)", r"\Qpin\E", "pin(", "(?i)pin|(?i)puk", "[a-z&&[^b]]pin", "[[a-z]]pin"],
)
def test_a_regex_that_python_does_not_read_leaves_the_default(pattern: str) -> None:
    """Java's own syntax, and what Python reads otherwise; nothing is raised into the driver."""
    assert Redaction(keys=pattern)("password=hunter2, user=me") == f"password={R}, user=me"


def test_sparks_string_regex_hides_what_stands_anywhere() -> None:
    """spark.sql.redaction.string.regex, besides the names."""
    own = Redaction(text=r"\d{4}-\d{4}")
    assert own("card 1234-5678, token=x") == f"card {R}, token={R}"


@pytest.mark.parametrize("pattern", [r"\p{Digit}+", "("])
def test_a_string_regex_that_python_does_not_read_leaves_the_names(pattern: str) -> None:
    """The rest is redacted all the same."""
    assert Redaction(text=pattern)("card 12, token=x") == f"card 12, token={R}"


def test_empty_settings_are_the_default() -> None:
    """As if they were not set."""
    assert Redaction("", "")("password=hunter2") == f"password={R}"


@pytest.mark.parametrize(
    "text", ["x" * 200_000, "secret" * 20_000, "://" * 50_000, 'token="' * 20_000, "a:b@" * 50_000]
)
def test_long_texts_take_no_time(text: str) -> None:
    """A driver's failure may hold anything; its redaction runs in the driver."""
    began = time.process_time()
    redact(text)
    assert time.process_time() - began < 5
