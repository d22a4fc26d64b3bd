"""``python -m explorer watch``: what running servers say of their drafts. Works without torch."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from itertools import count, islice

from rich.console import Console

from explorer.cli.tables import print_table
from explorer.codec import encode
from explorer.errors import ExplorerError, SettingError
from explorer.server_figures import BETWEEN, SINCE_START, Reading, between, figures_of, table_of

HELP = "show what running vLLM, SGLang or explorer servers count of their drafts"
MAX_URLS = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whom to ask, how often."""
    parser.add_argument(
        "urls", nargs="+", metavar="URL", help="servers, as in http://127.0.0.1:8000 (or a /metrics page)"
    )
    parser.add_argument(
        "--every", type=float, metavar="S", help="read again every S seconds, and show what came between"
    )
    parser.add_argument("--times", type=int, metavar="N", help="how many readings (one; with --every until Ctrl-C)")
    parser.add_argument("--json", action="store_true", help="a JSON line a reading, with its seconds since the last")


def run(args: argparse.Namespace) -> int:
    """Read, show, wait."""
    if len(args.urls) > MAX_URLS:
        raise SettingError(f"at most {MAX_URLS} servers at once, not {len(args.urls)}")
    if args.every is not None and not (math.isfinite(args.every) and args.every >= 1):
        raise SettingError(f"--every must be at least 1 second, not {args.every:g}")
    if args.times is not None and args.times < 1:
        raise SettingError(f"--times must be at least 1, not {args.times}")
    if args.times is not None and args.times > 1 and args.every is None:
        raise SettingError("--times needs --every: how many seconds between the readings")
    from explorer.endpoints import metrics_address

    urls = [metrics_address("URL", url) for url in args.urls]
    times = args.times or (1 if args.every is None else None)
    before: Reading | None = None
    for number in islice(count(), times):
        if number:
            time.sleep(args.every)
        try:
            reading = _read(urls)
        except ExplorerError as error:
            if before is None:
                raise
            print(f"left out: {error}", file=sys.stderr, flush=True)  # a server that restarts is watched on
            continue
        _show(reading, before, is_json=args.json)
        before = reading
    return 0


def _read(urls: list[str]) -> Reading:
    """All servers as one reading; several are told apart by their addresses."""
    from explorer.endpoints import fetch_page
    from explorer.server_metrics import read_page

    found = {}
    for url in urls:
        for series, counts in read_page(fetch_page(url), url, time.monotonic()).counts.items():
            named = series if len(urls) == 1 else type(series)(f"{series.server} {url}", series.name, series.engine)
            found[named] = counts
    return Reading(time.monotonic(), found)


def _show(reading: Reading, before: Reading | None, *, is_json: bool) -> None:
    shown, title = (reading, SINCE_START) if before is None else (between(before, reading), BETWEEN)
    if is_json:
        rows = [
            encode(series) | encode(figures_of(counts)) | {"drafted": counts.drafted, "accepted": counts.accepted}
            for series, counts in shown.counts.items()
        ]
        seconds = None if before is None else shown.seconds
        print(json.dumps({"since": title, "seconds": seconds, "series": rows}, allow_nan=False), flush=True)
        return
    table = table_of(shown, title)
    print_table(Console(), table, has_note=before is None)
