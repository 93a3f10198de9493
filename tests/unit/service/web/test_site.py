"""The page's files as they are served, and that nothing in them is run, or fetched, from elsewhere."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from collector.store import MetricStore
from service.app import create_app
from service.config import Config
from service.web import site
from service.web.site import MEDIA_TYPES, POLICY, Site
from streamgauge.clock import ManualClock
from tests.conftest import Client

ROOT = Path(__file__).parents[4]
FILES = ROOT / "service" / "web" / "files"
OWN = sorted(path.name for path in FILES.iterdir())
LIBRARIES = ("dagre.js", "uplot.css", "uplot.js")
PATHS = ["/", *(f"/web/{name}" for name in (*OWN, *LIBRARIES))]
INDEX = (FILES / "index.html").read_text(encoding="utf-8")
DIRECTIVES = dict(each.strip().split(" ", 1) for each in POLICY.split(";"))
IMPORT = r'^(?:import|export)\b[^;"]*?\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)'

each_path = pytest.mark.parametrize("path", PATHS)


class Elements(HTMLParser):
    """Every element of a page with its attributes, and what stands within scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.inline = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is not None:
            self.inline += data


@pytest.fixture(scope="module")
def page() -> Client:
    return Client(create_app(Config(), MetricStore(), ManualClock()))


@pytest.fixture(scope="module")
def elements() -> Elements:
    parser = Elements()
    parser.feed(INDEX)
    return parser


def own(*ends: str) -> Iterator[tuple[str, str]]:
    return ((name, (FILES / name).read_text(encoding="utf-8")) for name in OWN if name.rpartition(".")[2] in ends)


@each_path
def test_a_file_is_served_whole_with_its_type_and_policy(page: Client, path: str) -> None:
    """Bytes as they lie on the disk; a browser neither guesses types nor takes anything from elsewhere."""
    got = page.get(path, headers={"Accept-Encoding": "identity"})
    name = "index.html" if path == "/" else path.removeprefix("/web/")
    assert got.status_code == 200
    assert got.headers["content-type"] == MEDIA_TYPES[name.rpartition(".")[2]]
    assert got.headers["content-security-policy"] == POLICY
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["referrer-policy"] == "no-referrer"
    assert got.headers["cache-control"] == "no-cache"
    assert got.headers["vary"] == "Accept-Encoding"
    assert "content-encoding" not in got.headers
    assert int(got.headers["content-length"]) == len(got.content) > 0
    if name in OWN:
        assert got.content == (FILES / name).read_bytes()


@each_path
def test_what_a_browser_has_is_not_sent_again(page: Client, path: str) -> None:
    """304 without a body for the very same file, also among others; whole for another."""
    tag = page.get(path).headers["etag"]
    assert re.fullmatch(r'"[0-9a-f]{32}"', tag)
    for asked in (tag, f'"x", W/{tag}'):
        again = page.get(path, headers={"If-None-Match": asked})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["content-security-policy"] == POLICY
    assert page.get(path, headers={"If-None-Match": '"x"'}).status_code == 200


@each_path
def test_gzip_is_the_same_smaller(page: Client, path: str) -> None:
    """For those that take it; it is made once, and the same in every process."""
    plain = page.get(path, headers={"Accept-Encoding": "identity"})
    small = page.get(path, headers={"Accept-Encoding": "br, gzip"})
    assert small.headers["content-encoding"] == "gzip"
    assert small.headers["etag"] == plain.headers["etag"]
    assert small.content == plain.content
    sent = int(small.headers["content-length"])
    assert sent < len(plain.content)
    assert sent == len(gzip.compress(plain.content, mtime=0))


@each_path
def test_head_tells_the_headers_alone(page: Client, path: str) -> None:
    """As GET does, of the same length; only a GET is open to pages of other origins."""
    got, head = page.get(path), page.request("HEAD", path)
    assert (head.status_code, head.content) == (200, b"")
    assert dict(head.headers) == {
        name: value for name, value in got.headers.items() if name != "access-control-allow-origin"
    }


@pytest.mark.parametrize(
    "path", ["/web/none.js", "/web/", "/web", "/web/files/page.css", "/web/..%2fsite.py", "/web/%00", "/index.html"]
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_there_are_no_other_files(page: Client, method: str, path: str) -> None:
    """Flink's own words, as of every path that is none; nothing outside of the folder is to be had."""
    got = page.request(method, path)
    assert got.status_code == 404
    if method == "GET":
        assert list(got.json()) == ["errors"]
        assert got.json()["errors"][0].startswith("Unable to load requested file /")


def test_a_read_token_guards_the_page(store: MetricStore, clock: ManualClock) -> None:
    """Browsers are asked for it, and send it as Basic's password from then on; what they hold is no way around it."""
    guarded = Client(create_app(Config(read_token="secret"), store, clock))
    tag = guarded.get("/", headers={"Authorization": "Bearer secret"}).headers["etag"]
    for path in PATHS:
        refused = guarded.get(path, headers={"If-None-Match": tag})
        assert refused.status_code == 401
        assert "Basic" in refused.headers["www-authenticate"]
        assert b"<script" not in refused.content
    assert guarded.get("/", headers={"Authorization": "Basic OnNlY3JldA=="}).status_code == 200


def test_what_the_index_loads_is_there(page: Client, elements: Elements) -> None:
    """Every script, style sheet and picture, of a path that holds behind a proxy's prefix too."""
    named = [
        value
        for tag, attributes in elements.found
        for name, value in attributes.items()
        if name in ("src", "href") and not value.startswith("#")
    ]
    assert len(named) > 8
    assert {name for name in named if not re.fullmatch(r"web/[\w.]+", name)} == set()
    assert {name: page.get(f"/{name}").status_code for name in named if page.get(f"/{name}").status_code != 200} == {}


def test_every_module_that_is_imported_is_there() -> None:
    """By a path beside the importing one."""
    for name, text in own("js"):
        for imported in re.findall(IMPORT, text, re.MULTILINE):
            path = next(filter(None, imported))
            assert path.startswith("./"), (name, path)
            assert (FILES / path).is_file(), (name, path)


def test_nothing_is_inline(elements: Elements) -> None:
    """No script, style or listener in the markup: the policy would not run it."""
    assert elements.inline.strip() == ""
    assert all("src" in attributes for tag, attributes in elements.found if tag == "script")
    assert not any(tag in ("style", "iframe", "object", "embed", "base", "form") for tag, _ in elements.found)
    names = {name for _, attributes in elements.found for name in attributes}
    assert {name for name in names if name.startswith("on") or name == "style"} == set()


def test_the_policy_lets_nothing_in() -> None:
    """From no other host, and nothing inline: no keyword or scheme that would undo it."""
    assert DIRECTIVES["default-src"] == "'none'"
    assert DIRECTIVES["script-src"] == DIRECTIVES["style-src"] == DIRECTIVES["connect-src"] == "'self'"
    assert DIRECTIVES["frame-ancestors"] == "'none'"
    assert {word for value in DIRECTIVES.values() for word in value.split()} == {"'none'", "'self'", "data:"}


def test_our_files_name_no_other_host() -> None:
    """Offline nothing is missing, and nobody is told who looks at what; namespaces are no addresses."""
    for name, text in own("js", "css", "html", "svg"):
        rest = text.replace("http://www.w3.org/2000/svg", "")
        assert re.findall(r"https?://|wss?://", rest) == [], name
        assert re.findall(r"""(?:src|href|url|action)\s*[=(:]\s*["']?//""", rest) == [], name
        assert "@import" not in rest, name


def test_our_scripts_make_elements_of_text_alone() -> None:
    """What a job says is never read as HTML or as a program, and no style stands in an attribute."""
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|srcdoc|cssText"
    for name, text in own("js"):
        assert re.findall(forbidden, text) == [], name
        assert re.findall(r"""setAttribute\(\s*["']style|[{,]\s*["']?style["']?\s*:""", text) == [], name
        assert re.findall(r"""set(?:Timeout|Interval)\(\s*["'`]""", text) == [], name


def test_libraries_make_no_programs_of_text(page: Client) -> None:
    """
    The policy forbids it to them. uPlot does not; dagre's lodash does in one function, `_.template`, that is called
    nowhere: it is defined, and no `template(` of anybody's stands beside the definition.
    """
    making = r"(?<![\w$.])(?:new )?Function\(|(?<![\w$.])eval\("
    assert re.findall(making, page.get("/web/uplot.js").text) == []
    dagre = page.get("/web/dagre.js").text
    [made] = re.finditer(making, dagre)
    assert "importsKeys" in dagre[made.start() : made.start() + 40]
    assert dagre.rindex("function template(", 0, made.start()) > 0
    assert len(re.findall(r"(?<![\w$])template\(", dagre)) == 1


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start of the service, not when somebody looks."""
    monkeypatch.setitem(site._LIBRARIES, "x.js", ("no-such-distribution", "x.js"))
    with pytest.raises(site.metadata.PackageNotFoundError, match="no-such-distribution"):
        Site()


def test_a_wheel_has_every_file(tmp_path: Path) -> None:
    """They are no modules, and come along all the same."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--disable-pip-version-check", "--wheel-dir"]
    done = subprocess.run([*command, tmp_path, ROOT], capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    [wheel] = tmp_path.glob("*.whl")
    folder = "streamgauge/apart/service/web/files/"
    with zipfile.ZipFile(wheel) as archive:
        there = {name.removeprefix(folder): archive.read(name) for name in archive.namelist() if folder in name}
    assert there == {name: (FILES / name).read_bytes() for name in OWN}
