"""Options that several commands share, declared once."""

from __future__ import annotations

import argparse

from explorer.config import DEFAULT_TARGET

DRAFTER_OF_EACH = "default: the target preset's own for each method"
SETTING_OF_EACH = "for all methods that have it; METHOD.NAME=VALUE"
SETTING_OF_ONE = "a setting of the method, or preset=NAME"


def add_model_arguments(parser: argparse.ArgumentParser, drafter_help: str = DRAFTER_OF_EACH) -> None:
    """The target and its drafter."""
    parser.add_argument("--target", default=DEFAULT_TARGET, metavar="DIR_OR_ID", help="preset, directory or hub id")
    parser.add_argument("--drafter", metavar="DIR_OR_ID", help=drafter_help)


def add_run_arguments(
    parser: argparse.ArgumentParser,
    drafter_help: str = DRAFTER_OF_EACH,
    setting_help: str = SETTING_OF_EACH,
    num_tokens: int = 128,
) -> None:
    """The target and its drafter, how far a run goes, and settings of the methods."""
    add_model_arguments(parser, drafter_help)
    parser.add_argument("--max-new-tokens", type=int, default=num_tokens, metavar="N", help=f"default {num_tokens}")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=setting_help)
