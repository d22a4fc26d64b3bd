"""``python -m explorer convert``: a drafter in the layout that another program loads."""

from __future__ import annotations

import argparse
from pathlib import Path

from explorer.config import DEFAULT_TARGET
from explorer.errors import SettingError
from explorer.trace_files import write_atomically

HELP = "write a drafter in the layout of Medusa, EAGLE, vLLM, SGLang or speculators"
CARD = "README.md"
NAMES = "medusa-a, medusa-b, eagle, vllm, sglang or speculators"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The drafter, its target, the layout, where to."""
    parser.add_argument("drafter", metavar="DRAFTER", help="a directory or hub id, in any layout that runs here")
    parser.add_argument("--to", required=True, metavar="LAYOUT", help=NAMES)
    parser.add_argument(
        "--target", default=DEFAULT_TARGET, metavar="DIR_OR_ID", help="its target: preset, directory or hub id"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="a new or empty folder")


def run(args: argparse.Namespace) -> int:
    """Read and check everything, then write: a drafter that does not fit leaves nothing behind."""
    from explorer.checkpoints.drafter_source import read_drafter  # torch and transformers
    from explorer.checkpoints.files import locate
    from explorer.checkpoints.layouts import LAYOUTS, write_layout
    from explorer.checkpoints.target_ends import read_target_ends
    from explorer.target_presets import drafter_path, find_target, load_targets

    if args.to not in LAYOUTS:
        raise SettingError(f"--to {args.to}: allowed are {', '.join(LAYOUTS)}")
    if args.out.exists() and (not args.out.is_dir() or any(args.out.iterdir())):
        raise SettingError(f"--out {args.out} is there already: name a new or empty folder")
    source = drafter_path(args.drafter)
    ends = read_target_ends(find_target(args.target, load_targets()).source)
    written = write_layout(args.to, read_drafter(source, ends))
    card = locate(source, "drafter") / CARD
    files = dict(written.files)
    if card.is_file():
        files[CARD] = with_notes(card.read_bytes(), args.to, LAYOUTS[args.to].what, written.notes)
    for name, data in files.items():
        write_atomically(args.out / name, data)
        print(f"wrote {args.out / name} ({len(data) / 1000:,.0f} kB)")
    for note in written.notes:
        print(f"note: {note}")
    return 0


def with_notes(card: bytes, layout: str, what: str, notes: list[str]) -> bytes:
    """The card, word for word, and below it what became of the drafter."""
    lines = ["", "## Layout", "", f"Converted by Draft Tree Explorer to the layout `{layout}`: {what}.", ""]
    lines += [f"- {note}" for note in notes]
    return card.rstrip(b"\n") + b"\n" + "\n".join(lines).rstrip().encode() + b"\n"
