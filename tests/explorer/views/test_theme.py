"""The palette: readable in both schemes, and its states apart for every kind of colour vision."""

from __future__ import annotations

import itertools

import pytest

from explorer.views.theme import DARK, LIGHT, TEXT_PAIRS, Palette, contrast, css_variables

SCHEMES = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
READABLE = 4.5  # WCAG 2 AA for text
VISIBLE = 3.0  # WCAG 2 AA for graphics

# Machado, Oliveira and Fernandes 2009, severity 1: linear RGB of what is seen.
VISION = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def seen(colour: str, vision: str) -> list[float]:
    linear = [(int(colour[i : i + 2], 16) / 255) ** 2.2 for i in (1, 3, 5)]
    return [sum(w * c for w, c in zip(row, linear, strict=True)) for row in VISION[vision]]


@SCHEMES
@pytest.mark.parametrize("pair", TEXT_PAIRS, ids="-on-".join)
def test_text_is_readable(palette: Palette, pair: tuple[str, str]) -> None:
    assert contrast(getattr(palette, pair[0]), getattr(palette, pair[1])) >= READABLE


@SCHEMES
@pytest.mark.parametrize(
    "line", ["accepted_line", "rejected_line", "drafted_line", "passing_line", "link", "root_fill", "own_fill"]
)
def test_lines_and_shapes_are_visible(palette: Palette, line: str) -> None:
    assert contrast(getattr(palette, line), palette.surface) >= VISIBLE


@SCHEMES
@pytest.mark.parametrize("vision", VISION)
def test_accepted_rejected_and_link_stay_apart(palette: Palette, vision: str) -> None:
    colours = [palette.accepted_line, palette.rejected_line, palette.quiet_line, palette.root_fill]
    for one, other in itertools.combinations(colours, 2):
        difference = sum((a - b) ** 2 for a, b in zip(seen(one, vision), seen(other, vision), strict=True)) ** 0.5
        assert difference > 0.12, (one, other)


def test_contrast_is_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#ffffff", "#777777") == contrast("#777777", "#ffffff")


def test_css_variables_are_plain() -> None:
    text = css_variables(LIGHT)
    assert "--dtx-accepted-fill:#0072b2;" in text
    assert not set(text) & set("{}\\$`")
