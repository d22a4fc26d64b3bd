"""``python -m explorer fetch``: bring the default target here, with a bar."""

from __future__ import annotations

import argparse
import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

HELP = "bring the default target (93 MB download, converted once); safe to interrupt and repeat"
INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing to choose: where it goes is the environment variable DRAFT_TREE_CACHE."""
    parser.description = f"{HELP}. It goes to $DRAFT_TREE_CACHE or ~/.cache/draft-tree-explorer."


def run(_args: argparse.Namespace) -> int:
    """Fetch unless it is here already; FetchError is the caller's to print."""
    from explorer.checkpoints import smollm2

    if smollm2.is_fetched():
        print(f"{smollm2.LABEL} is here: {smollm2.target_dir()}")
        return 0
    try:
        with FetchBar() as bar:
            folder = smollm2.fetch(bar.update)
    except KeyboardInterrupt:
        print("interrupted: nothing half-made was left; run fetch again to go on", file=sys.stderr)
        return INTERRUPTED
    print(f"{smollm2.LABEL} is here: {folder}")
    return 0


class FetchBar:
    """A bar on stderr; where that is no terminal, one line a stage on stdout: stderr is left to errors."""

    def __init__(self) -> None:
        self._console = Console(file=sys.stderr)  # this stream, whatever is put in its place while converting
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[amount]}"))
        self._bar = Progress(*columns, TimeElapsedColumn(), console=self._console)
        self._task = self._bar.add_task("starting", total=None, amount="")
        self._stage = ""

    def __enter__(self) -> FetchBar:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def update(self, done: int, total: int, stage: str) -> None:
        """What ``fetch`` reports: bytes done of ``total`` (0: unknown) in a stage."""
        if stage != self._stage and not self._console.is_terminal:
            print(f"{stage} ...", flush=True)
        self._stage = stage
        amount = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else ""
        self._bar.update(self._task, description=stage, completed=done, total=total or None, amount=amount)
