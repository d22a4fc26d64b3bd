"""A diagnosis as tables and sentences, the same for the terminal and Markdown. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.calibration import Calibration
from explorer.diagnose import Diagnosis, MethodDiagnosis, PromptRow, Span
from explorer.insight import percent
from explorer.tables import NOTHING, Table, number
from explorer.tallies import Tally
from explorer.token_classes import CLASS_WORDS

NUM_WORST, NUM_BEST = 8, 3  # spans that are shown; JSON has all
PROMPT_LENGTH, SPAN_LENGTH = 60, 90  # characters
BAR = 20  # cells of a full bar
MISS_COLUMNS = {
    "not drafted": ("not_drafted",),
    "pruned": ("pruned",),
    "wrong branch": ("elsewhere",),
    "outranked": ("outranked",),
    "drawn otherwise": ("sampled",),
    "tree ended": ("deepest", "leaf"),
    "no draft": ("plain",),
}
OVERVIEW_NOTE = (
    "Pooled over runs, plain steps that rested left out; break-even and speedup over those runs that have a baseline. "
    "Speedup here is tau over break-even: a step cut short at a run's end is left out, which the runs' own count."
)
PROMPTS_NOTE = (
    "Least tokens a pass first. Accepted: of the tokens that the drafts were tested on. Worst pass: the one that "
    "accepted least where the target was surest."
)
SPANS_NOTE = (
    "Lines and sentences of the output by the share of their tokens that came from a draft: the worst, the best."
)
MISSES_NOTE = (
    "Columns are the endings above: outranked is too low in the drafter's list, tree ended is accepted to a leaf, at "
    "the deepest level or above it."
)
ENTROPY_NOTE = (
    "How unsure the target was of the token, in bits: at least so many, because a trace keeps its five most probable "
    "tokens only."
)
QUESTIONS = {
    "next": "nodes whose parent was accepted, by their own probability",
    "path": "all nodes, by the product along their path: what EAGLE-2 chooses by",
}


def overview(found: Diagnosis) -> Table:
    """A line a method."""
    head = ["method", "runs", "passes", "resting", "tau", "without the own token", "needed to break even", "speedup"]
    rows = [
        [
            item.label,
            str(item.num_runs),
            str(item.num_steps),
            str(item.num_rests) if item.num_rests else NOTHING,
            number(item.tau, 2),
            number(None if item.tau is None else item.tau - 1, 2),
            number(item.break_even, 2),
            number(item.speedup, 2),
        ]
        for item in found.methods
    ]
    return Table("Methods", head, rows, OVERVIEW_NOTE)


def ranking(found: Diagnosis) -> list[Table]:
    """Prompts, then ``shown_spans`` of text, the worst first."""
    prompts = Table(
        "Prompts",
        ["tau", "accepted", "speedup", "prompt", "method", "mostly", "worst pass"],
        [_prompt(row) for row in found.prompts],
        PROMPTS_NOTE,
    )
    places = {row.run: where(row) for row in found.prompts}
    rows = [_span(span, f"{places[span.run]}, step {span.step + 1}") for span in shown_spans(found)]
    return [prompts, Table("Text", ["drafted", "tokens", "text", "method", "mostly", "from"], rows, SPANS_NOTE)]


def shown_spans(found: Diagnosis) -> list[Span]:
    """The worst and the best of many."""
    if len(found.spans) <= NUM_WORST + NUM_BEST:
        return found.spans
    return [*found.spans[:NUM_WORST], *found.spans[-NUM_BEST:]]


def verdict_lines(item: MethodDiagnosis) -> list[str]:
    """The verdict, numbered, and what to bear in mind."""
    lines = [f"{place}. {advice.sentence}" for place, advice in enumerate(item.verdict, 1)]
    return [*lines, item.caution] if item.caution else lines


def method_tables(item: MethodDiagnosis) -> list[Table]:
    """How the passes of one method ended, and what was missed where; then its calibration."""
    endings = [
        [ending.label, str(ending.count), percent(ending.share), ending.would_help, ending.sentence]
        for ending in item.endings
    ]
    classes = "; ".join(f"{name}: {words}" for name, words in CLASS_WORDS.items())
    found = [
        Table(
            "How passes ended",
            ["ending", "passes", "share", "what would help", "for example"],
            endings,
            " ".join(item.rests),
        ),
        _tallies("By kind of token", "kind", item.by_class, f"{MISSES_NOTE} {classes}. The first that fits counts."),
        _tallies("By place in the output", "token", item.by_position, ""),
        _tallies("By the target's entropy", "at least", item.by_entropy, ENTROPY_NOTE),
        *(_reliability(each) for each in item.calibrations),
    ]
    return [table for table in found if table.rows]


def where(row: PromptRow) -> str:
    """How to find a run again."""
    return row.file or f"run {row.run + 1}"


def _prompt(row: PromptRow) -> list[str]:
    worst = "" if row.worst_step is None else f", step {row.worst_step + 1}: {row.sentence}"
    return [
        number(row.tau, 2),
        percent(row.acceptance),
        number(row.speedup, 2),
        _cut(row.prompt, PROMPT_LENGTH),
        row.method,
        row.main_miss,
        where(row) + worst,
    ]


def _span(span: Span, place: str) -> list[str]:
    text = _cut(span.text.replace("\n", "↵"), SPAN_LENGTH)
    return [percent(span.accepted), str(span.num_tokens), text, span.method, span.main_miss, place]


def _tallies(title: str, word: str, tallies: Sequence[Tally], note: str) -> Table:
    names = [name for name, kinds in MISS_COLUMNS.items() if any(kind in t.endings for t in tallies for kind in kinds)]
    rows = [
        [
            each.name,
            str(each.num_tokens),
            percent(each.acceptance),
            *(str(sum(each.endings.get(kind, 0) for kind in MISS_COLUMNS[name])) for name in names),
        ]
        for each in tallies
    ]
    return Table(title, [word, "tokens", "accepted", *names], rows, note)


def _reliability(found: Calibration) -> Table:
    rows = [
        [
            f"{percent(each.low)} to {percent(each.high)}",
            str(each.num_nodes),
            percent(each.confidence),
            percent(each.accepted),
            bar(each.confidence, each.accepted),
        ]
        for each in found.bins
    ]
    title = f"Confidence: {QUESTIONS.get(found.question, found.question)}"
    return Table(title, ["the drafter said", "nodes", "said", "came true", "█ came true, | said"], rows, found.sentence)


def bar(said: float, came: float) -> str:
    """A bar as long as ``came`` with a mark where ``said`` ends, both from 0 to 1."""
    cells = ["█" if (i + 0.5) / BAR < came else "·" for i in range(BAR)]
    cells[min(int(said * BAR), BAR - 1)] = "|"
    return "".join(cells)


def _cut(text: str, length: int) -> str:
    words = " ".join(text.split())
    return (words if len(words) <= length else words[: length - 1] + "…") or NOTHING
