"""The summary figure of a finished run: plotly, drawn once, never a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.trace import Trace

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Okabe and Ito's colours, as in the viewer; greys and text are readable on white and on Gradio's dark background.
TARGET, DRAFTER, OTHER, PLAIN, TEXT, GRID = (
    "#0072B2",
    "#E69F00",
    "#7d8590",
    "#7d8590",
    "#7d8590",
    "rgba(125,133,144,.3)",
)
HEIGHT = 300  # Gradio's autosize can come out as 0 without one


def summary_figure(trace: Trace) -> go.Figure:
    """Tokens/s of both lanes, time split, accepted drafts per step and acceptance by depth of one finished run."""
    from plotly.subplots import make_subplots

    titles = ("Tokens per second", "Where the time went (ms)", "Accepted drafts per step", "Acceptance by depth")
    figure = make_subplots(rows=1, cols=4, subplot_titles=titles, horizontal_spacing=0.06)
    _speed(figure, trace)
    _time_split(figure, trace)
    _histogram(figure, trace)
    _by_depth(figure, trace)
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 40, "r": 10, "t": 50, "b": 40},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": TEXT, "size": 12, "family": "system-ui, sans-serif"},
        showlegend=False,
        bargap=0.25,
        dragmode=False,
    )
    figure.update_xaxes(gridcolor=GRID, zeroline=False, fixedrange=True)
    figure.update_yaxes(gridcolor=GRID, zeroline=False, fixedrange=True, rangemode="tozero")
    return figure


def time_split(trace: Trace) -> dict[str, float]:
    """Milliseconds of the whole run by what was at work; prompt passes and recording excluded."""
    split = {"drafter": 0.0, "target": 0.0, "commit": 0.0, "other": 0.0}
    for step in trace.steps:
        split["drafter"] += sum(step.ms.draft)
        split["target"] += step.ms.verify
        split["commit"] += step.ms.commit
        split["other"] += step.ms.other
    return split


def _speed(figure: go.Figure, trace: Trace) -> None:
    plain = trace.baseline.tokens_per_second if trace.baseline else None
    lanes = [("plain", plain, PLAIN), (trace.method, trace.stats.tokens_per_second, TARGET)]
    shown = [(name, value, color) for name, value, color in lanes if value is not None]
    _bars(figure, 1, [lane[0] for lane in shown], [lane[1] for lane in shown], [lane[2] for lane in shown])


def _time_split(figure: go.Figure, trace: Trace) -> None:
    split = time_split(trace)
    _bars(figure, 2, list(split), list(split.values()), [DRAFTER, TARGET, OTHER, OTHER], ".0f")


def _histogram(figure: go.Figure, trace: Trace) -> None:
    counts = trace.stats.acceptance_histogram
    _bars(figure, 3, [str(i) for i in range(len(counts))], list(map(float, counts)), TARGET, ".0f")


def _by_depth(figure: go.Figure, trace: Trace) -> None:
    shares = trace.stats.acceptance_by_depth
    shown = [(str(depth + 1), share) for depth, share in enumerate(shares) if share is not None]
    _bars(figure, 4, [depth for depth, _ in shown], [share for _, share in shown], TARGET, ".0%")
    figure.update_yaxes(range=[0, 1.12], tickformat=".0%", row=1, col=4)
    figure.update_xaxes(title_text="depth", row=1, col=4)


def _bars(
    figure: go.Figure, column: int, names: list[str], values: list[float], color: str | list[str], form: str = ".1f"
) -> None:
    """One bar chart in column ``column`` (from 1), each bar with its value on it."""
    figure.add_bar(
        x=names,
        y=values,
        marker_color=color,
        text=[format(value, form) for value in values],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{x}: %{text}<extra></extra>",
        row=1,
        col=column,
    )
    figure.update_xaxes(type="category", row=1, col=column)
