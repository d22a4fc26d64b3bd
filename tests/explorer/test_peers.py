"""transformers' own lanes give plain output, and are refused in words where they have nothing to draft with."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.bench import run_bench
from explorer.bench_report import PEERS
from explorer.config import Sampling
from explorer.errors import SettingError
from explorer.measurement import ResultsFile
from explorer.peers import Peers
from explorer.questions import Question
from explorer.runner_events import RunRequest
from explorer.target import Target
from tests.support.goldens import FOLDER, golden_target
from tests.support.tiny import greedy

BASE = str(FOLDER / "base_a")
IDS = [5, 9, 5, 9, 5, 9, 17, 5, 9]  # repeats itself, so that prompt lookup finds something to copy


@pytest.fixture(scope="module")
def target() -> Target:
    return golden_target("base_a")


@pytest.fixture(scope="module")
def peers(target: Target) -> Peers:
    return Peers(target, BASE, draft_model=BASE)  # the target is its own draft model: whole, with its own tokenizer


@pytest.mark.parametrize("lane", PEERS)
def test_every_lane_is_plain_decoding(peers: Peers, target: Target, lane: str) -> None:
    answer = peers.run(lane, IDS, 12, Sampling(), stops=[])
    expected = greedy(target, IDS, 12)
    assert answer.output == expected
    assert 0 < answer.prefill_ms < answer.total_ms


def test_no_draft_model_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    request = RunRequest(method="autoregressive", prompt="?", max_new_tokens=4, target=BASE, baseline=False)
    results = ResultsFile(tmp_path / "r.jsonl", {})
    with pytest.raises(SettingError, match="generate_assisted: no draft model is known for"):
        list(run_bench({request.method: request}, [Question("1", "all", "Cats?")], results, ["generate_assisted"]))
    assert results.measurements == []
