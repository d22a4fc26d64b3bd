"""Several runs side by side: what they are called, and whether they can be compared at all. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from explorer.errors import TraceError
from explorer.insight import visible
from explorer.trace import Trace

METHOD_LABELS = {
    "autoregressive": "Autoregressive",
    "medusa": "Medusa",
    "eagle1": "EAGLE-1",
    "eagle2": "EAGLE-2",
    "eagle3": "EAGLE-3",
    "draft_model": "Draft model",
    "jacobi": "Jacobi",
    "lookahead": "Lookahead",
    "prompt_lookup": "Prompt lookup",
}
PLAIN_LABEL = "Plain decoding"
PROMPT_LENGTH = 40  # characters of a prompt inside a sentence


def method_label(method: str) -> str:
    """The name of a method as the screen shows it; one that is not known keeps its own."""
    return METHOD_LABELS.get(method, visible(method))


def run_labels(traces: Sequence[Trace]) -> list[str]:
    """A name for each run: its method, and of the settings as few as tell it from others of the same method."""
    names = [method_label(trace.method) for trace in traces]
    choices = [_choices(trace) for trace in traces]
    labels = []
    for name, own in zip(names, choices, strict=True):
        others = [other for same, other in zip(names, choices, strict=True) if same == name]
        details = ", ".join(visible(f"{key} {own[key]}") for key in _telling(own, others))
        labels.append(f"{name} ({details})" if details else name)
    return [
        f"{label}, run {labels[: i + 1].count(label)}" if labels.count(label) > 1 else label
        for i, label in enumerate(labels)
    ]


def check_comparable(traces: Sequence[Trace]) -> None:
    """Raise TraceError, in words for the screen, where runs do not answer one prompt with one target."""
    if not traces:
        raise TraceError("there is no run to compare: choose at least one")
    first = traces[0]
    for other in traces[1:]:
        if other.prompt.token_ids != first.prompt.token_ids:
            raise TraceError(f"{_different(first, other)}: their tokens do not correspond; choose runs of one prompt")
        if other.target.name != first.target.name:
            raise TraceError(
                f"these runs have different targets, {visible(first.target.name)} and {visible(other.target.name)}: "
                "choose runs of one target"
            )


def _different(first: Trace, other: Trace) -> str:
    """What differs between two prompts."""
    if first.prompt.text == other.prompt.text:
        sizes = f"{len(first.prompt.token_ids)} and {len(other.prompt.token_ids)} tokens"
        return f"these runs read one prompt differently ({sizes}; another template, system text or tokenizer)"
    return f"these runs answer different prompts, {_prompt(first)} and {_prompt(other)}"


def _prompt(trace: Trace) -> str:
    words = " ".join(trace.prompt.text.split())
    cut = words if len(words) <= PROMPT_LENGTH else words[: PROMPT_LENGTH - 1] + "…"
    return f"“\u2068{visible(cut)}\u2069”"


def _telling(own: dict[str, Any], others: Sequence[dict[str, Any]]) -> list[str]:
    """The first choices that together tell a run from these others, as few as that takes."""
    telling, alike = [], list(others)
    for key, value in own.items():
        if any(other.get(key) != value for other in alike):
            telling.append(key)
            alike = [other for other in alike if other.get(key) == value]
    return telling


def _choices(trace: Trace) -> dict[str, Any]:
    """Everything a visitor or the machine chose, by a short name, in the order it would be told."""
    sampling, target = trace.sampling, trace.target
    return {
        **trace.settings,
        "acceptance": sampling.acceptance,
        "temperature": f"{sampling.temperature:g}",
        "top_p": f"{sampling.top_p:g}",
        "sampling top_k": sampling.top_k,
        "seed": sampling.seed,
        "on": f"{target.device_name}, {target.dtype}",
        "backend": target.backend,
        "execution": target.execution,
        "numerics": target.numerics,
    }
