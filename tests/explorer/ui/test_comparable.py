"""What can stand beside the run on screen: the same prompt and target, own runs only for who names them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.errors import TraceError
from explorer.trace import Trace, write_trace
from explorer.ui.comparable import ALONE, comparable_runs
from explorer.ui.store import Library, TraceStore
from tests.support.traces import make_trace

EAGLE = make_trace("eagle2", 4, 12)
MEDUSA = replace(make_trace("medusa", 4, 12), prompt=EAGLE.prompt)
LARGER = replace(make_trace("eagle2", 4, 30), prompt=EAGLE.prompt)
CHAT = make_trace("medusa", 5, 9)  # another prompt, though the manifest says the same


@pytest.fixture
def store(tmp_path: Path) -> TraceStore:
    recordings = {"eagle2-code": EAGLE, "eagle2-large": LARGER, "medusa-code": MEDUSA, "medusa-chat": CHAT}
    for name, trace in recordings.items():
        write_trace(trace, tmp_path / f"{name}.json.gz")
    entries = [
        {
            "file": f"{name}.json.gz",
            "title": f"Title of {name}",
            "prompt": EAGLE.prompt.text,
            "target": EAGLE.target.name,
        }
        for name in recordings
    ]
    (tmp_path / "manifest.json").write_text(json.dumps(entries), encoding="utf-8")
    return TraceStore(Library(tmp_path), 8)


def ids(store: TraceStore, trace_id: str, *own: str) -> list[str]:
    return [run.id for run in comparable_runs(store, trace_id, own).others]


def test_recorded_runs_of_the_same_prompt_another_method_first(store: TraceStore) -> None:
    found = comparable_runs(store, "eagle2-code", [])
    assert [run.id for run in found.others] == ["medusa-code", "eagle2-large"]
    assert (found.current.id, found.current.label) == ("eagle2-code", "EAGLE-2 (total_tokens 12)")
    assert [run.label for run in found.others] == ["Medusa", "EAGLE-2 (total_tokens 30)"]
    assert found.sentence == "2 other runs of this prompt and target are here."
    medusa = found.others[0]
    assert (medusa.title, medusa.method, medusa.is_own) == ("Title of medusa-code", "medusa", False)
    assert medusa.settings == "total_tokens 12, depth 5, top_k 10, greedy"
    assert (medusa.num_tokens, medusa.speedup) == (len(MEDUSA.output.token_ids), MEDUSA.stats.speedup)


def test_own_runs_are_there_for_who_names_them_alone(store: TraceStore) -> None:
    mine, foreign = store.open(MEDUSA, is_done=True), store.open(LARGER, is_done=True)
    assert foreign not in ids(store, "eagle2-code", mine), "nobody learns of another visitor's runs"
    found = comparable_runs(store, "eagle2-code", [mine])
    assert [run.id for run in found.others if run.is_own] == [mine]
    assert found.others[0].title == "your run"
    assert ids(store, mine, mine) == ["eagle2-code", "eagle2-large", "medusa-code"], "a run is not its own companion"


def test_unfinished_forgotten_and_other_prompts_are_left_out(store: TraceStore) -> None:
    growing = store.open(replace(MEDUSA, steps=[]))
    other = store.open(CHAT, is_done=True)
    assert ids(store, "eagle2-code", growing, other, "forgotten", "../etc/passwd") == ["medusa-code", "eagle2-large"]


def test_a_run_alone_is_told_what_to_do(store: TraceStore) -> None:
    lonely: Trace = replace(EAGLE, prompt=replace(EAGLE.prompt, text="Alone", token_ids=[1, 2]))
    found = comparable_runs(store, store.open(lonely, is_done=True), [])
    assert (found.others, found.sentence) == ([], ALONE)


def test_an_unknown_run_is_refused(store: TraceStore) -> None:
    with pytest.raises(TraceError, match="no longer kept"):
        comparable_runs(store, "unknown", [])
