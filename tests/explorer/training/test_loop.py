"""The loop: loss goes down, a killed run continues identically, the best weights win, patience ends it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from explorer.errors import SettingError
from explorer.training.dataset import Batch, FeatureSet
from explorer.training.loop import LoopOptions, train
from tests.support.training import tiny_features

OPTIONS = LoopOptions(
    epochs=3, batch_tokens=128, learning_rate=3e-2, warmup_steps=2, save_every=4, evaluate_every=5, patience=99
)


@dataclass(frozen=True)
class ToyOptions:
    size: int = 32


class Toy:
    """Predicts the next feature linearly, with noise from the generator; can die at a step."""

    def __init__(self, die_at: int | None = None, scores: list[float] | None = None) -> None:
        torch.manual_seed(0)
        self.options = ToyOptions()
        self.network = torch.nn.Linear(32, 32)
        self.die_at = die_at
        self.calls = 0
        self.scores = scores
        self.ask_at: int | None = None

    def loss(self, batch: Batch, generator: torch.Generator, progress: float) -> torch.Tensor:
        assert 0 <= progress < 1
        if self.calls == self.die_at:
            raise KeyboardInterrupt
        if self.calls == self.ask_at:
            os.kill(os.getpid(), signal.SIGTERM)
        self.calls += 1
        noisy = batch.features + 0.01 * torch.rand(batch.features.shape, generator=generator)
        return (self.network(noisy[:, :-1]) - batch.features[:, 1:]).square().mean()

    def evaluate(self) -> dict[str, float]:
        return {"score": self.scores.pop(0) if self.scores else float(self.calls)}


@pytest.fixture
def data(tmp_path: Path) -> FeatureSet:
    return tiny_features(tmp_path / "features")


def test_an_asked_for_end_saves_the_batch_under_way(data: FeatureSet, tmp_path: Path) -> None:
    whole, cut = Toy(), Toy()
    train(whole, data, OPTIONS, tmp_path / "whole")
    cut.ask_at = 6  # between two checkpoints
    with pytest.raises(KeyboardInterrupt):
        train(cut, data, OPTIONS, tmp_path / "cut")
    assert torch.load(tmp_path / "cut" / "last.pt", weights_only=True)["progress"]["step"] == 7
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    resumed = Toy()
    train(resumed, data, OPTIONS, tmp_path / "cut")
    assert torch.equal(resumed.network.weight, whole.network.weight)


def test_the_loss_goes_down_and_is_recorded(data: FeatureSet, tmp_path: Path) -> None:
    state = train(Toy(), data, OPTIONS, tmp_path / "run")
    losses = [row["loss"] for row in state.history]
    assert losses[-1] < 0.8 * losses[0]
    assert state.step == state.history[-1]["step"]


def test_a_killed_run_continues_identically(data: FeatureSet, tmp_path: Path) -> None:
    whole, cut, resumed = Toy(), Toy(die_at=11), Toy()
    expected = train(whole, data, OPTIONS, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(cut, data, OPTIONS, tmp_path / "cut")
    state = train(resumed, data, OPTIONS, tmp_path / "cut")
    assert resumed.calls == state.step - 8  # the last checkpoint before step 11
    assert torch.equal(resumed.network.weight, whole.network.weight)
    assert [row["loss"] for row in state.history] == [row["loss"] for row in expected.history]


def test_a_finished_run_is_not_run_again(data: FeatureSet, tmp_path: Path) -> None:
    first = Toy()
    train(first, data, OPTIONS, tmp_path / "run")
    second = Toy(die_at=0)
    train(second, data, OPTIONS, tmp_path / "run")
    assert torch.equal(first.network.weight, second.network.weight)


def test_a_run_with_other_settings_is_not_continued(data: FeatureSet, tmp_path: Path) -> None:
    train(Toy(), data, OPTIONS, tmp_path / "run")
    with pytest.raises(SettingError, match="other settings"):
        train(Toy(), data, replace(OPTIONS, learning_rate=1e-3), tmp_path / "run")


def test_early_stop_returns_the_best_weights(data: FeatureSet, tmp_path: Path) -> None:
    toy = Toy(scores=[1.0, 3.0, 2.0, 2.0, 9.0])
    state = train(toy, data, replace(OPTIONS, evaluate_every=1, patience=2, save_every=1), tmp_path / "run")
    assert (state.step, state.best_score) == (4, 3.0)
    best = torch.load(tmp_path / "run" / "best.pt", weights_only=True)["network"]
    assert torch.equal(toy.network.weight, best["weight"])
    last = torch.load(tmp_path / "run" / "last.pt", weights_only=True)["network"]
    assert not torch.equal(last["weight"], best["weight"])


def test_a_share_of_the_learning_rate_is_for_the_parameters_it_names(data: FeatureSet, tmp_path: Path) -> None:
    """A hundredth of the rate moves the bias a hundredth as far: Adam's first steps do not know the gradient's size."""
    before, moved = Toy().network.state_dict(), []
    for name, shares in (("plain", None), ("slow", {"bias": 0.01})):
        toy = Toy()
        train(toy, data, replace(OPTIONS, epochs=1, batch_tokens=4096, evaluate_every=1), tmp_path / name, shares)
        after = toy.network.state_dict()
        moved.append({key: float((after[key] - before[key]).abs().mean()) for key in before})
    plain, slow = moved
    assert slow["bias"] == pytest.approx(plain["bias"] / 100, rel=0.05)
    assert slow["weight"] == pytest.approx(plain["weight"], rel=1e-3)
