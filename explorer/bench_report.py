"""The benchmark's figures from its measurements, as JSON values and as Markdown. Standard library only.

tau is pooled over all complete steps of a group, the target's own token included; speeds are medians over prompts of
the prompt's own figure, and speedups medians of the ratio within each prompt, with quartiles. The prompt pass is apart.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from explorer.measurement import Measurement

AUTOREGRESSIVE = "autoregressive"
GENERATE = "generate"  # transformers' own greedy decoding of the same weights: the outside baseline
_HOW = (
    "tau is pooled over steps. Speeds are medians over prompts with quartiles; a speedup is the median of the ratios "
    "within each prompt, so it need not be the ratio of two medians."
)
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
            }
        }
        if is_sampled:
            rows[method] |= {"num_equal": None, "divergences": []}
    return {"bench": head, "num_questions": len({i.question_id for i in measurements}), "methods": rows}


def to_markdown(report: dict[str, Any]) -> str:
    """The report as one table, the categories' tau, where the time goes, and the divergences."""
    methods: dict[str, Any] = report["methods"]
    head: dict[str, Any] = report["bench"]
    lines = [f"# Benchmark: {head['target']}, {report['num_questions']} prompts", ""]
    lines += [f"- {name}: {value}" for name, value in head.items()]
    lines += ["", *_table(_COLUMNS, methods), "", _HOW, "", "## tau by category", ""]
    categories = sorted({name for row in methods.values() for name in row["by_category"]})
    by_category = [(name, _category_tau(name)) for name in categories]
    lines += [*_table(by_category, methods), "", "## Share of decoding time, recording apart", ""]
    lines += [*_table(_SHARES, methods), "", "## Outputs that left plain decoding", ""]
    found = [
        f"- {name}, question {d['question_id']}: {_told(d)}"
        for name, row in methods.items()
        for d in row["divergences"]
    ]
    nothing = "not compared: sampled" if "sampling" in head else "none"
    return "\n".join([*lines, *(found or [nothing])]) + "\n"


def _figures(
    items: Sequence[Measurement], plain: dict[str, Measurement], outside: dict[str, Measurement]
) -> dict[str, Any]:
    num_steps = sum(item.num_steps for item in items)
    accepted, drafted = (
        sum(getattr(i, f"num_{name}") for i in items) for name in ("accepted_draft_tokens", "draft_tokens")
    )
    tried, taken = _sum(i.tried_by_depth for i in items), _sum(i.accepted_by_depth for i in items)
    decode_ms = sum(item.decode_ms for item in items)
    divergences = [found for item in items if (found := _divergence(item, plain.get(item.question_id)))]
    return {
        "num_prompts": len(items),
        "num_steps": num_steps,
        "tau": 1 + accepted / num_steps if num_steps else None,
        "draft_acceptance_rate": accepted / drafted if drafted else None,
        "acceptance_by_depth": [a / t if t else None for a, t in zip_longest(taken, tried, fillvalue=0)],
        "acceptance_histogram": _sum(item.acceptance_histogram for item in items),
        "tokens_per_second": _spread(item.tokens_per_second for item in items),
        "speedup": _spread(_ratio(item, plain.get(item.question_id)) for item in items),
        "speedup_over_generate": _spread(_ratio(item, outside.get(item.question_id)) for item in items),
        "prefill_ms": _spread(item.prefill_ms for item in items),
        "time_share": {
            name: sum(item.split_ms.get(name, 0.0) for item in items) / decode_ms if decode_ms else None
            for name in ("draft", "verify", "commit", "other", "record")
        },
        "num_equal": sum(i.question_id in plain and i.output == plain[i.question_id].output for i in items),
        "divergences": divergences,
    }


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


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _spread_text(value: dict[str, float] | None, digits: int) -> str:
    if value is None:
        return "–"
    return f"{value['median']:.{digits}f} ({value['low_quartile']:.{digits}f} to {value['high_quartile']:.{digits}f})"


def _equality(num_equal: int | None, num_prompts: int) -> str:
    return "sampled" if num_equal is None else f"{num_equal} of {num_prompts}"


def _told(divergence: dict[str, Any]) -> str:
    gap = divergence["gap"]
    why = "gap unknown" if gap is None else f"top-2 logit gap {gap:.2g}"
    return f"token {divergence['index']}, {why}{', a near-tie' if divergence['is_near_tie'] else ''}"


Show = Callable[[dict[str, Any]], str]


def _category_tau(name: str) -> Show:
    return lambda row: _number(row["by_category"][name]["tau"], 2)


def _share(name: str) -> Show:
    def show(row: dict[str, Any]) -> str:
        share = row["time_share"][name]
        return "–" if share is None else f"{100 * share:.1f} %"

    return show


_COLUMNS: list[tuple[str, Show]] = [
    ("tau", lambda row: _number(row["tau"], 2)),
    ("tau without the target's own token", lambda row: _number(row["tau"] and row["tau"] - 1, 2)),
    ("tokens/s", lambda row: _spread_text(row["tokens_per_second"], 1)),
    ("speedup over autoregressive", lambda row: _spread_text(row["speedup"], 2)),
    ("over transformers generate", lambda row: _spread_text(row["speedup_over_generate"], 2)),
    ("prompt pass ms", lambda row: _spread_text(row["prefill_ms"], 0)),
    ("equal outputs", lambda row: _equality(row["num_equal"], row["num_prompts"])),
]
_SHARES = [(name, _share(name)) for name in ("draft", "verify", "commit", "other", "record")]


def _table(columns: list[tuple[str, Show]], rows: dict[str, Any]) -> list[str]:
    heads = (name.replace("|", "\\|").replace("<", "&lt;") for name, _ in columns)  # categories come from files
    lines = ["| method | " + " | ".join(heads) + " |", "|---" * (len(columns) + 1) + "|"]
    return lines + [f"| {name} | " + " | ".join(show(row) for _, show in columns) + " |" for name, row in rows.items()]
