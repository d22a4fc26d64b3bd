"""A diagnosis as the page shows it: tables whose rows open the step they speak of, and its charts.

Words and tables are those of explorer.diagnose_words; prompts and tokens travel as data and are drawn as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from explorer.calibration import Calibration
from explorer.diagnose import Diagnosis, MethodDiagnosis
from explorer.diagnose_words import method_tables, overview, ranking, shown_spans, verdict_lines
from explorer.insight import visible
from explorer.tables import Table
from explorer.tallies import Tally
from explorer.views.charts import DRAFTER, GRID, PLOT_LOOK, QUIET, TARGET

if TYPE_CHECKING:
    import plotly.graph_objects as go

HEIGHT = 300
HEADROOM = 1.2
MAX_LABEL = 60
ISOLATES = "\u2068", "\u2069"
NUM_SHOWN = 4  # methods drawn at first; a click on the legend draws the others
COLORS = (TARGET, DRAFTER, "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8B6F47", QUIET)  # Okabe and Ito's first
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star")


def diagnosis_view(found: Diagnosis, ids: Sequence[str], about: str) -> dict[str, Any]:
    """View JSON: ``about`` says what was diagnosed, ``ids`` are the ids of its runs, by run number.

    ``ranking`` and each method's ``tables`` are ``{title, head, rows, note}`` with rows ``{cells, id, step}``; id is
    None where a row is about no run.
    """
    prompts, spans = ranking(found)
    return {
        "about": visible(about),
        "ranking": [
            _table(prompts, ((ids[row.run], row.worst_step) for row in found.prompts)),
            _table(spans, ((ids[span.run], span.step) for span in shown_spans(found))),
        ],
        "verdicts": [
            {"label": shown(item.label), "lines": [shown(line) for line in verdict_lines(item)]}
            for item in found.methods
        ],
        "overview": _table(overview(found)),
        "methods": [{"label": shown(item.label), "tables": _details(item, ids)} for item in found.methods],
    }


def shown(text: str) -> str:
    """Text on one line with nothing invisible in it but the isolates around the tokens that a sentence quotes."""
    first, last = ISOLATES
    pieces = (visible(piece) for piece in text.replace(last, first).split(first))
    joined = "".join(piece + (last if number % 2 else first) for number, piece in enumerate(pieces))
    return joined[: -len(first)]


def _details(item: MethodDiagnosis, ids: Sequence[str]) -> list[dict[str, Any]]:
    """How passes ended, each with its example; the other tables as they are."""
    examples = [(ids[ending.run], ending.step) for ending in item.endings]
    tables = method_tables(item)
    return [_table(each, examples if each is tables[0] and examples else ()) for each in tables]


def _table(table: Table, places: Iterable[tuple[str, int | None]] = ()) -> dict[str, Any]:
    known: list[tuple[str | None, int | None]] = list(places)
    known = known or [(None, None)] * len(table.rows)
    rows = [
        {"cells": [shown(cell) for cell in cells], "id": run, "step": step}
        for cells, (run, step) in zip(table.rows, known, strict=True)
    ]
    return {"title": shown(table.title), "head": table.head, "rows": rows, "note": shown(table.note)}


def miss_figure(found: Diagnosis) -> go.Figure:
    """Of the tokens that drafts were tested on, the share they held: by kind, by place, by the target's entropy."""
    from plotly.subplots import make_subplots

    titles = ("Accepted, by kind of token", "Accepted, by place in the output", "Accepted, by the target's entropy")
    figure = make_subplots(rows=1, cols=3, subplot_titles=titles, horizontal_spacing=0.06)
    for number, item in enumerate(found.methods):
        for column, tallies in enumerate((item.by_class, item.by_position, item.by_entropy), start=1):
            _tallies(figure, number, column, item, tallies)
    figure.update_yaxes(range=[0, HEADROOM], tickformat=".0%", tickvals=[0, 0.25, 0.5, 0.75, 1])
    figure.update_xaxes(type="category")
    _finish(figure, len(found.methods) > 1)
    figure.update_layout(barmode="group", bargap=0.25)
    return figure


def reliability_figure(found: Diagnosis) -> go.Figure | None:
    """What the drafters said against what came true, with the diagonal; None where no draft has a probability."""
    from plotly.subplots import make_subplots

    known = [item for item in found.methods if item.calibrations]
    if not known:
        return None
    titles = ("Nodes whose parent was accepted", "All nodes, by the product along their path")
    figure = make_subplots(rows=1, cols=2, subplot_titles=titles, horizontal_spacing=0.08)
    for column in (1, 2):
        figure.add_scatter(
            x=[0, 1],
            y=[0, 1],
            mode="lines",
            line={"color": QUIET, "dash": "dot"},
            name="as sure as right",
            showlegend=column == 1,
            hoverinfo="skip",
            row=1,
            col=column,
        )
    for number, item in enumerate(known):
        for column, each in enumerate(item.calibrations, start=1):
            _reliability(figure, number, column, item, each)
    figure.update_xaxes(title_text="the drafter said", range=[-0.03, 1.03], tickformat=".0%", gridcolor=GRID)
    figure.update_yaxes(range=[-0.03, 1.08], tickformat=".0%")
    figure.update_yaxes(title_text="came true", col=1)
    _finish(figure, True)
    return figure


def _tallies(figure: go.Figure, number: int, column: int, item: MethodDiagnosis, tallies: Sequence[Tally]) -> None:
    tested = [each for each in tallies if each.acceptance is not None]
    figure.add_bar(
        x=[each.name for each in tested],
        y=[each.acceptance for each in tested],
        customdata=[each.num_accepted + each.num_missed for each in tested],
        hovertemplate="%{x}: %{y:.0%} of %{customdata}<extra>" + _label(item) + "</extra>",
        marker_color=COLORS[number % len(COLORS)],
        name=_label(item),
        legendgroup=str(number),
        visible=True if number < NUM_SHOWN else "legendonly",
        showlegend=column == 1,
        row=1,
        col=column,
    )


def _reliability(figure: go.Figure, number: int, column: int, item: MethodDiagnosis, found: Calibration) -> None:
    figure.add_scatter(
        x=[each.confidence for each in found.bins],
        y=[each.accepted for each in found.bins],
        customdata=[each.num_nodes for each in found.bins],
        hovertemplate="said %{x:.0%}, came true %{y:.0%}, %{customdata} nodes<extra>" + _label(item) + "</extra>",
        mode="lines+markers",
        line={"color": COLORS[number % len(COLORS)]},
        marker={"size": 7, "symbol": SYMBOLS[number % len(SYMBOLS)]},
        name=_label(item),
        legendgroup=str(number),
        visible=True if number < NUM_SHOWN else "legendonly",
        showlegend=column == 1,
        row=1,
        col=column,
    )


def _label(item: MethodDiagnosis) -> str:
    """A method in plotly's own markup, where a setting's value might be any text."""
    text = visible(item.label).replace("&", "&amp;").replace("<", "&lt;").replace("%{", "% {")
    return text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}…"


def _finish(figure: go.Figure, has_legend: bool) -> None:
    figure.update_layout(
        height=HEIGHT + (40 if has_legend else 0),
        margin={"l": 48, "r": 8, "t": 32, "b": 48},
        **PLOT_LOOK,
        showlegend=has_legend,
        legend={"orientation": "h", "x": 0, "y": -0.28},
    )
    figure.update_annotations(font_size=13)
    figure.update_xaxes(zeroline=False, fixedrange=True)
    figure.update_yaxes(gridcolor=GRID, zeroline=False, fixedrange=True)
