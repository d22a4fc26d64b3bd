"""The colours of every picture, light and dark, as constants; the style sheet and the charts are made from them.

Blue against vermillion stays apart under every common colour blindness (Okabe and Ito's palette), and no state is told
by colour alone: shape, outline and glyph differ too. Text meets WCAG 2 AA (4.5 : 1) on what it stands on; a test
computes it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

SRGB_KNEE = 0.04045  # WCAG 2 relative luminance: below this an sRGB channel is linear


@dataclass(frozen=True)
class Palette:
    """One scheme, colours as ``#rrggbb``; names say what is painted, not how it looks."""

    surface: str
    panel: str
    text: str
    muted: str
    rule: str
    root_fill: str
    root_text: str
    accepted_fill: str
    accepted_text: str
    accepted_line: str
    accepted_ink: str  # accepted things written on the surface
    rejected_line: str
    rejected_text: str
    rejected_wash: str
    drafted_line: str  # no verdict yet
    drafted_text: str
    passing_line: str  # plausible, the path not chosen yet
    passing_text: str
    passing_wash: str
    quiet_line: str
    quiet_text: str
    quiet_fill: str
    own_fill: str
    own_text: str
    link: str  # what a hovered row attends to
    link_wash: str
    segment: str  # every second step in the output strip
    good_text: str
    bad_text: str


LIGHT = Palette(
    surface="#ffffff",
    panel="#f5f6f8",
    text="#15181c",
    muted="#565d69",
    rule="#d6dae1",
    root_fill="#15181c",
    root_text="#ffffff",
    accepted_fill="#0072b2",
    accepted_text="#ffffff",
    accepted_line="#0072b2",
    accepted_ink="#005f96",
    rejected_line="#d55e00",
    rejected_text="#a64500",
    rejected_wash="#fffaf6",
    drafted_line="#4d5561",
    drafted_text="#15181c",
    passing_line="#0072b2",
    passing_text="#005f96",
    passing_wash="#f0f7fc",
    quiet_line="#9aa1ac",
    quiet_text="#636a77",
    quiet_fill="#f1f3f5",
    own_fill="#15181c",
    own_text="#ffffff",
    link="#7a4fb5",
    link_wash="#eee7f8",
    segment="#eaf1f7",
    good_text="#005f96",
    bad_text="#a64500",
)

DARK = Palette(
    surface="#14171c",
    panel="#1c2027",
    text="#e9ebee",
    muted="#a6aebb",
    rule="#3a404b",
    root_fill="#f1f3f5",
    root_text="#14171c",
    accepted_fill="#56b4e9",
    accepted_text="#000000",
    accepted_line="#56b4e9",
    accepted_ink="#7cc5ef",
    rejected_line="#e69f00",
    rejected_text="#f0b13a",
    rejected_wash="#1f1a12",
    drafted_line="#a6aebb",
    drafted_text="#e9ebee",
    passing_line="#56b4e9",
    passing_text="#7cc5ef",
    passing_wash="#14222c",
    quiet_line="#6f7784",
    quiet_text="#9ca3af",
    quiet_fill="#20252d",
    own_fill="#f1f3f5",
    own_text="#14171c",
    link="#c3a6f0",
    link_wash="#332a45",
    segment="#1d2833",
    good_text="#7cc5ef",
    bad_text="#f0b13a",
)

# (text, background) pairs that are drawn: every one must be readable in both schemes
TEXT_PAIRS = (
    ("text", "surface"),
    ("text", "panel"),
    ("text", "segment"),
    ("text", "link_wash"),
    ("muted", "surface"),
    ("muted", "panel"),
    ("root_text", "root_fill"),
    ("accepted_text", "accepted_fill"),
    ("accepted_ink", "surface"),
    ("accepted_ink", "panel"),
    ("rejected_text", "surface"),
    ("rejected_text", "rejected_wash"),
    ("rejected_text", "panel"),
    ("drafted_text", "surface"),
    ("passing_text", "surface"),
    ("passing_text", "passing_wash"),
    ("quiet_text", "surface"),
    ("quiet_text", "quiet_fill"),
    ("quiet_text", "segment"),
    ("muted", "quiet_fill"),
    ("own_text", "own_fill"),
    ("good_text", "panel"),
    ("bad_text", "panel"),
)


def luminance(colour: str) -> float:
    """WCAG 2 relative luminance of ``#rrggbb``, 0 (black) to 1 (white)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= SRGB_KNEE else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio of two colours, 1 to 21, the same both ways."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def css_variables(palette: Palette) -> str:
    """The palette as CSS declarations: ``accepted_fill`` becomes ``--dtx-accepted-fill``."""
    return "".join(f"--dtx-{name.replace('_', '-')}:{colour};" for name, colour in asdict(palette).items())
