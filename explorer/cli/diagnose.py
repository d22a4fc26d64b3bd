"""``python -m explorer diagnose``: why drafts are rejected on these prompts, and what to change.

Existing traces are diagnosed without torch.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from explorer.cli.bench import add_question_arguments, check_requests, choose_questions, prompt_bar
from explorer.cli.lanes import drafters_of, samplings_of, settings_of
from explorer.cli.run_options import add_lane_arguments, add_placement_arguments, placement
from explorer.cli.show import plain, sentence
from explorer.cli.trace import add_sampling_arguments, check_place, to_sampling
from explorer.codec import encode
from explorer.config import METHOD_NAMES, parse_assignments
from explorer.diagnose import Diagnosis, Subject, diagnose
from explorer.diagnose_markdown import to_markdown
from explorer.diagnose_words import method_tables, overview, ranking, verdict_lines
from explorer.errors import PromptError, SettingError
from explorer.questions import Question
from explorer.runner_events import Finished, Notice, RunRequest
from explorer.tables import Table
from explorer.target_presets import find_target, load_targets
from explorer.trace import Trace, read_trace, write_trace
from explorer.trace_files import write_atomically

HELP = "rank prompts and text by acceptance, say why each miss happened, and what would help"
SCHEMA, SCHEMA_VERSION = "draft-tree-diagnosis", 1
DRAFTING = tuple(name for name in METHOD_NAMES if name != "autoregressive")
UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
NAME_LENGTH = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Traces that exist, or what to run; where the result goes."""
    parser.add_argument("files", nargs="*", type=Path, metavar="TRACE", help="existing traces: no model is needed")
    parser.add_argument("--method", metavar="A,B", help=f"one or several of {', '.join(DRAFTING)}")
    parser.add_argument("--prompt", metavar="TEXT", help="what the user says")
    add_question_arguments(parser)
    parser.add_argument("--system", metavar="TEXT", help="system prompt")
    add_lane_arguments(parser)
    add_sampling_arguments(parser)
    add_placement_arguments(parser)
    parser.add_argument("--no-baseline", action="store_true", help="leave plain decoding out: no break-even is known")
    parser.add_argument("--traces", type=Path, metavar="DIR", help="also write the traces that were made")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the diagnosis as Markdown")
    parser.add_argument(
        "--json", action="store_true", help="print JSON instead of tables; steps count from 0 there, as in the traces"
    )


def run(args: argparse.Namespace) -> int:
    """Read or make the traces, then print what they say."""
    wanted = [bool(args.files), args.prompt is not None, args.questions is not None]
    if sum(wanted) != 1:
        raise SettingError("give exactly one of: trace files, --questions FILE, --prompt TEXT")
    if args.files and (args.method or args.traces):
        raise SettingError("trace files hold their method already: leave --method and --traces out")
    if args.out:
        check_place(args.out, "--out")
    if args.traces:
        check_place(args.traces / "trace.json.gz", "--traces")
    subjects = [Subject(read_trace(file), str(file)) for file in args.files] or list(_make(args))
    found = diagnose(subjects)
    if args.out:
        write_atomically(args.out, to_markdown(found).encode())
    if args.json:
        head = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION}
        print(json.dumps(head | encode(found), ensure_ascii=False, indent=1, allow_nan=False))
    else:
        show(found, Console())
    return 0


def show(found: Diagnosis, console: Console) -> None:
    """The verdicts and the tables; nothing in a prompt or token can steer the terminal."""
    for each in (overview(found), *ranking(found)):
        _print_table(each, console)
    _print_command(found, console)
    for item in found.methods:
        console.rule(plain(item.label), align="left")
        for each in method_tables(item):
            _print_table(each, console)
    for item in found.methods:
        console.print(plain(f"{item.label}: what would help"), style="bold")
        for line in verdict_lines(item):
            console.print(plain(sentence(line)))


def _print_command(found: Diagnosis, console: Console) -> None:
    """What draws the worst pass of all: a narrow table breaks names where nobody could copy them."""
    first = next((row for row in found.prompts if row.file and row.worst_step is not None), None)
    if first is not None and first.file and first.worst_step is not None:
        command = f"show {shlex.quote(first.file)} --step {first.worst_step + 1}"
        console.print(
            plain(f"The first of the prompts' worst passes, drawn: python -m explorer {command}"), soft_wrap=True
        )
        console.print()


def _print_table(each: Table, console: Console) -> None:
    table = RichTable(box=None, header_style="dim", padding=(0, 1), title=escape(each.title), title_justify="left")
    for name in each.head:
        table.add_column(escape(name), overflow="fold")
    for row in each.rows:
        table.add_row(*(plain(sentence(cell)) for cell in row))
    console.print(table)
    if each.note:
        console.print(plain(sentence(each.note)), style="dim")
    console.print()


def _make(args: argparse.Namespace) -> Iterator[Subject]:
    """Run every question with every method; what was made is written at once, so that a stop costs one run."""
    questions = [Question("prompt", "all", args.prompt)] if args.prompt is not None else choose_questions(args)
    requests = _requests(args)
    check_requests(replace(request, prompt=questions[0].text) for request in requests)
    from explorer.loading import with_one_target  # torch
    from explorer.runner import Runner

    requests = with_one_target(requests, find_target(args.target, load_targets()))
    runner, number = Runner(), 0
    with prompt_bar() as bar:
        task = bar.add_task("decoding", total=len(questions) * len(requests))
        for question in questions:
            for request in requests:
                number += 1
                trace = _trace(runner, replace(request, prompt=question.text), bar.console)
                bar.update(task, advance=1)
                if trace is None:
                    continue
                file = None if args.traces is None else args.traces / _file_name(number, request.method, question.id)
                if file is not None:
                    write_trace(trace, file)
                yield Subject(trace, None if file is None else str(file), question.category)


def _requests(args: argparse.Namespace) -> list[RunRequest]:
    methods = list(dict.fromkeys(name.strip() for name in (args.method or "").split(",") if name.strip()))
    unknown = [name for name in methods if name not in DRAFTING]
    if unknown or not methods:
        raise SettingError(
            f"--method: {', '.join(unknown) or 'none'} cannot be diagnosed; allowed: {', '.join(DRAFTING)}"
        )
    assigned, drafters = parse_assignments(args.set), drafters_of(methods, args.drafter)
    return [
        RunRequest(
            method=method,
            system=args.system,
            max_new_tokens=args.max_new_tokens,
            sampling=sampling,
            settings=settings_of(method, assigned),
            target=args.target,
            drafter=drafters.get(method),
            baseline=not args.no_baseline,
            **placement(args),
        )
        for method, sampling in samplings_of(methods, to_sampling(args)).items()
    ]


def _trace(runner: Any, request: RunRequest, console: Console) -> Trace | None:
    """One finished run; None, and a line that says why, for a prompt that cannot be decoded."""
    try:
        for event in runner.run(request):
            if isinstance(event, Notice):
                console.print(plain(f"note: {event.text}"))
            if isinstance(event, Finished):
                return event.trace
    except PromptError as error:
        console.print(plain(f"left out: {error}"))
    return None


def _file_name(number: int, method: str, question_id: str) -> str:
    """A safe name: ids come from a file and may hold anything."""
    name = UNSAFE.sub("-", question_id)[:NAME_LENGTH].strip("-") or "prompt"
    return f"{number:03d}-{method}-{name}.json.gz"
