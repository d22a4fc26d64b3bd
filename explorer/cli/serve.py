"""``python -m explorer serve``: the page; ``python app.py`` is the same."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from explorer.config import DEFAULT_TARGET
from explorer.errors import SettingError

if TYPE_CHECKING:
    from explorer.service.prometheus import RunMetrics
    from explorer.service.served_runner import ServedRunner
    from explorer.service.server_watch import ServerWatch
    from explorer.ui.options import AppOptions

HELP = "start the page (the same as python app.py)"
MAX_PORT = 65535
CANCEL_SECONDS = 3.0  # after the grace: a run ends at its next step, and a step may be long
LAST_WORDS_SECONDS = 0.5  # for what the runs said last to reach the browsers
LOG = logging.getLogger(__name__)

# Option -> what it bounds, 1 or more; each is a field of AppOptions, whose default is the option's.
LIMITS = {
    "max_new_tokens": "tokens that one run may write",
    "max_prompt_chars": "characters of a prompt, and of a system prompt",
    "max_prompt_tokens": "tokens of the whole prompt (default: what the target reads)",
    "max_run_seconds": "seconds that one run may decode, plain decoding included",
    "max_waiting": "runs that wait beyond the first eight; a further one is told that the queue is full",
    "max_per_visitor": "runs of one browser tab that may wait or run",
    "max_kept_runs": "visitors' traces that are kept in memory",
    "max_kept_mb": "MiB that those traces may take together",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to listen, which targets and drafters visitors may choose, what they may ask for, what is told of it."""
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1; 0.0.0.0 lets other machines in)")
    parser.add_argument("--port", type=int, help="port to listen on (default: the first free one from 7860)")
    parser.add_argument("--share", action="store_true", help="a public link through Gradio's servers (needs network)")
    parser.add_argument(
        "--targets",
        metavar="NAME,NAME",
        help="targets that visitors may choose, the first one picked already: presets, directories or hub ids "
        f"(default {DEFAULT_TARGET})",
    )
    parser.add_argument(
        "--drafter",
        action="append",
        default=[],
        metavar="[TARGET:]METHOD=DIR_OR_ID",
        help="a further drafter that visitors may choose for a method (repeatable; without TARGET: on the first one)",
    )
    limits = parser.add_argument_group("limits")
    for name, what in LIMITS.items():
        limits.add_argument(_option(name), type=int, metavar="N", help=what)
    operation = parser.add_argument_group("operation")
    operation.add_argument(
        "--metrics", action="store_true", help="answer /metrics for Prometheus (for anyone who asks)"
    )
    operation.add_argument(
        "--server-metrics",
        metavar="URL",
        help="a page with what a running vLLM or SGLang server counts of its drafts, beside the runs here",
    )
    operation.add_argument("--log-format", choices=("text", "json"), default="text", help="lines on stderr, one a run")
    operation.add_argument(
        "--grace", type=float, default=5.0, metavar="S", help="seconds that runs may take to end after SIGTERM (5)"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; SettingError is the caller's to print."""
    from explorer.service.logs import configure_logs
    from explorer.service.shutdown import stop_event

    options = _options(args)
    handler = configure_logs(args.log_format)
    try:
        with stop_event() as stop:
            _serve(args, options, stop)
    finally:
        logging.getLogger("explorer").removeHandler(handler)
    return 0


def _serve(args: argparse.Namespace, options: AppOptions, stop: Any) -> None:
    from explorer.service.health import Health
    from explorer.service.logs import RunLog
    from explorer.service.prometheus import RunMetrics
    from explorer.service.routes import operator_routes
    from explorer.service.served_runner import ServedRunner
    from explorer.service.zero_gpu import ZeroGpuRunner, is_lent, lender
    from explorer.ui.app import LazyRunner, build_app, close_page, make_store, num_queued

    metrics = RunMetrics() if args.metrics or args.server_metrics else None
    watch = _watch(args.server_metrics, metrics)
    runner = ZeroGpuRunner(lender()) if is_lent() else LazyRunner()
    store = make_store(options)
    served = ServedRunner(runner, options.limits, [RunLog(), *([metrics] if metrics else [])])
    page, launch = build_app(served, options, store, watch)
    if metrics:
        metrics.watch_device(served.state, lambda: num_queued(page))
        metrics.watch_traces(lambda: len(store), lambda: store.num_bytes)
    routes = operator_routes(
        Health(served, options.targets, lambda: num_queued(page)), metrics if args.metrics else None
    )
    try:
        page.launch(**launch, prevent_thread_lock=True, app_kwargs={"routes": routes})
    except OSError as error:
        raise SettingError(f"the page cannot listen there: {error}") from error
    print(f"Open {page.local_url} in a browser; Ctrl-C ends the server.", flush=True)
    runner.warm_up(needs_default_target=any(preset.source == DEFAULT_TARGET for preset in options.targets))
    LOG.info("serving", extra={"fields": {"url": page.local_url}})
    stop.wait()
    is_idle = _end_runs(served, args.grace)
    close_page(page)
    LOG.info("stopped", extra={"fields": {"is_idle": is_idle}})
    _leave()


def _watch(url: str | None, metrics: RunMetrics | None) -> ServerWatch | None:
    """The other server that the page shows; SettingError for no address. It is read when somebody looks."""
    if url is None:
        return None
    from explorer.endpoints import metrics_address
    from explorer.service.server_watch import ServerWatch

    return ServerWatch(metrics_address("--server-metrics", url), metrics.text if metrics else None)


def _end_runs(served: ServedRunner, grace_s: float) -> bool:
    """Let runs end, or end them; whether nothing runs now."""
    LOG.info("stopping")
    is_idle = served.stop(grace_s, CANCEL_SECONDS)
    time.sleep(LAST_WORDS_SECONDS)
    return is_idle


def _leave() -> None:
    """End the process with 0 at once: taking torch down takes seconds, and a load that nobody waits for minutes."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _options(args: argparse.Namespace) -> AppOptions:
    """What the arguments allow; raises SettingError for what makes no sense."""
    from explorer.ui.options import AppOptions, pick_drafters, pick_targets

    if args.port is not None and not 1 <= args.port <= MAX_PORT:
        raise SettingError(f"--port must be a number from 1 to {MAX_PORT}, not {args.port}")
    if not 0 <= args.grace <= 3600:
        raise SettingError(f"--grace must be seconds from 0 to 3600, not {args.grace:g}")
    limits = {name: getattr(args, name) for name in LIMITS if getattr(args, name) is not None}
    for name, value in limits.items():
        if value < 1:
            raise SettingError(f"{_option(name)} must be at least 1, not {value}")
    targets, more_drafters = pick_drafters(args.drafter, pick_targets(args.targets))
    options = AppOptions(targets, more_drafters, host=args.host, port=args.port, is_shared=args.share)
    return dataclasses.replace(options, **limits)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
