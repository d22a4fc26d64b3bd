"""The draft tree of one step as GraphML, written by networkx: every column of the record is a node attribute."""

from __future__ import annotations

import io
import json
from dataclasses import fields
from typing import Any

import networkx as nx

from explorer.codec import encode
from explorer.insight import depths, visible
from explorer.trace import GhostColumns, Step, Trace, TreeColumns
from explorer.views.layout import lay_out_step

Scalar = str | int | float | bool


def step_graphml(trace: Trace, index: int) -> bytes:
    """The graph of step ``index`` (counted from 0) as a GraphML file."""
    file = io.BytesIO()
    nx.write_graphml_xml(step_graph(trace, index), file, prettyprint=True)
    return file.getvalue()


def step_graph(trace: Trace, index: int) -> nx.DiGraph:
    """Edges run from parent to child; nodes are numbered as in the viewer.

    0..N-1 are the rows sent to the target, then the recorded ghosts (state ``pruned``, with their own columns), then
    the target's own token (state ``own``). Attributes carry the record's column names, with label and kind of the
    token, depth and position id, and the viewer's ``layout_row``; an absent one is the record's null. Lists are JSON
    text, in node attributes (``target_top``) as in the graph's own (``path``, ``draws``, ...).
    """
    step = trace.steps[index]
    graph = nx.DiGraph(**_about(trace, step))
    places, size = lay_out_step(step), len(step.tree)
    for node, columns in enumerate([*_rows(step.tree), *_rows(step.ghosts)]):
        parent = columns.pop("parent")
        state = {} if node < size else {"role": "draft", "state": "pruned"}
        graph.add_node(node, **_attributes(trace, columns | state))
        if parent >= 0:
            graph.add_edge(parent, node)
    own = {"token": step.next_token, "role": "own", "state": "own", "target_prob": step.next_prob}
    graph.add_node(size + len(step.ghosts), **_attributes(trace, own))
    graph.add_edge(step.path[-1], size + len(step.ghosts))
    for node, depth in enumerate(depths([*step.tree.parent, *step.ghosts.parent, step.path[-1]])):
        graph.nodes[node].update(depth=depth, position=step.prefix_len + depth, layout_row=places.row[node])
    return graph


def _rows(columns: TreeColumns | GhostColumns) -> list[dict[str, Any]]:
    """Columns as one dict a row."""
    names = [field.name for field in fields(columns)]
    return [dict(zip(names, values, strict=True)) for values in zip(*(getattr(columns, n) for n in names), strict=True)]


def _attributes(trace: Trace, row: dict[str, Any]) -> dict[str, Scalar]:
    label = trace.vocab.get(str(row["token"]))
    shown = {"label": label.label, "kind": label.kind} if label else {}
    return {name: _scalar(value) for name, value in (row | shown).items() if value is not None}


def _about(trace: Trace, step: Step) -> dict[str, Scalar]:
    """What belongs to the step and the run, as attributes of the graph."""
    values = {
        "method": trace.method,
        "target": trace.target.name,
        "settings": trace.settings,
        "sampling": trace.sampling,
        "step": step.index + 1,
        "prefix_len": step.prefix_len,
        "path": step.path,
        "emitted": step.emitted,
        "draws": step.draws,
        "next_token": step.next_token,
        "next_kind": step.next_kind,
        "next_prob": step.next_prob,
        "next_draft_rank": step.next_draft_rank,
        "num_pruned": step.num_pruned,
        "plain_reason": step.plain_reason,
        "ms": step.ms,
    }
    return {name: _scalar(value) for name, value in values.items() if value is not None}


def _scalar(value: Any) -> Scalar:
    """What GraphML can hold: numbers as they are, text without what XML forbids, the rest as JSON text."""
    if isinstance(value, str):
        return visible(value)
    return value if isinstance(value, int | float) else json.dumps(encode(value), allow_nan=False)
