"""The figures of the lessons: a placeholder's name -> what a recording says, as text. Standard library only.

In a text ``{tau}`` is a figure of the stop's own recording, ``{tau@NAME}`` one of another recording,
``{levels@NAME:rule}`` one of the step that the rule finds there, and ``{lab_NAME}`` one of the laboratory's records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from explorer.errors import TraceError
from explorer.insight import depths, miss_clause, percent, plural, quote, quoted
from explorer.lab_records import LabRecord
from explorer.lessons.lab_figures import LAB_FIGURES
from explorer.lessons.steps import depth, draws_after, find_step, num_choices, uncommon_row
from explorer.trace import Step, Trace

PLACEHOLDER = re.compile(r"\{([a-z0-9_]+)(?:@([\w.-]+))?(?::([a-z_]+))?\}")


@dataclass(frozen=True)
class Recordings:
    """What figures are computed from: the recordings' names with whether each one's output equals plain decoding (None
    where it was not compared), what reads one of them, and the laboratory's records by experiment."""

    equal: Mapping[str, bool | None]
    read: Callable[[str], Trace]
    experiments: Mapping[str, LabRecord] = field(default_factory=dict)


@dataclass(frozen=True)
class Scene:
    """A recording and the step that is shown."""

    trace: Trace
    step: Step
    recordings: Recordings


def fill(text: str, scene: Scene) -> str:
    """The text with every placeholder filled in; raises TraceError for one that is unknown or has no value."""
    return PLACEHOLDER.sub(lambda match: _figure(match, scene), text)


def _figure(match: re.Match[str], scene: Scene) -> str:
    name, other, rule = match.groups()
    if name in LAB_FIGURES:
        return _lab_figure(name, scene.recordings.experiments)
    if name not in FIGURES:
        raise TraceError(f"no figure is called {name!r}; there are {', '.join([*FIGURES, *LAB_FIGURES])}")
    if other is not None:
        if other not in scene.recordings.equal:
            raise TraceError(f"{match[0]} needs the recording {other!r}, which is not here")
        trace = scene.recordings.read(other)
        scene = Scene(trace, find_step(trace, rule or "first"), scene.recordings)
    value = FIGURES[name](scene)
    if value is None:
        raise TraceError(f"{match[0]} has no value in this {scene.trace.method} run")
    return value


def _lab_figure(name: str, experiments: Mapping[str, LabRecord]) -> str:
    experiment, compute = LAB_FIGURES[name]
    if experiment not in experiments:
        raise TraceError(f"{{{name}}} needs the laboratory's record {experiment!r}, which is not here")
    value = compute(experiments[experiment])
    if value is None:
        raise TraceError(f"{{{name}}} has no value in the record {experiment!r}")
    return value


def _decimal(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"


def _millions(value: int | None) -> str | None:
    return None if value is None else f"{value / 1e6:.1f} million"


def _most_rows(scene: Scene) -> str:
    return str(max(len(step.tree) for step in scene.trace.steps))


def _extra_tokens(scene: Scene) -> str | None:
    mean = scene.trace.stats.mean_acceptance_length
    return None if mean is None else f"{mean - 1:.2f}"


def _plain_ms(trace: Trace) -> float | None:
    speed = trace.baseline.tokens_per_second if trace.baseline else None
    return 1000 / speed if speed else None


def _cost(milliseconds: Callable[[Step], float]) -> Callable[[Scene], str | None]:
    """The mean of something over the steps, in the time of plain tokens."""

    def figure(scene: Scene) -> str | None:
        plain, steps = _plain_ms(scene.trace), scene.trace.steps
        if not plain or not steps:
            return None
        return f"{sum(map(milliseconds, steps)) / len(steps) / plain:.2f}"

    return figure


def _by_depth(scene: Scene) -> str | None:
    shares = [percent(share) for share in scene.trace.stats.acceptance_by_depth if share is not None]
    return ", ".join(shares) or None


def _at_depth(level: int) -> Callable[[Scene], str | None]:
    def figure(scene: Scene) -> str | None:
        shares = scene.trace.stats.acceptance_by_depth
        return percent(shares[level - 1]) if len(shares) >= level and shares[level - 1] is not None else None

    return figure


def _accepted_words(scene: Scene) -> str | None:
    tokens = [scene.step.tree.token[row] for row in scene.step.path[1:]]
    return quoted(scene.trace.vocab, tokens) if tokens else None


def _favourite(scene: Scene, row: int) -> str | None:
    """The target's first choice after a row, with its probability."""
    top = scene.step.tree.target_top[row]
    return f"{quote(scene.trace.vocab, top[0][0])} ({percent(top[0][1])})" if top else None


def _uncommon(scene: Scene) -> str | None:
    row, tree = uncommon_row(scene.step), scene.step.tree
    return None if row is None else f"{quote(scene.trace.vocab, tree.token[row])} ({percent(tree.target_prob[row])})"


def _uncommon_favourite(scene: Scene) -> str | None:
    row = uncommon_row(scene.step)
    return None if row is None else _favourite(scene, scene.step.tree.parent[row])


def _first_guess(scene: Scene) -> str | None:
    """The drafter's likeliest token right after the root, with its probability."""
    tree = scene.step.tree
    children = [row for row, parent in enumerate(tree.parent) if parent == 0 and tree.role[row] == "draft"]
    row = max(children, key=lambda child: tree.draft_prob[child] or 0, default=None)
    return None if row is None else f"{quote(scene.trace.vocab, tree.token[row])} ({percent(tree.draft_prob[row])})"


def _shapes(scene: Scene) -> str:
    """How many different trees a run drafted: by the parents of their rows."""
    steps = [step for step in scene.trace.steps if step.num_drafted and not step.is_cut]
    return plural(len({tuple(step.tree.parent) for step in steps}), "shape")


def _num_cells(scene: Scene) -> str:
    return str(sum(depths(scene.step.tree.parent)) + len(scene.step.tree))


def _threshold(scene: Scene) -> str | None:
    tests = [draw.threshold for draw in scene.step.draws if draw.threshold is not None]
    return percent(tests[0]) if tests else None


def _uncommon_share(scene: Scene) -> str | None:
    """Of all accepted drafts, the share that is not the target's first choice."""
    ranks = [step.tree.target_rank[row] for step in scene.trace.steps for row in step.path[1:]]
    return percent(sum(rank not in (None, 0) for rank in ranks) / len(ranks)) if ranks else None


def _num_tests(accepted: bool) -> Callable[[Scene], str]:
    return lambda scene: str(sum(draw.accepted is accepted for draw in draws_after(scene.step, 0)))


def _drafter(read: Callable[[Trace], int]) -> Callable[[Scene], str | None]:
    return lambda scene: _millions(read(scene.trace)) if scene.trace.drafter else None


def _drafter_share(scene: Scene) -> str | None:
    drafter = scene.trace.drafter
    return percent(drafter.num_parameters / scene.trace.target.num_parameters) if drafter else None


def _rejected_siblings(scene: Scene) -> str:
    """Rejected rows in the run whose sibling was accepted: they lost to a better guess of the same drafter."""
    count = 0
    for step in scene.trace.steps:
        taken = {step.tree.parent[row] for row in step.path[1:]}
        count += sum(
            state == "rejected" and parent in taken
            for state, parent in zip(step.tree.state, step.tree.parent, strict=True)
        )
    return str(count)


def _total(state: str) -> Callable[[Scene], str]:
    return lambda scene: str(sum(step.tree.state.count(state) for step in scene.trace.steps))


FIGURES: dict[str, Callable[[Scene], str | None]] = {
    # of the run
    "tau": lambda scene: _decimal(scene.trace.stats.mean_acceptance_length),
    "extra_tokens": _extra_tokens,
    "rate": lambda scene: percent(scene.trace.stats.draft_acceptance_rate),
    "speedup": lambda scene: _decimal(scene.trace.stats.speedup),
    "rows": _most_rows,
    "num_steps": lambda scene: str(scene.trace.stats.num_steps),
    "num_drafted": lambda scene: str(scene.trace.stats.num_draft_tokens),
    "num_accepted": lambda scene: str(scene.trace.stats.num_accepted_draft_tokens),
    "num_rejected": _total("rejected"),
    "num_unreachable": _total("unreachable"),
    "rejected_siblings": _rejected_siblings,
    "by_depth": _by_depth,
    "at_depth_1": _at_depth(1),
    "at_depth_2": _at_depth(2),
    "step_cost": _cost(lambda step: step.ms.total),
    "verify_cost": _cost(lambda step: step.ms.verify),
    "draft_cost": _cost(lambda step: sum(step.ms.draft)),
    "drafter_params": _drafter(lambda trace: trace.drafter.num_parameters if trace.drafter else 0),
    "target_params": lambda scene: _millions(scene.trace.target.num_parameters),
    "shapes": _shapes,
    "drafter_share": _drafter_share,
    "uncommon_share": _uncommon_share,
    # of all recordings
    "num_greedy": lambda scene: str(sum(equal is not None for equal in scene.recordings.equal.values())),
    "num_equal": lambda scene: str(sum(equal is True for equal in scene.recordings.equal.values())),
    # of the step
    "step_rows": lambda scene: str(len(scene.step.tree)),
    "drafted": lambda scene: str(scene.step.num_drafted),
    "accepted": lambda scene: str(scene.step.num_accepted),
    "gained": lambda scene: str(len(scene.step.path)),
    "considered": lambda scene: str(scene.step.num_drafted + scene.step.num_pruned),
    "choices_counted": lambda scene: plural(num_choices(scene.step), "choice"),
    "levels": lambda scene: str(depth(scene.step)),
    "prefix": lambda scene: str(scene.step.prefix_len),
    "cells": _num_cells,
    "all_cells": lambda scene: str(len(scene.step.tree) ** 2),
    "root": lambda scene: quote(scene.trace.vocab, scene.step.tree.token[0]),
    "accepted_words": _accepted_words,
    "own": lambda scene: quote(scene.trace.vocab, scene.step.next_token),
    "own_prob": lambda scene: percent(scene.step.next_prob),
    "own_clause": lambda scene: miss_clause(scene.step),
    "root_favourite": lambda scene: _favourite(scene, 0),
    "uncommon": _uncommon,
    "uncommon_favourite": _uncommon_favourite,
    "first_guess": _first_guess,
    "threshold": _threshold,
    "tests_failed": _num_tests(False),
}
