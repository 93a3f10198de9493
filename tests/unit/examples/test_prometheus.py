import re
import socket
from pathlib import Path

import pytest

from examples import prometheus
from examples.prometheus import Addresses, Programs, PrometheusMissing
from service.prometheus.families import FAMILIES

ADDRESSES = Addresses("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4")
PROGRAMS = Programs("/bin/prometheus", "/bin/alertmanager")


def installed(folder: Path, *names: str) -> dict[str, str]:
    """An environment in which nothing but these programs is found."""
    for name in names:
        (folder / name).write_text("")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.parametrize("alertmanager", ["prometheus-alertmanager", "alertmanager"])
def test_both_names_of_alertmanager_are_known(tmp_path: Path, alertmanager: str) -> None:
    """Debian's package has a name of its own."""
    environment = installed(tmp_path, "prometheus", alertmanager)
    assert prometheus.find(environment) == Programs(str(tmp_path / "prometheus"), str(tmp_path / alertmanager))


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((), "Prometheus and Alertmanager are not installed; "),
        (("prometheus",), "Alertmanager is not installed; "),
        (("alertmanager",), "Prometheus is not installed; "),
    ],
    ids=["neither", "no Alertmanager", "no Prometheus"],
)
def test_what_is_missing_is_told_with_the_remedy(tmp_path: Path, names: tuple[str, ...], told: str) -> None:
    """Before anything is started, and with Debian's package names."""
    with pytest.raises(PrometheusMissing) as missing:
        prometheus.find(installed(tmp_path, *names))
    assert str(missing.value).startswith(told)
    assert "apt-get install prometheus prometheus-alertmanager" in str(missing.value)
    assert "\n" not in str(missing.value)


def test_usual_ports_are_taken_where_they_are_free() -> None:
    """So that bookmarks work; where something listens there, that one is left alone."""
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as given_back:
        ports = [each.getsockname()[1] for each in (taken, given_back)]
        given_back.close()
        other, usual, another = prometheus.free_addresses(*ports, ports[0])
    assert usual == f"127.0.0.1:{ports[1]}"
    assert len({other, usual, another, f"127.0.0.1:{ports[0]}"}) == 4
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+", each) for each in (other, another))


@pytest.fixture
def dashboards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files such as are in dashboards/, to be changed."""
    source = prometheus.DASHBOARDS
    folder = tmp_path / "dashboards"
    for name in ("prometheus/prometheus.yml", "alertmanager/alertmanager.yml"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text((source / name).read_text())
    (folder / "prometheus/streamgauge.rules.yml").write_text("groups: []\n")
    monkeypatch.setattr(prometheus, "DASHBOARDS", folder)
    return folder


def test_the_demo_is_set_as_the_containers_are(dashboards: Path, tmp_path: Path) -> None:
    """The same files but for the addresses, of which none of the containers' is left."""
    prometheus.configure(tmp_path, ADDRESSES)
    written = {path.name: path.read_text() for path in tmp_path.glob("*.yml")}
    assert sorted(written) == ["alertmanager.yml", "prometheus.yml", "streamgauge.rules.yml"]
    assert written["prometheus.yml"].count('targets: ["127.0.0.1:1"]') == 2
    assert written["prometheus.yml"].count('targets: ["127.0.0.1:4"]') == 1
    assert written["prometheus.yml"].count("credentials_file: read-token\n") == 2
    assert written["alertmanager.yml"].count("url: http://127.0.0.1:2/") == 3
    assert not re.search(r"(?<!examples/)(?:streamgauge|alertmanager|notices):\d|/run/", "".join(written.values()))
    assert (tmp_path / "read-token").read_text() == "none"


def test_a_file_that_speaks_of_another_address_is_refused(dashboards: Path, tmp_path: Path) -> None:
    """Else the demo would ask a host that is none."""
    file = dashboards / "alertmanager/alertmanager.yml"
    file.write_text(file.read_text().replace("notices:8082", "board:8082"))
    with pytest.raises(PrometheusMissing, match=r"does not speak of notices:8082, which is to be 127\.0\.0\.1:2 here"):
        prometheus.configure(tmp_path, ADDRESSES)


def test_missing_files_are_told(dashboards: Path, tmp_path: Path) -> None:
    """With the remedy, not with a traceback."""
    (dashboards / "prometheus/streamgauge.rules.yml").unlink()
    with pytest.raises(PrometheusMissing, match=r"streamgauge\.rules\.yml: No such file or directory; run this in a"):
        prometheus.configure(tmp_path, ADDRESSES)


def test_programs_listen_on_loopback_and_write_into_the_folder() -> None:
    """Nothing is open to the network, and nothing is left of them when the folder is removed."""
    folder = Path("/folder")
    assert prometheus.prometheus_command(PROGRAMS, folder, ADDRESSES) == [
        "/bin/prometheus",
        "--config.file=/folder/prometheus.yml",
        "--storage.tsdb.path=/folder/prometheus-data",
        "--storage.tsdb.retention.time=6h",
        "--web.listen-address=127.0.0.1:3",
        "--web.external-url=http://127.0.0.1:3",
        "--log.level=warn",
    ]
    assert prometheus.alertmanager_command(PROGRAMS, folder, ADDRESSES) == [
        "/bin/alertmanager",
        "--config.file=/folder/alertmanager.yml",
        "--storage.path=/folder/alertmanager-data",
        "--web.listen-address=127.0.0.1:4",
        "--web.external-url=http://127.0.0.1:4",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]


def test_the_printed_queries_ask_for_what_there_is() -> None:
    """Each for another family of ours, or for Prometheus's own series of alerts."""
    asked = [re.findall(r"streamgauge_\w+|ALERTS", query) for query in prometheus.QUERIES]
    assert all(len(names) == 1 for names in asked)
    assert {names[0] for names in asked} <= {family.name for family in FAMILIES.values()} | {"ALERTS"}
    assert len({names[0] for names in asked}) == len(prometheus.QUERIES)
