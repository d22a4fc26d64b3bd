"""The picture of a step holds what the record holds: nodes, states, edges, places, words; and nothing that acts."""

from collections import Counter
from dataclasses import asdict, replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from explorer import insight
from explorer.export.labels import shorten
from explorer.export.pen import LOOKS, NAMESPACE
from explorer.export.svg import LABEL_CELLS, step_nodes, step_svg
from explorer.trace import Label
from explorer.views.theme import DARK, LIGHT
from explorer.views.viewer import view_step
from tests.support.recorded import plain
from tests.support.traces import make_trace

COLOURS = asdict(LIGHT)
TRACES = {
    "eagle2": make_trace("eagle2", 6, 40),
    "sampled": make_trace("eagle2", 6, 40, acceptance="rejection"),
    "medusa": make_trace("medusa", 3, 30),
    "lookahead": make_trace("lookahead", 4, 20),
    "autoregressive": make_trace("autoregressive", 2),
    "hostile": make_trace("eagle2", 6, 40, hostile=True),
}


def parsed(trace, index, **options):
    return ElementTree.fromstring(step_svg(trace, index, COLOURS, **options))


def found(root, kind):
    """Elements of a class, by its first word."""
    return [element for element in root.iter() if element.get("class", "").split(" ")[0] == kind]


def words(element):
    return "".join(element.itertext())


def label_of(node):
    return words(node.find(f"{{{NAMESPACE}}}text"))


@pytest.mark.parametrize("name", TRACES)
def test_states_drawn_and_counted_are_the_record(name):
    trace = TRACES[name]
    for step in trace.steps:
        root = parsed(trace, step.index)
        drawn = Counter(node.get("class").split()[1] for node in found(root, "node"))
        assert drawn == Counter(step.tree.state) + Counter(["own"])
        legend = {entry.get("data-state"): words(entry).strip() for entry in found(root, "legend")[0]}
        for state in ("accepted", "rejected", "untried", "unreachable"):
            assert legend[state] == f"{LOOKS[state].name} {step.tree.state.count(state)}"
        assert legend["root"] == "last token" and legend["own"] == "target's own token"
        assert ("window" in legend) == (name == "lookahead")
        if any(each.num_pruned for each in trace.steps):
            assert legend["ghost"] == f"pruned {step.num_pruned}"
        else:
            assert "ghost" not in legend


def test_ghosts_are_drawn_where_wished_and_the_legend_says_how_many():
    trace = TRACES["eagle2"]
    step = trace.steps[1]
    root = parsed(trace, 1, has_ghosts=True)
    drawn = Counter(node.get("class").split()[1] for node in found(root, "node"))
    assert drawn == Counter(step.tree.state) + Counter(["own"]) + Counter(ghost=len(step.ghosts))
    assert f"pruned {len(step.ghosts)} of {step.num_pruned}" in words(found(root, "legend")[0])


@pytest.mark.parametrize("has_ghosts", [False, True])
def test_edges_lead_from_parent_to_child(has_ghosts):
    """The end of an edge is its node's place, its start the right side of its parent's pill."""
    trace = TRACES["eagle2"]
    step = trace.steps[1]
    root = parsed(trace, 1, has_ghosts=has_ghosts)
    place, right = {}, {}
    for node in found(root, "node"):
        number = int(node.get("data-node"))
        x, y = map(float, node.get("transform").removeprefix("translate(").removesuffix(")").split())
        place[number], right[number] = (x, y), x + float(node.find(f"{{{NAMESPACE}}}rect").get("width"))
    parents = [*step.tree.parent, *step.ghosts.parent, step.path[-1]]
    edges = {int(edge.get("data-edge")): edge.get("d") for edge in found(root, "edge")}
    assert edges.keys() == place.keys() - {0}
    for number, way in edges.items():
        start, _, curve = way.removeprefix("M").replace("C", "|").replace("H", "|H").partition("|")
        x0, y0 = map(float, start.split())
        assert (x0, y0) == pytest.approx((right[parents[number]], place[parents[number]][1]), abs=0.02)
        end = (float(curve[1:]), y0) if curve.startswith("H") else tuple(map(float, curve.split()[-2:]))
        assert end == pytest.approx(place[number], abs=0.02)


def test_places_are_the_layout_of_the_viewer():
    trace = TRACES["eagle2"]
    view = view_step(trace, trace.steps[1])
    nodes = step_nodes(trace, trace.steps[1])
    assert [(node.row, node.col) for node in nodes] == [
        *zip(view["row"], view["col"], strict=True),
        *zip(view["ghosts"]["row"], view["ghosts"]["col"], strict=True),
        (view["own"]["row"], view["own"]["col"]),
    ]
    assert [node.why for node in nodes[: len(view["why"])]] == [view["reasons"][i] for i in view["why"]]


@pytest.mark.parametrize("name", TRACES)
def test_nothing_overlaps_and_nothing_sticks_out(name):
    trace = TRACES[name]
    for step in trace.steps:
        root = parsed(trace, step.index, has_ghosts=True)
        width, height = float(root.get("width")), float(root.get("height"))
        assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
        boxes = []
        for node in found(root, "node"):
            x, y = map(float, node.get("transform").removeprefix("translate(").removesuffix(")").split())
            pill = node.find(f"{{{NAMESPACE}}}rect")
            boxes.append((y, x, x + float(pill.get("width")), float(pill.get("height"))))
        assert all(x >= 0 and right <= width and 0 < y < height for y, x, right, _ in boxes)
        for (y0, _, right, tall), (y1, left, _, _) in pairwise(sorted(boxes)):
            assert y1 - y0 >= tall or left > right


def test_labels_are_the_vocabulary_and_positions_the_prefix():
    trace = TRACES["eagle2"]
    step = trace.steps[2]
    root = parsed(trace, 2)
    labels = {int(node.get("data-node")): label_of(node) for node in found(root, "node")}
    for row, token in enumerate(step.tree.token):
        assert labels[row] == shorten(trace.vocab[str(token)].label, LABEL_CELLS)
    assert labels[len(step.tree) + len(step.ghosts)] == trace.vocab[str(step.next_token)].label
    depth = max([*insight.depths(step.tree.parent), len(step.path)])
    heads = [head.text for head in found(root, "positions")[0]]
    assert heads == [f"position {step.prefix_len}", *(str(step.prefix_len + d) for d in range(1, depth + 1))]


def test_a_node_pointed_at_says_its_numbers_and_why():
    trace = TRACES["sampled"]
    step = trace.steps[1]
    reasons = insight.row_sentences(step, trace.vocab)
    nodes = found(parsed(trace, 1), "node")
    for row, node in enumerate(nodes[:-1]):
        said = node.find(f"{{{NAMESPACE}}}title").text
        assert said.endswith(reasons.texts[reasons.index[row]])
        assert f"target {insight.percent(step.tree.target_prob[row])}" in said
        assert f"draft {insight.percent(step.tree.draft_prob[row])}" in said


def test_edge_width_tells_the_drafters_probability():
    trace = TRACES["eagle2"]
    step = trace.steps[1]
    edges = {int(edge.get("data-edge")): edge for edge in found(parsed(trace, 1), "edge")}
    for row, state in enumerate(step.tree.state):
        if state == "rejected":
            assert float(edges[row].get("stroke-width")) == pytest.approx(
                0.8 + 3.2 * step.tree.draft_prob[row], abs=0.01
            )
        elif state == "accepted":
            assert edges[row].get("stroke-width") == "3"


def test_the_caption_and_the_heading_are_whole():
    trace = TRACES["eagle2"]
    root = parsed(trace, 3)
    caption = " ".join(line.text for line in found(root, "caption")[0])
    assert caption == plain(insight.step_sentence(trace.steps[3], trace.vocab))
    assert "step 4 of 6" in words(root) and trace.target.name in words(root)


def test_hostile_labels_are_text_and_fonts_are_generic():
    trace = TRACES["hostile"]
    names = {"name": "</svg><script>x</script>\ufffe\u202e", "device_name": "<img onerror=x>", "dtype": "float32"}
    trace = replace(trace, target=replace(trace.target, **names))
    for step in trace.steps:
        text = step_svg(trace, step.index, COLOURS, has_ghosts=True)
        root = ElementTree.fromstring(text)
        tags = {element.tag.removeprefix(f"{{{NAMESPACE}}}") for element in root.iter()}
        assert tags <= {"svg", "title", "rect", "text", "tspan", "g", "path"}
        names = {name for element in root.iter() for name in element.attrib}
        assert not [name for name in names if name.startswith("on") or "href" in name or name == "style"]
        assert {element.get("font-family") for element in root.iter()} == {None, "monospace", "sans-serif"}
        assert not set(text) & set("\0\u202e\u202c\u200b\ufffe"), "invisible characters are spelled out"
    assert "⟨U+FFFE⟩⟨U+202E⟩" in words(root)


def test_a_token_without_a_label_is_its_number():
    trace = TRACES["eagle2"]
    step = trace.steps[0]
    vocab = {token: label for token, label in trace.vocab.items() if token != str(step.next_token)}
    nodes = found(parsed(replace(trace, vocab=vocab), 0), "node")
    assert label_of(nodes[-1]) == f"#{step.next_token}"


def test_right_to_left_labels_cannot_reorder_their_neighbours():
    trace = TRACES["eagle2"]
    step = trace.steps[0]
    vocab = trace.vocab | {str(step.tree.token[1]): Label("שלום", "text")}
    node = found(parsed(replace(trace, vocab=vocab), 0), "node")[1]
    text = node.find(f"{{{NAMESPACE}}}text")
    assert words(text) == "שלום" and text.get("unicode-bidi") == "isolate"


@pytest.mark.parametrize(("label", "num_isolates"), [("word", 0), ("שלום", 2)])
def test_the_caption_has_isolates_only_where_its_direction_is_in_doubt(label, num_isolates):
    trace = TRACES["autoregressive"]
    vocab = trace.vocab | {str(token): Label(label, "text") for token in trace.steps[0].emitted}
    said = "".join(found(parsed(replace(trace, vocab=vocab), 0), "caption")[0].itertext())
    assert label in said
    assert sum(said.count(mark) for mark in "\u2068\u2069") == num_isolates


def test_dark_uses_the_dark_palette_alone():
    text = step_svg(TRACES["eagle2"], 1, asdict(DARK))
    used = {
        value for e in ElementTree.fromstring(text).iter() for k, value in e.attrib.items() if k in ("fill", "stroke")
    }
    assert {colour for colour in used if colour.startswith("#")} <= set(asdict(DARK).values())
    assert not [colour for colour in used if colour != "none" and not colour.startswith("#")], "every name is known"
