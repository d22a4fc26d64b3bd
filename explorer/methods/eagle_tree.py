"""EAGLE-2's growth of a tree by the drafter's own confidence, as operators over tensors alone.

Nothing here asks a tensor for its content, so the whole of it runs on the drafter's device and can be captured there
(explorer.methods.fixed_draft). Source: arXiv 2406.16858, section 4; `topK_genrate` of eagle/model/cnets.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class TreeShape(NamedTuple):
    """top_k: children of a node and nodes a level expands; depth: expansions; num_drafted: nodes that are kept."""

    top_k: int
    depth: int
    num_drafted: int


class Drafting(NamedTuple):
    """What a drafter does. forward: (tokens [k], features [k, H], slots, level) -> features [k, H] predicted there.

    slots: [k, (level + 1) * k] bool, which of the drafts so far, themselves last, each one sees. log_softmax: features
    [R, H] -> log-probabilities [R, draft vocabulary]. to_target: draft ids -> target ids, any shape.
    """

    forward: Callable[[Tensor, Tensor, Tensor, int], Tensor]
    log_softmax: Callable[[Tensor], Tensor]
    to_target: Callable[[Tensor], Tensor]


class Grown(NamedTuple):
    """Everything that was expanded, T nodes in the order they were found; row 0 of the tree is the root, node 0 row 1.

    tokens (target ids), parents (rows) and logprobs: [T]. chosen: [num_drafted] the rows that are kept, ascending.
    expanded: for each pass the rows it expanded [k] and its log-probabilities after each [k, draft vocabulary].
    """

    tokens: Tensor
    parents: Tensor
    logprobs: Tensor
    chosen: Tensor
    expanded: list[tuple[Tensor, Tensor]]

    def to_host(self) -> Grown:
        """The same with the nodes on the CPU, brought there by one copy; ``expanded`` stays where it is."""
        if self.tokens.device.type == "cpu":
            return self
        columns = (self.tokens, self.parents, self.logprobs, self.chosen)
        joined = torch.cat([column.double() for column in columns]).cpu()  # holds each of them exactly
        tokens, parents, logprobs, chosen = joined.split([len(column) for column in columns])
        return Grown(tokens.long(), parents.long(), logprobs.float(), chosen.long(), self.expanded)


def grow(
    hidden: Tensor, shape: TreeShape, drafting: Drafting, after_pass: Callable[[], object] = lambda: None
) -> Grown:
    """The tree after the feature ``hidden`` [1, H] that was predicted at the root.

    after_pass: called when the first level is known, and after each further pass.
    """
    k, device = shape.top_k, hidden.device
    logprobs = drafting.log_softmax(hidden)
    best = logprobs.topk(k, dim=-1)
    tokens, scores = drafting.to_target(best.indices[0]), best.values[0]
    rows = torch.arange(1, k + 1, device=device)
    found = [(tokens, torch.zeros_like(rows), scores, scores)]  # tokens, parents, log-probabilities, scores by level
    expanded = [(torch.zeros(1, dtype=torch.int64, device=device), logprobs)]
    features, mask = hidden.expand(k, -1), torch.zeros(k, 0, dtype=torch.bool, device=device)
    after_pass()
    for level in range(shape.depth):
        slots = torch.cat([mask, torch.eye(k, dtype=torch.bool, device=device)], dim=1)
        hidden = drafting.forward(tokens, features, slots, level)
        logprobs = drafting.log_softmax(hidden)
        best = logprobs.topk(k, dim=-1)
        children, all_scores = drafting.to_target(best.indices.flatten()), (scores[:, None] + best.values).flatten()
        expanded.append((rows, logprobs))
        found.append((children, rows[:, None].expand(-1, k).flatten(), best.values.flatten(), all_scores))
        chosen = best_of(all_scores, k)
        parent = chosen // k  # index into the beam
        rows = chosen + (1 + k + level * k * k)
        tokens, scores = children[chosen], all_scores[chosen]
        features, mask = hidden[parent], slots[parent]
        after_pass()
    tokens, parents, logprobs, scores = (torch.cat(column) for column in zip(*found, strict=True))
    return Grown(tokens, parents, logprobs, best_of(scores, shape.num_drafted).sort().values + 1, expanded)


def best_of(scores: Tensor, count: int) -> Tensor:
    """Indices of the ``count`` highest scores, ties by index.

    The order matters: a child of log-probability 0 ties with its parent, which was found earlier, so the parent is
    taken first and no node loses it (torch.topk leaves that open, and the reference implementation with it).
    """
    return scores.sort(descending=True, stable=True).indices[:count]
