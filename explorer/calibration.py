"""Whether a drafter's probabilities mean what they say: bins of confidence against what was really accepted.

Two questions, over all steps of a run. ``next``: of the nodes whose parent was accepted, how often was the node, at a
draft probability of so much? ``path``: of all nodes, how often did the walk reach them, where the product of the draft
probabilities along their paths was so much? The second is what EAGLE-2 chooses its nodes by (arXiv 2406.16858,
section 3.2). Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explorer.insight import percent, plural
from explorer.trace import Step, Trace

NUM_BINS = 10
CHANCE = 2.0  # standard errors that chance explains, the nodes taken as independent
QUESTIONS = ("next", "path")


@dataclass(frozen=True)
class Bin:
    """Nodes with a confidence in [low, high): how many, their mean confidence, the share that was accepted."""

    low: float
    high: float
    num_nodes: int
    confidence: float
    accepted: float


@dataclass(frozen=True)
class Calibration:
    """One question's answer. bins: those that hold a node. error: mean distance of confidence and share, by nodes."""

    question: str
    bins: list[Bin]
    num_nodes: int
    confidence: float
    accepted: float
    error: float
    sentence: str


def calibrations(trace: Trace) -> list[Calibration]:
    """An answer to each of QUESTIONS; empty where the method's drafts have no probabilities."""
    return pooled_calibrations([trace])


def pooled_calibrations(traces: Sequence[Trace]) -> list[Calibration]:
    """The same over several runs of one drafter."""
    steps, found = [step for trace in traces for step in trace.steps], []
    for question, pairs in zip(QUESTIONS, (_next_pairs, _path_pairs), strict=True):
        nodes = [pair for step in steps for pair in pairs(step)]
        if nodes:
            found.append(_calibration(question, nodes))
    return found


def _next_pairs(step: Step) -> Iterator[tuple[float, bool]]:
    on_path = set(step.path)
    for row, parent, prob in _nodes(step):
        if parent in on_path:
            yield prob, row in on_path


def _path_pairs(step: Step) -> Iterator[tuple[float, bool]]:
    on_path = set(step.path)
    for row, _, _ in _nodes(step):
        yield math.exp(min(0.0, step.tree.score[row])), row in on_path


def _nodes(step: Step) -> Iterator[tuple[int, int, float]]:
    """(row, parent, draft probability) of the drafted rows that have one."""
    tree = step.tree
    for row, (parent, role, prob) in enumerate(zip(tree.parent, tree.role, tree.draft_prob, strict=True)):
        if role == "draft" and prob is not None:
            yield row, parent, prob


def _calibration(question: str, nodes: Sequence[tuple[float, bool]]) -> Calibration:
    held: list[list[tuple[float, bool]]] = [[] for _ in range(NUM_BINS)]
    for prob, is_accepted in nodes:
        held[min(int(NUM_BINS * max(prob, 0.0)), NUM_BINS - 1)].append((prob, is_accepted))
    bins = [
        Bin(i / NUM_BINS, (i + 1) / NUM_BINS, len(inside), *_means(inside)) for i, inside in enumerate(held) if inside
    ]
    confidence, accepted = _means(nodes)
    error = sum(each.num_nodes * abs(each.confidence - each.accepted) for each in bins) / len(nodes)
    return Calibration(question, bins, len(nodes), confidence, accepted, error, _sentence(question, nodes))


def _means(nodes: Sequence[tuple[float, bool]]) -> tuple[float, float]:
    return sum(prob for prob, _ in nodes) / len(nodes), sum(is_accepted for _, is_accepted in nodes) / len(nodes)


def _sentence(question: str, nodes: Sequence[tuple[float, bool]]) -> str:
    """The means, and whether their distance is more than chance."""
    confidence, accepted = _means(nodes)
    which = "whose parent was accepted" if question == "next" else "by the product along their paths"
    text = f"{plural(len(nodes), 'node')} {which}: the drafter gave them {percent(confidence)} on average, "
    text += f"{percent(accepted)} were accepted"
    spread = math.sqrt(sum(prob * (1 - prob) for prob, _ in nodes)) / len(nodes)
    if abs(confidence - accepted) <= CHANCE * spread:
        return f"{text}; no more apart than chance allows."
    return f"{text}: it is {'too sure' if confidence > accepted else 'not sure enough'}."
