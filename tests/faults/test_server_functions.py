"""The viewer's server functions called directly: any JSON gets JSON back, and no file but the traces is opened."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer.ui.store import Library, TraceStore
from explorer.ui.takeaway import answer_export
from explorer.ui.viewer_component import INSIGHTS, answer_insight, answer_view, read_handle
from tests.faults.hostile import damaged
from tests.support.page import make_recordings
from tests.support.traces import make_trace

FUZZ = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], max_examples=150)
ANSWERS: list[Callable[[TraceStore, object], str]] = [answer_view, answer_export, answer_insight]

OPENED: list[str] = []  # files that Python opened, filled while it is not None
_is_listening = [False]


def _note_opened(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _is_listening[0]:
        OPENED.append(str(arguments[0]))


sys.addaudithook(_note_opened)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TraceStore:
    kept = TraceStore(Library(make_recordings(tmp_path_factory.mktemp("traces"))), 3)
    kept.open(make_trace("medusa", 2, 6), is_done=True)
    return kept


def payloads(known: list[str]) -> st.SearchStrategy[object]:
    """Requests with right names and wrong values, damaged requests, and values that are no text at all."""
    ids = st.one_of(
        st.sampled_from(
            [*known, "../eagle2-code", "/etc/passwd", "manifest", "eagle2-code.json.gz", "", "%2e%2e", "\x00"]
        ),
        st.text(max_size=20),
        st.none() | st.integers() | st.lists(st.text(max_size=3), max_size=2),
    )
    numbers = st.one_of(st.integers(-3, 20), st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=3))
    kinds = st.sampled_from([*INSIGHTS, "nothing", "", None, 3, ["step"]])
    request = st.fixed_dictionaries(
        {},
        optional={
            "id": ids,
            "from": numbers,
            "insight": kinds,
            "ids": st.lists(ids, max_size=8) | ids,
            "step": numbers,
            "kind": st.sampled_from(["trace", "nothing", "", None, 3, ["svg"]]),
        },
    )
    text = request.map(lambda value: json.dumps(value))
    broken = damaged(json.dumps({"insight": "step", "ids": [known[0]], "step": 1}).encode())
    plain = st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda of: st.lists(of, max_size=3)
    )
    return st.one_of(
        text, broken.map(lambda data: data.decode("utf-8", "replace")), request, plain, st.text(max_size=500)
    )


@pytest.mark.parametrize("answer", ANSWERS)
@FUZZ
@given(data=st.data())
def test_any_payload_is_answered_with_json(
    store: TraceStore, answer: Callable[[TraceStore, object], str], data: st.DataObject
) -> None:
    payload = data.draw(payloads([item.name for item in store.library]))
    folder = str(next(iter(store.library)).path.parent)
    OPENED.clear()
    _is_listening[0] = True
    try:
        text = answer(store, payload)
    finally:
        _is_listening[0] = False
    outside = [path for path in OPENED if not path.startswith((folder, sys.prefix, sys.base_prefix))]
    assert [path for path in outside if not path.endswith((".py", ".pyc"))] == []
    found = json.loads(text, parse_constant=pytest.fail)
    assert isinstance(found, dict)
    if "error" in found:
        assert found.keys() == {"error"}
        assert "Traceback" not in text
        assert folder not in text, "an error that tells where files lie"


@FUZZ
@given(value=st.one_of(st.none(), st.text(max_size=450), payloads(["eagle2-code"])))
def test_any_handle_is_read(value: object) -> None:
    assert isinstance(read_handle(value), str)


def test_nested_too_deep_is_a_sentence(store: TraceStore) -> None:
    for answer in ANSWERS:
        assert json.loads(answer(store, "[" * 399)).keys() == {"error"}
        assert json.loads(answer(store, '{"a":' * 79)).keys() == {"error"}


def test_a_folder_that_vanished_is_a_sentence(tmp_path: Path) -> None:
    kept = TraceStore(Library(make_recordings(tmp_path)), 3)
    for file in tmp_path.iterdir():
        file.unlink()
    assert json.loads(answer_view(kept, '{"id": "eagle2-code"}')).keys() == {"error"}
