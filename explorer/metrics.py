"""The numbers of a run, derived from its steps: counts and means cover complete steps only. Standard library only.

Definitions: mean acceptance length (tau) counts the target's own token, as vLLM does, so that autoregressive decoding
has exactly 1; tokens per second leave out the prompt pass and the time spent recording; the speedup is measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.panels.extra import ranked_lists
from explorer.trace import Stats, Step


@dataclass(frozen=True)
class HeadCount:
    """How often one head was right, whatever the tree made of it: of ``num_known`` steps after which the output has a
    token at the head's depth, it was the head's first guess in ``num_first``, and in its recorded list in
    ``num_listed``."""

    num_known: int
    num_first: int
    num_listed: int


def compute_stats(steps: Sequence[Step], num_output: int, baseline_tps: float | None) -> Stats:
    """Stats of a run with ``num_output`` new tokens (the prompt pass's own included); nulls where nothing was measured.

    baseline_tps: tokens per second of the autoregressive lane of the same run, None where there was none.
    """
    whole = [step for step in steps if not step.is_cut]
    num_drafted = sum(step.num_drafted for step in whole)
    num_accepted = sum(step.num_accepted for step in whole)
    speed = tokens_per_second(num_output, sum(step.ms.total for step in steps))
    return Stats(
        num_steps=len(whole),
        num_cut_steps=len(steps) - len(whole),
        num_draft_tokens=num_drafted,
        num_accepted_draft_tokens=num_accepted,
        mean_acceptance_length=1 + num_accepted / len(whole) if whole else None,
        draft_acceptance_rate=num_accepted / num_drafted if num_drafted else None,
        acceptance_by_depth=acceptance_by_depth(whole),
        acceptance_histogram=acceptance_histogram(whole),
        tokens_per_second=speed,
        speedup=speed / baseline_tps if speed and baseline_tps else None,
    )


def tokens_per_second(num_output: int, decode_ms: float) -> float | None:
    """Speed of decoding: the first token belongs to the prompt pass, so it counts on neither side."""
    return 1000 * (num_output - 1) / decode_ms if num_output > 1 and decode_ms > 0 else None


def acceptance_by_depth(steps: Sequence[Step]) -> list[float | None]:
    """Entry d-1: of the steps whose accepted row at depth d-1 has a drafted child, the share where one was accepted."""
    return [accepted / tried for tried, accepted in zip(*depth_counts(steps), strict=True)]


def depth_counts(steps: Sequence[Step]) -> tuple[list[int], list[int]]:
    """(steps that tested children at depth d, steps that accepted one), entry d-1; pooled runs add these up."""
    num_tried: Counter[int] = Counter()
    num_accepted: Counter[int] = Counter()
    for step in steps:
        has_child = {parent for parent, role in zip(step.tree.parent, step.tree.role, strict=True) if role == "draft"}
        for depth, row in enumerate(step.path):
            num_tried[depth] += row in has_child
        num_accepted.update(range(step.num_accepted))
    deepest = max((depth for depth, count in num_tried.items() if count), default=-1)
    depths = range(deepest + 1)
    return [num_tried[depth] for depth in depths], [num_accepted[depth] for depth in depths]


def acceptance_histogram(steps: Sequence[Step]) -> list[int]:
    """Entry k: how many steps accepted exactly k drafted tokens."""
    counts = Counter(step.num_accepted for step in steps)
    return [counts[k] for k in range(max(counts, default=-1) + 1)]


def head_counts(steps: Sequence[Step], output: Sequence[int], num_prompt_tokens: int) -> list[HeadCount]:
    """Entry d-1: head d of drafters whose heads each give a list (Medusa); empty for all others."""
    found: list[HeadCount] = []
    for step in steps:
        root = step.prefix_len - num_prompt_tokens
        for depth, ranked in enumerate(ranked_lists(step.extra, "heads") or [], start=1):
            if depth > len(found):
                found.append(HeadCount(0, 0, 0))
            if root + depth < len(output):
                tokens, came, known = [token for token, _ in ranked], output[root + depth], found[depth - 1]
                found[depth - 1] = HeadCount(
                    known.num_known + 1, known.num_first + (tokens[:1] == [came]), known.num_listed + (came in tokens)
                )
    return found
