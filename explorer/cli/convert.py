"""``python -m explorer convert``: a drafter in the layout that another program loads, or as 8-bit integers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.config import DEFAULT_TARGET
from explorer.errors import SettingError
from explorer.trace_files import write_atomically

if TYPE_CHECKING:
    from explorer.checkpoints.written import Written

HELP = "write a drafter in the layout of Medusa, EAGLE, vLLM, SGLang or speculators, or as 8-bit integers"
CARD = "README.md"
NAMES = "medusa-a, medusa-b, eagle, vllm, sglang, speculators or int8"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The drafter, its target, the layout, where to."""
    parser.add_argument("drafter", metavar="DRAFTER", help="a directory or hub id, in any layout that runs here")
    parser.add_argument("--to", required=True, metavar="LAYOUT", help=NAMES)
    parser.add_argument(
        "--target",
        default=DEFAULT_TARGET,
        metavar="DIR_OR_ID",
        help="its target: preset, directory or hub id (int8 needs none)",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="a new or empty folder")


def run(args: argparse.Namespace) -> int:
    """Read and check everything, then write: a drafter that does not fit leaves nothing behind."""
    from explorer.checkpoints.files import locate  # torch and transformers
    from explorer.checkpoints.int8_folder import LAYOUT, WHAT, quantize_folder
    from explorer.checkpoints.layouts import LAYOUTS
    from explorer.target_presets import drafter_path

    if args.to not in (*LAYOUTS, LAYOUT):
        raise SettingError(f"--to {args.to}: allowed are {', '.join((*LAYOUTS, LAYOUT))}")
    if args.out.exists() and (not args.out.is_dir() or any(args.out.iterdir())):
        raise SettingError(f"--out {args.out} is there already: name a new or empty folder")
    source = drafter_path(args.drafter)
    is_int8 = args.to == LAYOUT  # no other layout, only smaller: it needs no target
    written = quantize_folder(locate(source, "drafter")) if is_int8 else _in_layout(source, args.to, args.target)
    card = locate(source, "drafter") / CARD
    files = dict(written.files)
    if card.is_file():
        what = WHAT if is_int8 else LAYOUTS[args.to].what
        files[CARD] = with_notes(card.read_bytes(), args.to, what, written.notes)
    for name, data in files.items():
        write_atomically(args.out / name, data)
        print(f"wrote {args.out / name} ({len(data) / 1000:,.0f} kB)")
    for note in written.notes:
        print(f"note: {note}")
    return 0


def _in_layout(source: str, layout: str, target: str) -> Written:
    from explorer.checkpoints.drafter_source import read_drafter
    from explorer.checkpoints.files import is_quantized, locate, weight_files
    from explorer.checkpoints.layouts import write_layout
    from explorer.checkpoints.medusa import FILES
    from explorer.checkpoints.target_ends import read_target_ends
    from explorer.target_presets import find_target, load_targets

    ends = read_target_ends(find_target(target, load_targets()).source)
    written = write_layout(layout, read_drafter(source, ends))
    if is_quantized(weight_files(locate(source, "drafter"), extra=FILES)):
        written.notes.append("the weights were 8-bit integers, and are the float16 that these stand for")
    return written


def with_notes(card: bytes, layout: str, what: str, notes: list[str]) -> bytes:
    """The card, word for word, and below it what became of the drafter."""
    lines = ["", "## Layout", "", f"Converted by Draft Tree Explorer to the layout `{layout}`: {what}.", ""]
    lines += [f"- {note}" for note in notes]
    return card.rstrip(b"\n") + b"\n" + "\n".join(lines).rstrip().encode() + b"\n"
