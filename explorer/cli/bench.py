"""``python -m explorer bench``: many prompts, all methods interleaved in one run; JSON, Markdown, HTML."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from explorer.bench_markdown import to_markdown
from explorer.bench_report import GENERATE_ASSISTED, PEERS, build_report
from explorer.cli import bench_compare
from explorer.cli.lanes import drafters_of, method_of, read_lanes, resting_lanes, samplings_of, settings_of
from explorer.cli.run_options import add_lane_arguments, add_placement_arguments, placement
from explorer.cli.trace import add_sampling_arguments, to_sampling
from explorer.config import METHOD_NAMES, Sampling, parse_assignments
from explorer.errors import SettingError
from explorer.insight import plural
from explorer.measurement import Measurement, ResultsFile
from explorer.questions import Question, digest, read_questions, select
from explorer.rules import sampling_text
from explorer.runner_events import RunRequest
from explorer.shards import merge, missing, read_beside, read_machines, read_shard, results_path
from explorer.target_presets import find_target, load_targets
from explorer.trace import SamplingRecord
from explorer.trace_files import write_atomically

HELP = "measure methods over many prompts, interleaved in one run; resumable, in shards if wanted"
BUSY = 1.0  # load beyond our own threads from which other work disturbs the clock


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Methods, questions and what is measured of them."""
    known = ", ".join((*METHOD_NAMES, *PEERS))
    lanes_help = f"any of {known}; METHOD:LABEL is one more lane of a method, with --set METHOD:LABEL.NAME=VALUE"
    actions = parser.add_subparsers(metavar="compare A/report.json B/report.json")
    compare = actions.add_parser("compare", help=bench_compare.HELP, description=bench_compare.HELP, allow_abbrev=False)
    bench_compare.add_arguments(compare)
    compare.set_defaults(run=bench_compare.run)
    parser.add_argument("--methods", default="autoregressive,medusa,eagle2", metavar="A,B,C", help=lanes_help)
    parser.add_argument("--peers", action="store_true", help="transformers' own decoding of the same weights as well")
    add_question_arguments(parser)
    add_lane_arguments(parser)
    add_sampling_arguments(parser)
    add_placement_arguments(parser)
    parser.add_argument("--adaptive", action="store_true", help="methods that can rest do so while drafts cost time")
    add_sharing_arguments(parser)


def add_sharing_arguments(parser: argparse.ArgumentParser) -> None:
    """Where results and reports go, and the part of the questions that this process measures."""
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="gets results.jsonl, report.json, report.md and report.html"
    )
    share = parser.add_mutually_exclusive_group()
    share.add_argument(
        "--shard",
        metavar="K/N",
        help="measure the K-th of N shares of the questions; processes share one --out",
    )
    share.add_argument("--merge", action="store_true", help="measure nothing: report over all shards in --out")


def add_question_arguments(parser: argparse.ArgumentParser) -> None:
    """A question file and the choice among its questions; ``choose_questions`` reads them."""
    parser.add_argument(
        "--questions", type=Path, metavar="FILE", help="Spec-Bench or MT-bench JSON lines, or text: a prompt a line"
    )
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="the first N of the chosen questions")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every n-th of the fitting questions")
    parser.add_argument("--max-chars", type=int, default=0, metavar="N", help="only prompts of at most N characters")
    parser.add_argument("--categories", default="", metavar="A,B", help="only these categories")


def check_choice(args: argparse.Namespace) -> None:
    """Refuse numbers that choose no question."""
    for name in ("limit", "max_chars"):
        if getattr(args, name) < 0:
            raise SettingError(f"--{name.replace('_', '-')} must be 0 (all) or more, not {getattr(args, name)}")
    if args.every < 1:
        raise SettingError(f"--every must be at least 1, not {args.every}")


def choose_questions(args: argparse.Namespace) -> list[Question]:
    """The questions that the options name; raises SettingError or PromptError."""
    check_choice(args)
    return select(
        read_questions(args.questions),
        categories=list(dict.fromkeys(filter(None, map(str.strip, args.categories.split(","))))),
        max_chars=args.max_chars,
        every=args.every,
        limit=args.limit,
    )


def run(args: argparse.Namespace) -> int:
    """Measure what is not measured yet, then write the reports."""
    if lacking := [name for name in ("questions", "out") if getattr(args, name) is None]:
        raise SettingError(f"the following arguments are required: {', '.join(f'--{name}' for name in lacking)}")
    shard = read_shard(args.shard)
    lanes = read_lanes(args.methods, parse_assignments(args.set))
    lanes += [peer for peer in _peers(args) if peer not in lanes]
    samplings = samplings_of([lane for lane in lanes if lane not in PEERS], to_sampling(args))
    resting = resting_lanes(list(samplings)) if args.adaptive else []
    assigned = {lane: settings_of(lane, parse_assignments(args.set), lanes) for lane in samplings}
    drafters = drafters_of(list(samplings), args.drafter)
    requests = {
        lane: _request(args, lane, sampling, assigned[lane], drafters.get(lane), lane in resting)
        for lane, sampling in samplings.items()
    }
    questions = choose_questions(args)
    check_requests(requests.values())
    head = _head(args, lanes, [question.id for question in questions]) | _sampling_head(samplings)
    head |= {"adaptive": resting} if resting else {}
    head |= _adapted_head(requests)
    order = [*(lane for lane in lanes if lane in PEERS), *requests]
    if args.merge:
        found = merged(args.out, head, order)
        facts = {"questions_sha256": digest(questions)} | read_machines(args.out)
        print(write_reports(build_report(head | facts, found), args.out))
        return 0
    path = results_path(args.out, shard)
    beside = read_beside(args.out, path, head)
    results = ResultsFile(path, head, beside, _machine(args.device))
    _say_load("before")
    _measure(requests, shard.share(questions) if shard else questions, results, order)
    _say_load("after")
    found = merge([*results.measurements, *beside], head["question_ids"], order)
    if shard:
        print(f"{path}: {len(results.measurements)} measurements; {told_share(found, head, order)}")
        return 0
    facts = {"questions_sha256": digest(questions)} | read_machines(args.out)
    report = build_report(head | facts | {"load_average": round(os.getloadavg()[0], 2)}, found)
    print(write_reports(report, args.out))
    return 0


def check_requests(requests: Iterable[RunRequest]) -> None:
    """Refuse, before anything loads, settings that no run could have."""
    from explorer.config import resolve
    from explorer.loading import method_class  # torch and transformers
    from explorer.run_setup import check_request

    for request in requests:
        check_request(request)
        resolve(method_class(request).Settings, {k: v for k, v in request.settings.items() if k != "preset"})


def _measure(
    requests: Mapping[str, RunRequest], questions: list[Question], results: ResultsFile, lanes: list[str]
) -> None:
    from explorer.bench import run_bench

    if not questions:  # more shards than questions
        return
    with prompt_bar() as bar:
        task = bar.add_task("measuring", total=None)
        for progress in run_bench(requests, questions, results, [lane for lane in lanes if lane in PEERS]):
            for notice in progress.notices:
                bar.console.print(f"note: {notice}")
            bar.update(task, completed=progress.num_done, total=progress.num_all)


def merged(folder: Path, head: dict[str, Any], lanes: list[str]) -> list[Measurement]:
    """All measurements of a folder's shards in the benchmark's order; SettingError while some are missing."""
    found = merge(read_beside(folder, None, head), head["question_ids"], lanes)
    if lacking := missing(found, head["question_ids"], lanes):
        raise SettingError(
            f"{folder} lacks measurements of {plural(len(lacking), 'question')}, the first one {lacking[0]}: run the "
            "missing --shard, or the same command without --shard and --merge, which measures what is left"
        )
    return found


def told_share(found: list[Measurement], head: dict[str, Any], lanes: list[str]) -> str:
    """How far all shards together are."""
    lacking = len(missing(found, head["question_ids"], lanes))
    if not lacking:
        return "all shards are done: the same command with --merge in place of --shard reports over all"
    return f"{lacking} of {plural(len(head['question_ids']), 'question')} are left to other shards"


def write_reports(report: dict[str, Any], folder: Path) -> str:
    """The report as JSON, Markdown and HTML; returns the Markdown."""
    from explorer.export.bench_page import bench_page
    from explorer.views.theme import DARK, LIGHT, css_variables

    markdown = to_markdown(report)
    page = bench_page(report, css_variables(LIGHT), css_variables(DARK))
    write_atomically(folder / "report.json", (json.dumps(report, indent=1, allow_nan=False) + "\n").encode())
    write_atomically(folder / "report.md", markdown.encode())
    write_atomically(folder / "report.html", page.encode())
    return markdown


def _peers(args: argparse.Namespace) -> list[str]:
    """The lanes that ``--peers`` adds: all that this target has what they need for."""
    has_draft_model = "draft_model" in find_target(args.target, load_targets()).drafters
    return [peer for peer in PEERS if args.peers and (has_draft_model or peer != GENERATE_ASSISTED)]


def _request(
    args: argparse.Namespace,
    lane: str,
    sampling: Sampling,
    settings: dict[str, str],
    drafter: str | None,
    is_adaptive: bool,
) -> RunRequest:
    return RunRequest(
        method=method_of(lane),
        prompt="?",  # each question's own takes its place
        max_new_tokens=args.max_new_tokens,
        sampling=sampling,
        settings=dict(settings),
        target=args.target,
        drafter=drafter,
        baseline=False,
        is_adaptive=is_adaptive,
        **placement(args),
    )


def _head(args: argparse.Namespace, lanes: list[str], question_ids: list[str]) -> dict[str, Any]:
    """What must be the same for results to be comparable."""
    return {
        "target": args.target,
        "drafter": ", ".join(args.drafter) or "the preset's own",
        "methods": lanes,
        "questions": args.questions.name,
        "question_ids": question_ids,
        "max_new_tokens": args.max_new_tokens,
        "set": args.set,
        **placement(args),
    }


def _sampling_head(samplings: dict[str, Sampling]) -> dict[str, Any]:
    """How each lane chose its tokens; nothing for a greedy benchmark."""
    if all(sampling.rule == "greedy" for sampling in samplings.values()):
        return {}
    records = {
        method: SamplingRecord(s.temperature, s.top_p, s.top_k, s.seed, s.rule) for method, s in samplings.items()
    }
    return {"sampling": {method: sampling_text(record) for method, record in records.items()}}


def _adapted_head(requests: Mapping[str, RunRequest]) -> dict[str, Any]:
    """Of a benchmark whose drafter adapts the target, what every lane is measured on; raises CheckpointError."""
    from explorer.adapter_words import adapter_sentence
    from explorer.checkpoints.target_adapter import read_record
    from explorer.loading import with_one_target

    named = list(requests.values())
    adapter = with_one_target(named, find_target(named[0].target, load_targets()))[0].adapter
    return {} if adapter is None else {"adapted_target": adapter_sentence(read_record(adapter))}


def _machine(device: str) -> dict[str, Any]:
    """What this process measures on."""
    import torch

    from explorer.devices import device_name

    kind = "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
    return {
        "machine": device_name(torch.device(kind)),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def _say_load(when: str) -> None:
    import torch

    load, threads = os.getloadavg()[0], torch.get_num_threads()
    print(f"load average {when}: {load:.2f} ({plural(threads, 'thread')})", file=sys.stderr)
    if load > threads * (when == "after") + BUSY:
        print("warning: other work disturbs this machine; speeds are not to be trusted", file=sys.stderr)


def prompt_bar() -> Progress:
    """Progress over many prompts, on stderr."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(file=sys.stderr))
