"""``python -m explorer client-bench``: an OpenAI-compatible endpoint, measured from outside. Works without torch."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer.bench_report import build_report
from explorer.cli.bench import add_question_arguments, choose_questions, prompt_bar, write_reports
from explorer.errors import SettingError
from explorer.insight import plural, visible
from explorer.measurement import ResultsFile
from explorer.questions import digest
from explorer.shards import merge, results_path

if TYPE_CHECKING:
    from explorer.client_bench import Endpoint

HELP = "measure an OpenAI-compatible endpoint over many prompts, several at once; resumable"
DEFAULT_LANE = "endpoint"
MAX_CONCURRENCY = 1024
MAX_TOLD = 5  # failures on the screen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The endpoint, the questions, how many requests at once, what they ask for."""
    parser.add_argument("--url", required=True, help="the server, as in http://127.0.0.1:8000 (or its /v1)")
    parser.add_argument("--model", required=True, help="the model's name there")
    add_question_arguments(parser)
    parser.add_argument("--concurrency", type=int, default=1, metavar="N", help="requests under way at once (1)")
    parser.add_argument("--max-new-tokens", type=int, default=128, metavar="N", help="default 128")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="default 0")
    parser.add_argument("--seed", type=int, metavar="S", help="sent where it is given")
    parser.add_argument("--system", metavar="TEXT", help="a system prompt")
    parser.add_argument(
        "--extra", metavar="JSON", help="""more fields of a request, as '{"return_spec_tokens_details": true}'"""
    )
    parser.add_argument("--key-from", metavar="NAME", help="the environment variable that holds the API key")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="S", help="seconds without a word (300)")
    parser.add_argument("--lane", default=DEFAULT_LANE, metavar="NAME", help=f"its name in the report ({DEFAULT_LANE})")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="gets results.jsonl, report.json, report.md and report.html"
    )


def run(args: argparse.Namespace) -> int:
    """Ask what is not answered yet, then write the reports; 2 where a request failed."""
    if lacking := [name for name in ("questions", "out") if getattr(args, name) is None]:
        raise SettingError(f"the following arguments are required: {', '.join(f'--{name}' for name in lacking)}")
    endpoint = _endpoint(args)
    questions = choose_questions(args)
    from explorer.client_bench import run_client_bench  # httpx

    head = _head(args, endpoint, [question.id for question in questions])
    results = ResultsFile(results_path(args.out, None), head)
    failures = []
    with prompt_bar() as bar:
        task = bar.add_task("measuring", total=None)
        for progress in run_client_bench(endpoint, args.lane, questions, results, args.concurrency):
            failures += [progress.failure] if progress.failure else []
            bar.update(task, completed=progress.num_done, total=progress.num_all)
    found = merge(results.measurements, head["question_ids"], [args.lane])
    if found:
        print(write_reports(build_report(head | {"questions_sha256": digest(questions)}, found), args.out))
    for failure in failures[:MAX_TOLD]:
        print(visible(failure), file=sys.stderr)
    if failures:
        raise SettingError(
            f"{plural(len(failures), 'request')} failed and are not in the report: the same command asks them again"
        )
    return 0


def _endpoint(args: argparse.Namespace) -> Endpoint:
    """What is asked of where; SettingError for what makes no sense."""
    from explorer.client_bench import Endpoint, chat_address

    if not 1 <= args.concurrency <= MAX_CONCURRENCY:
        raise SettingError(f"--concurrency must be from 1 to {MAX_CONCURRENCY}, not {args.concurrency}")
    if args.max_new_tokens < 1:
        raise SettingError(f"--max-new-tokens must be at least 1, not {args.max_new_tokens}")
    if not (math.isfinite(args.temperature) and args.temperature >= 0):
        raise SettingError(f"--temperature must be 0 or more, not {args.temperature:g}")
    if not (math.isfinite(args.timeout) and args.timeout > 0):
        raise SettingError(f"--timeout must be more than 0 seconds, not {args.timeout:g}")
    if not args.lane.strip() or not args.lane.isprintable():
        raise SettingError("--lane must be a printable name")
    return Endpoint(
        url=chat_address("--url", args.url),
        model=args.model,
        max_new_tokens=args.max_new_tokens,
        temperature=args.temperature,
        seed=args.seed,
        system=args.system,
        extra=_extra(args.extra),
        seconds=args.timeout,
        key=_key(args.key_from),
    )


def _extra(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text) if text is not None else {}
    except (ValueError, RecursionError) as error:
        raise SettingError(f"--extra is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise SettingError("""--extra must be a JSON object, as '{"top_p": 0.9}'""")
    return found


def _key(name: str | None) -> str | None:
    if name is None:
        return None
    key = os.environ.get(name, "")
    if not key or not key.isascii() or not key.isprintable():
        raise SettingError(f"--key-from {name}: that environment variable holds no key")
    return key


def _head(args: argparse.Namespace, endpoint: Endpoint, question_ids: list[str]) -> dict[str, Any]:
    """What must be the same for answers to be comparable; never the key."""
    return {
        "target": endpoint.model,
        "url": endpoint.url,
        "methods": [args.lane],
        "questions": args.questions.name,
        "question_ids": question_ids,
        "concurrency": args.concurrency,
        "max_new_tokens": endpoint.max_new_tokens,
        "temperature": endpoint.temperature,
        "seed": endpoint.seed,
        "system": endpoint.system,
        "extra": dict(endpoint.extra),
    }
