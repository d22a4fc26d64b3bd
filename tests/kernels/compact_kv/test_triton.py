"""The Triton move: its results in the interpreter, and that it loads a whole chunk before it stores any of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.interpreter import assert_checks_pass, compile_for


def test_its_results_in_the_interpreter() -> None:
    assert_checks_pass(Path(__file__).with_name("interpreted_triton.py"))


def test_a_barrier_stands_between_loads_and_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter runs a program as one; on a GPU a warp that is ahead must not overwrite what another reads."""
    pytest.importorskip("triton", reason="Triton is for Linux")
    from kernels.compact_kv.triton import move_rows

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    signature = {"storage": "*fp16", "rows": "*i64"} | dict.fromkeys(("num_rows", "length", "plane_size"), "i32")
    signature["SHAPE"] = "constexpr"
    compiled = compile_for((9, 0), move_rows, signature, constexprs={(5,): (128, 128, 16)})
    found = re.findall(r"ld\.global|st\.global|bar\.sync", compiled.asm["ptx"])
    order = [word for word, before in zip(found, ["", *found], strict=False) if word != before]
    assert order[-4:] == ["ld.global", "bar.sync", "st.global", "bar.sync"]
