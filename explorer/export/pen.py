"""Drawing in SVG: elements with escaped text, and the pills, signs and colours that tell a row's state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

NAMESPACE = "http://www.w3.org/2000/svg"
FONT = 12  # px, of labels and words
BASELINE = 0.35 * FONT  # from the middle of a line of text down to its foot: not every program centres text itself
WHITESPACE_MARKS = re.compile("([␣↵⇥␍]+)")
WHITESPACE_ONLY = re.compile(r"[␣↵⇥␍×\d]*")


@dataclass(frozen=True)
class Look:
    """How a state is drawn; colours are names of the palette (explorer.views.theme), dashes as SVG writes them."""

    name: str
    fill: str
    text: str
    outline: str | None = None
    dash: str | None = None
    edge: str = "quiet_line"
    edge_dash: str | None = None
    edge_opacity: float = 0.8


# As in assets/viewer: names and signs stand in state.js, paint in viewer.css (a test compares them).
LOOKS = {
    "root": Look("last token", "root_fill", "root_text"),
    "accepted": Look("accepted", "accepted_fill", "accepted_text", edge="accepted_line", edge_opacity=1),
    "rejected": Look(
        "rejected", "rejected_wash", "rejected_text", "rejected_line", edge="rejected_line", edge_opacity=0.75
    ),
    "untried": Look("not tried", "surface", "quiet_text", "quiet_text", "4 2.5", edge_dash="3 2.5"),
    "unreachable": Look("not reached", "quiet_fill", "quiet_text", edge_dash="3 2.5"),
    "window": Look("window", "surface", "quiet_text", "quiet_line"),
    "ghost": Look("pruned", "surface", "quiet_text", "quiet_text", "1 2.5", edge_dash="1 3"),
    "own": Look("target's own token", "own_fill", "own_text", edge="own_fill", edge_opacity=1),
}
SIGNS = {  # check mark, cross, star, each in a box of 10: fonts may lack them
    "accepted": "M1 5.5 4 8.5 9 1.5",
    "rejected": "M2 1.5 8 8.5M8 1.5 2 8.5",
    "own": "M5 .3 6.3 3.7 9.9 3.9 7.1 6.2 8 9.7 5 7.7 2 9.7 2.9 6.2 .1 3.9 3.7 3.7z",
}
STRONG = ("accepted", "own")  # thick edges, bold labels, painted last


@dataclass(frozen=True)
class Pen:
    """Draws below ``element`` in the colours of one scheme, ``#rrggbb`` by the names of the palette."""

    element: ElementTree.Element
    colours: Mapping[str, str]

    def add(self, tag: str, text: str | None = None, /, **attributes: object) -> Pen:
        """A child element, and a pen in it. Attributes that are None are left out.

        ``stroke_width`` is written ``stroke-width``, ``xml__space`` ``xml:space`` and ``class_`` ``class``; ``fill``
        and ``stroke`` take names of the palette.
        """
        values = {
            name.strip("_").replace("__", ":").replace("_", "-"): self._value(name, value)
            for name, value in attributes.items()
            if value is not None
        }
        child = ElementTree.SubElement(self.element, tag, values)
        child.text = text
        child.tail = None if tag == "tspan" else "\n"
        return Pen(child, self.colours)

    def label(self, text: str, **attributes: object) -> None:
        """A token's label, its whitespace marks dimmed unless it has nothing else."""
        parts = [text] if WHITESPACE_ONLY.fullmatch(text) else [part for part in WHITESPACE_MARKS.split(text) if part]
        line = self.add("text", font_size=FONT, unicode_bidi="isolate", **attributes)
        for part in parts:
            is_dim = len(parts) > 1 and WHITESPACE_MARKS.fullmatch(part)
            line.add("tspan", part, fill_opacity=0.5 if is_dim else None)

    def pill(self, state: str, width: float, height: float) -> None:
        """The body of a node, its left edge at 0 and its middle on the line."""
        look = LOOKS[state]
        self.add(
            "rect",
            y=-height / 2,
            width=width,
            height=height,
            rx=2 if state == "rejected" else height / 2,
            fill=look.fill,
            stroke=look.outline,
            stroke_width=1.3 if look.outline else None,
            stroke_dasharray=look.dash,
            stroke_linecap="round" if state == "ghost" else None,
        )

    def sign(self, state: str, left: float, size: float) -> None:
        """What tells the state without colour: check mark, cross or star; the other states have none."""
        if state not in SIGNS:
            return
        colour, is_solid = LOOKS[state].text, state == "own"
        self.add(
            "path",
            d=SIGNS[state],
            transform=f"translate({number(left)} {number(-size / 2)}) scale({number(size / 10)})",
            fill=colour if is_solid else "none",
            stroke=None if is_solid else colour,
            stroke_width=None if is_solid else 1.8,
            stroke_linecap="round",
            stroke_linejoin="round",
        )

    def _value(self, name: str, value: object) -> str:
        if name in ("fill", "stroke"):
            return self.colours.get(str(value), str(value))
        return number(value) if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """A length with two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
