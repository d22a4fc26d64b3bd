"""``python -m explorer export``: a trace as files for others. Works without torch."""

from __future__ import annotations

import argparse
from pathlib import Path

from explorer.errors import SettingError
from explorer.takeaway import FORMATS, SCHEMES, Job, pick_step
from explorer.trace import read_trace
from explorer.trace_files import write_atomically

HELP = "write a trace as an offline page, a picture, a timeline, figures or a graph"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The trace, the formats, where to."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a trace, .json or .json.gz")
    parser.add_argument("--to", required=True, metavar="A,B", help=f"one or several of {','.join(FORMATS)}")
    parser.add_argument("--out", required=True, type=Path, metavar="PATH", help="a file; a folder for several formats")
    parser.add_argument(
        "--step",
        type=int,
        metavar="N",
        help="the step, from 1 on, that svg, png and graphml show (default: the longest path's) and html opens with",
    )
    parser.add_argument("--scheme", choices=SCHEMES, default="light", help="colours of svg and png")
    parser.add_argument("--ghosts", action="store_true", help="svg and png: also draw what was pruned")


def run(args: argparse.Namespace) -> int:
    """Make everything, then write: where one format fails, none is left behind."""
    names = parse_formats(args.to)
    check_out(args.file, args.out, is_folder=len(names) > 1)
    trace = read_trace(args.file)
    pick_step(trace, args.step)  # a step that is not there is refused for every format alike
    job = Job(trace, args.step, args.scheme, args.ghosts)
    made = [(name, FORMATS[name].make(job)) for name in names]
    for name, data in made:
        path = args.out if len(names) == 1 else args.out / file_name(args.file, name, job)
        write_atomically(path, data)
        print(f"wrote {path} ({len(data) / 1000:,.0f} kB)")
    return 0


def parse_formats(text: str) -> list[str]:
    """The names in ``a,b``, each once, in their order."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in FORMATS]
    if unknown or not names:
        found = f"unknown {', '.join(unknown)}" if unknown else "no format named"
        raise SettingError(f"--to: {found}; allowed: {', '.join(FORMATS)}")
    return names


def check_out(file: Path, out: Path, *, is_folder: bool) -> None:
    """Refuse a folder where a file is wanted, a file where a folder is, and the trace itself."""
    if is_folder and out.is_file():
        raise SettingError(f"--out {out} is a file: several formats go into a folder")
    if not is_folder and out.is_dir():
        raise SettingError(f"--out {out} is a folder: one format goes into a file, name it")
    if out.exists() and file.exists() and out.samefile(file):
        raise SettingError(f"--out {out} is the trace itself: name another file")


def file_name(file: Path, name: str, job: Job) -> str:
    """What a format's file is called in a folder: the trace's own name, the step where it shows one, the ending."""
    return FORMATS[name].file_name(file.name.removesuffix(".gz").removesuffix(".json"), job)
