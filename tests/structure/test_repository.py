"""What the repository may hold: its size, its pins, and nothing that ties it to one machine or one package index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.structure.source import ROOT, tracked_files

MEGABYTE = 10**6
# A drafter is a file of at most 9 MB of 8-bit integers; the default target has heads, a layer and a draft model.
MAX_REPOSITORY, MAX_FILE, MAX_DRAFTERS = 36 * MEGABYTE, 9 * MEGABYTE, 24 * MEGABYTE
TOP_LEVEL = {
    "LICENSE", "README.md", "app.py", "assets", "explorer", "kernels", "requirements.txt", "tests",
}  # fmt: skip
# Put together here so that this file does not hold them itself.
HOSTS = (
    "py" + "pi.org",
    "python" + "hosted.org",
    "download." + "pytorch.org",
    "npm" + "js.org",
    "conda" + ".anaconda.org",
)
PIN = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)>=(?P<low>[\d.]+),<(?P<high>[\d.]+)(; .+)?$")


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    files = tracked_files()
    if not files:
        pytest.skip("not a git checkout")
    return files


def pins(path: str) -> dict[str, tuple[str, str]]:
    """Package -> (lowest version, first version that is too new), of a requirements file."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    wanted = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    loose = [line for line in wanted if not PIN.match(line)]
    assert not loose, f"{path}: give each a lower and an upper bound: {loose}"
    return {found["name"]: (found["low"], found["high"]) for line in wanted if (found := PIN.match(line))}


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def test_the_repository_stays_small(tracked: list[Path]) -> None:
    assert sum(path.stat().st_size for path in tracked) < MAX_REPOSITORY


def test_no_file_is_large(tracked: list[Path]) -> None:
    assert [str(path.relative_to(ROOT)) for path in tracked if path.stat().st_size > MAX_FILE] == []


def test_drafters_stay_under_their_budget() -> None:
    sizes = [path.stat().st_size for path in ROOT.glob("assets/drafters/**/*") if path.is_file()]
    assert sum(sizes) <= MAX_DRAFTERS


def test_the_top_level_is_fixed(tracked: list[Path]) -> None:
    names = {path.relative_to(ROOT).parts[0] for path in tracked}
    assert {name for name in names if not name.startswith(".")} - TOP_LEVEL == set()


@pytest.mark.parametrize("path", ["requirements.txt", "tests/requirements.txt"])
def test_every_requirement_has_both_bounds(path: str) -> None:
    for name, (low, high) in pins(path).items():
        assert version(low) < version(high), name


def test_the_pins_that_have_reasons() -> None:
    running = pins("requirements.txt")
    # Below 6.31 server functions and file serving had holes; 7 may change what gr.HTML does.
    assert version(running["gradio"][0]) >= (6, 31)
    assert version(running["gradio"][1]) <= (7,)
    # Gradio 6 bundles plotly.js 3.3, which is what plotly 6.5 writes for.
    assert version(running["plotly"][1]) <= (6, 6)
    # A package of this name would hide our kernels/.
    assert "kernels" not in running


def test_the_checkers_are_held_to_one_minor_version() -> None:
    checking = pins("tests/requirements.txt")
    for name in ("ruff", "mypy"):
        low, high = (version(text) for text in checking[name])
        assert high[:2] == (low[0], low[1] + 1), name


def test_nothing_names_a_package_index_or_one_machine(tracked: list[Path]) -> None:
    machine_path = re.compile(r"(?<![\w./-])/(work|tmp/quick)/\w")
    for path in tracked:
        if path.suffix in (".gz", ".png", ".safetensors", ".bin"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        assert not [host for host in HOSTS if host in text], path
        assert not machine_path.search(text), f"{path}: {machine_path.search(text)}"


def test_licence_is_apache() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_ci_runs_the_one_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "python3 tests/run.py" in script
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
