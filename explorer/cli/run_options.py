"""Options that several commands share, declared once."""

from __future__ import annotations

import argparse
from typing import Any

from explorer.config import BACKENDS, CACHES, DEFAULT_TARGET, DTYPES, EXECUTIONS, NUMERICS

DRAFTER_OF_ONE = "default: the target preset's own"
DRAFTERS_OF_EACH = "for every method that needs one, or for one method (repeatable); default: the target preset's own"
DEVICE_HELP = "auto, cpu, cuda, ...; split: decoder layers over all GPUs, then main memory, then disk"
SETTING_OF_EACH = "for all methods that have it; METHOD.NAME=VALUE"
SETTING_OF_ONE = "a setting of the method, or preset=NAME"


def add_target_argument(parser: argparse.ArgumentParser) -> None:
    """The target."""
    parser.add_argument("--target", default=DEFAULT_TARGET, metavar="DIR_OR_ID", help="preset, directory or hub id")


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """The target and its drafter."""
    add_target_argument(parser)
    parser.add_argument("--drafter", metavar="DIR_OR_ID", help=DRAFTER_OF_ONE)


def add_drafters_argument(parser: argparse.ArgumentParser) -> None:
    """A drafter for each of several methods."""
    parser.add_argument("--drafter", action="append", default=[], metavar="[METHOD=]DIR_OR_ID", help=DRAFTERS_OF_EACH)


def add_lane_arguments(parser: argparse.ArgumentParser, num_tokens: int = 128) -> None:
    """For several methods: the target, their drafters, how far a run goes, and settings."""
    add_target_argument(parser)
    add_drafters_argument(parser)
    add_length_arguments(parser, num_tokens=num_tokens)


def add_length_arguments(
    parser: argparse.ArgumentParser, setting_help: str = SETTING_OF_EACH, num_tokens: int = 128
) -> None:
    """How far a run goes, and settings of the methods."""
    parser.add_argument("--max-new-tokens", type=int, default=num_tokens, metavar="N", help=f"default {num_tokens}")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=setting_help)


def add_placement_arguments(parser: argparse.ArgumentParser) -> None:
    """Where and on what the target runs."""
    parser.add_argument("--dtype", default="auto", choices=DTYPES)
    parser.add_argument("--device", default="auto", metavar="D", help=DEVICE_HELP)
    parser.add_argument("--backend", default="auto", choices=BACKENDS, help="of attention; triton needs an NVIDIA GPU")
    parser.add_argument(
        "--cache", default="rows", choices=CACHES, help="a commit moves the accepted rows, or takes over their slots"
    )
    add_numerics_argument(parser)
    parser.add_argument(
        "--execution", default="auto", choices=EXECUTIONS, help="graphed: passes as CUDA graphs; needs an NVIDIA GPU"
    )


def add_numerics_argument(parser: argparse.ArgumentParser) -> None:
    """Whether a row of a verify pass may round differently in company."""
    parser.add_argument(
        "--numerics", default="fast", choices=NUMERICS, help="bitwise: every row as if it were alone; exact, slower"
    )


def placement(args: argparse.Namespace) -> dict[str, Any]:
    """What ``add_placement_arguments`` was given, by the names that RunRequest has for it."""
    return {name: getattr(args, name) for name in ("dtype", "device", "backend", "cache", "numerics", "execution")}
