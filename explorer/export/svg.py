"""One step's draft tree as a standalone SVG: what the viewer draws, with nothing folded and nothing to click.

Places come from explorer.views.layout, words from explorer.insight. Colours, strokes and places are plain attributes
and the fonts are the generic families, so that browsers, Inkscape, LibreOffice and LaTeX's converters show the same.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from xml.etree import ElementTree

from explorer.export.labels import num_cells, shorten
from explorer.export.pen import BASELINE, FONT, LOOKS, NAMESPACE, SIGNS, STRONG, Pen, number
from explorer.insight import ghost_sentence, own_token_sentence, percent, row_sentences, step_sentence, visible
from explorer.trace import Step, Trace
from explorer.views.layout import lay_out_step

PAD, ROW, PILL_HEIGHT, LABEL_CELLS = 14.0, 20.0, 17.0, 18
MIN_GAP, MAX_GAP, MIN_PILL, MIN_WIDTH = 44.0, 84.0, 52.0, 840.0  # px; the legend fits the width in one line
CELL = 0.605 * FONT  # width of a monospace cell
NARROW_LETTERS, NARROW, WIDE = "fijlrt'., ", 0.36, 0.62  # of a sans-serif font, in font sizes; Arial's are less
MEAN_LETTER = 0.53
RIGHT_TO_LEFT = ("R", "AL", "AN")  # of Unicode's bidirectional classes
LEGEND = ("root", "accepted", "rejected", "untried", "unreachable", "window", "own", "ghost")
UNCOUNTED = ("root", "own")  # there is one of each


@dataclass(frozen=True)
class Node:
    """A row, a ghost or the target's own token, numbered in this order, as in the viewer; its place counts from 0."""

    index: int
    parent: int
    state: str
    label: str
    draft_prob: float | None
    target_prob: float | None
    why: str
    row: int
    col: int


@dataclass(frozen=True)
class Column:
    """One depth of the tree, in px."""

    left: float
    width: float

    @property
    def right(self) -> float:
        """Where the edges to its children begin."""
        return self.left + self.width


def step_svg(trace: Trace, index: int, colours: Mapping[str, str], *, has_ghosts: bool = False) -> str:
    """The picture of step ``index`` (counted from 0) as SVG text.

    colours: ``#rrggbb`` by the names of explorer.views.theme.Palette. has_ghosts: also draw what was pruned.
    """
    step = trace.steps[index]
    nodes = _shown(step_nodes(trace, step), has_ghosts)
    columns = _columns(nodes)
    width = max(MIN_WIDTH, columns[-1].right + PAD)
    root = ElementTree.Element("svg", {"xmlns": NAMESPACE, "role": "img"})
    pen = Pen(root, colours)
    pen.add("title", f"Draft tree of step {index + 1}, {visible(trace.method)} on {visible(trace.target.name)}")
    paper = pen.add("rect", width="100%", height="100%", fill="surface")
    _heading(pen, trace, step)
    top = _legend(pen, trace, step, width, num_ghosts=sum(node.state == "ghost" for node in nodes))
    top = _tree(pen, nodes, columns, top, step.prefix_len)
    height = _caption(pen, step_sentence(step, trace.vocab), top, width)
    for element in (root, paper.element):
        element.attrib.update(width=number(width), height=number(height))
    root.set("viewBox", f"0 0 {number(width)} {number(height)}")
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def step_nodes(trace: Trace, step: Step) -> list[Node]:
    """All nodes of the step, pruned ones too, with their places when everything is shown."""
    layout, tree, ghosts = lay_out_step(step), step.tree, step.ghosts
    reasons = row_sentences(step, trace.vocab)
    whys = [reasons.texts[index] for index in reasons.index] + [ghost_sentence(step)] * len(ghosts)
    tokens = [*tree.token, *ghosts.token, step.next_token]
    columns = zip(
        range(len(tokens)),
        [*tree.parent, *ghosts.parent, step.path[-1]],
        [*tree.state, *("ghost" for _ in ghosts.token), "own"],
        [_label(trace, token) for token in tokens],
        [*tree.draft_prob, *ghosts.draft_prob, None],
        [*tree.target_prob, *ghosts.target_prob, step.next_prob],
        [*whys, own_token_sentence(step, trace.vocab)],
        layout.row,
        layout.col,
        strict=True,
    )
    return [Node(*values) for values in columns]


def _label(trace: Trace, token: int) -> str:
    found = trace.vocab.get(str(token))
    return visible(found.label) if found else f"#{token}"


def _shown(nodes: list[Node], has_ghosts: bool) -> list[Node]:
    """The nodes to draw, empty rows closed: the order of children makes that enough (explorer.views.layout)."""
    kept = [node for node in nodes if has_ghosts or node.state != "ghost"]
    place = {row: at for at, row in enumerate(sorted({node.row for node in kept}))}
    return [replace(node, row=place[node.row]) for node in kept]


def _columns(nodes: list[Node]) -> list[Column]:
    """A column is one depth, as wide as its longest label."""
    widths = [MIN_PILL] * (1 + max(node.col for node in nodes))
    for node in nodes:
        label = shorten(node.label, LABEL_CELLS)
        widths[node.col] = max(widths[node.col], _text_start(node.state) + num_cells(label) * CELL + 8)
    room = (MIN_WIDTH - 2 * PAD - sum(widths)) / max(1, len(widths) - 1)
    columns = [Column(PAD, widths[0])]
    for width in widths[1:]:
        columns.append(Column(columns[-1].right + min(max(room, MIN_GAP), MAX_GAP), width))
    return columns


def _text_start(state: str) -> float:
    return 6.0 + FONT if state in SIGNS else 8.0


def _heading(pen: Pen, trace: Trace, step: Step) -> None:
    """What ran, and which step this is."""
    target = trace.target
    run = f"{target.name}, {target.dtype} on {target.device_name}"
    where = f"step {step.index + 1} of {len(trace.steps)}  ·  {step.prefix_len} tokens in the cache  ·  {visible(run)}"
    line = pen.add("text", x=PAD, y=PAD + 13, font_family="sans-serif")
    line.add("tspan", visible(trace.method), font_size=15, font_weight=600, fill="text")
    line.add("tspan", where, dx=10, font_size=FONT, fill="muted")


def _legend(pen: Pen, trace: Trace, step: Step, width: float, *, num_ghosts: int) -> float:
    """Every state with its sign and its count in this step; returns where the next part begins."""
    group = pen.add("g", class_="legend", font_family="sans-serif", font_size=FONT, fill="text")
    x, y = PAD, PAD + 36
    for state in _legend_states(trace):
        words = LOOKS[state].name + _count(step, state, num_ghosts)
        needed = 25 + _sans_width(words) * FONT
        if x + needed > width - PAD:
            x, y = PAD, y + 18
        entry = group.add("g", data_state=state, transform=f"translate({number(x)} {number(y)})")
        entry.pill(state, 20.0, 10.0)
        entry.sign(state, 6.0, 6.4)
        entry.add("text", words, x=25, y=BASELINE)
        x += needed + 14
    return y + 20


def _sans_width(text: str) -> float:
    return sum(NARROW if char in NARROW_LETTERS else WIDE for char in text)


def _legend_states(trace: Trace) -> list[str]:
    """The states of the legend; what only some methods have is left out where no step of the run has it."""
    has_some = {
        "window": any("window" in step.tree.state for step in trace.steps),
        "ghost": any(step.num_pruned for step in trace.steps),
    }
    return [state for state in LEGEND if has_some.get(state, True)]


def _count(step: Step, state: str, num_ghosts: int) -> str:
    if state in UNCOUNTED:
        return ""
    if state != "ghost":
        return f" {step.tree.state.count(state)}"
    return f" {num_ghosts} of {step.num_pruned}" if 0 < num_ghosts < step.num_pruned else f" {step.num_pruned}"


def _tree(pen: Pen, nodes: list[Node], columns: list[Column], top: float, prefix_len: int) -> float:
    """Position ids, edges, then nodes; returns where the next part begins."""
    heads = pen.add("g", class_="positions", font_family="sans-serif", font_size=10.5, fill="muted")
    for col, column in enumerate(columns):
        heads.add("text", f"{'' if col else 'position '}{prefix_len + col}", x=column.left + 2, y=top + 8)
    top += 14
    edges = pen.add("g", class_="edges", fill="none")
    group = pen.add("g", class_="nodes", font_family="monospace", xml__space="preserve")
    by_index = {node.index: node for node in nodes}
    for node in sorted(nodes[1:], key=lambda node: node.state in STRONG):
        _edge(edges, node, by_index[node.parent], columns, top)
    for node in nodes:
        _node(group, node, columns[node.col], top)
    return top + ROW * (1 + max(node.row for node in nodes)) + 4


def _middle(node: Node, top: float) -> float:
    return top + (node.row + 0.5) * ROW


def _edge(pen: Pen, node: Node, parent: Node, columns: list[Column], top: float) -> None:
    """Its width tells the drafter's probability; what was accepted is thick."""
    look, start, end = LOOKS[node.state], columns[parent.col].right, columns[node.col].left
    y0, y1, bend = _middle(parent, top), _middle(node, top), (end - start) * 0.55
    curve = (start + bend, y0, end - bend, y1, end, y1)
    way = f"H{number(end)}" if y0 == y1 else f"C{' '.join(map(number, curve))}"
    thin = 1.2 if node.draft_prob is None else 0.8 + 3.2 * node.draft_prob
    pen.add(
        "path",
        class_=f"edge {node.state}",
        data_edge=node.index,
        d=f"M{number(start)} {number(y0)}{way}",
        stroke=look.edge,
        stroke_width=3.0 if node.state in STRONG else thin * (1 if node.state == "rejected" else 0.6),
        stroke_dasharray=look.edge_dash,
        opacity=look.edge_opacity,
    )


def _node(pen: Pen, node: Node, column: Column, top: float) -> None:
    """The pill with sign and label; pointed at, it says its numbers and why it has its state."""
    look, start = LOOKS[node.state], _text_start(node.state)
    group = pen.add(
        "g",
        class_=f"node {node.state}",
        data_node=node.index,
        transform=f"translate({number(column.left)} {number(_middle(node, top))})",
        opacity=0.75 if node.state == "ghost" else None,
    )
    chances = f"draft {percent(node.draft_prob)}, target {percent(node.target_prob)}"
    group.add("title", f"{node.label} ({look.name}; {chances}). {node.why}")
    group.pill(node.state, column.width, PILL_HEIGHT)
    group.sign(node.state, 6.0, 0.72 * FONT)
    weight = 600 if node.state in STRONG else None
    group.label(shorten(node.label, LABEL_CELLS), x=start, y=BASELINE, fill=look.text, font_weight=weight)


def _caption(pen: Pen, caption: str, top: float, width: float) -> float:
    """The step in words; returns the height of the whole."""
    group = pen.add("g", class_="caption", font_family="sans-serif", font_size=13, fill="text")
    if not any(unicodedata.bidirectional(char) in RIGHT_TO_LEFT for char in caption):
        caption = caption.translate({0x2068: None, 0x2069: None})  # some converters draw isolates as boxes
    for line in textwrap.wrap(caption, int((width - 2 * PAD) / (13 * MEAN_LETTER))):
        top += 18
        group.add("text", line, x=PAD, y=top)
    return top + PAD
