"""The pen escapes what it is given, and its states look as they do in the viewer."""

import re
from dataclasses import asdict
from xml.etree import ElementTree

import pytest

from explorer.export.pen import LOOKS, SIGNS, Pen, number
from explorer.trace import STATES
from explorer.views.theme import LIGHT
from explorer.views.viewer import ASSETS, viewer_css
from tests.support.words import HOSTILE


@pytest.fixture
def pen():
    return Pen(ElementTree.Element("svg"), asdict(LIGHT))


def drawn(pen):
    return list(pen.element)


def test_every_state_of_the_record_has_a_look():
    assert set(LOOKS) == {*STATES, "ghost", "own"}


def test_names_and_signs_are_the_viewers():
    script = (ASSETS / "state.js").read_text(encoding="utf-8")
    for state, look in LOOKS.items():
        assert f'{state}: "{look.name}"' in script
    for state, path in SIGNS.items():
        assert f'{state}: "{path}"' in script


@pytest.mark.parametrize("state", LOOKS)
def test_paint_is_the_viewers(state):
    """Each colour and dash of a look is what the style sheet's rules say for that state, or else for every state."""
    look, rules = LOOKS[state], re.findall(r"([^{}]+)\{([^{}]*)\}", viewer_css())

    def stated(part, name):
        """What the rules for a part say; the viewer also paints states in its mask, which is not meant."""
        bodies = [body for heads, body in rules if part in re.split(r",\s*|\s*\n", heads.strip())]
        found = [re.search(rf"(?<![\w-]){name}: *([^;]+?) *(;|$)", body) for body in bodies]
        return [value[1].replace("var(--dtx-", "").replace("-", "_").rstrip(")") for value in found if value]

    pill, edge = f".dtx-node.is-{state} .dtx-pill", f".dtx-edge.is-{state}"
    assert stated(f".dtx-node.is-{state} text", "fill") == [look.text]
    assert (stated(pill, "fill") or stated(".dtx-pill", "fill")) == [look.fill]
    assert (stated(pill, "stroke") or stated(".dtx-pill", "stroke")) == [look.outline or "none"]
    assert stated(pill, "stroke-dasharray") == ([look.dash] if look.dash else [])
    assert (stated(edge, "stroke") or stated(".dtx-edge", "stroke")) == [look.edge]
    assert stated(edge, "stroke-dasharray") == ([look.edge_dash] if look.edge_dash else [])


def test_attributes_are_spelled_and_coloured(pen):
    pen.add("rect", class_="a", data_node=3, xml__space="preserve", stroke_width=1.30, fill="text", opacity=None)
    pen.add("rect", fill="none", class_="text")
    first, second = drawn(pen)
    assert first.attrib == {
        "class": "a", "data-node": "3", "xml:space": "preserve", "stroke-width": "1.3", "fill": LIGHT.text
    }  # fmt: skip
    assert second.attrib == {"fill": "none", "class": "text"}, "only paint is looked up in the palette"


@pytest.mark.parametrize("label", ["␣the", "↵␣×3x", "def", "a␣b"])
def test_whitespace_marks_are_dimmed_and_nothing_is_lost(pen, label):
    pen.label(label, x=1.0)
    parts = list(drawn(pen)[0])
    assert "".join(part.text for part in parts) == label
    dim = "".join(part.text for part in parts if part.get("fill-opacity"))
    assert dim == "".join(char for char in label if char in "␣↵")


def test_a_label_of_marks_alone_is_not_dimmed(pen):
    pen.label("↵␣×4")
    assert [part.get("fill-opacity") for part in drawn(pen)[0]] == [None]


def test_hostile_text_stays_text(pen):
    for label in HOSTILE:
        pen.add("title", label.replace("\0", ""))
    text = ElementTree.tostring(pen.element, encoding="unicode")
    again = [element.text for element in ElementTree.fromstring(text)]
    assert [said.replace("\n", " ").split() for said in again] == [
        label.replace("\0", "").replace("\r", "\n").split() for label in HOSTILE
    ]
    assert "<script" not in text and "<img" not in text


def test_shapes_tell_states_without_colour(pen):
    for state in LOOKS:
        pen.pill(state, 40.0, 10.0)
        pen.sign(state, 2.0, 10.0)
    rects = [element for element in drawn(pen) if element.tag == "rect"]
    assert [rect.get("rx") for rect in rects] == ["2" if state == "rejected" else "5" for state in LOOKS]
    assert len([element for element in drawn(pen) if element.tag == "path"]) == len(SIGNS)


def test_numbers_have_two_decimals():
    assert [number(value) for value in (1, 2.5, 0.126, -3.0, 100.0)] == ["1", "2.5", "0.13", "-3", "100"]
