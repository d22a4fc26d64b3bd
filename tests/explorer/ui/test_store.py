"""The trace store: recorded traces by name only, runs by unguessable ids, bounded."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.errors import TraceError
from explorer.runner_events import RunRequest, Stepped
from explorer.trace import Label, from_json, to_json
from explorer.trace_check import check_trace
from explorer.ui.store import Library, TraceStore, memory_of
from tests.support.traces import make_trace

EMPTY = Library(Path("/nowhere"))


def test_the_library_opens_what_the_manifest_names(recordings: Path) -> None:
    library = Library(recordings)
    assert [item.name for item in library] == ["eagle2-code", "medusa-chat"]
    assert len(library.trace("medusa-chat").steps) == 5
    assert library.trace("medusa-chat") is library.trace("medusa-chat"), "parsed once"
    assert "manifest" not in library
    assert ["eagle2-code"] not in [*library]


def test_no_manifest_is_an_empty_library(tmp_path: Path) -> None:
    assert len(Library(tmp_path)) == 0


@pytest.mark.parametrize("text", ["{", "{}", "[1]", "[{}]", '[{"file": "../x.json.gz"}]', '[{"file": "/etc/passwd"}]'])
def test_a_broken_manifest_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
    if text == "{}":
        assert len(Library(tmp_path)) == 0
        return
    with pytest.raises(TraceError, match=r"manifest\.json"):
        Library(tmp_path)


def test_a_missing_trace_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps([{"file": "gone.json.gz"}]), encoding="utf-8")
    with pytest.raises(TraceError, match="gone"):
        Library(tmp_path).trace("gone")


def test_a_run_grows_step_by_step_with_its_numbers() -> None:
    store, whole = TraceStore(EMPTY, 4), make_trace("eagle2", 5, 12)
    started = replace(whole, steps=[], vocab={}, stop="cancelled")
    run_id = store.open(started)
    assert store.append(run_id, Stepped(whole.steps[0], {"1": Label("a", "text")}, "so far")) == 1
    trace, is_done = store.get(run_id)
    assert not is_done
    assert trace.stats.num_steps == 1
    assert trace.output.token_ids == [whole.first_token, *whole.steps[0].emitted]
    assert (trace.output.text, trace.vocab) == ("so far", {"1": Label("a", "text")})
    store.append(run_id, Stepped(whole.steps[1], {}))
    assert len(trace.steps) == 1, "what was handed out does not change"
    store.finish(run_id, whole)
    assert store.get(run_id) == (whole, True)


def test_a_cancelled_run_is_a_valid_trace() -> None:
    store, whole = TraceStore(EMPTY, 4), make_trace("eagle2", 5, 12)
    run_id = store.open(replace(whole, steps=[]))
    for step in whole.steps[:3]:
        store.append(run_id, Stepped(step, {}, "text"))
    store.cancel(run_id)
    trace, is_done = store.get(run_id)
    assert is_done
    assert trace.stop == "cancelled"
    check_trace(trace)
    store.cancel(run_id, "error")
    assert store.get(run_id)[0].stop == "cancelled", "the first end is the end"


def test_the_least_recently_used_run_is_forgotten() -> None:
    store = TraceStore(EMPTY, 2)
    first, second = store.open(make_trace(steps=1)), store.open(make_trace(steps=1))
    store.get(first)
    third = store.open(make_trace(steps=1))
    assert len({first, second, third}) == 3
    store.get(first)
    store.get(third)
    with pytest.raises(TraceError, match="no longer kept"):
        store.get(second)
    assert store.append(second, Stepped(make_trace(steps=1).steps[0], {})) == 1
    store.cancel(second)
    store.finish(second, make_trace(steps=1))
    with pytest.raises(TraceError):
        store.get(second)


def test_what_was_asked_for_stays_with_the_run() -> None:
    store, asked = TraceStore(EMPTY, 4), RunRequest("eagle2", prompt="p", system="s")
    trace = make_trace("eagle2", 2, 6)
    run_id = store.open(trace, request=asked)
    store.cancel(run_id)
    assert store.request(run_id) is asked
    run_id = store.open(trace, request=asked)
    store.finish(run_id, trace)
    assert store.request(run_id) is asked
    assert store.request(store.open(trace, is_done=True)) is None
    assert store.request("nobody") is None


def test_the_bytes_of_all_runs_are_bounded_and_the_newest_always_stays() -> None:
    size = memory_of(make_trace("eagle2", 20, 30))
    store = TraceStore(EMPTY, 32, max_bytes=int(2.5 * size))
    ids = [store.open(make_trace("eagle2", 20, 30), is_done=True) for _ in range(3)]
    assert len(store) == 2
    assert size < store.num_bytes <= 2.5 * size
    with pytest.raises(TraceError, match="no longer kept"):
        store.get(ids[0])
    large = store.open(make_trace("eagle2", 80, 30), is_done=True)
    assert len(store) == 1
    assert store.get(large)[0].stats.num_steps
    assert store.num_bytes > 2.5 * size, "one run that is larger than everything is kept"


def test_bytes_follow_steps_ends_and_cancelling() -> None:
    trace = make_trace("eagle2", 10, 20)
    store = TraceStore(EMPTY, 8)
    run_id = store.open(replace(trace, steps=[]))
    start = store.num_bytes
    for step in trace.steps:
        store.append(run_id, Stepped(step, {}))
    told = sum(memory_of(step) + memory_of({}) for step in trace.steps)
    assert store.num_bytes == pytest.approx(start + told, rel=1e-3)  # a text grows a little when it is first encoded
    store.finish(run_id, trace)
    assert store.num_bytes == pytest.approx(memory_of(trace), rel=1e-3)
    other = store.open(replace(trace, steps=[]))
    store.cancel(other)
    store.finish("unknown", trace)
    assert store.num_bytes == pytest.approx(memory_of(trace) + memory_of(store.get(other)[0]), rel=1e-3)


def test_a_run_that_goes_on_is_not_the_first_to_be_forgotten() -> None:
    trace = make_trace("eagle2", 4, 8)
    store = TraceStore(EMPTY, 2)
    running, other = store.open(replace(trace, steps=[])), store.open(trace, is_done=True)
    store.append(running, Stepped(trace.steps[0], {}))
    store.open(trace, is_done=True)
    assert store.get(running)[0].steps
    with pytest.raises(TraceError):
        store.get(other)


def test_the_estimate_of_memory_is_near_what_a_trace_really_takes() -> None:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    trace = from_json(to_json(make_trace("eagle2", 60, 60)))
    real = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 0.5 * real < memory_of(trace) < 3 * real
