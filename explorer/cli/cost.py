"""``python -m explorer cost``: what passes cost on this device, and which tree decodes fastest."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from explorer.cli.lanes import drafters_of
from explorer.cli.run_options import DEVICE_HELP, add_drafters_argument, add_numerics_argument, add_target_argument
from explorer.codec import encode
from explorer.config import BACKENDS, DTYPES, METHOD_NAMES
from explorer.cost_words import cost_sentence, cost_tables, floor_sentence, verdict_sentence
from explorer.errors import SettingError
from explorer.kernel_words import commit_sentence
from explorer.prediction import TOTAL_TOKENS, CostReport, DeviceCost, Prediction
from explorer.runner_events import RunRequest, Status, drain
from explorer.tables import Table as Rows
from explorer.trace_files import write_atomically

HELP = "measure verify and draft time against rows on this device; the break-even and the best tree"
METHODS = ("medusa", "eagle2")
SHOWN_ROWS = (2, 4, 8, 12, 16, 24, 32, 48, 60)

T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which target and drafters, where."""
    parser.add_argument("--methods", default=",".join(METHODS), metavar="A,B", help="default: medusa,eagle2")
    add_target_argument(parser)
    add_drafters_argument(parser)
    parser.add_argument("--dtype", default="auto", choices=DTYPES)
    parser.add_argument("--device", default="auto", metavar="D", help=DEVICE_HELP)
    parser.add_argument("--backend", default="auto", choices=BACKENDS)
    add_numerics_argument(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the figures as JSON")


def run(args: argparse.Namespace) -> int:
    """Measure, then print the costs and what they mean."""
    methods = [name.strip() for name in args.methods.split(",") if name.strip()]
    if unknown := [name for name in methods if name not in METHOD_NAMES]:
        raise SettingError(f"--methods: unknown {', '.join(unknown)}; allowed: {', '.join(METHOD_NAMES)}")
    drafters = drafters_of(methods, args.drafter)
    request = RunRequest(
        method=methods[0] if methods else METHODS[0],
        target=args.target,
        drafter=drafters.get(methods[0]) if methods else None,
        dtype=args.dtype,
        device=args.device,
        backend=args.backend,
        numerics=args.numerics,
    )
    from explorer.runner import Runner

    with closing(Runner().measure(request, methods, drafters)) as events:
        report = _with_bar(events)
    _print(report)
    if args.out:
        write_atomically(args.out, (json.dumps(encode(report), indent=1) + "\n").encode())
    return 0


def _print(report: CostReport) -> None:
    cost, console = report.cost, Console()
    where = f"{report.target}, {cost.dtype} on {cost.device_name}"
    console.print(f"{where}, {cost.num_threads} threads, behind {cost.prefix_len} tokens", highlight=False)
    console.print(_pass_table(cost))
    for label, trees in report.methods.items():
        console.print(_tree_table(label, trees))
    for found in cost_tables(report):
        console.print(_rich_table(found))
        console.print(found.note, style="dim", highlight=False)
    print(f"{cost_sentence(cost)}.")
    if floor := floor_sentence(cost):
        print(f"{floor}.")
    if report.kernels:
        print(f"{commit_sentence(report.kernels)}.")
    for label, trees in report.methods.items():
        fastest = max(trees, key=lambda item: item.tokens_per_second, default=None)
        print(f"{verdict_sentence(label, fastest)}.")
    print(f"Load average: {os.getloadavg()[0]:.2f}; other work on the machine makes passes look dearer.")


def _pass_table(cost: DeviceCost) -> Table:
    table = Table("rows", "ms", "× one row", "least ms", title="A verify pass", title_justify="left")
    for rows, ms in sorted(cost.verify_ms.items()):
        floor = cost.floor_at(rows)
        least = "–" if floor is None else f"{floor:.1f}"
        table.add_row(str(rows), f"{ms:.1f}", f"{ms / cost.verify_at(1):.2f}", least)
    return table


def _tree_table(label: str, trees: list[Prediction]) -> Table:
    """The fastest tree of some budgets, the fastest of all among them."""
    fastest = max(trees, key=lambda item: item.tokens_per_second, default=None)
    names = [name for name in (trees[0].settings if trees else {}) if name != TOTAL_TOKENS]
    head = ("rows", *names, "tau", "break-even", "tokens/s", "speedup")
    table = Table(*head, title=f"{label}: the fastest tree by rows (predicted)", title_justify="left")
    for item in trees:
        if item.num_rows in SHOWN_ROWS or item is fastest:
            figures = [f"{v:.2f}" for v in (item.tau, item.break_even, item.tokens_per_second, item.speedup)]
            settings = [str(item.settings[name]) for name in names]
            table.add_row(str(item.num_rows), *settings, *figures, style="bold" if item is fastest else None)
    return table


def _rich_table(found: Rows) -> Table:
    table = Table(*found.head, title=found.title, title_justify="left")
    for row in found.rows:
        table.add_row(*row)
    return table


def _with_bar(events: Generator[Status, None, T]) -> T:
    """Show what is measured on stderr; returns what the generator returns."""
    columns = (TextColumn("{task.description}"), BarColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("loading", total=1.0)
        return drain(events, lambda event: bar.update(task, description=event.text, completed=event.fraction or 0.0))
