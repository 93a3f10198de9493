"""No violation of WCAG 2 A and AA that axe finds, in any view, in both themes and widths."""

from __future__ import annotations

from typing import Any

import pytest

from tests.page import axe_core
from tests.page.browser import NARROW, WIDE
from tests.page.conftest import Open
from tests.page.driver import BROKEN, COUNT, HOSTILE, ORDERS
from tests.page.shots import SCHEMES, VIEWS

RUN = """
    async () => (await axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})).violations
        .map(({id, nodes}) =>
            [id, ...nodes.slice(0, 3).map(({html, failureSummary}) => `${html.slice(0, 200)} ${failureSummary}`)])
"""


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_core.source()


def violations(shown: Any, axe: str) -> list[Any]:
    shown.page.evaluate(axe)
    found: list[Any] = shown.page.evaluate(RUN)
    return found


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280", "390"])
def test_axe_finds_nothing(open_page: Open, axe: str, size: tuple[int, int], scheme: str) -> None:
    """Colour contrast included; its script is no part of the page, so the page's policy is set aside for it."""
    shown = open_page(None, size=size, scheme=scheme, bypass_csp=True)
    found = {}
    routes = VIEWS | {"broken": f"/jobs/{BROKEN}", "hostile": f"/jobs/{next(iter(HOSTILE))}?tab=exceptions"}
    for name, route in routes.items():
        shown.page.goto("about:blank")
        shown.page.goto(f"{shown.url}/#{route}")
        shown.page.wait_for_load_state("networkidle")
        if faults := violations(shown, axe):
            found[name] = faults
    assert found == {}


def test_axe_would_find_something(open_page: Open, axe: str) -> None:
    """Else the test above could not fail: text that is as good as invisible, and a button without a name."""
    shown = open_page(f"/jobs/{ORDERS}/vertices/{COUNT}", bypass_csp=True)
    shown.page.evaluate(
        """() => {
            const pale = Object.assign(document.createElement('p'), {textContent: 'pale'});
            pale.style.color = '#ddd';
            pale.style.background = '#fff';
            document.querySelector('main').append(pale, document.createElement('button'));
        }"""
    )
    assert {name for name, *_ in violations(shown, axe)} == {"color-contrast", "button-name"}
