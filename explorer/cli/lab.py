"""``python -m explorer lab``: experiments on any target, each with a record that the page shows."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from explorer.cli.lanes import drafters_of, settings_of
from explorer.cli.run_options import add_lane_arguments, add_placement_arguments, placement
from explorer.cli.show import plain
from explorer.cli.trace import check_place
from explorer.config import METHOD_NAMES, parse_assignments, repo_path
from explorer.errors import SettingError
from explorer.lab_records import EXPERIMENTS, LabRecord, read_record, records_folder, write_record
from explorer.lab_words import lab_text, question_of, title_of
from explorer.runner_events import RunRequest, drain

HELP = "run an experiment of the laboratory; its record is what the page shows"
METHODS = ("medusa", "eagle2")
ALL = "all"
PROMPTS = ("Chat", "Code", "Maths")  # by their labels in assets/presets/prompts.json
NUM_TOKENS = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which experiment, on what, and where the record goes."""
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"{', '.join(EXPERIMENTS)}, or {ALL}")
    parser.add_argument("--list", action="store_true", help="say what each experiment asks, and end")
    parser.add_argument("--methods", default=",".join(METHODS), metavar="A,B", help="default: medusa,eagle2")
    add_lane_arguments(parser, NUM_TOKENS)
    add_placement_arguments(parser)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="the record's file (default: print only); of all: their folder (default: the page's, assets/laboratory)",
    )
    parser.add_argument("--show", type=Path, metavar="FILE", help="print what an existing record says: needs no model")


def run(args: argparse.Namespace) -> int:
    """List, show, or run one experiment after another; each record is written as soon as it is there."""
    if args.list:
        for name in EXPERIMENTS:
            print(f"{name}: {title_of(name)}. {question_of(name)}")
        return 0
    if args.show:
        _print(read_record(args.show))
        return 0
    names = EXPERIMENTS if args.name == ALL else (args.name,)
    if args.name not in (*EXPERIMENTS, ALL):
        said = "" if args.name is None else f", not {args.name!r}"
        raise SettingError(f"give an experiment: {', '.join(EXPERIMENTS)} or {ALL}{said}")
    requests, prompts = _requests(args), _prompts()
    out = (args.out or records_folder()) if args.name == ALL else args.out
    places = {name: out / f"{name}.json" if out and args.name == ALL else out for name in names}
    for place in places.values():
        if place is not None:
            check_place(place, "--out")
    for name, place in places.items():
        record = _run(name, requests, prompts)
        if place is not None:
            write_record(record, place)
        _print(record)
    return 0


def _run(name: str, requests: Sequence[RunRequest], prompts: Sequence[str]) -> LabRecord:
    from explorer.laboratory.run import available, run_experiment  # torch and transformers

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(f"{name}: loading", total=1.0)
        record, notices = drain(
            run_experiment(name, available(requests), prompts),
            lambda event: bar.update(task, description=f"{name}: {event.text}", completed=event.fraction or 0.0),
        )
    for notice in notices:
        print(f"note: {notice}", file=sys.stderr)
    return record


def _print(record: LabRecord) -> None:
    """What the page says of a record; nothing in it can steer the terminal."""
    text, console = lab_text(record), Console()
    console.print(plain(text.title), style="bold")
    for line in (text.question, text.measured, *text.findings, text.limits, text.made):
        if line:
            console.print(plain(line))
    console.print()


def _requests(args: argparse.Namespace) -> list[RunRequest]:
    methods = list(dict.fromkeys(name.strip() for name in args.methods.split(",") if name.strip()))
    drafting = [name for name in METHOD_NAMES if name != "autoregressive"]
    if not methods or (unknown := [name for name in methods if name not in drafting]):
        said = ", ".join(unknown) if methods else "none"
        raise SettingError(f"--methods: {said} cannot be experimented with; allowed: {', '.join(drafting)}")
    assigned, drafters = parse_assignments(args.set), drafters_of(methods, args.drafter)
    return [
        RunRequest(
            method=method,
            max_new_tokens=args.max_new_tokens,
            settings=settings_of(method, assigned),
            target=args.target,
            drafter=drafters.get(method),
            baseline=False,
            **placement(args),
        )
        for method in methods
    ]


def _prompts() -> list[str]:
    """The texts of PROMPTS; raises SettingError where the file lacks one."""
    path = repo_path("assets", "presets", "prompts.json")
    try:
        texts = {entry["label"]: entry["text"] for entry in json.loads(path.read_text(encoding="utf-8"))}
        return [texts[label] for label in PROMPTS]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingError(f"the prompt examples {path} cannot be read: {error!r}") from error
