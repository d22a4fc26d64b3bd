"""How a run's drafts ended, counted: which way they missed the target's choice, with an example of each.

Every complete step ends in one way: insight.MISS_CLASSES where the walk ended among drafted children, ``deepest`` or
``leaf`` where it ended at a row without any, ``plain`` where nothing was drafted. ``deepest`` is the deepest level that
was drafted, pruned nodes included: where a deeper node was cut, more depth would be cut as well. The shares tell what
would help: more depth, more width, a larger budget, or better guesses. Steps that rested missed nothing and are counted
apart. Standard library only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from explorer.insight import MISS_CLASSES, depths, miss_class, own_token_sentence, percent, plural
from explorer.plain_steps import PLAIN_SENTENCES, is_adaptive_rest, is_rest
from explorer.trace import Step, Trace

ENDINGS = (*MISS_CLASSES, "deepest", "leaf", "plain")
LABELS = {
    "not_drafted": "not drafted",
    "pruned": "drafted, but pruned",
    "elsewhere": "drafted on another branch",
    "outranked": "too low in the drafter's list",
    "sampled": "drafted, but drawn otherwise",
    "deepest": "accepted to the deepest level",
    "leaf": "accepted to a leaf above the deepest level",
    "plain": "nothing drafted",
}
WOULD_HELP = {
    "not_drafted": "better guesses: the token was not among them at all",
    "pruned": "more rows: the token was there and was cut",
    "elsewhere": "better guesses: the token was expected, but after other words",
    "outranked": "better guesses: most of the tokens were far down in the drafter's list",
    "outranked_near": "more candidates for a node: most of the tokens came soon after those that were drafted",
    "sampled": "nothing: this chance keeps the output's distribution",
    "deepest": "more depth: the target agreed with everything it was shown",
    "leaf": "more rows: the tree ended there, not the agreement",
    "plain": "a draft: there was nothing to accept",
}
RESTING = "resting, because speculation cost time or was being compared"
NEAR_RANK = 10  # candidates of the published trees for each node


@dataclass(frozen=True)
class Ending:
    """One way to end. share: of the run's complete steps that did not rest. example: the step in which the target was
    surest of its token (the most telling one); ``example_sentence`` tells it."""

    kind: str
    label: str
    count: int
    share: float
    would_help: str
    example: int
    example_sentence: str


@dataclass(frozen=True)
class Misses:
    """The endings that occur, most frequent first, and what they say of the run. num_steps is without rests.

    next_draft_ranks: of the outranked tokens, each one's rank in the drafter's list (0 = first), ascending.
    """

    num_steps: int
    endings: list[Ending]
    next_draft_ranks: list[int]
    sentences: list[str]


def ending_of(step: Step) -> str:
    """How one step ended: one of ENDINGS."""
    if step.num_drafted == 0:
        return "plain"
    kind = miss_class(step)
    if kind is not None:
        return kind
    level = depths([*step.tree.parent, *step.ghosts.parent])
    roles = [*step.tree.role, *("draft" for _ in step.ghosts.parent)]
    deepest = max(depth for depth, role in zip(level, roles, strict=True) if role == "draft")
    return "deepest" if level[step.path[-1]] == deepest else "leaf"


def misses(trace: Trace) -> Misses:
    """The endings of all complete steps of a run, those that rested told in sentences only."""
    found: dict[str, list[Step]] = {}
    for step in trace.steps:
        if not step.is_cut and not is_rest(step):
            found.setdefault(ending_of(step), []).append(step)
    num_steps = sum(map(len, found.values()))
    kinds = sorted(found, key=lambda kind: (-len(found[kind]), ENDINGS.index(kind)))
    endings = [_ending(trace, kind, found[kind], num_steps) for kind in kinds]
    outranked = found.get("outranked", [])
    ranks = sorted(step.next_draft_rank for step in outranked if step.next_draft_rank is not None)
    return Misses(num_steps, endings, ranks, [*_sentences(endings, num_steps, ranks), *rest_sentences(trace.steps)])


def rest_sentences(steps: Iterable[Step]) -> list[str]:
    """How many steps rested, and why; empty where none did."""
    reasons = Counter(RESTING if is_adaptive_rest(step) else step.plain_reason for step in steps if is_rest(step))
    return [
        f"{plural(count, 'plain step')}: {PLAIN_SENTENCES.get(why or '', why)}. No draft was asked for, so none missed."
        for why, count in reasons.items()
    ]


def _ending(trace: Trace, kind: str, steps: Sequence[Step], num_steps: int) -> Ending:
    example = max(steps, key=lambda step: (step.next_prob or 0.0, -step.index))
    return Ending(
        kind,
        LABELS[kind],
        len(steps),
        len(steps) / num_steps,
        WOULD_HELP["outranked_near" if kind == "outranked" and _are_near(steps) else kind],
        example.index,
        own_token_sentence(example, trace.vocab),
    )


def _are_near(steps: Sequence[Step]) -> bool:
    """Whether most of the tokens stood among the first NEAR_RANK of the drafter's list."""
    near = sum(step.next_draft_rank is not None and step.next_draft_rank < NEAR_RANK for step in steps)
    return 2 * near > len(steps)


def _sentences(endings: Sequence[Ending], num_steps: int, ranks: Sequence[int]) -> list[str]:
    """The most frequent ending with what would help, and how far the outranked tokens were from being drafted."""
    if not endings:
        return ["No complete step: there is nothing to count."]
    top = endings[0]
    text = f"{top.count} of {plural(num_steps, 'step')} ({percent(top.share)}): {top.label}."
    found = [f"{text} What would help: {top.would_help}."]
    if ranks:
        near = sum(rank < NEAR_RANK for rank in ranks)
        middle = ranks[len(ranks) // 2] + 1
        found.append(
            f"Of {plural(len(ranks), 'token')} too low in the drafter's list, {near} stood among its first "
            f"{NEAR_RANK}; the middle one was number {middle}."
        )
    return found
