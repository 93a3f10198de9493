"""The manifests of docs/kubernetes/: valid, and of one mind with the service, the hooks and prometheus.yml."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from collector.store import MetricStore
from service.app import create_app
from service.config import Config
from service.doors import Hosts
from spark_hooks.launcher import SITE
from spark_hooks.settings import Settings
from streamgauge.clock import ManualClock
from streamgauge.environment import HOOKS, SERVICE
from tests.contract.test_compose import loaded

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "kubernetes"
VERSIONS = ("1.29", "1.37")
"""The oldest that is asked for, and the newest whose schemas are at hand."""


def manifests(name: str) -> dict[str, Any]:
    """A file's documents by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all((FOLDER / name).read_text())}


CORE = manifests("streamgauge.yaml")
DEPLOYMENT, SERVED = CORE["Deployment"], CORE["Service"]
[CONTAINER] = DEPLOYMENT["spec"]["template"]["spec"]["containers"]
MONITOR = manifests("servicemonitor.yaml")["ServiceMonitor"]
APPLICATION = manifests("sparkapplication.yaml")["SparkApplication"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["Deployment", "Service"])
def test_kubernetes_takes_what_is_its_own(kind: str, version: str) -> None:
    """Every field is known, and has a value of its kind."""
    kubernetes_validate.validate(CORE[kind], version, strict=True)


def test_the_schemas_would_find_a_misspelt_field() -> None:
    """They are not those that let everything pass."""
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(SERVED | {"spec": SERVED["spec"] | {"port": []}}, VERSIONS[-1], strict=True)


def test_everything_there_is_looked_at() -> None:
    """A manifest more wants a test more."""
    assert sorted(path.name for path in FOLDER.iterdir()) == [
        "servicemonitor.yaml",
        "sparkapplication.yaml",
        "streamgauge.yaml",
    ]
    assert sorted(CORE) == ["Deployment", "PersistentVolumeClaim", "Service"]


def test_the_service_reaches_the_pods_and_prometheus_the_service() -> None:
    """By labels and names of ports."""
    labels = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    assert DEPLOYMENT["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert SERVED["spec"]["selector"].items() <= labels.items()
    [inside], [outside] = CONTAINER["ports"], SERVED["spec"]["ports"]
    assert inside["containerPort"] == outside["port"] == Config().port
    assert outside["targetPort"] == inside["name"]
    assert MONITOR["spec"]["selector"]["matchLabels"].items() <= SERVED["metadata"]["labels"].items()
    assert {each["port"] for each in MONITOR["spec"]["endpoints"]} == {outside["name"]}
    assert {each["metadata"]["namespace"] for each in (*CORE.values(), MONITOR)} == {"monitoring"}


def test_prometheus_scrapes_as_it_does_in_the_containers() -> None:
    """The rules and dashboards name the jobs, and choose their ranges by the interval."""
    theirs = loaded(ROOT / "dashboards/prometheus/prometheus.yml")
    ours = {
        each["metrics_path"]: (each["job_name"], theirs["global"]["scrape_interval"], each["honor_labels"])
        for each in theirs["scrape_configs"]
    }
    found = {}
    for each in MONITOR["spec"]["endpoints"]:
        [job] = each["relabelings"]
        assert job["targetLabel"] == "job"
        found[each["path"]] = (job["replacement"], each["interval"], each["honorLabels"])
    assert found == ours


def test_the_service_starts_with_what_it_is_given() -> None:
    """Known settings, none of them a secret; the image listens beyond loopback."""
    secrets = {each["name"]: each["valueFrom"]["secretKeyRef"] for each in CONTAINER["env"] if "valueFrom" in each}
    values = {each["name"]: each["value"] for each in CONTAINER["env"] if "value" in each}
    assert secrets == {
        "STREAMGAUGE_PUSH_TOKEN": {"name": "streamgauge", "key": "push-token"},
        "STREAMGAUGE_READ_TOKEN": {"name": "streamgauge", "key": "read-token"},
    }
    for each in MONITOR["spec"]["endpoints"]:
        assert each["authorization"]["credentials"] == secrets["STREAMGAUGE_READ_TOKEN"]
    assert set(values) < SERVICE
    settings = Config.read(values | dict.fromkeys(secrets, "secret"), host="0.0.0.0")
    url = APPLICATION["spec"]["sparkConf"]["spark.streamgauge.url"]
    for host in (
        "streamgauge",
        url.removeprefix("http://"),
        "streamgauge.monitoring.svc.cluster.local:8081",
        "10.0.0.1",
    ):
        Hosts(settings).check([(b"host", host.encode())])


@pytest.mark.parametrize(
    ("probe", "path"),
    [("startupProbe", "/-/ready"), ("readinessProbe", "/-/ready"), ("livenessProbe", "/-/healthy")],
)
def test_a_probe_asks_for_what_there_is(probe: str, path: str) -> None:
    """Of the named port, without a token."""
    assert CONTAINER[probe]["httpGet"] == {"path": path, "port": CONTAINER["ports"][0]["name"]}
    routes = {getattr(route, "path", "") for route in create_app(Config(), MetricStore(), ManualClock(0)).routes}
    assert path in routes


def test_the_pod_can_do_little() -> None:
    """As the restricted profile of Kubernetes' pod security standards asks for, and with nothing to write on."""
    pod = DEPLOYMENT["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    [user] = re.findall(r"^USER (\d+):(\d+)$", (ROOT / "service/Dockerfile").read_text(), re.MULTILINE)
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]) == tuple(map(int, user))
    assert DEPLOYMENT["spec"]["replicas"] == 1
    assert DEPLOYMENT["spec"]["strategy"] == {"type": "Recreate"}


def test_the_jobs_settings_are_the_hooks() -> None:
    """They attach by themselves, find the service, and have the token from a Secret, never from the configuration."""
    conf = APPLICATION["spec"]["sparkConf"]
    settings = Settings.read({}, conf, {})
    assert settings.url == f"http://{SERVED['metadata']['name']}.{SERVED['metadata']['namespace']}.svc:8081"
    assert settings.token is None
    prefix = "spark.kubernetes.driver.secretKeyRef."
    assert {name.removeprefix(prefix) for name in conf if name.startswith(prefix)} == {"STREAMGAUGE_TOKEN"} < HOOKS
    site = Path(conf["spark.kubernetes.driverEnv.PYTHONPATH"])
    assert site.parts[-2:] == SITE.parts[-2:]
    assert SITE.is_dir()
