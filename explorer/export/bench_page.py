"""A benchmark's report as one HTML file that opens from disk: tables and figures, no script and no network.

Names in a report come from files: they are text here, never markup. Colours are those of the page's palettes, which the
caller hands in, and follow the reader's choice of light or dark.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any

from explorer.bench_words import by_category, divergences, facts, overall
from explorer.export.charts import bar_chart, spread_chart
from explorer.insight import visible
from explorer.tables import Table

COLOURS = ("text", "muted", "rule", "accepted_fill")
LONG = 28  # characters: a longer cell may be broken into lines
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="Draft Tree Explorer">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
:root {{ color-scheme: light dark; {light} }}
@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}
body {{ margin: 0 auto; max-width: 1180px; padding: 12px 18px 40px; background: var(--dtx-surface);
  color: var(--dtx-text); font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }}
h1 {{ font-size: 22px; }} h2 {{ font-size: 17px; margin: 28px 0 6px; }} h3 {{ font-size: 14px; margin: 16px 0 4px; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: left; vertical-align: top; padding: 3px 14px 3px 0; border-bottom: 1px solid var(--dtx-rule); }}
th {{ color: var(--dtx-muted); font-weight: 600; }}
.note, .facts {{ color: var(--dtx-muted); max-width: 90ch; overflow-wrap: anywhere; }}
.facts dt {{ float: left; clear: left; min-width: 11em; }} .facts dd {{ margin: 0 0 0 11.5em; color: var(--dtx-text); }}
td {{ white-space: nowrap; }} td.long {{ white-space: normal; min-width: 9em; }}
.charts {{ display: flex; flex-wrap: wrap; gap: 18px 34px; align-items: flex-end; overflow-x: auto; }}
svg {{ flex: none; }}
summary {{ cursor: pointer; font-size: 15px; font-weight: 600; padding: 6px 0; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def bench_page(report: Mapping[str, Any], light: str, dark: str) -> str:
    """The whole page. light, dark: the palettes as CSS declarations (explorer.views.theme.css_variables)."""
    methods: Mapping[str, Any] = report["methods"]
    parts = [_speeds(methods), *(_table(each) for each in overall(report)), "<h2>Acceptance in figures</h2>"]
    parts.append(_figures(methods))
    categories = by_category(report)
    parts += ["<h2>By category</h2>"] if categories else []
    for name, tables in categories.items():
        own = {method: row["by_category"][name] for method, row in methods.items() if name in row["by_category"]}
        inside = "\n".join([_speeds(own), *(_table(each, "h3") for each in tables), _figures(own)])
        parts.append(f"<details><summary>{_text(name)}</summary>\n{inside}\n</details>")
    parts.append("<h2>Outputs that left plain decoding</h2>")
    parts.append(f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in divergences(report))}</ul>")
    parts.append("<h2>What was measured</h2>")
    parts.append(_facts(facts(report)))
    title = _text(f"Benchmark: {report['bench']['target']}, {report['num_questions']} prompts")
    return PAGE.format(title=title, light=light, dark=dark, body="\n".join(parts))


def _speeds(methods: Mapping[str, Any]) -> str:
    """Speedups and speeds, with their quartiles."""
    speedups = [(name, row["speedup"]) for name, row in methods.items()]
    speeds = [(name, row["tokens_per_second"]) for name, row in methods.items()]
    charts = [spread_chart("Speedup over plain decoding (median, quartiles)", speedups, _colours(), 1.0)]
    charts = charts if any(value for _, value in speedups) else []  # an endpoint has no plain decoding beside it
    return _charts([*charts, spread_chart("Tokens per second (median, quartiles)", speeds, _colours(), None)])


def _figures(methods: Mapping[str, Any]) -> str:
    """A line a method: acceptance by depth, by head, and the histogram of accepted drafts."""
    lines = []
    for name, row in methods.items():
        depths = [(str(depth), share) for depth, share in enumerate(row.get("acceptance_by_depth", []), 1)]
        heads = [(str(place), head["first"]) for place, head in enumerate(row.get("acceptance_by_head", []), 1)]
        counts = row.get("acceptance_histogram", [])
        charts = [
            bar_chart(title, [(label, share, _percent(share)) for label, share in bars], _colours())
            for title, bars in (("accepted by depth", depths), ("head right at once", heads))
            if bars
        ]
        if len(counts) > 1:
            most = max(counts)
            bars = [(str(length), count / most if most else 0.0, str(count)) for length, count in enumerate(counts)]
            charts.append(bar_chart("passes by accepted drafts", bars, _colours()))
        lines += [f"<h3>{_text(name)}</h3>", _charts(charts)] if charts else []
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def _colours() -> dict[str, str]:
    return {name: f"var(--dtx-{name.replace('_', '-')})" for name in COLOURS}


def _charts(charts: Iterable[str]) -> str:
    return f'<div class="charts">{"".join(charts)}</div>'


def _table(each: Table, mark: str = "h2") -> str:
    head = "".join(f"<th>{_text(cell)}</th>" for cell in each.head)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in each.rows)
    title = f"<{mark}>{_text(each.title)}</{mark}>\n" if each.title else ""
    note = f'\n<p class="note">{_text(each.note)}</p>' if each.note and mark == "h2" else ""
    return f'{title}<div class="wide"><table><tr>{head}</tr>\n{rows}</table></div>{note}'


def _cell(text: str) -> str:
    return f"<td{' class=long' if len(text) > LONG else ''}>{_text(text)}</td>"


def _facts(found: Iterable[tuple[str, str]]) -> str:
    return f'<dl class="facts">{"".join(f"<dt>{_text(name)}</dt><dd>{_text(text)}</dd>" for name, text in found)}</dl>'


def _text(text: str) -> str:
    """Text of unknown make as HTML text."""
    return html.escape(visible(text))
