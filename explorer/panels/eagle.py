"""EAGLE's panel: the levels of the draft with the confidence that chose what is expanded. Standard library only.

EAGLE-2 and EAGLE-3 expand, at each level, the ``top_k`` nodes with the best product of draft probabilities along their
paths (arXiv 2406.16858, section 4.1); EAGLE-1's static tree says beforehand which places have children.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from explorer.config import RERANKED
from explorer.drafting import Level, drafted_levels
from explorer.insight import LISTED, listing, percent, plural, quote
from explorer.trace import Step, Trace

NUM_LISTED = 64  # ghosts that the record lists by score; further ones are there because the target wanted them


@dataclass(frozen=True)
class LevelNode:
    """node: its number, rows first, then ghosts. confidence: the product of draft probabilities along its path.

    is_expanded: the drafter's next pass read it.
    """

    node: int
    confidence: float
    is_expanded: bool


@dataclass(frozen=True)
class EagleLevel:
    """The nodes of one depth, by falling confidence; of pruned ones those that the record lists."""

    depth: int
    nodes: list[LevelNode]
    sentence: str


@dataclass(frozen=True)
class EaglePanel:
    """All levels of a step's draft. How far the confidence can be trusted, explorer.calibration counts over the run."""

    levels: list[EagleLevel]
    sentences: list[str]
    kind: ClassVar[str] = "eagle"


def eagle_panel(trace: Trace, step: Step) -> EaglePanel | None:
    """None where nothing was drafted."""
    levels, scores = drafted_levels(step), step.tree.score + step.ghosts.score
    parents = set(step.tree.parent) | set(step.ghosts.parent)
    found = []
    for level in levels:
        expanded = _expanded(trace, step, level, parents)
        nodes = [LevelNode(node, math.exp(min(0.0, scores[node])), node in expanded) for node in level.nodes]
        found.append(EagleLevel(level.depth, nodes, _sentence(trace, step, nodes, level.depth)))
    return EaglePanel(found, _how(trace)) if found else None


def _how(trace: Trace) -> list[str]:
    """What decides which nodes are expanded."""
    top_k = trace.settings.get("top_k")
    if trace.method not in RERANKED or type(top_k) is not int:
        return [
            "A static tree: which places have children was fixed before the run, the drafter only fills in the words."
        ]
    return [
        f"Of each level the best {top_k} are expanded, by the product of the drafter's probabilities along their "
        "paths: its confidence that the target will come here."
    ]


def _expanded(trace: Trace, step: Step, level: Level, parents: set[int]) -> set[int]:
    """The best ``top_k`` of a level above the last one, as far as the record can tell; else those with children."""
    found = {node for node in level.nodes if node in parents}
    top_k, passes, scores = trace.settings.get("top_k"), len(step.ms.draft), step.tree.score + step.ghosts.score
    if trace.method not in RERANKED or type(top_k) is not int or level.depth >= passes:
        return found
    listed = sorted(step.ghosts.score, reverse=True)
    least = listed[NUM_LISTED - 1] if len(listed) > NUM_LISTED else -math.inf  # below it, better ones may be unlisted
    return found | {node for node in level.nodes[: max(top_k, 0)] if scores[node] >= least}


def _sentence(trace: Trace, step: Step, nodes: list[LevelNode], depth: int) -> str:
    tokens = step.tree.token + step.ghosts.token
    kept = sum(node.node < len(step.tree) for node in nodes)
    sent = f"{kept or 'none'} of the {plural(len(nodes), 'node')} shown" if step.num_pruned else plural(kept, "node")
    text = f"Depth {depth}: {sent} went to the target."
    read = [node for node in nodes if node.is_expanded]
    if not read:
        return f"{text} None was expanded: the draft ends here."
    shown = read if len(read) <= LISTED else read[: LISTED - 1]
    names = [f"{quote(trace.vocab, tokens[node.node])} ({percent(node.confidence)})" for node in shown]
    return f"{text} Expanded {'was' if len(read) == 1 else 'were'} {listing(names, len(read) - len(shown))}."
