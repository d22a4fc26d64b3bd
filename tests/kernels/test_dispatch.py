"""Choosing a backend: automatic choices exist, explicit ones never fall back silently."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from kernels import dispatch
from kernels.dispatch import BackendUnavailableError, pick, resolve
from kernels.tree_attention.naive import tree_attention
from tests.structure.source import ROOT

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def capability(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int]]:
    """What a made-up NVIDIA GPU says of itself; nothing else is asked of it."""
    said = {"is": (9, 0)}
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: said["is"])
    monkeypatch.setattr(dispatch, "find_spec", lambda name: name)
    return said


def test_a_cpu_has_the_reference() -> None:
    assert resolve("auto") == resolve("auto", CPU) == resolve("naive", CPU) == "naive"
    assert pick("tree_attention", "auto") is tree_attention


@pytest.mark.parametrize("backend", ["triton", "cuda", ""])
@pytest.mark.parametrize("op", ["tree_attention", "tree_mask", "compact_kv"])
def test_an_explicit_choice_that_is_missing_is_an_error(op: str, backend: str) -> None:
    with pytest.raises(BackendUnavailableError, match="choose"):
        pick(op, backend)


@pytest.mark.parametrize("found", [(8, 0), (8, 9), (9, 0), (12, 0)])
def test_a_gpu_has_both(capability: dict[str, tuple[int, int]], found: tuple[int, int]) -> None:
    capability["is"] = found
    assert resolve("auto", GPU) == resolve("triton", GPU, 256) == "triton"
    assert resolve("naive", GPU) == "naive"


def test_what_a_gpu_lacks_is_said_or_passed_over(capability: dict[str, tuple[int, int]]) -> None:
    assert resolve("auto", GPU, 512) == "naive"
    with pytest.raises(BackendUnavailableError, match="head size 512 is above 256"):
        resolve("triton", GPU, 512)
    capability["is"] = (7, 5)
    assert resolve("auto", GPU) == "naive"
    with pytest.raises(BackendUnavailableError, match=r"compute capability 8\.0, and this GPU has 7\.5"):
        resolve("triton", GPU)


def test_without_triton(capability: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "find_spec", lambda _name: None)
    assert resolve("auto", GPU) == "naive"
    with pytest.raises(BackendUnavailableError, match="not installed"):
        resolve("triton", GPU)


def test_an_amd_gpu_has_the_reference(capability: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    assert resolve("auto", GPU) == "naive"


def test_nothing_of_triton_is_touched_before_it_is_picked() -> None:
    program = (
        "import sys; sys.modules['triton'] = None\n"
        "import kernels.dispatch, explorer.models.attention, explorer.target\n"
        "from kernels.dispatch import pick; pick('tree_attention', 'auto')"
    )
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
