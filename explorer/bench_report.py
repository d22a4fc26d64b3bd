"""The benchmark's figures from its measurements, as JSON values. Standard library only.

tau is pooled over all complete steps of a group, the target's own token included; speeds are medians over prompts of
the prompt's own figure, and speedups medians of the ratio within each prompt, with quartiles. The prompt pass is apart.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

from explorer.client_report import client_figures
from explorer.measurement import Measurement

AUTOREGRESSIVE = "autoregressive"
# transformers' own decoding of the same weights, plain (the outside baseline) and with its own speculation.
GENERATE, GENERATE_LOOKUP, GENERATE_ASSISTED = PEERS = ("generate", "generate_lookup", "generate_assisted")
SCHEMA, SCHEMA_VERSION = "draft-tree-bench", 1
NEAR_TIE = 5e-4  # logits; below it two float32 routes through the same weights may choose differently


def build_report(head: dict[str, Any], measurements: Sequence[Measurement]) -> dict[str, Any]:
    """All figures: per method, overall and per category, with the list of outputs that left plain decoding."""
    methods = list(dict.fromkeys(item.method for item in measurements))
    categories = sorted({item.category for item in measurements})
    plain = {item.question_id: item for item in measurements if item.method == AUTOREGRESSIVE}
    outside = {item.question_id: item for item in measurements if item.method == GENERATE}
    is_sampled = "sampling" in head  # then there is no single right output
    rows: dict[str, dict[str, Any]] = {}
    for method in methods:
        own = [item for item in measurements if item.method == method]
        rows[method] = _figures(own, plain, outside) | {
            "by_category": {
                name: _figures([i for i in own if i.category == name], plain, outside) for name in categories
            },
            "by_prompt": [_prompt_figures(item, plain) for item in own],
        }
        if is_sampled or any(item.client for item in own):
            rows[method] |= {"num_equal": None, "divergences": []}
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "bench": head,
        "num_questions": len({i.question_id for i in measurements}),
        "target_bytes": next((item.target_bytes for item in measurements if item.target_bytes), None),
        "methods": rows,
    }


def _prompt_figures(item: Measurement, plain: dict[str, Measurement]) -> dict[str, Any]:
    """What one prompt came to: two reports are compared prompt by prompt."""
    return {
        "question_id": item.question_id,
        "tau": _tau(item.num_accepted_draft_tokens, item.num_steps),
        "tokens_per_second": item.tokens_per_second,
        "speedup": _ratio(item, plain.get(item.question_id)),
    }


def _figures(
    items: Sequence[Measurement], plain: dict[str, Measurement], outside: dict[str, Measurement]
) -> dict[str, Any]:
    num_steps = sum(item.num_steps for item in items)
    accepted, drafted = (
        sum(getattr(i, f"num_{name}") for i in items) for name in ("accepted_draft_tokens", "draft_tokens")
    )
    tried, taken = _sum(i.tried_by_depth for i in items), _sum(i.accepted_by_depth for i in items)
    decode_ms, has_split = sum(item.decode_ms for item in items), any(item.split_ms for item in items)
    divergences = [found for item in items if (found := _divergence(item, plain.get(item.question_id)))]
    client = client_figures(items)
    return ({"client": client} if client else {}) | {
        "settings": items[0].settings if items else {},
        "num_prompts": len(items),
        "num_steps": num_steps,
        "num_rests": sum(item.num_rests for item in items),
        "tau": _tau(accepted, num_steps),
        "tau_without_own_token": accepted / num_steps if num_steps else None,
        "draft_acceptance_rate": accepted / drafted if drafted else None,
        "acceptance_by_depth": [a / t if t else None for a, t in zip_longest(taken, tried, fillvalue=0)],
        "acceptance_by_head": _by_head(items),
        "acceptance_histogram": _sum(item.acceptance_histogram for item in items),
        "tokens_per_second": _spread(item.tokens_per_second for item in items),
        "speedup": _spread(_ratio(item, plain.get(item.question_id)) for item in items),
        "speedup_over_generate": _spread(_ratio(item, outside.get(item.question_id)) for item in items),
        "prefill_ms": _spread(item.prefill_ms for item in items),
        "drafter": _memory(items),
        "time_share": {
            name: sum(item.split_ms.get(name, 0.0) for item in items) / decode_ms if decode_ms and has_split else None
            for name in ("draft", "verify", "commit", "other", "record")
        },
        "num_equal": sum(i.question_id in plain and i.output == plain[i.question_id].output for i in items),
        "divergences": divergences,
    }


def _tau(num_accepted: int, num_steps: int) -> float | None:
    return 1 + num_accepted / num_steps if num_steps else None


def _by_head(items: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Of the steps whose output reaches a head's depth: how often the head's first guess, or its list, was right."""
    names = ("num_known", "num_first", "num_listed")
    columns = zip(
        *(_sum([getattr(head, name) for head in item.heads] for item in items) for name in names), strict=True
    )
    return [
        {"num_steps": known, "first": first / known if known else None, "listed": listed / known if known else None}
        for known, first, listed in columns
    ]


def _memory(items: Sequence[Measurement]) -> dict[str, Any] | None:
    """The drafter's own weights, embeddings and LM head of the target not counted; None where there is no drafter."""
    item = next((item for item in items if item.drafter is not None), None)
    if item is None or item.drafter is None:
        return None
    num_bytes = item.drafter.num_bytes
    share = num_bytes / item.target_bytes if item.target_bytes else None
    return {"name": item.drafter.name, "num_bytes": num_bytes, "share_of_target": share}


def _divergence(item: Measurement, plain: Measurement | None) -> dict[str, Any] | None:
    """Where an output left plain decoding, with the top-2 logit gap there; None where it is equal or unknown."""
    if plain is None or item.output == plain.output:
        return None
    pairs = enumerate(zip_longest(item.output, plain.output))
    index = next(i for i, (ours, theirs) in pairs if ours != theirs)
    gap = plain.gaps[index] if index < len(plain.gaps) else None
    return {
        "question_id": item.question_id,
        "index": index,
        "gap": gap,
        "is_near_tie": gap is not None and gap < NEAR_TIE,
    }


def _ratio(item: Measurement, other: Measurement | None) -> float | None:
    ours, theirs = item.tokens_per_second, other.tokens_per_second if other else None
    return ours / theirs if ours and theirs else None


def _spread(values: Iterable[float | None]) -> dict[str, float] | None:
    """Median and quartiles of what was measured."""
    found = sorted(value for value in values if value is not None)
    if not found:
        return None
    low, middle, high = statistics.quantiles(found, n=4, method="inclusive") if len(found) > 1 else found * 3
    return {"median": middle, "low_quartile": low, "high_quartile": high}


def _sum(lists: Iterable[list[int]]) -> list[int]:
    return [sum(column) for column in zip_longest(*lists, fillvalue=0)]
