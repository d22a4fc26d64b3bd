"""Triton kernels on a CPU: a file of checks in a process of its own, where Triton interprets what it would compile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.structure.source import ROOT


def assert_checks_pass(file: Path) -> None:
    """Run the tests of a file that is not collected otherwise; the failure shows their own output."""
    pytest.importorskip("triton", reason="Triton is for Linux")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    answer = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert answer.returncode == 0, answer.stdout[-6000:] + answer.stderr[-2000:]
    assert " passed" in answer.stdout or "%]" in answer.stdout, answer.stdout


def compile_for(capability: tuple[int, int], kernel: Any, signature: dict[str, Any], **how: Any) -> Any:
    """A kernel compiled for a GPU that need not be here; skips where Triton brings no NVIDIA assembler.

    signature: types by argument, "constexpr" for those whose values ``how`` gives as ``constexprs``; what else is in
    ``how`` is the source's ``attrs`` and the launch options.
    """
    if not (_tools() / "ptxas").exists():
        pytest.skip("this Triton brings no NVIDIA assembler")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    constants, attrs = how.pop("constexprs"), how.pop("attrs", None)
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attrs)
    target = GPUTarget("cuda", capability[0] * 10 + capability[1], 32)
    return compile(source, target=target, options=how | {"enable_fp_fusion": True})


def spilled_bytes(compiled: Any, folder: Path) -> int:
    """Bytes a thread keeps in memory because its registers are full."""
    binary = folder / "kernel.cubin"
    binary.write_bytes(compiled.asm["cubin"])
    command = [_tools() / "cuobjdump", "-res-usage", binary]
    usage = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return max(map(int, re.findall(r"STACK:(\d+)", usage)))


def _tools() -> Path:
    triton = pytest.importorskip("triton", reason="Triton is for Linux")
    return Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
