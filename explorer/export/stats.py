"""The figures of a run as JSON for scripts, with the names that vLLM gives to the same things beside ours.

vLLM's counters are those of vllm/v1/spec_decode/metrics.py, its benchmark keys those of ``vllm bench serve
--save-result``. All cover complete steps, as ours do. Where vLLM means something else by a similar word, the
difference stands in ``notes``.
"""

from __future__ import annotations

import json
from typing import Any

from explorer.codec import encode
from explorer.trace import Trace

SCHEMA, SCHEMA_VERSION = "draft-tree-stats", 1
NOTES = (
    "Counts and means cover complete steps; a last step that was cut is in num_cut_steps only.",
    "mean_acceptance_length is 1 + num_accepted_draft_tokens / num_steps, the target's own token included.",
    "vLLM counts a draft only where something was drafted: num_drafts leaves root-only steps out, num_steps has them.",
    "acceptance_by_depth is conditional on reaching that depth; vLLM's per-position rates are shares of all drafts.",
    "vLLM's spec_decode_acceptance_rate is in percent; draft_acceptance_rate is a share.",
    "A draft token is a row of the tree, so the rate of a tree is low where that of a chain is high.",
    "speedup is the measured ratio of the two tokens_per_second of one paired run, prompt passes excluded.",
)


def stats_json(trace: Trace) -> str:
    """The figures as indented JSON text; what was not measured is null."""
    content = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "run": _run(trace),
        "stats": encode(trace.stats) | {"mean_accepted_draft_tokens": _without_own(trace)},
        "ms": _times(trace),
        "baseline": _baseline(trace),
        "vllm": _vllm(trace),
        "notes": NOTES,
    }
    return json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _run(trace: Trace) -> dict[str, Any]:
    """What ran, and how much it read and wrote."""
    return {
        "method": trace.method,
        "settings": encode(trace.settings),
        "sampling": encode(trace.sampling),
        "target": encode(trace.target),
        "drafter": encode(trace.drafter),
        "num_prompt_tokens": len(trace.prompt.token_ids),
        "num_output_tokens": len(trace.output.token_ids),
        "stop": trace.stop,
    }


def _without_own(trace: Trace) -> float | None:
    mean = trace.stats.mean_acceptance_length
    return None if mean is None else mean - 1


def _times(trace: Trace) -> dict[str, Any]:
    """Sums over all steps; ``decode`` is what the speed is measured by, ``record`` is no part of it."""
    times = [step.ms for step in trace.steps]
    sums = {"draft": sum(sum(ms.draft) for ms in times)}
    sums |= {name: sum(getattr(ms, name) for ms in times) for name in ("verify", "commit", "other", "record")}
    return {"prefill": encode(trace.prefill_ms), "decode": sum(ms.total for ms in times), **sums}


def _baseline(trace: Trace) -> dict[str, Any] | None:
    if trace.baseline is None:
        return None
    counted = {"num_tokens": len(trace.baseline.ms_per_token), "decode_ms": sum(trace.baseline.ms_per_token)}
    known = encode(trace.baseline)
    del known["ms_per_token"]
    return known | counted


def _vllm(trace: Trace) -> dict[str, Any]:
    """``metrics``: the counters of its /metrics page. ``bench``: the keys of its benchmark's result file."""
    drafts = [step for step in trace.steps if not step.is_cut and step.num_drafted]
    accepted = [step.num_accepted for step in drafts]
    num_drafted, num_accepted = sum(step.num_drafted for step in drafts), sum(accepted)
    per_position = [sum(count > position for count in accepted) for position in range(max(accepted, default=0))]
    return {
        "metrics": {
            "vllm:spec_decode_num_drafts": len(drafts),
            "vllm:spec_decode_num_draft_tokens": num_drafted,
            "vllm:spec_decode_num_accepted_tokens": num_accepted,
            "vllm:spec_decode_num_accepted_tokens_per_pos": per_position,
        },
        "bench": {
            "spec_decode_num_drafts": len(drafts),
            "spec_decode_draft_tokens": num_drafted,
            "spec_decode_accepted_tokens": num_accepted,
            "spec_decode_acceptance_rate": 100 * num_accepted / num_drafted if num_drafted else None,
            "spec_decode_acceptance_length": 1 + num_accepted / len(drafts) if drafts else None,
            "spec_decode_per_position_acceptance_rates": [count / len(drafts) for count in per_position],
        },
    }
