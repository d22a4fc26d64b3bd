"""Charts are well-formed, say their values, and keep text as text."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from explorer.export.charts import BAR_HEIGHT, bar_chart, spread_chart
from tests.support.words import HOSTILE

COLOURS = {"accepted_fill": "#0072b2"}
SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_as_high_as_their_share() -> None:
    root = ElementTree.fromstring(bar_chart("x", [("1", 0.5, "50%"), ("2", None, "–"), ("3", 7.0, "7")], COLOURS))
    heights = [float(rect.get("height", "")) for rect in root.iter(f"{SVG}rect")]
    assert heights == [BAR_HEIGHT / 2, 0, BAR_HEIGHT]
    assert "50%" in [text.text for text in root.iter(f"{SVG}text")]


def test_a_heading_fits_above_one_bar() -> None:
    root = ElementTree.fromstring(bar_chart("passes by accepted drafts", [("0", 1.0, "9")], COLOURS))
    assert float(root.get("width", "")) >= 192, "as wide as a browser draws this heading in DejaVu Sans"
    assert float(ElementTree.fromstring(bar_chart("x", [("0", 1.0, "9")], COLOURS)).get("width", "")) < 192


def test_medians_stand_inside_their_quartiles_and_nothing_is_a_dash() -> None:
    spread = {"median": 1.2, "low_quartile": 1.0, "high_quartile": 1.6}
    root = ElementTree.fromstring(spread_chart("x", [("a", spread), ("b", None)], COLOURS, 1.0))
    (bar,), (dot,) = root.iter(f"{SVG}rect"), root.iter(f"{SVG}circle")
    left, width = float(bar.get("x", "")), float(bar.get("width", ""))
    assert left < float(dot.get("cx", "")) < left + width
    assert dot.get("fill") == "#0072b2"
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "1.20 (1.00–1.60)" in texts and "–" in texts


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_text(name: str) -> None:
    for picture in (bar_chart(name, [(name, 1.0, "1")], {}), spread_chart(name, [(name, None)], {}, None)):
        tags = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(picture).iter()}
        assert tags <= {"svg", "title", "g", "text", "rect", "line", "circle"}
