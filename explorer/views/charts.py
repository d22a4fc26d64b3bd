"""The summary figure of a finished run: plotly, drawn once, never a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.trace import Trace

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Okabe and Ito's colours, as in the viewer; greys are readable on white and on Gradio's dark background alike.
TARGET, DRAFTER, QUIET = "#0072B2", "#E69F00", "#7d8590"
TEXT, GRID = "#7d8590", "rgba(125,133,144,.25)"
PLOT_LOOK = {  # of every figure: transparent, so that it suits both schemes
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"color": TEXT, "size": 12, "family": "system-ui, sans-serif"},
    "dragmode": False,
}
HEIGHT = 280  # Gradio's autosize can come out as 0 without one
HEADROOM = 1.25  # above the highest bar: room for its value


def summary_figure(trace: Trace) -> go.Figure:
    """Tokens/s of both lanes, time split, steps by accepted drafts and acceptance by depth of one finished run."""
    from plotly.subplots import make_subplots

    titles = ("Tokens per second", "Where the time went", "Steps by accepted drafts", "Acceptance by depth")
    figure = make_subplots(rows=1, cols=4, subplot_titles=titles, horizontal_spacing=0.06)
    _speed(figure, trace)
    _time_split(figure, trace)
    _histogram(figure, trace)
    _by_depth(figure, trace)
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 44, "r": 8, "t": 32, "b": 44},
        **PLOT_LOOK,
        showlegend=False,
        bargap=0.25,
    )
    figure.update_annotations(font_size=13)
    figure.update_xaxes(showgrid=False, zeroline=False, fixedrange=True)
    figure.update_yaxes(gridcolor=GRID, zeroline=False, fixedrange=True)
    return figure


def time_split(trace: Trace) -> dict[str, float]:
    """Milliseconds of the whole run: drafting, verifying, the rest; prompt passes and recording are not in it."""
    draft = sum(sum(step.ms.draft) for step in trace.steps)
    verify = sum(step.ms.verify for step in trace.steps)
    return {"draft": draft, "verify": verify, "rest": sum(step.ms.total for step in trace.steps) - draft - verify}


def _speed(figure: go.Figure, trace: Trace) -> None:
    lanes = {trace.method: (trace.stats.tokens_per_second, TARGET)}
    if trace.baseline:
        lanes = {"plain decoding": (trace.baseline.tokens_per_second, QUIET)} | lanes
    shown = {name: (speed, color) for name, (speed, color) in lanes.items() if speed is not None}
    speeds = [speed for speed, _ in shown.values()]
    _bars(figure, 1, list(shown), speeds, [color for _, color in shown.values()], [f"{speed:.1f}" for speed in speeds])


def _time_split(figure: go.Figure, trace: Trace) -> None:
    seconds = {name: ms / 1000 for name, ms in time_split(trace).items()}
    whole = sum(seconds.values()) or 1.0
    texts = [f"{value:.2f} s<br>{value / whole:.0%}" for value in seconds.values()]
    _bars(figure, 2, list(seconds), list(seconds.values()), [DRAFTER, TARGET, QUIET], texts)


def _histogram(figure: go.Figure, trace: Trace) -> None:
    counts = trace.stats.acceptance_histogram
    _bars(figure, 3, [str(i) for i in range(len(counts))], list(map(float, counts)), TARGET, list(map(str, counts)))
    cut = ", the cut last step left out" if trace.stats.num_cut_steps else ""
    figure.update_xaxes(title_text=f"accepted drafts{cut}", row=1, col=3)


def _by_depth(figure: go.Figure, trace: Trace) -> None:
    shares = enumerate(trace.stats.acceptance_by_depth, start=1)
    shown = [(str(depth), share) for depth, share in shares if share is not None]
    texts = [f"{share:.0%}" for _, share in shown]
    _bars(figure, 4, [depth for depth, _ in shown], [share for _, share in shown], TARGET, texts)
    figure.update_yaxes(range=[0, HEADROOM], tickformat=".0%", tickvals=[0, 0.25, 0.5, 0.75, 1], row=1, col=4)
    figure.update_xaxes(title_text="depth in the tree", row=1, col=4)


def _bars(
    figure: go.Figure, column: int, names: list[str], values: list[float], color: str | list[str], texts: list[str]
) -> None:
    """One bar chart in column ``column`` (from 1), each bar with its value above it."""
    figure.add_bar(
        x=names,
        y=values,
        marker_color=color,
        text=texts,
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{x}: %{text}<extra></extra>",
        row=1,
        col=column,
    )
    figure.update_xaxes(type="category", row=1, col=column)
    figure.update_yaxes(range=[0, max(values, default=0.0) * HEADROOM or 1], row=1, col=column)
