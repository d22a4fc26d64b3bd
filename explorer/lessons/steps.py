"""Rules that find the step and the node a lesson speaks of, in any recording. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from explorer.errors import TraceError
from explorer.insight import depths, miss_class
from explorer.trace import DrawRecord, Step, Trace

LIKELY = 0.02  # a probability that a few thousand draws show


def find_step(trace: Trace, rule: str) -> Step:
    """The step of a trace that a rule chooses; raises TraceError where there is none or the rule is unknown."""
    if rule not in STEP_RULES:
        raise TraceError(f"no rule is called {rule!r}; there are {', '.join(STEP_RULES)}")
    step = STEP_RULES[rule]([step for step in trace.steps if step.num_drafted and not step.is_cut])
    if step is None:
        raise TraceError(f"no step of this {trace.method} run is {rule.replace('_', ' ')}")
    return step


def find_node(step: Step, part: str) -> int:
    """The number of a node (rows, ghosts, the target's own token) by its part; raises TraceError where it has none."""
    if part not in NODE_RULES:
        raise TraceError(f"no node is called {part!r}; there are {', '.join(NODE_RULES)}")
    node = NODE_RULES[part](step)
    if node is None:
        raise TraceError(f"step {step.index + 1} has no {part.replace('_', ' ')} node")
    return node


def draws_after(step: Step, parent: int) -> list[DrawRecord]:
    """The tests of a row's children, in their order."""
    return [draw for draw in step.draws if step.tree.parent[draw.row] == parent]


def _best(steps: Iterable[Step], key: Callable[[Step], tuple[float, ...]]) -> Step | None:
    """The first of the best."""
    return max(steps, key=key, default=None)


def _first(steps: Iterable[Step], is_wanted: Callable[[Step], bool]) -> Step | None:
    return next(filter(is_wanted, steps), None)


def num_choices(step: Step) -> int:
    """Drafted children of the root."""
    return sum(parent == 0 and role == "draft" for parent, role in zip(step.tree.parent, step.tree.role, strict=True))


def depth(step: Step) -> int:
    """Levels of the draft."""
    return max(depths(step.tree.parent))


def _num_branches(step: Step) -> int:
    """Rows with at least two drafted children."""
    parents = step.tree.parent
    return sum(parents.count(row) > 1 for row in set(parents) if row >= 0)


def _is_second_choice(step: Step) -> bool:
    """The first accepted token has a sibling that the drafter held for likelier."""
    if not step.num_accepted:
        return False
    probs = [prob or 0 for parent, prob in zip(step.tree.parent, step.tree.draft_prob, strict=True) if parent == 0]
    return (step.tree.draft_prob[step.path[1]] or 0) < max(probs)


def _root_confidence(step: Step) -> float:
    """What the target gives its favourite right after the root."""
    top = step.tree.target_top[0]
    return top[0][1] if top else 1.0


def _is_rejected_then_accepted(step: Step) -> bool:
    """By draws: a sibling failed before the first accepted row passed."""
    tests = draws_after(step, 0)
    return step.num_accepted > 0 and len(tests) > 1 and tests[0].uniform is not None and tests[-1].accepted


def _is_against_argmax(step: Step) -> bool:
    """An accepted token that is not the target's first choice."""
    return uncommon_row(step) is not None


def uncommon_row(step: Step) -> int | None:
    """The first accepted row that is not the target's first choice, None where there is none."""
    return next((row for row in step.path[1:] if (step.tree.target_rank[row] or 0) > 0), None)


def _num_likely_choices(step: Step) -> int:
    """Tested children of the root that the target itself might well have written."""
    return sum((draw.prob or 0) >= LIKELY for draw in draws_after(step, 0))


STEP_RULES: dict[str, Callable[[list[Step]], Step | None]] = {
    "first": lambda steps: _first(steps, lambda _: True),
    "most_accepted": lambda steps: _best(steps, lambda step: (step.num_accepted, step.next_prob or 0)),
    "none_accepted": lambda steps: _first(steps, lambda step: step.num_accepted == 0 and num_choices(step) > 1),
    "second_choice_accepted": lambda steps: _best(filter(_is_second_choice, steps), lambda step: (step.num_accepted,)),
    "deepest": lambda steps: _best(steps, lambda step: (depth(step), -num_choices(step), step.num_accepted)),
    "widest": lambda steps: _best(steps, lambda step: (-depth(step), num_choices(step), -_root_confidence(step))),
    "bushiest": lambda steps: _best(steps, lambda step: (_num_branches(step), step.num_accepted)),
    "wanted_pruned": lambda steps: _best(
        (step for step in steps if miss_class(step) == "pruned"), lambda step: (step.num_accepted,)
    ),
    "outranked_below_first": lambda steps: _best(
        (step for step in steps if step.num_accepted == 1 and miss_class(step) in ("outranked", "elsewhere")),
        lambda step: (step.next_prob or 0,),
    ),
    "rejected_then_accepted": lambda steps: _best(
        filter(_is_rejected_then_accepted, steps), lambda step: (-_root_confidence(step),)
    ),
    "against_argmax": lambda steps: _best(filter(_is_against_argmax, steps), lambda step: (step.num_accepted,)),
    "most_torn": lambda steps: _best(
        filter(_num_likely_choices, steps), lambda step: (_num_likely_choices(step), -_root_confidence(step))
    ),
}


def _pruned_wanted(step: Step) -> int | None:
    """The ghost that is the target's own token where the walk ended."""
    pairs = zip(step.ghosts.parent, step.ghosts.token, strict=True)
    found = (i for i, pair in enumerate(pairs) if pair == (step.path[-1], step.next_token))
    return next((len(step.tree) + i for i in found), None)


def _deepest_row(step: Step) -> int | None:
    level = depths(step.tree.parent)
    return max(range(1, len(level)), key=lambda row: (level[row], -row), default=None)


NODE_RULES: dict[str, Callable[[Step], int | None]] = {
    "root": lambda _: 0,
    "own": lambda step: len(step.tree) + len(step.ghosts),
    "first_accepted": lambda step: step.path[1] if step.num_accepted else None,
    "last_accepted": lambda step: step.path[-1] if step.num_accepted else None,
    "second_to_target": uncommon_row,
    "first_rejected": lambda step: next(
        (row for row, state in enumerate(step.tree.state) if state == "rejected"), None
    ),
    "deepest": _deepest_row,
    "pruned_wanted": _pruned_wanted,
}
