"""Small charts as SVG text: bars with their values, and medians with their quartiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from explorer.export.labels import num_cells, shorten
from explorer.export.pen import BASELINE, FONT, NAMESPACE, Pen, number
from explorer.insight import visible

BAR, BAR_GAP, BAR_HEIGHT = 38.0, 8.0, 96.0  # px
MIN_WIDTH, HEAD, FOOT = 150.0, 40.0, 22.0
HEADING = 13  # px
HEADING_CELL = 0.62 * HEADING
NAME_CELLS, CELL = 16, 0.62 * FONT  # a name is cut to so many cells of so many px
LINE, AXIS, VALUE = 24.0, 270.0, 150.0


def bar_chart(title: str, bars: Sequence[tuple[str, float | None, str]], colours: Mapping[str, str]) -> str:
    """Upright bars. bars: (name, height from 0 to 1 or None, its value in words), from left to right."""
    heading = num_cells(visible(title)) * HEADING_CELL  # few bars are narrower than their heading
    width = max(MIN_WIDTH, len(bars) * (BAR + BAR_GAP) + BAR_GAP, heading)
    root, pen = _picture(title, width, HEAD + BAR_HEIGHT + FOOT, colours)
    foot = HEAD + BAR_HEIGHT
    pen.add("line", x1=0, x2=width, y1=foot, y2=foot, stroke="rule")
    for place, (name, height, value) in enumerate(bars):
        left, middle = BAR_GAP + place * (BAR + BAR_GAP), BAR_GAP + place * (BAR + BAR_GAP) + BAR / 2
        size = BAR_HEIGHT * min(max(height or 0.0, 0.0), 1.0)
        pen.add("rect", x=left, y=foot - size, width=BAR, height=size, fill="accepted_fill")
        pen.add("text", value, x=middle, y=foot - size - 4, text_anchor="middle", font_size=11, fill="text")
        pen.add("text", visible(name), x=middle, y=foot + 15, text_anchor="middle", font_size=11, fill="muted")
    return ElementTree.tostring(root, encoding="unicode")


def spread_chart(
    title: str,
    rows: Sequence[tuple[str, Mapping[str, float] | None]],
    colours: Mapping[str, str],
    line_at: float | None,
) -> str:
    """A dot at each median, a bar over its quartiles; ``line_at`` draws a line, as where nothing is gained."""
    names = NAME_CELLS * CELL
    height = HEAD + LINE * len(rows)
    root, pen = _picture(title, names + AXIS + VALUE, height, colours)
    highest = max([spread["high_quartile"] for _, spread in rows if spread] + [line_at or 0.0])
    scale = AXIS / (highest or 1.0)
    pen.add("line", x1=names, x2=names, y1=HEAD - 6, y2=height, stroke="rule")
    if line_at is not None:
        at = names + line_at * scale
        pen.add("line", x1=at, x2=at, y1=HEAD - 6, y2=height, stroke="muted", stroke_dasharray="3 3")
    for place, (name, spread) in enumerate(rows):
        middle = HEAD + LINE * (place + 0.5)
        label = shorten(visible(name), NAME_CELLS)
        pen.add("text", label, x=names - 8, y=middle + BASELINE, text_anchor="end", fill="text")
        if spread is not None:
            low, at, high = (names + scale * spread[key] for key in ("low_quartile", "median", "high_quartile"))
            pen.add("rect", x=low, y=middle - 5, width=max(high - low, 1.0), height=10, fill="rule")
            pen.add("circle", cx=at, cy=middle, r=5, fill="accepted_fill")
        value = "–" if spread is None else _spread(spread)
        pen.add("text", value, x=names + AXIS + 10, y=middle + BASELINE, fill="muted")
    return ElementTree.tostring(root, encoding="unicode")


def _spread(spread: Mapping[str, float]) -> str:
    return f"{spread['median']:.2f} ({spread['low_quartile']:.2f}–{spread['high_quartile']:.2f})"


def _picture(title: str, width: float, height: float, colours: Mapping[str, str]) -> tuple[ElementTree.Element, Pen]:
    """An empty picture with its heading."""
    box = {"width": number(width), "height": number(height), "viewBox": f"0 0 {number(width)} {number(height)}"}
    root = ElementTree.Element("svg", {"xmlns": NAMESPACE, "role": "img", **box})
    pen = Pen(root, colours)
    shown = visible(title)
    pen.add("title", shown)
    group = pen.add("g", font_family="system-ui, sans-serif", font_size=FONT)
    group.add("text", shown, x=0, y=14, font_size=HEADING, font_weight=600, fill="text")
    return root, group
