"""A trace as files for others, every kind by its name: what the export command writes and the page hands out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass

from explorer.errors import SettingError
from explorer.trace import Trace, to_json
from explorer.views.theme import DARK, LIGHT

SCHEMES = {"light": LIGHT, "dark": DARK}
MAX_NAME = 40  # characters of a prompt in a file's name


@dataclass(frozen=True)
class Job:
    """What to export: the trace, the step asked for, counted from 1 as on the screen (None: no wish), and how pictures
    look.
    """

    trace: Trace
    step: int | None
    scheme: str = "light"
    has_ghosts: bool = False

    @property
    def drawn_step(self) -> int:
        """The index of a picture's or graph's step: the one asked for, else the longest path's."""
        index = pick_step(self.trace, self.step)
        if index is None:
            raise SettingError("this run ended with its first token: there is no step to draw")
        return index


@dataclass(frozen=True)
class Format:
    """One kind of file; ``is_step`` where it shows a single step. ``label`` and ``help`` are a button's."""

    label: str
    help: str
    ending: str
    media_type: str
    is_step: bool
    make: Callable[[Job], bytes]

    def file_name(self, stem: str, job: Job) -> str:
        """What the file is called: the run's own name, the step where it shows one, the ending."""
        return f"{stem}{f'-step{job.drawn_step + 1}' if self.is_step else ''}{self.ending}"


def pick_step(trace: Trace, wanted: int | None) -> int | None:
    """The index of the step asked for, which counts from 1 as on the screen, else of the first with the longest
    accepted path; None where there are no steps.
    """
    if wanted is None:
        return max(range(len(trace.steps)), key=lambda i: trace.steps[i].num_accepted, default=None)
    if not 1 <= wanted <= len(trace.steps):
        allowed = f"1 to {len(trace.steps)}" if trace.steps else "none, this run ended with its first token"
        raise SettingError(f"there is no step {wanted}; allowed: {allowed}")
    return wanted - 1


def run_name(trace: Trace) -> str:
    """A file name for a run that has none: its method and the beginning of its prompt, in plain small letters."""
    return "-".join(filter(None, [_plain(trace.method), _plain(trace.prompt.text)])) or "run"


def _plain(text: str) -> str:
    """Letters, digits and hyphens of ASCII, at most MAX_NAME of them and no half word where that can be helped."""
    ascii_only = unicodedata.normalize("NFKD", text[: 8 * MAX_NAME]).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", ascii_only).strip("-")
    whole = words[:MAX_NAME].rpartition("-")[0] if len(words) > MAX_NAME else words
    return whole or words[:MAX_NAME]


# The exporters are imported when they are used: networkx would add its seconds to every --help.


def _html(job: Job) -> bytes:
    from explorer.export.html import replay_page
    from explorer.views.insights import replay_payload
    from explorer.views.viewer import SHELL, replay_js

    return replay_page(
        replay_payload(job.trace), SHELL, replay_js(), start=0 if job.step is None else job.drawn_step
    ).encode()


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


def _trace(job: Job) -> bytes:
    return to_json(job.trace).encode()


FORMATS = {
    "html": Format(
        "Replay page",
        "The whole run as one HTML file that opens from disk, without a network",
        ".html",
        "text/html",
        False,
        _html,
    ),
    "perfetto": Format(
        "Timeline",
        "What took how long, for ui.perfetto.dev or chrome://tracing",
        ".perfetto.json",
        "application/json",
        False,
        _perfetto,
    ),
    "stats": Format(
        "Figures", "The run's figures as JSON, with vLLM's names", ".stats.json", "application/json", False, _stats
    ),
    "svg": Format("SVG", "The tree of this step as a drawing, for papers", ".svg", "image/svg+xml", True, _svg),
    "png": Format("PNG", "The tree of this step as a picture, for slides", ".png", "image/png", True, _png),
    "graphml": Format(
        "GraphML",
        "The tree of this step as a graph, for networkx, Gephi or yEd",
        ".graphml",
        "application/graphml+xml",
        True,
        _graphml,
    ),
}
TRACE = Format(
    "Trace file",
    "The complete record of this run; it can be opened here again",
    ".json",
    "application/json",
    False,
    _trace,
)
