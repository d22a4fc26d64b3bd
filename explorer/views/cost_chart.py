"""What passes cost on this device, and where a method's trees pay: two charts of one cost report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.prediction import CostReport, DeviceCost, Prediction
from explorer.views.charts import DRAFTER, GRID, PLOT_LOOK, QUIET, TARGET

if TYPE_CHECKING:
    import plotly.graph_objects as go

HEIGHT = 320
COLORS = (DRAFTER, TARGET, "#009E73", "#CC79A7")  # Okabe and Ito's, one a method


def cost_figure(report: CostReport) -> go.Figure:
    """Left: a pass by rows, in passes of one row. Right: tokens per pass against what would break even."""
    from plotly.subplots import make_subplots

    titles = ("A verify pass, in passes of one row", "Tokens per pass: expected (line) and needed (dots)")
    figure = make_subplots(rows=1, cols=2, subplot_titles=titles, horizontal_spacing=0.08)
    _passes(figure, report)
    _floor(figure, report.cost)
    for number, (label, trees) in enumerate(report.methods.items()):
        _method(figure, number, label, trees)
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 44, "r": 8, "t": 32, "b": 84},
        **PLOT_LOOK,
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": -0.22},
    )
    figure.update_annotations(font_size=13)
    figure.update_xaxes(title_text="rows of the pass", gridcolor=GRID, zeroline=False, fixedrange=True)
    figure.update_yaxes(gridcolor=GRID, zeroline=False, fixedrange=True, rangemode="tozero")
    return figure


def _passes(figure: go.Figure, report: CostReport) -> None:
    cost = report.cost
    rows = sorted(cost.verify_ms)
    ratios = [cost.verify_ms[size] / cost.verify_at(1) for size in rows]
    figure.add_scatter(
        x=rows,
        y=ratios,
        mode="lines+markers",
        line={"color": QUIET},
        showlegend=False,
        customdata=[cost.verify_ms[size] for size in rows],
        hovertemplate="%{x} rows: %{y:.2f} × one row (%{customdata:.1f} ms)<extra></extra>",
        row=1,
        col=1,
    )


def _floor(figure: go.Figure, cost: DeviceCost) -> None:
    """The roofline under the passes: flat while reading the weights takes longest, then rising with the rows."""
    rows = [size for size in sorted(cost.verify_ms) if cost.floor_at(size) is not None]
    if rows:
        figure.add_scatter(
            x=rows,
            y=[(cost.floor_at(size) or 0.0) / cost.verify_at(1) for size in rows],
            mode="lines",
            line={"color": QUIET, "dash": "dot"},
            name="the machine's limit",
            hovertemplate="%{x} rows: at least %{y:.2f}<extra>the machine's limit</extra>",
            row=1,
            col=1,
        )


def _method(figure: go.Figure, number: int, label: str, trees: list[Prediction]) -> None:
    """Expected and needed tokens per pass by rows; a star where the step is fastest."""
    if not trees:
        return
    color = COLORS[number % len(COLORS)]
    rows = [item.num_rows for item in trees]
    lines = (
        (f"{label}: expected", "lines", [item.tau for item in trees]),
        (f"{label}: needed", "markers", [item.break_even for item in trees]),
    )
    for name, mode, values in lines:
        figure.add_scatter(
            x=rows,
            y=values,
            mode=mode,
            name=name,
            line={"color": color},
            marker={"color": color, "size": 4},
            hovertemplate="%{x} rows: %{y:.2f}<extra>" + name + "</extra>",
            row=1,
            col=2,
        )
    fastest = max(trees, key=lambda item: item.tokens_per_second)
    figure.add_scatter(
        x=[fastest.num_rows],
        y=[fastest.tau],
        mode="markers+text",
        text=[f"{fastest.speedup:.2f} ×"],
        textposition=("bottom center", "top center")[number % 2],  # neighbours must not cover each other,
        marker={"color": color, "size": 13, "symbol": "star"},
        name=f"{label}: fastest",
        hovertemplate=f"{fastest.num_rows} rows: {fastest.speedup:.2f} × plain decoding<extra>{label}</extra>",
        row=1,
        col=2,
    )
