"""``python -m explorer bench compare``: two reports side by side. Works without torch."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from explorer.bench_compare import LABELS, VERDICTS, BenchComparison, Change, compare_reports, read_report
from explorer.codec import encode
from explorer.markdown import sentence, table
from explorer.trace_files import write_atomically

HELP = "compare two reports of the same questions and target: what changed, and whether it is more than noise"
HOW = (
    "Changes are medians over prompts with quartiles: ratios for speeds, differences for tau. More than the noise: the "
    "95 % interval of the median change leaves “no change” out; it needs six prompts."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The two reports, and where the comparison goes."""
    parser.add_argument("before", type=Path, metavar="A/report.json")
    parser.add_argument("after", type=Path, metavar="B/report.json")
    parser.add_argument("--out", type=Path, metavar="DIR", help="also write comparison.json and comparison.md")


def run(args: argparse.Namespace) -> int:
    """Print the comparison; reports of other questions or another target are refused in words."""
    found = compare_reports(read_report(args.before), read_report(args.after))
    text = to_markdown(found, str(args.before), str(args.after))
    if args.out:
        write_atomically(args.out / "comparison.json", (json.dumps(encode(found), indent=1) + "\n").encode())
        write_atomically(args.out / "comparison.md", text.encode())
    print(text, end="")
    return 0


def to_markdown(found: BenchComparison, before: str, after: str) -> str:
    """One table of all methods and figures, and what else differs."""
    rows = [[item.method, *_cells(change)] for item in found.methods for change in item.changes]
    head = ["method", "figure", "before", "after", "change per prompt", "95 % interval", "verdict"]
    lines = [
        f"# {sentence(before)} → {sentence(after)}, {found.num_questions} prompts",
        "",
        *table(head, rows),
        "",
        HOW,
    ]
    notes = [f"{item.method}: {item.settings}" for item in found.methods if item.settings] + found.notes
    lines += ["", "## What else differs", "", *(f"- {sentence(note)}" for note in notes or ["nothing"])]
    return "\n".join(lines) + "\n"


def _cells(change: Change) -> list[str]:
    form = "{:+.2f}" if change.figure == "tau" else "×{:.2f}"
    moved, interval = "–", "–"
    if change.change is not None:
        spread = change.change
        middle, low, high = map(form.format, (spread.median, spread.low_quartile, spread.high_quartile))
        moved = f"{middle} ({low} to {high})"
    if change.low is not None and change.high is not None:
        interval = f"{form.format(change.low)} to {form.format(change.high)}"
    values = ["–" if value is None else f"{value:.2f}" for value in (change.before, change.after)]
    return [LABELS[change.figure], *values, moved, interval, VERDICTS[change.verdict]]
