"""A target over several places decodes as on one; what needs one device says so. Files stand in for a second device."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import accelerate.utils
import pytest
import torch

from explorer.checkpoints.target import load_target
from explorer.errors import DeviceError, ExplorerError
from explorer.loading import check_placement
from explorer.models.cache import CacheShape, TreeCache
from explorer.models.split import SplitCache, split_of
from explorer.runner import Runner
from explorer.runner_events import Finished, RunRequest
from explorer.target import Target
from explorer.trace import Trace
from tests.support.eagle3_files import write_eagle3
from tests.support.goldens import FOLDER
from tests.support.tiny import tiny_model

BASE = str(FOLDER / "base_a")
DRAFTERS = {"medusa": "medusa_a", "eagle2": "eagle_bias", "eagle1": "eagle_bias", "draft_model": "base_a"}


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for everything but decoder layers, and for one or two of these three."""
    whole = load_target(BASE, device="cpu").model
    layer = sum(parameter.numel() for parameter in whole.model.layers[0].parameters()) * 4
    rest = sum(parameter.numel() for parameter in whole.parameters()) * 4 - 3 * layer
    monkeypatch.setattr(accelerate.utils, "get_max_memory", lambda: {"cpu": int((rest + 1.5 * layer) / 0.85)})


def run(method: str, **changes: Any) -> Trace:
    request = RunRequest(method, prompt="Count to nine.", target=BASE, max_new_tokens=16, **changes)
    last = list(Runner().run(request))[-1]
    assert isinstance(last, Finished)
    return last.trace


@pytest.mark.usefixtures("small_memory")
@pytest.mark.parametrize("method", [*DRAFTERS, "prompt_lookup"])
def test_a_split_target_decodes_as_on_one_device(method: str) -> None:
    drafter = str(FOLDER / DRAFTERS[method]) if method in DRAFTERS else None
    split, whole = run(method, drafter=drafter, device="split"), run(method, drafter=drafter, device="cpu")
    assert split.output.token_ids == whole.output.token_ids
    assert split.baseline is not None and split.baseline.output_equal
    assert [len(step.tree) for step in split.steps] == [len(step.tree) for step in whole.steps]
    assert split.target.device_name == f"{whole.target.device_name}, layers on main memory, disk"


@pytest.mark.usefixtures("small_memory")
def test_states_of_layers_elsewhere_reach_the_drafter(tmp_path: Any) -> None:
    drafter = str(write_eagle3(tmp_path / "drafter", layers=[0, 1, 2]))
    split, whole = (run("eagle3", drafter=drafter, device=device) for device in ("split", "cpu"))
    assert split.output.token_ids == whole.output.token_ids
    assert [step.tree.token for step in split.steps] == [step.tree.token for step in whole.steps]


@pytest.mark.usefixtures("small_memory")
def test_what_needs_one_device_is_refused_in_a_sentence() -> None:
    loaded = load_target(BASE, device="split")
    assert (found := split_of(loaded.model)) is not None and found.places == ("main memory", "disk")
    target = Target(loaded.model, loaded.tokenizer, loaded.name, loaded.stop_ids, loaded.backend)
    refused: list[Callable[[], Any]] = [
        lambda: target.start(4, cache="slots"),
        lambda: target.perturbed(0.1),
        lambda: target.batch(2, 3),
    ]
    for attempt in refused:
        with pytest.raises(DeviceError, match="split"):
            attempt()
    request = RunRequest("eagle2", prompt="x", target=BASE, device="split")
    for name, value in {"backend": "triton", "execution": "graphed", "cache": "slots"}.items():
        with pytest.raises(ExplorerError, match=f"{name} {value} is for a target on one device"):
            check_placement(replace(request, **{name: value}))


def test_a_model_that_fits_is_an_ordinary_one() -> None:
    assert split_of(load_target(BASE, device="split").model) is None
    assert split_of(tiny_model()) is None


def test_parts_keep_what_one_cache_keeps() -> None:
    """Two parts on one device, through a few hundred passes with commits and rollbacks."""
    shape = CacheShape(num_layers=3, num_kv_heads=2, head_dim=4)
    here, there = torch.device("cpu"), torch.device("cpu", 0)  # the same memory under two names
    cache, twin = SplitCache(shape, 8, torch.float32, [here, there, here]), TreeCache(shape, 8, torch.float32, here)
    source = random.Random(0)
    for _ in range(200):
        num_rows = source.randint(1, 5)
        cache.reserve(num_rows)
        twin.reserve(num_rows)
        for layer in range(3):
            pair = torch.randn(2, 1, 2, num_rows, 4)
            for mine, other in zip(cache.write(layer, *pair), twin.write(layer, *pair), strict=True):
                assert torch.equal(mine, other)
        rows = sorted(source.sample(range(num_rows), source.randint(1, num_rows)))
        cache.commit(rows)
        twin.commit(rows)
        if source.random() < 0.3:
            length = source.randint(0, cache.length)
            cache.truncate(length)
            twin.truncate(length)
        assert cache.length == twin.length <= cache.capacity
        assert torch.equal(cache.committed(), twin.committed())
