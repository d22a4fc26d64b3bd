"""Costs are measured for every size and shape, once; `auto` becomes the fastest tree or a clear refusal."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from explorer.config import AUTO
from explorer.cost import SIZES, has_auto, measure_device, measure_drafts, predictions, report_costs, settle
from explorer.errors import SettingError
from explorer.loading import LoadedModels, ModelStore
from explorer.methods.eagle2 import Eagle2, Eagle2Settings
from explorer.methods.eagle3 import Eagle3
from explorer.prediction import PROFILE_FILE, Profile, Shape, profile_text
from explorer.runner_events import RunRequest, Status, drain
from tests.support.goldens import FOLDER
from tests.support.tiny import tiny_drafter, tiny_target

PROFILE = Profile(
    "eagle2",
    "text",
    100,
    [
        Shape({"depth": 1, "top_k": 2}, [1.0, 1.2, 1.3]),
        Shape({"depth": 2, "top_k": 2}, [1.0, 1.1, 9.0]),  # so good that it wins whatever the clock says
    ],
)


def drained(work: Generator[Status, None, Any]) -> tuple[Any, list[Status]]:
    events: list[Status] = []
    return drain(work, events.append), events


@pytest.fixture
def source(tmp_path: Path) -> str:
    shutil.copytree(FOLDER / "eagle_bias", tmp_path / "eagle")
    (tmp_path / "eagle" / PROFILE_FILE).write_text(profile_text(PROFILE))
    return str(tmp_path / "eagle")


@pytest.fixture
def models() -> LoadedModels:
    loaded, _ = drained(ModelStore().models(RunRequest("eagle2", prompt="x", target=str(FOLDER / "base_a"))))
    return loaded


def test_every_size_is_measured_and_said() -> None:
    cost, events = drained(measure_device(tiny_target(), repeats=2))
    assert set(cost.verify_ms) == set(SIZES)
    assert min(cost.verify_ms.values()) > 0
    assert [event.fraction for event in events] == [0, 0.5]


@pytest.mark.parametrize("kind", [Eagle2, Eagle3])
def test_every_shape_is_measured(kind: type[Eagle2]) -> None:
    target = tiny_target()
    cost, _ = drained(measure_drafts(target, kind, tiny_drafter(kind.name, target), PROFILE, repeats=1))
    assert len(cost.draft_ms) == 2 and min(cost.draft_ms) > 0


def test_depths_between_the_ends_lie_on_a_line() -> None:
    target = tiny_target()
    shapes = [Shape({"depth": depth, "top_k": 2}, [1.0, 1.2]) for depth in (3, 1, 2)]
    cost, events = drained(
        measure_drafts(target, Eagle2, tiny_drafter("eagle2", target), Profile("eagle2", "", 1, shapes))
    )
    deep, shallow, between = cost.draft_ms
    assert between == pytest.approx((deep + shallow) / 2)
    assert len(events) == 2


def test_auto_becomes_the_fastest_tree_that_keeps_to_the_given_numbers(models: LoadedModels, source: str) -> None:
    free = Eagle2Settings(AUTO, AUTO, AUTO)  # type: ignore[arg-type]
    assert has_auto(free) and not has_auto(Eagle2Settings())
    (settings, chosen), _ = drained(settle(free, models, Eagle2, source))
    assert settings == Eagle2Settings(3, 2, 2) and chosen.tau == 9.0
    (settings, _), events = drained(settle(Eagle2Settings(AUTO, 1, 2), models, Eagle2, source))  # type: ignore[arg-type]
    assert settings.depth == 1 and settings.total_tokens in (2, 3)
    assert events == []  # measured once
    with pytest.raises(SettingError, match=r"depth 5, top_k 2; it knows depth 1, 2; top_k 2"):
        drained(settle(Eagle2Settings(AUTO, 5, 2), models, Eagle2, source))  # type: ignore[arg-type]


def test_auto_needs_a_profile_of_its_own_method(models: LoadedModels, source: str) -> None:
    with pytest.raises(SettingError, match="has none for eagle2"):
        drained(predictions(models, Eagle2, str(FOLDER / "eagle_bias")))
    Path(source, PROFILE_FILE).write_text(profile_text(Profile("medusa", "text", 1, PROFILE.shapes)))
    with pytest.raises(SettingError, match="has none for eagle2"):
        drained(predictions(models, Eagle2, source))


def test_a_report_leaves_out_what_has_no_profile(source: str) -> None:
    request = RunRequest("eagle2", target=str(FOLDER / "base_a"), drafter=source)
    report, _ = drained(report_costs(request, ["eagle2", "eagle1"], ModelStore()))
    assert list(report.methods) == ["EAGLE-2"]
    assert [item.num_rows for item in report.methods["EAGLE-2"]] == [2, 3]
    assert report.cost.verify_at(1) > 0
