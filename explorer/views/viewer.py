"""The client-side step viewer: its data (view JSON), and its JavaScript and style sheet as strings.

View JSON is a function of the trace: headline numbers from explorer.views.facts, places from explorer.views.layout,
sentences from explorer.insight, columns from the record with probabilities rounded to four significant digits. The
JavaScript only paints it, folds branches and moves a cursor. Token text travels as data and is drawn with textContent;
no template and no style sheet holds any.

The host page supplies an adapter (assets/viewer/core.js says what it holds):
``viewer_source()`` defines ``mountViewer(adapter)``, ``viewer_js()`` also mounts it inside gr.HTML's js_on_load,
``replay_js()`` on an exported page (explorer.export.html). The script installs the style sheet itself, because a CSS
template would evaluate its escapes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from explorer import insight
from explorer.mask_words import mask_sentence, visibility_sentences
from explorer.plain_steps import plain_sentence
from explorer.rules import RULE_SENTENCES, sampling_text, settings_texts
from explorer.trace import Label, Step, Trace
from explorer.trace_check import used_ids
from explorer.views.facts import facts
from explorer.views.layout import Layout, lay_out_step
from explorer.views.theme import DARK, LIGHT, css_variables

ASSETS = Path(__file__).resolve().parents[2] / "assets" / "viewer"
JS_FILES = (
    "dom.js",
    "state.js",
    "insights.js",
    "moments.js",
    "views.js",
    "tree.js",
    "mask.js",
    "panel_trees.js",
    "panel_chains.js",
    "panel_passes.js",
    "panels.js",
    "cuts.js",
    "run_charts.js",
    "run.js",
    "strip.js",
    "card.js",
    "histogram.js",
    "lesson.js",
    "numbers.js",
    "transport.js",
    "momentbar.js",
    "keys.js",
    "chooser.js",
    "race.js",
    "smalltree.js",
    "compare.js",
    "diff.js",
    "core.js",
)
SHELL = '<div class="dtx" tabindex="0" role="region" aria-label="Draft tree viewer"></div>'
SIGNIFICANT_DIGITS = 4
MAX_BYTES = 64  # of a token, shown; the label has the rest


def view_payload(
    trace: Trace, from_step: int = 0, *, trace_id: str = "", is_done: bool = True, limit: int | None = None
) -> dict[str, Any]:
    """What the viewer asks for: the steps from ``from_step`` on, at most ``limit``, and the labels they newly use.

    The header comes with the first step and again with the last of a finished run; a reader that has steps 0..k-1 asks
    from k until it has all ``num_steps``.
    """
    total = len(trace.steps)
    start = max(0, min(from_step, total))
    end = total if limit is None else min(total, start + limit)
    steps = trace.steps[start:end]
    before, wanted = {trace.first_token, *trace.prompt.token_ids}, set().union(*map(used_ids, steps))
    known = before.union(*map(used_ids, trace.steps[:start])) if start else set()
    wanted |= before if start == 0 else set()
    payload: dict[str, Any] = {
        "id": trace_id,
        "from": start,
        "vocab": labels(trace.vocab, wanted - known),
        "steps": [view_step(trace, step) for step in steps],
        "num_steps": total,
        "facts": [asdict(fact) for fact in facts(trace)],
        "done": is_done,
    }
    if start == 0 or (is_done and end == total):
        payload["header"] = view_header(trace, trace_id)
    return payload


def view_header(trace: Trace, trace_id: str = "") -> dict[str, Any]:
    """What does not change from step to step."""
    return {
        "id": trace_id,
        "method": trace.method,
        "settings": settings_texts(trace),
        "sampling": asdict(trace.sampling),
        "rule": [sampling_text(trace.sampling), RULE_SENTENCES[trace.sampling.acceptance]],
        "target": asdict(trace.target),
        "drafter": asdict(trace.drafter) if trace.drafter else None,
        "prompt": trace.prompt.text,
        "prompt_tokens": trace.prompt.token_ids,
        "first_token": trace.first_token,
        "stop": trace.stop,
        "stats": asdict(trace.stats),
    }


def view_step(trace: Trace, step: Step) -> dict[str, Any]:
    """One step, ready to paint: columns in engine order, display rows and columns, sentences."""
    layout, tree, size = lay_out_step(step), step.tree, len(step.tree)
    reasons, seen = insight.row_sentences(step, trace.vocab), visibility_sentences(step)
    return {
        "i": step.index,
        "prefix": step.prefix_len,
        "tok": tree.token,
        "par": tree.parent,
        "state": tree.state,
        "q": [_round(value) for value in tree.draft_prob],
        "score": [_round(value) for value in tree.score],
        "p": [_round(value) for value in tree.target_prob],
        "rank": tree.target_rank,
        "acc": [_round(value) for value in tree.accept_prob],
        "top": [_tops(top) for top in tree.target_top],
        "order": [node for node in layout.order if node < size],
        "row": layout.row[:size],
        "col": layout.col[:size],
        "ghosts": _ghosts(step, layout),
        "pruned": step.num_pruned,
        "path": step.path,
        "next": [step.next_token, step.next_kind, _round(step.next_prob)],
        "own": {"row": layout.row[-1], "col": layout.col[-1], "why": insight.own_token_sentence(step, trace.vocab)},
        "miss": insight.miss_class(step),
        "emitted": step.emitted,
        "ms": {name: _rounded(value) for name, value in asdict(step.ms).items()},
        "captions": [insight.step_sentence(step, trace.vocab)],
        "reasons": reasons.texts,
        "why": reasons.index,
        "attends": insight.attention_sentences(step),
        "mask": mask_sentence(trace, step),
        "seen": [seen.texts, seen.index],
        "draws": _draws(step),
        "plain": plain_sentence(step) if step.plain_reason else None,
    }


def viewer_source() -> str:
    """The viewer's scripts in their listed order: they define ``mountViewer`` and ``VIEWER_CSS``, nothing global."""
    source = "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in JS_FILES)
    head = f'"use strict";\nconst VIEWER_CSS = {json.dumps(viewer_css())};'
    return f"const mountViewer = (() => {{\n{head}\n{source}\nreturn mountViewer;\n}})();"


def viewer_js() -> str:
    """The body of gr.HTML's js_on_load: the viewer, mounted in ``element``, fed by the server function get_view."""
    return viewer_source() + "\n" + (ASSETS / "gradio.js").read_text(encoding="utf-8")


def replay_js() -> str:
    """The script of an exported page: the viewer, fed with the view JSON that lies in the page."""
    return viewer_source() + "\n" + (ASSETS / "replay.js").read_text(encoding="utf-8")


def viewer_css() -> str:
    """The palette as variables for light, dark (Gradio's body.dark) and, on a bare page, the system's own choice."""
    light, dark = css_variables(LIGHT), css_variables(DARK)
    schemes = (
        f".dtx{{{light}color-scheme:light}}\n.dark .dtx{{{dark}color-scheme:dark}}\n"
        f"@media (prefers-color-scheme:dark){{.dtx[data-scheme=auto]{{{dark}color-scheme:dark}}}}\n"
    )
    return schemes + (ASSETS / "viewer.css").read_text(encoding="utf-8")


def _draws(step: Step) -> dict[int, list[Any]]:
    """Row -> [probability, uniform, threshold, accepted, residual mass, residual top] of the tests that took a number.

    Greedy tests compare two tokens, which the row's sentence says.
    """
    return {
        draw.row: [
            *map(_round, (draw.prob, draw.uniform, draw.threshold)),
            draw.accepted,
            _round(draw.residual_mass),
            _tops(draw.residual_top),
        ]
        for draw in step.draws
        if draw.uniform is not None or draw.threshold is not None
    }


def _ghosts(step: Step, layout: Layout) -> dict[str, Any]:
    ghosts, size = step.ghosts, len(step.tree)
    places = slice(size, size + len(ghosts))
    return {
        "tok": ghosts.token,
        "par": ghosts.parent,
        "q": [_round(value) for value in ghosts.draft_prob],
        "score": [_round(value) for value in ghosts.score],
        "p": [_round(value) for value in ghosts.target_prob],
        "row": layout.row[places],
        "col": layout.col[places],
        "why": insight.ghost_sentence(step) if len(ghosts) else "",
    }


def labels(vocab: Mapping[str, Label], ids: Iterable[int]) -> dict[str, list[str]]:
    """Token id -> [label, kind, bytes in hex where recorded], ready to be drawn; ids without a label are left out."""
    found = ((str(token), vocab.get(str(token))) for token in sorted(ids))
    return {token: [insight.visible(label.label), label.kind, *_hex(label)] for token, label in found if label}


def _hex(label: Label) -> list[str]:
    return [] if label.hex is None else [label.hex[: 2 * MAX_BYTES]]


def _tops(top: list[tuple[int, float]] | None) -> list[tuple[int, float | None]] | None:
    return None if top is None else [(token, _round(prob)) for token, prob in top]


def _rounded(value: float | list[float]) -> Any:
    return [_round(item) for item in value] if isinstance(value, list) else _round(value)


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{SIGNIFICANT_DIGITS}g}")
