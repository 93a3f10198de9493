"""docker-compose.yml, its Dockerfiles, and every file that it mounts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from examples.notices import DEFAULT_PORT
from service.config import Config
from service.doors import Hosts
from tests.programs import program

ROOT = Path(__file__).parents[2]
SERVICES = ["alertmanager", "demo", "grafana", "kafka", "notices", "prometheus", "streamgauge"]
SECRETS = ("STREAMGAUGE_PUSH_TOKEN", "STREAMGAUGE_READ_TOKEN", "GRAFANA_ADMIN_PASSWORD")
TOKEN = "/run/secrets/streamgauge_read_token"
WRITABLE = {"prometheus", "kafka"}
"""Each says why beside it."""
DOCKERFILES = ("service/Dockerfile", "examples/Dockerfile")


def compose(env: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Docker Compose, which reads no variable but those of the file."""
    if sys.version_info < (3, 11):
        pytest.skip("its wheels want Python 3.11")
    command = [program("docker-compose"), "--env-file", str(env), "--profile", "*", *words]
    return subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The project as Docker Compose understands it, every profile in it."""
    env = tmp_path_factory.mktemp("compose") / "env"
    env.write_text("".join(f"{name}=of-{name}\n" for name in SECRETS))
    done = compose(env, "config", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def mounts(config: dict[str, Any]) -> Iterator[tuple[str, Path, str]]:
    """Service, file or folder of ours, and where it is in the container."""
    for name, service in config["services"].items():
        for volume in service.get("volumes", ()):
            if volume["type"] == "bind":
                assert volume["read_only"], f"{name} may write into {volume['source']}"
                yield name, Path(volume["source"]), volume["target"]


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_compose_takes_it_without_a_warning(config: dict[str, Any]) -> None:
    """Kafka is there when it is asked for, and not otherwise."""
    assert sorted(config["services"]) == SERVICES
    profiles = {name: service["profiles"] for name, service in config["services"].items() if service.get("profiles")}
    assert profiles == {"kafka": ["kafka"]}


@pytest.mark.parametrize("name", SECRETS)
def test_a_missing_secret_is_told_by_its_name(tmp_path: Path, name: str) -> None:
    """And where to set it; empty is missing."""
    env = tmp_path / "env"
    env.write_text("".join(f"{each}={'' if each == name else 'given'}\n" for each in SECRETS))
    done = compose(env, "config", "--quiet")
    assert done.returncode != 0
    assert f"required variable {name} is missing a value: set it in .env, see .env.example" in done.stderr


def test_the_example_makes_secrets_and_has_none(tmp_path: Path) -> None:
    """The command in it writes one for each name; a .env is neither committed nor sent to a builder."""
    example = (ROOT / ".env.example").read_text()
    assert re.findall(r"^([^#\n]*)$", example, re.MULTILINE)[:-1] == [f"{name}=" for name in SECRETS]
    program("openssl")
    shutil.copy(ROOT / ".env.example", tmp_path)
    command = re.search(r"sed .*", example)
    assert command is not None
    subprocess.run(["sh", "-c", command.group()], cwd=tmp_path, check=True, timeout=60)
    made = dict(line.split("=") for line in (tmp_path / ".env").read_text().splitlines())
    assert tuple(made) == SECRETS
    assert len(set(made.values())) == len(SECRETS)
    assert all(re.fullmatch(r"[0-9a-f]{48}", value) for value in made.values())
    assert compose(tmp_path / ".env", "config", "--quiet").returncode == 0
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()
    assert not [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!.env")]


def test_every_image_is_one_release(config: dict[str, Any]) -> None:
    """What is not built here has a whole version as its tag, and so has what is built upon."""
    pulled = [service["image"] for service in config["services"].values() if "build" not in service]
    bases = [
        line for file in DOCKERFILES for line in re.findall(r"^FROM (\S+)", (ROOT / file).read_text(), re.MULTILINE)
    ]
    assert len(pulled) == 4
    assert len(bases) == 4
    for image in (*pulled, *bases):
        assert re.fullmatch(r"[a-z/]+:v?\d+\.\d+\.\d+(-slim-bookworm)?", image), image


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_watched_and_can_do_little(config: dict[str, Any], name: str) -> None:
    """A health check, a user that is not root, no capabilities, no new ones, and nothing to write but its data."""
    service = config["services"][name]
    assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert service["restart"] == "unless-stopped"
    user, group = map(int, service["user"].split(":"))
    assert user > 0
    assert group >= 0
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.get("privileged")
    assert bool(service.get("read_only")) == (name not in WRITABLE)
    # Compose refuses to start what is both.
    assert not (service.get("read_only") and service.get("secrets"))


def test_nothing_is_published_beyond_this_machine(config: dict[str, Any]) -> None:
    """Each port as on the inside, so that what is printed there is right here."""
    published = {
        name: [(port["host_ip"], port["published"], port["target"]) for port in service["ports"]]
        for name, service in config["services"].items()
        if service.get("ports")
    }
    ports = {"streamgauge": 8081, "prometheus": 9090, "alertmanager": 9093, "grafana": 3000, "kafka": 9092}
    assert published == {name: [("127.0.0.1", str(port), port)] for name, port in ports.items()}


def test_whatever_is_mounted_exists(config: dict[str, Any]) -> None:
    """Docker makes a folder of what does not, which fails later and elsewhere."""
    found = list(mounts(config))
    assert len(found) == 4
    for name, path, _ in found:
        assert path.is_relative_to(ROOT)
        assert path.exists(), f"{name}: {path}"
        assert any(path.iterdir()), f"{name}: {path} is empty"


def test_the_service_starts_with_what_it_is_given(config: dict[str, Any]) -> None:
    """Its settings are known ones, they suffice beyond loopback, and it answers to its name."""
    environment = config["services"]["streamgauge"]["environment"]
    settings = Config.read(environment, host="0.0.0.0")
    assert (settings.push_token, settings.read_token) == ("of-STREAMGAUGE_PUSH_TOKEN", "of-STREAMGAUGE_READ_TOKEN")
    Hosts(settings).check([(b"host", b"streamgauge:8081")])
    demo = config["services"]["demo"]
    assert demo["environment"] == {"STREAMGAUGE_TOKEN": settings.push_token}
    assert demo["command"] == ["--collector", f"http://streamgauge:{settings.port}"]
    assert "/tmp/streamgauge-flights-*/*-state/commits" in demo["healthcheck"]["test"][1]
    assert 'prefix="streamgauge-flights-"' in (ROOT / "examples/flights.py").read_text()
    assert '"{name}-state"' in (ROOT / "examples/queries.py").read_text()
    assert '"serve", "--host", "0.0.0.0"' in (ROOT / "service/Dockerfile").read_text()


def test_prometheus_is_set_rightly(config: dict[str, Any], tmp_path: Path) -> None:
    """By promtool; what is scraped and told is in the set; the token is where it is looked for."""
    [folder] = [path for name, path, _ in mounts(config) if name == "prometheus"]
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "token").write_text("token")
    file = tmp_path / "prometheus.yml"
    text = file.read_text()
    assert text.count(f"credentials_file: {TOKEN}\n") == 2
    file.write_text(text.replace(TOKEN, "token"))
    done = subprocess.run(
        [program("promtool"), "check", "config", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"\b[1-9]\d* rules found", done.stdout)

    settings = yaml.safe_load(text)
    pages = {each["metrics_path"]: each for each in settings["scrape_configs"]}
    assert sorted(pages) == ["/metrics", "/metrics/flink"]
    for page in pages.values():
        assert page["honor_labels"] is True
        assert page["static_configs"] == [{"targets": [f"streamgauge:{Config().port}"]}]
    [told] = settings["alerting"]["alertmanagers"]
    assert told["static_configs"] == [{"targets": ["alertmanager:9093"]}]
    [secret] = config["services"]["prometheus"]["secrets"]
    assert (secret["source"], config["secrets"][secret["source"]]["environment"]) == (Path(TOKEN).name, SECRETS[1])


def test_alertmanager_is_set_rightly(config: dict[str, Any]) -> None:
    """By amtool; each webhook goes to the notice board."""
    [folder] = [path for name, path, _ in mounts(config) if name == "alertmanager"]
    done = subprocess.run(
        [program("amtool"), "check-config", str(folder / "alertmanager.yml")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for receiver in loaded(folder / "alertmanager.yml")["receivers"]:
        [webhook] = receiver["webhook_configs"]
        assert webhook["url"] == f"http://notices:{DEFAULT_PORT}/{receiver['name']}"


def test_grafana_is_provisioned_from_what_is_mounted(config: dict[str, Any]) -> None:
    """Its sources are in the set, under fixed uids, and its dashboards' folder is the one that has them."""
    found = {target: path for name, path, target in mounts(config) if name == "grafana"}
    provisioning = found["/etc/grafana/provisioning"]
    sources = loaded(provisioning / "datasources/streamgauge.yml")["datasources"]
    assert {each["type"]: each["uid"] for each in sources} == {
        "prometheus": "streamgauge-prometheus",
        "alertmanager": "streamgauge-alertmanager",
    }
    for each in sources:
        url = urlsplit(each["url"])
        [port] = config["services"][url.hostname]["ports"]
        assert port["target"] == url.port
    interval = loaded(ROOT / "dashboards/prometheus/prometheus.yml")["global"]["scrape_interval"]
    assert sources[0]["jsonData"]["timeInterval"] == interval
    [provider] = loaded(provisioning / "dashboards/streamgauge.yml")["providers"]
    assert list(found[provider["options"]["path"]].glob("*.json"))


@pytest.mark.parametrize("file", DOCKERFILES)
def test_a_dockerfile_has_nothing_to_find_fault_with(file: str) -> None:
    """By hadolint; what it runs is not root, and named by its number, which Kubernetes wants to see."""
    done = subprocess.run(
        [program("hadolint"), str(ROOT / file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = (ROOT / file).read_text()
    assert re.findall(r"^USER (\S+)", text, re.MULTILINE) == ["65532:65532"]
    # Where a wheel has examples/ depends on the version of Python.
    versions = re.findall(r"^FROM python:(\d+\.\d+)|lib/python(\d+\.\d+)/", text, re.MULTILINE)
    assert len({one or other for one, other in versions}) == 1


def test_a_builder_gets_what_the_wheel_is_made_of() -> None:
    """.dockerignore lets through the packages of pyproject.toml, and no tests, dashboards' sources or history."""
    allowed = {line[1:].rstrip("/") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    packages = re.search(r"^only-include = (\[.*?\])", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
    assert packages is not None
    wanted = {each for each in re.findall(r'"([^"]+)"', packages.group(1)) if not each.startswith("dashboards/")}
    assert allowed >= wanted | {"pyproject.toml", "constraints.txt", "README.md", "LICENSE"}
    assert not allowed & {"tests", "docs", ".git", ".venv", ".env"}
