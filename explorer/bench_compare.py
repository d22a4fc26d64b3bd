"""Two benchmark reports of the same questions and target: what changed per method, and whether it is more than noise.

Figures are compared prompt by prompt where both reports hold them. Then a change counts where the interval that holds
the median change with at least 95 % certainty leaves "no change" out; it is made of order statistics, so it assumes
nothing of the prompts' distribution (H. A. David, Order Statistics, section 2.5). Reports of earlier versions hold
medians and quartiles only: there two medians differ where their notches, 1.57 quartile ranges over the root of the
number of prompts, do not overlap (McGill, Tukey and Larsen, Variations of box plots, 1978). Standard library only.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from explorer.bench_report import AUTOREGRESSIVE, SCHEMA, SCHEMA_VERSION
from explorer.codec import decode
from explorer.errors import SettingError, TraceError
from explorer.insight import listing, plural, visible
from explorer.tables import told
from explorer.trace_files import read_bytes, unpack

CERTAINTY = 0.95
NOTCH = 1.57
TELLING = ("target", "questions", "question_ids", "questions_sha256", "methods", "load_average")  # not settings
FIGURES = ("tau", "tokens_per_second", "speedup")
LABELS = {"tau": "tau", "tokens_per_second": "tokens/s", "speedup": "speedup"}
VERDICTS = {
    "more": "more than the noise",
    "noise": "within the noise",
    "same": "the same on every prompt",
    "unknown": "too few prompts to tell",
}


@dataclass(frozen=True)
class Spread:
    """Median and quartiles over prompts."""

    median: float
    low_quartile: float
    high_quartile: float


@dataclass(frozen=True)
class PromptFigures:
    """One prompt's figures; null where nothing was decoded, or nothing to compare with."""

    question_id: str
    tau: float | None = None
    tokens_per_second: float | None = None
    speedup: float | None = None


@dataclass(frozen=True)
class MethodFigures:
    """Of a method's row what is compared."""

    num_prompts: int
    tau: float | None
    tokens_per_second: Spread | None
    speedup: Spread | None
    settings: dict[str, Any] = field(default_factory=dict)
    by_prompt: list[PromptFigures] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """A report file, of this version or an earlier one."""

    bench: dict[str, Any]
    num_questions: int
    methods: dict[str, MethodFigures]
    schema: str = SCHEMA
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class Change:
    """One figure of one method. before, after: the reports' own; None where one has none.

    change: over prompts, the ratio after / before for speeds and the difference for tau, or None; low, high: the
    interval of its median. verdict: one of VERDICTS.
    """

    figure: str
    before: float | None
    after: float | None
    change: Spread | None
    low: float | None
    high: float | None
    num_prompts: int
    verdict: str
    sentence: str


@dataclass(frozen=True)
class MethodChange:
    """One method in both reports. settings: what of them changed, in words."""

    method: str
    settings: str
    changes: list[Change]


@dataclass(frozen=True)
class BenchComparison:
    """Everything that changed. notes: what else differs, and what to make of it."""

    num_questions: int
    methods: list[MethodChange]
    notes: list[str]


def read_report(path: Path) -> Report:
    """A ``report.json``; SettingError, in words, for anything else."""
    try:
        raw = json.loads(unpack(read_bytes(path)))
        report = decode(Report, raw, "report")
    except (ValueError, RecursionError, TraceError) as error:
        raise SettingError(f"{path} is no benchmark report: {error}") from error
    if report.schema != SCHEMA or report.schema_version != SCHEMA_VERSION:
        raise SettingError(
            f"{path} is a {report.schema} of version {report.schema_version}; this program reads {SCHEMA} "
            f"{SCHEMA_VERSION}"
        )
    return report


def compare_reports(before: Report, after: Report) -> BenchComparison:
    """What changed from one report to the other; SettingError where they do not measure the same."""
    _check_same(before, after)
    shared = [method for method in before.methods if method in after.methods]
    if not shared:
        raise SettingError(
            f"no method is in both reports: the first has {listing(list(before.methods))}, the second "
            f"{listing(list(after.methods))}"
        )
    changes = [_method_change(method, before.methods[method], after.methods[method]) for method in shared]
    return BenchComparison(before.num_questions, changes, _notes(before, after, changes))


def _check_same(before: Report, after: Report) -> None:
    names = [_target_name(report.bench) for report in (before, after)]
    if names[0] != names[1]:
        raise SettingError(f"the reports are of different targets, {names[0]} and {names[1]}: measure the same one")
    ids = [report.bench.get("question_ids") for report in (before, after)]
    marks = [report.bench.get("questions_sha256") for report in (before, after)]
    if ids[0] is None or ids[1] is None:
        raise SettingError("a report does not say which questions it measured: make it again")
    is_other_text = None not in marks and marks[0] != marks[1]
    if ids[0] != ids[1] or is_other_text:
        files = [str(report.bench.get("questions")) for report in (before, after)]
        counts = [plural(report.num_questions, "question") for report in (before, after)]
        raise SettingError(
            f"the reports are of different questions, {files[0]} ({counts[0]}) and {files[1]} ({counts[1]}): measure "
            "the same file with the same choice"
        )


def _target_name(bench: Mapping[str, Any]) -> str:
    """Of a report's head; what a drafter makes of a target is another target."""
    adapted = bench.get("adapted_target")
    return f"{bench.get('target')}{f' ({adapted})' if adapted else ''}"


def _method_change(method: str, before: MethodFigures, after: MethodFigures) -> MethodChange:
    names = dict.fromkeys([*before.settings, *after.settings])
    moved = [
        f"{name} {before.settings.get(name, 'not there')} → {after.settings.get(name, 'not there')}"
        for name in names
        if before.settings.get(name) != after.settings.get(name)
    ]
    figures = [figure for figure in FIGURES if method != AUTOREGRESSIVE or figure == "tokens_per_second"]
    return MethodChange(method, ", ".join(moved), [_change(figure, before, after) for figure in figures])


def _change(figure: str, before: MethodFigures, after: MethodFigures) -> Change:
    old, new = _value(getattr(before, figure)), _value(getattr(after, figure))
    pairs = _pairs(figure, before, after)
    spread, low, high = None, None, None
    if pairs:
        none, found = (0.0, [b - a for a, b in pairs]) if figure == "tau" else (1.0, [b / a for a, b in pairs])
        spread, (low, high) = _spread(found), median_interval(found) or (None, None)
        if all(value == none for value in found):
            verdict = "same"
        elif low is None or high is None:
            verdict = "unknown"
        else:
            verdict = "noise" if low <= none <= high else "more"
    else:
        verdict = _notched(figure, before, after)
    sentence = _sentence(figure, (old, new), spread, verdict)
    return Change(figure, old, new, spread, low, high, len(pairs), verdict, sentence)


def _value(value: Spread | float | None) -> float | None:
    return value.median if isinstance(value, Spread) else value


def _pairs(figure: str, before: MethodFigures, after: MethodFigures) -> list[tuple[float, float]]:
    """A prompt's figure before and after, where both are there; speeds are above 0."""
    old = {item.question_id: getattr(item, figure) for item in before.by_prompt}
    found = [(old.get(item.question_id), getattr(item, figure)) for item in after.by_prompt]
    return [(a, b) for a, b in found if a is not None and b is not None and (figure == "tau" or a > 0)]


def _notched(figure: str, before: MethodFigures, after: MethodFigures) -> str:
    """The verdict from medians and quartiles alone."""
    one, other = getattr(before, figure), getattr(after, figure)
    if not isinstance(one, Spread) or not isinstance(other, Spread):
        return "unknown"
    reach = sum(
        NOTCH * (spread.high_quartile - spread.low_quartile) / math.sqrt(max(figures.num_prompts, 1))
        for spread, figures in ((one, before), (other, after))
    )
    return "more" if abs(one.median - other.median) > reach else "noise"


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """An interval that holds the median of where the values come from with at least CERTAINTY; None below six values.

    It reaches from the k-th smallest to the k-th largest: both miss with a chance of 2 P(Binomial(n, 1/2) < k).
    """
    ordered, missed, k = sorted(values), 0.0, 0
    for smaller in range(len(ordered)):
        missed += 2 * math.comb(len(ordered), smaller) / 2 ** len(ordered)
        if missed > 1 - CERTAINTY:
            break
        k = smaller + 1
    return (ordered[k - 1], ordered[-k]) if k else None


def _spread(values: Sequence[float]) -> Spread:
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
    return Spread(middle, low, high)


def _sentence(figure: str, values: Sequence[float | None], spread: Spread | None, verdict: str) -> str:
    shown = ["–" if value is None else f"{value:.2f}" for value in values]
    text = f"{LABELS[figure]} {shown[0]} → {shown[1]}"
    if spread is not None:
        sign, form = ("by", "+.2f") if figure == "tau" else ("×", ".2f")
        middle, low, high = (
            format(value, form) for value in (spread.median, spread.low_quartile, spread.high_quartile)
        )
        text += f", per prompt {sign} {middle} ({low} to {high})"
    return f"{text}: {VERDICTS[verdict]}"


def _notes(before: Report, after: Report, changes: Sequence[MethodChange]) -> list[str]:
    names = [name for name in dict.fromkeys([*before.bench, *after.bench]) if name not in TELLING]
    found = [
        f"{visible(name)}: {told(before.bench.get(name, 'not told'))} → {told(after.bench.get(name, 'not told'))}"
        for name in names
        if before.bench.get(name) != after.bench.get(name)
    ]
    only = [
        f"only the {word} report has {listing(missing)}"
        for word, own, other in (("first", before, after), ("second", after, before))
        if (missing := [method for method in own.methods if method not in other.methods])
    ]
    plain = next((item.changes[0] for item in changes if item.method == AUTOREGRESSIVE), None)
    if plain is not None and plain.verdict == "more":
        found.append(
            f"plain decoding itself changed ({plain.sentence}): the machine or the target's own passes, so judge the "
            "methods by speedup"
        )
    if any(not item.by_prompt for report in (before, after) for item in report.methods.values()):
        found.append(
            "a report of an earlier version holds medians only: its tau cannot be judged, its speeds by their quartiles"
        )
    return [*found, *only]
