"""Which package may import which; the arrows of the design, and no other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("streamgauge", "spark_hooks", "collector", "service", "examples", "dashboards")

ALLOWED = {
    "streamgauge": {"streamgauge"},
    "spark_hooks": {"spark_hooks", "streamgauge"},
    "collector": {"collector", "streamgauge"},
    "service": {"service", "collector", "streamgauge"},
    "examples": {"examples", "streamgauge"},
    "dashboards": {"dashboards", "streamgauge"},
}
FACES = ("streamgauge/__init__.py", "streamgauge/cli.py")
"""May name the other packages, inside functions and for type checking only: the one place that does."""
FORBIDDEN = {
    "streamgauge": {"fastapi", "starlette", "pydantic", "uvicorn", "prometheus_client", "hdrh"},
    "spark_hooks": {"rich", "fastapi", "starlette", "pydantic", "uvicorn", "prometheus_client", "hdrh"},
    "collector": {"rich", "fastapi", "starlette", "pydantic", "uvicorn", "pyspark", "py4j"},
    "service": {"rich", "pyspark", "py4j"},
    "examples": set(),
    "dashboards": {"pyspark", "py4j", "fastapi", "prometheus_client"},
}
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(tree: ast.AST) -> Iterator[str]:
    """Names of the modules that a tree imports, at any depth; a relative import is one of its own package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            yield from (
                each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )


def lazy(tree: ast.Module) -> list[ast.AST]:
    """The parts of a module that importing it does not run: functions, and what only type checkers see."""
    inside: list[ast.AST] = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    inside += [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    return inside


def tops(names: Iterator[str]) -> set[str]:
    return {each.partition(".")[0] for each in names}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_arrow_that_is_not_drawn(path: Path) -> None:
    """Service → collector → streamgauge ← spark_hooks; examples → streamgauge; the public face names others lazily."""
    package = path.relative_to(ROOT).parts[0]
    tree = ast.parse(path.read_text())
    wrong = (tops(imported(tree)) & set(PACKAGES)) - ALLOWED[package]
    if name(path) in FACES:
        eager = list(imported(tree))
        for part in lazy(tree):
            for each in imported(part):
                if each in eager:
                    eager.remove(each)
        wrong = (tops(iter(eager)) & set(PACKAGES)) - ALLOWED[package]
    assert not wrong, f"{name(path)} imports {sorted(wrong)}"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_library_where_it_does_not_belong(path: Path) -> None:
    """The collector knows neither HTTP nor Spark; what runs in a driver needs nothing of the service's."""
    package = path.relative_to(ROOT).parts[0]
    wrong = tops(imported(ast.parse(path.read_text()))) & FORBIDDEN[package]
    assert not wrong, f"{name(path)} imports {sorted(wrong)}"


def test_the_walk_sees_every_kind_of_import() -> None:
    """Nested, aliased, dynamic: none escapes."""
    source = (
        "import a.b as c\nfrom d.e import f\nfrom . import g\ndef h():\n  import i\n  importlib.import_module('j.k')\n"
    )
    assert tops(imported(ast.parse(source))) == {"a", "d", "i", "j"}
    found = {name(path) for path in MODULES}
    assert found >= {"service/flink/rest.py", "collector/store.py", "streamgauge/wire/frame.py"}
