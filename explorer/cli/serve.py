"""``python -m explorer serve``: the page; ``python app.py`` is the same."""

from __future__ import annotations

import argparse

from explorer.config import DEFAULT_TARGET
from explorer.errors import SettingError

HELP = "start the page (the same as python app.py)"
MAX_PORT = 65535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to listen and which targets and drafters visitors may choose."""
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


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C; SettingError is the caller's to print."""
    from explorer.ui.app import LazyRunner, build_app
    from explorer.ui.options import AppOptions, pick_drafters, pick_targets

    if args.port is not None and not 1 <= args.port <= MAX_PORT:
        raise SettingError(f"--port must be a number from 1 to {MAX_PORT}, not {args.port}")
    targets, more_drafters = pick_drafters(args.drafter, pick_targets(args.targets))
    options = AppOptions(targets, more_drafters, host=args.host, port=args.port, is_shared=args.share)
    runner = LazyRunner()
    page, launch = build_app(runner, options)
    try:
        page.launch(**launch, prevent_thread_lock=True)
    except OSError as error:
        raise SettingError(f"the page cannot listen there: {error}") from error
    runner.warm_up(needs_default_target=any(preset.source == DEFAULT_TARGET for preset in options.targets))
    page.block_thread()
    return 0
