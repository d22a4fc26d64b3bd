"""Choosing a backend: automatic choices exist, explicit ones never fall back silently."""

from __future__ import annotations

import pytest

from kernels.dispatch import BackendUnavailableError, pick, resolve
from kernels.tree_attention.naive import tree_attention


def test_auto_takes_what_exists() -> None:
    assert resolve("tree_attention", "auto") == "naive"
    assert pick("tree_attention", "auto") is tree_attention


@pytest.mark.parametrize("backend", ["triton", "cuda", ""])
def test_an_explicit_choice_that_is_missing_is_an_error(backend: str) -> None:
    with pytest.raises(BackendUnavailableError, match="choose"):
        pick("tree_attention", backend)
