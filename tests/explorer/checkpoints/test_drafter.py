"""What is counted, cast and named when a drafter is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from explorer.checkpoints import drafter
from explorer.checkpoints.drafter import describe, fill, name_of, require_floats
from explorer.checkpoints.files import Report
from explorer.errors import CheckpointError
from tests.support.checkpoints import Facts


class Small(nn.Module):
    """A weight, an id map, and a derived table that is in no file."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("ids", torch.zeros(5, dtype=torch.int64))
        self.register_buffer("table", torch.tensor([1 / 3]), persistent=False)


def test_only_weights_are_cast() -> None:
    module = fill(Small(), {**Small().state_dict(), "ids": torch.arange(5)}, Facts(dtype=torch.bfloat16))
    assert isinstance(module, Small)
    assert module.linear.weight.dtype == torch.bfloat16
    assert module.ids.tolist() == [0, 1, 2, 3, 4]
    assert module.table.dtype == torch.float32
    assert not module.training
    assert not any(parameter.requires_grad for parameter in module.parameters())


def test_weights_must_be_dense_floating_point() -> None:
    report = Report("drafter")
    require_floats(report, {"good": torch.ones(2, 2), "ids": torch.ones(2).long(), "odd": torch.ones(2, 2).to_sparse()})
    with pytest.raises(CheckpointError, match=r"ids is int64.*odd is a sparse_coo tensor") as caught:
        report.raise_if_any()
    assert "good" not in str(caught.value)


def test_size_is_that_of_the_own_parameters() -> None:
    record = describe("owner/name", Small().half())
    assert (record.name, record.num_parameters, record.num_bytes) == ("owner/name", 15, 30)


def test_names(tmp_path: Path) -> None:
    assert name_of(f"{tmp_path}/") == tmp_path.name
    assert name_of("owner/name") == "owner/name"


def test_a_shipped_drafter_is_named_with_its_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafter, "repo_path", lambda *parts: tmp_path.joinpath(*parts))
    folder = tmp_path / "assets" / "drafters" / "some-target" / "medusa"
    folder.mkdir(parents=True)
    assert name_of(str(folder)) == "some-target/medusa"
