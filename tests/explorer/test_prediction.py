"""Predictions: costs between measured sizes, the break-even, the best tree, and profiles as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.errors import CheckpointError
from explorer.prediction import (
    PROFILE_FILE,
    DeviceCost,
    DraftCost,
    Profile,
    Shape,
    best,
    best_by_rows,
    predict,
    profile_text,
    read_profile,
)

COST = DeviceCost("cpu", "float32", 2, 256, {1: 40.0, 4: 46.0, 8: 60.0})
PROFILE = Profile(
    "eagle2",
    "text",
    100,
    [Shape({"depth": 1, "top_k": 2}, [1.0, 1.4, 1.6, 1.6]), Shape({"depth": 4, "top_k": 2}, [1.0, 1.4, 1.7, 1.9])],
)
DRAFT = DraftCost("eagle2", [4.0, 20.0])


def test_costs_between_measured_sizes_lie_on_a_line() -> None:
    assert [COST.verify_at(rows) for rows in (0, 1, 2, 4, 6, 8, 12)] == [40.0, 40.0, 42.0, 46.0, 53.0, 60.0, 74.0]
    assert DeviceCost("cpu", "float32", 2, 0, {1: 40.0}).verify_at(9) == 40.0


def test_a_tree_pays_where_tau_exceeds_its_cost_in_single_rows() -> None:
    found = predict(COST, DRAFT, PROFILE)
    assert [item.settings["total_tokens"] for item in found] == [2, 3, 2, 3, 4]  # depth 1 gains no more
    first, last = found[0], found[-1]
    assert first.step_ms == 4 + 42 and first.break_even == 46 / 40
    assert first.speedup == pytest.approx(1.4 / (46 / 40))
    assert last.tokens_per_second == pytest.approx(1.9 / 0.066)
    plain = 1000 / COST.verify_at(1)
    assert all(item.speedup == pytest.approx(item.tokens_per_second / plain) for item in found)


def test_the_best_tree_is_the_fastest_that_keeps_to_what_is_fixed() -> None:
    found = predict(COST, DRAFT, PROFILE)
    fastest = best(found)
    assert fastest is not None and fastest.settings == {"depth": 1, "top_k": 2, "total_tokens": 3}
    deep = best(found, {"depth": 4})
    assert deep is not None and deep.settings["total_tokens"] == 4
    assert best(found, {"depth": 3}) is None
    assert [(item.num_rows, item.settings["depth"]) for item in best_by_rows(found)] == [(2, 1), (3, 1), (4, 4)]


def test_profiles_survive_their_file(tmp_path: Path) -> None:
    assert read_profile(tmp_path) is None
    (tmp_path / PROFILE_FILE).write_text(profile_text(PROFILE))
    assert read_profile(tmp_path) == PROFILE
    assert len(profile_text(PROFILE).splitlines()) < 10 + len(PROFILE.shapes)
    (tmp_path / PROFILE_FILE).write_text(json.dumps({"method": "eagle2"}))
    with pytest.raises(CheckpointError, match="text: missing"):
        read_profile(tmp_path)
    (tmp_path / PROFILE_FILE).write_text("{")
    with pytest.raises(CheckpointError, match="no acceptance profile"):
        read_profile(tmp_path)
