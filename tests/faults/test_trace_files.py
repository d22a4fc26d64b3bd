"""Damaged trace files: refused in one sentence, or fit for every view and export; quickly, and by no other file."""

from __future__ import annotations

import gzip
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer.errors import ExplorerError, TraceError
from explorer.export.graphml import step_graphml
from explorer.export.perfetto import chrome_trace
from explorer.export.stats import stats_json
from explorer.export.svg import step_svg
from explorer.trace import Trace, from_json, read_trace, to_json
from explorer.ui.opening import open_upload
from explorer.ui.store import Library, TraceStore
from explorer.ui.takeaway import answer_export
from explorer.ui.viewer_component import INSIGHTS, answer_insight, answer_view
from explorer.views.charts import summary_figure
from explorer.views.theme import LIGHT
from tests.faults.hostile import damaged, misfilled
from tests.support.page import make_context
from tests.support.traces import make_trace

WHOLE = {method: to_json(make_trace(method, 4, 8)) for method in ("eagle2", "medusa", "lookahead", "jacobi")}
SHORT = to_json(make_trace("eagle2", 2, 5)).encode()
MAX_SECONDS = 20.0  # of this process's own time
FUZZ = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], max_examples=60)
LONG = settings(FUZZ, max_examples=3000)


def show_everywhere(trace: Trace) -> None:
    """Whatever was read must be fit for whatever may be asked of it."""
    store = TraceStore(Library(Path("/nowhere")), 4)
    run_id = store.open(trace, is_done=True)
    other = store.open(make_trace("eagle2", 2, 5), is_done=True)
    answers = [answer_view(store, json.dumps({"id": run_id}))]
    answers += [answer_export(store, json.dumps({"id": run_id, "kind": kind})) for kind in ("trace", "html")]
    for kind, (least, _, _) in INSIGHTS.items():
        for step in range(max(len(trace.steps), 1) if kind in ("step", "compare") else 1):
            payload = {"insight": kind, "ids": [run_id, other][:least], "step": step}
            answers.append(answer_insight(store, json.dumps(payload)))
    for answer in answers:
        json.loads(answer, parse_constant=pytest.fail)
    assert "error" not in json.loads(answers[0])
    summary_figure(trace)
    stats_json(trace)
    chrome_trace(trace)
    for step in range(len(trace.steps)):
        step_svg(trace, step, asdict(LIGHT), has_ghosts=True)
        step_graphml(trace, step)


def try_text(text: str) -> bool:
    """Whether it was read; anything but a TraceError or a trace that can be shown fails the test."""
    began = time.process_time()
    try:
        trace = from_json(text)
    except TraceError as error:
        return not 0 < len(str(error)) < 4000
    show_everywhere(trace)
    assert time.process_time() - began < MAX_SECONDS
    return True


@pytest.mark.parametrize("method", WHOLE)
@FUZZ
@given(data=st.data())
def test_wrong_values_in_right_places(method: str, data: st.DataObject) -> None:
    raw: Any = data.draw(misfilled(json.loads(WHOLE[method])))
    try_text(json.dumps(raw))


@pytest.mark.soak
@pytest.mark.parametrize("method", WHOLE)
@LONG
@given(data=st.data())
def test_many_wrong_values_in_right_places(method: str, data: st.DataObject) -> None:
    raw: Any = data.draw(misfilled(json.loads(WHOLE[method])))
    try_text(json.dumps(raw))


@pytest.mark.parametrize("is_packed", [False, True])
@FUZZ
@given(data=st.data())
def test_damaged_bytes_of_an_upload(tmp_path: Path, is_packed: bool, data: st.DataObject) -> None:
    path = tmp_path / "upload.json.gz"
    path.write_bytes(data.draw(damaged(gzip.compress(SHORT) if is_packed else SHORT)))
    try:
        show_everywhere(read_trace(path))
    except ExplorerError:
        status = json.loads(open_upload(make_context(tmp_path), str(path)).status)
        assert status["kind"] == "error"
        assert status["text"].startswith("This file cannot be shown")


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_the_largest_trees_are_shown_in_bounded_time(shape: str) -> None:
    raw = json.loads(to_json(make_trace("eagle2", 1, 5)))
    (step,) = raw["steps"]
    tree, size = step["tree"], 4096
    for name, column in tree.items():
        column += [column[-1]] * (size - len(column))
        if name == "parent":
            column[1:] = list(range(size - 1)) if shape == "chain" else [0] * (size - 1)
        if name == "state":
            column[1:] = ["rejected"] + (["unreachable" if shape == "chain" else "rejected"] * (size - 2))
    step |= {"path": [0], "emitted": [step["next_token"]], "next_kind": "recovered", "draws": []}
    raw["output"]["token_ids"] = [raw["first_token"], step["next_token"]]
    try_text(json.dumps(raw))


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, "9" * 100_000, '"' * 99, "\ufeff{}", "null", '{"schema": "draft-tree-trace"}'],
)
def test_texts_that_break_parsers(text: str) -> None:
    assert not try_text(text)


@FUZZ
@given(data=st.data())
def test_a_damaged_manifest_is_one_error(tmp_path: Path, data: st.DataObject) -> None:
    entry = {"file": "a.json.gz", "title": "t", "method": "eagle2", "prompt": "p"}
    text = data.draw(
        st.one_of(damaged(json.dumps([entry]).encode()), misfilled([entry]).map(lambda x: json.dumps(x).encode()))
    )
    (tmp_path / "manifest.json").write_bytes(text)
    try:
        library = Library(tmp_path)
    except TraceError:
        return
    for item in library:
        assert item.path.parent == tmp_path, "a file outside the folder"
        with pytest.raises(TraceError):
            library.trace(item.name)
