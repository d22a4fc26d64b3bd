"""``python -m explorer trace``: one prompt, one trace."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from explorer.cli.run_options import (
    SETTING_OF_ONE,
    add_length_arguments,
    add_model_arguments,
    add_placement_arguments,
    placement,
)
from explorer.config import ACCEPTANCES, METHOD_NAMES, Sampling, parse_assignments
from explorer.errors import PromptError, SettingError
from explorer.rules import rule_label, sampling_text
from explorer.runner_events import BaselineProgress, Event, Finished, Notice, RunRequest, Started, Status, Stepped
from explorer.target_presets import load_targets
from explorer.trace import Trace, write_trace

HELP = "run one prompt with one method and write the trace"
ENDINGS = (".json", ".json.gz")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a run."""
    parser.add_argument("--method", required=True, choices=METHOD_NAMES)
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT", help="what the user says")
    prompt.add_argument("--messages", metavar="FILE", type=Path, help='JSON list of {"role", "content"} objects')
    prompt.add_argument("--prompt-ids", metavar="1,2,3", help="token ids, read as they are")
    parser.add_argument("--system", metavar="TEXT", help="system prompt")
    add_model_arguments(parser)
    add_length_arguments(parser, SETTING_OF_ONE)
    add_sampling_arguments(parser)
    add_placement_arguments(parser)
    parser.add_argument("--no-chat-template", action="store_true", help="feed the prompt as it is")
    parser.add_argument("--ignore-stop", action="store_true", help="go on after stop tokens")
    parser.add_argument("--adaptive", action="store_true", help="decode plainly while speculation costs time")
    parser.add_argument("--no-baseline", action="store_true", help="leave the autoregressive lane out")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help=".json or .json.gz")


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    """How tokens are chosen and drafts accepted; ``to_sampling`` reads them."""
    typical = rule_label("typical")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0, the default, is greedy")
    parser.add_argument("--top-p", type=float, default=1.0, metavar="P", help="1 (the default) is off")
    parser.add_argument("--top-k", type=int, default=0, metavar="K", help="0 (the default) is off")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the same seed gives the same run")
    parser.add_argument(
        "--acceptance",
        choices=ACCEPTANCES,
        help=f"default: greedy at temperature 0, else rejection; medusa also has {typical}",
    )


def to_sampling(args: argparse.Namespace) -> Sampling:
    """The sampling that the options describe; raises SettingError."""
    return Sampling(args.temperature, args.top_p, args.top_k, args.seed, args.acceptance)


def run(args: argparse.Namespace) -> int:
    """Run the request and write its trace; nothing is written unless the run ends by itself."""
    request = to_request(args)
    check_writable(args.out)
    load_targets()  # a broken presets file is said before torch takes its seconds
    from explorer.runner import Runner

    with RunBar(request.max_new_tokens) as bar, closing(Runner().run(request)) as events:
        for event in events:
            bar.show(event)
            if isinstance(event, Finished):
                write_trace(event.trace, args.out)
                bar.stop()
                print(summary(event.trace, args.out))
    return 0


def to_request(args: argparse.Namespace) -> RunRequest:
    """The request that the options describe; raises SettingError or PromptError."""
    return RunRequest(
        method=args.method,
        prompt=args.prompt,
        messages=None if args.messages is None else read_messages(args.messages),
        prompt_ids=None if args.prompt_ids is None else parse_ids(args.prompt_ids),
        system=args.system,
        max_new_tokens=args.max_new_tokens,
        sampling=to_sampling(args),
        settings=parse_assignments(args.set),
        target=args.target,
        drafter=args.drafter,
        baseline=not args.no_baseline,
        ignore_stop=args.ignore_stop,
        is_adaptive=args.adaptive,
        use_chat_template=not args.no_chat_template,
        **placement(args),
    )


def read_messages(path: Path) -> tuple[dict[str, str], ...]:
    """The messages of a JSON file; their form is checked where they are rendered."""
    try:
        messages = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PromptError(f"--messages {path} cannot be read as JSON: {reason}") from error
    if not isinstance(messages, list):
        raise PromptError(f'--messages {path} must hold a list of {{"role": "user", "content": "..."}} objects')
    return tuple(messages)


def parse_ids(text: str) -> tuple[int, ...]:
    """Token ids from ``1,2,3``."""
    parts = [part.strip() for part in text.split(",")]
    wrong = [part for part in parts if not (part.isascii() and part.isdigit() and len(part) < 10)]
    if wrong:
        raise PromptError(f"--prompt-ids must be whole numbers like 1,2,3, found {wrong[0][:40]!r}")
    return tuple(map(int, parts))


def check_writable(path: Path) -> None:
    """Refuse a trace file that could not be written, before minutes are spent on its content."""
    if not path.name.endswith(ENDINGS):
        raise SettingError(f"--out {path} must end in {' or '.join(ENDINGS)}")
    check_place(path, "--out")


def check_place(path: Path, option: str) -> None:
    """Refuse a file that could not be written where it is to lie; ``option`` is what named it."""
    try:
        if path.is_dir():
            raise SettingError(f"{option} {path} is a directory: name a file")
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SettingError(f"{option} {path} cannot be written: {error.strerror or error}") from error


def summary(trace: Trace, path: Path) -> str:
    """What a run came to, for the terminal."""
    stats, num_tokens = trace.stats, len(trace.output.token_ids)
    parts = [f"wrote {path}: {num_tokens} tokens in {len(trace.steps)} steps, stop: {trace.stop}"]
    if stats.mean_acceptance_length is not None:
        tau = stats.mean_acceptance_length
        parts.append(f"{tau:.2f} tokens per pass ({tau - 1:.2f} without the target's own)")
    if stats.tokens_per_second is not None:
        parts.append(f"{stats.tokens_per_second:.1f} tokens/s")
    if stats.speedup is not None:
        parts.append(f"{stats.speedup:.2f} times plain decoding in this one run")
    if trace.sampling.acceptance != "greedy":
        parts.append(sampling_text(trace.sampling))
    if trace.baseline and trace.baseline.output_equal:
        parts.append("output equal to plain decoding")
    if trace.baseline and trace.baseline.first_divergence:
        found = trace.baseline.first_divergence
        gap = "" if found.gap is None else f", where the two best logits differ by {found.gap:.2g}"
        parts.append(f"output differs from plain decoding from token {found.index} on{gap}")
    return "; ".join(parts)


class RunBar:
    """Progress on stderr; where that is no terminal, only notices."""

    def __init__(self, max_new_tokens: int) -> None:
        self._console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=self._console, transient=True)
        self._task = self._bar.add_task("starting", total=None)
        self._max_new_tokens = max_new_tokens
        self._num_tokens = 0

    def __enter__(self) -> RunBar:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the bar away."""
        if self._console.is_terminal:
            self._bar.stop()

    def show(self, event: Event) -> None:
        """Move the bar to where the run stands."""
        if isinstance(event, Notice):
            print(f"note: {event.text}", file=sys.stderr)
        elif isinstance(event, Status):
            self._move(event.text, event.fraction)
        elif isinstance(event, BaselineProgress):
            self._move("plain decoding, to compare with", event.num_tokens / event.max_new_tokens)
        elif isinstance(event, Started | Stepped):
            self._num_tokens += len(event.step.emitted) if isinstance(event, Stepped) else 1
            self._move("decoding", self._num_tokens / self._max_new_tokens)

    def _move(self, text: str, fraction: float | None) -> None:
        self._bar.update(self._task, description=text, total=None if fraction is None else 1, completed=fraction or 0)
