"""The offline page of a benchmark: complete, without script or request, and hostile names stay text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from explorer.bench_report import build_report
from explorer.export.bench_page import bench_page
from explorer.metrics import HeadCount
from explorer.views.theme import DARK, LIGHT, css_variables
from tests.explorer.test_bench_report import DRAFTED, HEAD, PLAIN, SECOND
from tests.support.words import HOSTILE


class Tags(HTMLParser):
    """Every element of a page with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def page(category: str = "chat") -> str:
    heads = [HeadCount(4, 2, 3), HeadCount(3, 0, 1)]
    own = [replace(PLAIN, category=category), replace(DRAFTED, category=category, heads=heads), *SECOND]
    return bench_page(build_report(HEAD, own), css_variables(LIGHT), css_variables(DARK))


def test_every_table_and_figure_is_there() -> None:
    text = page()
    for part in ("Acceptance by head", "tau by category", "Speedup over plain decoding", "head right at once"):
        assert part in text
    assert text.count("<details>") == 2
    pictures = re.findall(r"<svg .*?</svg>", text, re.DOTALL)
    assert len(pictures) >= 6
    for picture in pictures:
        ElementTree.fromstring(picture)


def test_every_colour_is_one_of_the_page() -> None:
    text = page()
    for name in set(re.findall(r"var\((--dtx-[\w-]+)\)", text)):
        assert text.count(f"{name}:") == 2, f"{name} in light and dark"


def test_the_page_runs_nothing_and_fetches_nothing() -> None:
    tags = Tags(page())
    assert "script" not in {tag for tag, _ in tags.found}
    links = [attributes.get(name) for _, attributes in tags.found for name in ("src", "href")]
    assert {link for link in links if link} == {"data:,"}
    policy = next(a["content"] for tag, a in tags.found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and "default-src 'none'" in policy and "script" not in policy


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_category_adds_no_element(name: str) -> None:
    plain = sorted(tag for tag, _ in Tags(page()).found)
    assert sorted(tag for tag, _ in Tags(page(name)).found) == plain
