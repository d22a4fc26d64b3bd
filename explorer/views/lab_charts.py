"""One figure for each experiment of the laboratory: measured points, and the formula's line where there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from explorer.lab_findings import PLAIN_SWEEP, batch_speedups, needed_tokens, speedup_of
from explorer.lab_records import LabRecord, Trial
from explorer.theory import expected_speedup, expected_tokens
from explorer.views.charts import DRAFTER, GRID, PLOT_LOOK, QUIET, TARGET

if TYPE_CHECKING:
    import plotly.graph_objects as go

HEIGHT = 300
# Okabe and Ito's, one a lane; each lane has a mark of its own too.
COLORS = (DRAFTER, TARGET, "#009E73", "#CC79A7", "#D55E00")
MARKS = ("circle", "square", "diamond", "triangle-up", "x")
TAU, FORMULA = "Tokens per pass", "formula"


def lab_figure(record: LabRecord) -> go.Figure:
    """The figure of a record."""
    from plotly.subplots import make_subplots

    titles, draw = FIGURES[record.experiment]
    figure = make_subplots(rows=1, cols=len(titles), subplot_titles=titles, horizontal_spacing=0.09)
    draw(figure, record)
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 44, "r": 12, "t": 32, "b": 92},
        **PLOT_LOOK,
        legend={"orientation": "h", "x": 0, "y": -0.26},
        barmode="group",
    )
    figure.update_annotations(font_size=13)
    figure.update_xaxes(gridcolor=GRID, zeroline=False, fixedrange=True)
    figure.update_yaxes(gridcolor=GRID, zeroline=False, fixedrange=True, rangemode="tozero")
    return figure


def _temperature(figure: go.Figure, record: LabRecord) -> None:
    for number, (lane, trials) in enumerate(record.lanes().items()):
        at = [trial.value for trial in trials]
        _lane(figure, 1, number, lane, at, [trial.tau for trial in trials])
        _formula(figure, 1, number, at, [expected_tokens(trial.alpha, trial.depth) for trial in trials])
        _lane(figure, 2, number, lane, at, [trial.alpha for trial in trials])
    _axes(figure, ("temperature", "temperature"))
    figure.update_yaxes(tickformat=".0%", row=1, col=2)


def _tree(figure: go.Figure, record: LabRecord) -> None:
    plain = next((trial for trial in record.trials if trial.sweep == PLAIN_SWEEP), None)
    trials = [trial for trial in record.trials if trial.sweep != PLAIN_SWEEP]
    lanes = list(dict.fromkeys(trial.lane for trial in trials))
    for number, lane in enumerate(lanes):
        rows = _ordered(trials, lane, "total_tokens")
        _lane(figure, 1, number, lane, [t.num_rows for t in rows], [t.tau for t in rows])
        if plain:
            _speedups(figure, 3, number, rows, plain)
        _lane(figure, 4, number, lane, [t.num_rows for t in rows], [t.verify_ms for t in rows], mode="markers")
        for dash, sweep in (("solid", "depth"), ("dash", "top_k")):
            shapes, name = _ordered(trials, lane, sweep), f"{lane}: {sweep}"
            at = [t.value for t in shapes]
            if shapes:
                _lane(figure, 2, number, name, at, [t.tau for t in shapes], dash=dash, is_new=True)
            if sweep == "depth":
                _formula(figure, 2, number, at, [expected_tokens(t.alpha, t.depth) for t in shapes])
    single = sorted((item.num_rows, item.ms) for item in record.passes if item.num_sequences == 1)
    _line(figure, 4, [rows for rows, _ in single], [ms for _, ms in single], name="a pass, measured apart")
    figure.add_hline(y=1, line={"color": QUIET, "width": 1}, row=1, col=3)
    _axes(figure, ("rows of a pass", "depth, or top_k", "rows of a pass", "rows of a pass"))


def _speedups(figure: go.Figure, column: int, number: int, rows: list[Trial], plain: Trial) -> None:
    """Measured, and what the formula promises."""
    at = [trial.num_rows for trial in rows]
    _lane(figure, column, number, rows[0].lane if rows else "", at, [speedup_of(trial, plain) for trial in rows])
    promised = [expected_speedup(trial.tau, trial.draft_ms, plain.step_ms) for trial in rows]
    _formula(figure, column, number, at, promised)


def _desync(figure: go.Figure, record: LabRecord) -> None:
    for number, (lane, trials) in enumerate(record.lanes().items()):
        _lane(figure, 1, number, lane, [t.value for t in trials], [t.tau for t in trials])
    noises = [item.noise for item in record.changed]
    _line(figure, 2, noises, [item.agreement for item in record.changed], name="the target", is_marked=True)
    _line(figure, 3, noises, [item.perplexity for item in record.changed], name="the target", is_marked=True)
    figure.update_yaxes(tickformat=".0%", row=1, col=2)
    _axes(figure, ("noise (in σ of each matrix)",) * 3)


def _batch(figure: go.Figure, record: LabRecord) -> None:
    sizes = sorted({item.num_sequences for item in record.passes})
    for shade, rows in enumerate(sorted({item.num_rows for item in record.passes} - {1})):
        needed = [needed_tokens(record, size, rows) for size in sizes]
        dash = ("dot", "dash", "longdash", "solid", "dashdot")[shade % 5]
        _line(figure, 1, sizes, needed, name=f"{rows} rows break even", dash=dash)
    for number, trial in enumerate(record.trials):
        _lane(figure, 1, number, trial.lane, sizes, [trial.tau] * len(sizes), mode="lines")
        speedups = batch_speedups(record, trial)
        _lane(figure, 2, number, trial.lane, list(speedups), list(speedups.values()))
    figure.add_hline(y=1, line={"color": QUIET, "width": 1}, row=1, col=2)
    figure.update_xaxes(type="log", tickvals=sizes, ticktext=[str(size) for size in sizes])
    _axes(figure, ("sequences in the batch",) * 2)


def _template(figure: go.Figure, record: LabRecord) -> None:
    for number, (lane, trials) in enumerate(record.lanes().items()):
        words, taus = [trial.word for trial in trials], [trial.tau for trial in trials]
        figure.add_bar(
            x=words,
            y=taus,
            name=lane,
            marker_color=COLORS[number % len(COLORS)],
            text=[f"{tau:.2f}" for tau in taus],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x}: %{y:.2f}<extra>%{fullData.name}</extra>",
            row=1,
            col=1,
        )
    highest = max(trial.tau for trial in record.trials)
    figure.update_yaxes(range=[0, 1.2 * highest], row=1, col=1)
    _axes(figure, ("chat template",))


def _context(figure: go.Figure, record: LabRecord) -> None:
    for number, (lane, trials) in enumerate(record.lanes().items()):
        _lane(figure, 1, number, lane, [t.value for t in trials], [t.tau for t in trials])
    if record.trained_length is not None:
        line = {"color": QUIET, "dash": "dash", "width": 1}
        figure.add_vline(x=record.trained_length, line=line, annotation_text="training text ends", row=1, col=1)
    _axes(figure, ("tokens of the prompt",))


def _ordered(trials: list[Trial], lane: str, sweep: str) -> list[Trial]:
    own = [trial for trial in trials if (trial.lane, trial.sweep) == (lane, sweep)]
    return sorted(own, key=lambda trial: trial.num_rows if sweep == "total_tokens" else trial.value)


def _lane(
    figure: go.Figure,
    column: int,
    number: int,
    name: str,
    x: Sequence[float],
    y: Sequence[float],
    **how: Any,
) -> None:
    """A lane's points in one chart; its name stands in the legend once, for the first chart or where ``is_new``."""
    color = COLORS[number % len(COLORS)]
    figure.add_scatter(
        x=list(x),
        y=list(y),
        mode=how.get("mode", "lines+markers"),
        name=name,
        legendgroup=name,
        showlegend=how.get("is_new", column == 1),
        line={"color": color, "dash": how.get("dash", "solid")},
        marker={"color": color, "size": 8, "symbol": MARKS[number % len(MARKS)]},
        hovertemplate="%{x:.3g}: %{y:.3g}<extra>" + name + "</extra>",
        row=1,
        col=column,
    )


def _formula(figure: go.Figure, column: int, number: int, x: Sequence[float], y: Sequence[float]) -> None:
    """What a formula gives at the same places: a dotted line without marks, in the legend once."""
    is_first = not any(trace.name == FORMULA for trace in figure.data)
    color = COLORS[number % len(COLORS)]
    figure.add_scatter(
        x=list(x),
        y=list(y),
        mode="lines",
        name=FORMULA,
        legendgroup=FORMULA,
        showlegend=is_first,
        line={"color": color, "dash": "dot", "width": 1.5},
        hovertemplate="%{x:.3g}: %{y:.3g}<extra>formula</extra>",
        row=1,
        col=column,
    )


def _line(figure: go.Figure, column: int, x: Sequence[float], y: Sequence[Any], **how: Any) -> None:
    """A grey line that belongs to no lane; one with marks is measured, and shares its name with its neighbours."""
    name, is_marked = how["name"], how.get("is_marked", False)
    figure.add_scatter(
        x=list(x),
        y=list(y),
        mode="lines+markers" if is_marked else "lines",
        name=name,
        legendgroup=name,
        showlegend=not is_marked or column == 2,
        line={"color": QUIET, "dash": how.get("dash", "solid")},
        hovertemplate="%{x:.3g}: %{y:.3g}<extra>" + name + "</extra>",
        row=1,
        col=column,
    )


def _axes(figure: go.Figure, titles: Sequence[str]) -> None:
    for column, title in enumerate(titles, start=1):
        figure.update_xaxes(title_text=title, row=1, col=column)


# Experiment -> titles of its charts, and what draws them.
FIGURES: dict[str, tuple[tuple[str, ...], Callable[[Any, LabRecord], None]]] = {
    "temperature": ((TAU, "Share of levels accepted (alpha)"), _temperature),
    "tree": ((TAU, TAU, "Speed / plain decoding", "ms of a verify pass"), _tree),
    "desync": ((TAU, "Same choice as before", "Perplexity of its own text"), _desync),
    "batch": (("Tokens per pass: had, and needed to break even", "Speed against plain decoding"), _batch),
    "template": ((TAU,), _template),
    "context": ((TAU,), _context),
}
