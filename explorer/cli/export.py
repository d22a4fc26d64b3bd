"""``python -m explorer export``: a trace as files for others. Works without torch."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from explorer.cli.show import pick_step
from explorer.errors import SettingError
from explorer.trace import Trace, read_trace
from explorer.trace_files import write_atomically
from explorer.views.theme import DARK, LIGHT

HELP = "write a trace as an offline page, a picture, a timeline, figures or a graph"
SCHEMES = {"light": LIGHT, "dark": DARK}


@dataclass(frozen=True)
class Job:
    """What to export: the trace, the step that was asked for (None: no wish), and how pictures look."""

    trace: Trace
    step: int | None
    scheme: str = "light"
    has_ghosts: bool = False

    @property
    def drawn_step(self) -> int:
        """The step of a picture or graph: the one asked for, else the longest path's."""
        number = pick_step(self.trace, self.step)
        if number is None:
            raise SettingError("this run ended with its first token: there is no step to draw")
        return number


@dataclass(frozen=True)
class Format:
    """One kind of file; ``is_step`` where it shows a single step."""

    ending: str
    is_step: bool
    make: Callable[[Job], bytes]


# The exporters are imported when they are used: networkx would add its seconds to every --help.


def _html(job: Job) -> bytes:
    from explorer.export.html import replay_page
    from explorer.views.viewer import SHELL, replay_js, view_payload

    return replay_page(view_payload(job.trace), SHELL, replay_js(), start=job.step or 0).encode()


def _perfetto(job: Job) -> bytes:
    from explorer.export.perfetto import chrome_trace

    return chrome_trace(job.trace).encode()


def _stats(job: Job) -> bytes:
    from explorer.export.stats import stats_json

    return stats_json(job.trace).encode()


def _svg(job: Job) -> bytes:
    from explorer.export.svg import step_svg

    colours = asdict(SCHEMES[job.scheme])
    return step_svg(job.trace, job.drawn_step, colours, has_ghosts=job.has_ghosts).encode()


def _png(job: Job) -> bytes:
    from explorer.export.png import svg_png

    return svg_png(_svg(job))


def _graphml(job: Job) -> bytes:
    from explorer.export.graphml import step_graphml

    return step_graphml(job.trace, job.drawn_step)


FORMATS = {
    "html": Format(".html", False, _html),
    "perfetto": Format(".perfetto.json", False, _perfetto),
    "stats": Format(".stats.json", False, _stats),
    "svg": Format(".svg", True, _svg),
    "png": Format(".png", True, _png),
    "graphml": Format(".graphml", True, _graphml),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The trace, the formats, where to."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a trace, .json or .json.gz")
    parser.add_argument("--to", required=True, metavar="A,B", help=f"one or several of {','.join(FORMATS)}")
    parser.add_argument("--out", required=True, type=Path, metavar="PATH", help="a file; a folder for several formats")
    parser.add_argument(
        "--step",
        type=int,
        metavar="N",
        help="the step that svg, png and graphml show (default: the longest path's) and html opens with (default: 0)",
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
    stem, chosen = file.name.removesuffix(".gz").removesuffix(".json"), FORMATS[name]
    return f"{stem}{f'-step{job.drawn_step}' if chosen.is_step else ''}{chosen.ending}"
