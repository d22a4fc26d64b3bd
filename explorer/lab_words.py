"""What the laboratory's records say, in sentences computed from their numbers. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from explorer.insight import percent, plural
from explorer.lab_findings import (
    batch_findings,
    context_findings,
    desync_findings,
    listed,
    temperature_findings,
    template_findings,
    tree_findings,
)
from explorer.lab_records import LabRecord
from explorer.theory import expected_tokens

# Experiment -> title, question.
ABOUT = {
    "temperature": (
        "Temperature",
        "Drafts are accepted where they hit what the target says. What is left of that when the target is sampled?",
    ),
    "tree": (
        "Shape of the tree",
        "More rows catch more of the target's choices and cost more time. Which shape is worth it on this machine?",
    ),
    "desync": (
        "A target that moved away",
        "Drafters are trained for one target. What do they still catch when its weights change a little, as in a "
        "fine-tuning?",
    ),
    "batch": (
        "Batch size",
        "Speculation uses arithmetic that a single sequence leaves idle. How many sequences at once use it up?",
    ),
    "template": (
        "Chat template",
        "Drafters saw their target behind its chat template. What do they catch without it, or behind another model's?",
    ),
    "context": (
        "Long context",
        "Drafters were trained on short conversations. What do they still catch behind a long one?",
    ),
}
FINDINGS: dict[str, Callable[[LabRecord], list[str]]] = {
    "temperature": temperature_findings,
    "tree": tree_findings,
    "desync": desync_findings,
    "batch": batch_findings,
    "template": template_findings,
    "context": context_findings,
}
WITH_FORMULA = ("temperature", "tree")


@dataclass(frozen=True)
class LabText:
    """One experiment for reading. limits: where the formula beside the measurement breaks, empty where none stands."""

    title: str
    question: str
    measured: str
    findings: tuple[str, ...]
    limits: str
    made: str


def title_of(experiment: str) -> str:
    """A few words."""
    return ABOUT[experiment][0]


def question_of(experiment: str) -> str:
    """What an experiment asks."""
    return ABOUT[experiment][1]


def command_of(experiment: str) -> str:
    """How to make it oneself."""
    return f"python -m explorer lab {experiment}"


def lab_text(record: LabRecord) -> LabText:
    """The sentences of one record."""
    return LabText(
        title_of(record.experiment),
        question_of(record.experiment),
        _measured(record),
        tuple(FINDINGS[record.experiment](record)),
        formula_sentence(record) if record.experiment in WITH_FORMULA else "",
        _made(record),
    )


def formula_sentence(record: LabRecord) -> str:
    """How far the formula for a chain is from what was measured, and why."""
    trials = [trial for trial in record.trials if trial.depth]
    if not trials:
        return ""
    errors = [(expected_tokens(trial.alpha, trial.depth) / trial.tau - 1, trial) for trial in trials]
    error, worst = max(errors, key=lambda pair: abs(pair[0]))
    side = "more" if error > 0 else "less"
    return (
        "The dotted line is (1 - alpha^(k+1)) / (1 - alpha), with alpha and depth k of each point: up to "
        f"{percent(abs(error))} {side} than measured here ({worst.lane}, {worst.sweep.replace('_', ' ')} "
        f"{worst.value:g}). It speaks of a chain whose tokens are accepted independently, all with one alpha. Here a "
        "level counts as accepted when any of its siblings is, trees are not equally deep everywhere, and what follows "
        "a token that was hard to guess is easier or harder than the mean."
    )


def _measured(record: LabRecord) -> str:
    # "Medusa, typical" is one lane, not two
    lanes = listed(
        [lane.replace(", ", " ") for lane, trials in record.lanes().items() if any(trial.depth for trial in trials)]
    )
    num_steps = sum(trial.num_steps for trial in record.trials)
    asked = record.settings.get("max_new_tokens")
    length = f", up to {asked} new tokens each" if isinstance(asked, int) else ""
    num_runs = sum(len(trial.taus) for trial in record.trials)
    parts = [f"Measured: {lanes} on {record.target}; {num_runs} runs with {num_steps:,} steps{length}"]
    if record.experiment == "batch" and record.passes:
        sequences = [item.num_sequences for item in record.passes]
        parts.append(f"passes over {min(sequences)} to {max(sequences)} sequences of random text")
    if record.experiment == "desync":
        parts.append("Gaussian noise on every matrix of the target's layers, in standard deviations of the matrix")
    return f"{', '.join(parts)}."


def _made(record: LabRecord) -> str:
    machine = record.machine
    where = f"{machine.device_name} ({machine.device}), {machine.dtype}, {plural(machine.num_threads, 'thread')}"
    load = "" if machine.load_average is None else f", load average {machine.load_average:g} at the start"
    took = "" if record.seconds is None else f", took {record.seconds:.0f} s"
    return f"{record.date}, {where}{load}{took}."
