"""What only one method records of a step, made up for the traces of tests.support.traces: panels are drawn from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from explorer.insight import depths
from explorer.timeline import root_index
from explorer.trace import Step, Trace

LISTED = 10  # candidates of a head


def with_extras(trace: Trace) -> Trace:
    """The trace with a valid ``extra`` in each step that drafted something."""
    make = _EXTRAS.get(trace.method, lambda _trace, _step: {})
    return replace(
        trace, steps=[replace(step, extra=make(trace, step) if step.num_drafted else {}) for step in trace.steps]
    )


def _medusa(_trace: Trace, step: Step) -> dict[str, Any]:
    """Each head's list begins with the tokens that the tree has at its depth."""
    level = depths(step.tree.parent)
    heads = []
    for depth in range(1, max(level) + 1):
        held = [token for token, at in zip(step.tree.token, level, strict=True) if at == depth]
        tokens = list(dict.fromkeys([*held, *range(LISTED)]))[: max(LISTED, len(set(held)))]
        heads.append([[token, 0.5 / (rank + 1)] for rank, token in enumerate(tokens)])
    return {"heads": heads}


def _draft_model(trace: Trace, step: Step) -> dict[str, Any]:
    tops = [
        [[token, prob], *([other, prob / 3] for other in range(4) if other != token)]
        for token, prob in zip(step.tree.token[1:], step.tree.draft_prob[1:], strict=True)
    ]
    return {"draft_tops": tops} | ({"sampled": True} if trace.sampling.acceptance == "rejection" else {})


def _jacobi(_trace: Trace, step: Step) -> dict[str, Any]:
    return {"num_carried": step.num_drafted // 2}


def _lookahead(_trace: Trace, step: Step) -> dict[str, Any]:
    """The n-grams are the tree's paths, the window the two rows of three that make_trace adds."""
    tree = step.tree
    drafted = [row for row, role in enumerate(tree.role) if role == "draft"]
    window = [tree.token[row] for row, role in enumerate(tree.role) if role == "window"]
    guesses = []
    for leaf in (row for row in drafted if row not in {tree.parent[each] for each in drafted}):
        path = [leaf]
        while tree.parent[path[-1]]:
            path.append(tree.parent[path[-1]])
        guesses.append([tree.token[row] for row in reversed(path)])
    return {
        "window_tokens": [window[:3], window[3:]],
        "guess_tokens": guesses,
        "pool_size": 20 + step.index,
        "added_tokens": [window[:2], window[1:3]],
    }


def _prompt_lookup(trace: Trace, step: Step) -> dict[str, Any]:
    """A match of two tokens somewhere before; only its place is used."""
    end = len(trace.prompt.token_ids) + root_index(trace, step) - 4
    return {"matched": 2, "position": end}


_EXTRAS = {
    "medusa": _medusa,
    "draft_model": _draft_model,
    "jacobi": _jacobi,
    "lookahead": _lookahead,
    "prompt_lookup": _prompt_lookup,
}
