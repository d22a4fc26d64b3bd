"""The app as an operator starts it: a process of its own on golden models, on a free port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from types import TracebackType
from typing import Any

import httpx
import psutil

from tests.structure.source import ROOT
from tests.support.goldens import FOLDER

TARGET = "base_a"
START_SECONDS = 240


class Served:
    """A context manager: ``python app.py`` over the golden target and its EAGLE drafter; ends it whatever happens."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process

    def __enter__(self) -> Served:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        drafter = f"{TARGET}:eagle2={FOLDER / 'eagle_bias'}"
        command = [sys.executable, "app.py", "--port", str(port), "--targets", str(FOLDER / TARGET)]
        command += ["--drafter", drafter, *self._arguments]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=self._log, stderr=self._log, env=environment)
        self._wait_until_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()

    def health(self) -> dict[str, Any]:
        """The server's health report."""
        return dict(httpx.get(f"{self.url}/healthz", timeout=60).json())

    def metrics(self) -> str:
        """The metrics page."""
        return httpx.get(f"{self.url}/metrics", timeout=60).text

    def log(self) -> str:
        """Everything that it printed so far."""
        self._log.flush()
        self._log.seek(0)
        return self._log.read()

    def memory(self) -> int:
        """Resident bytes."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def end(self, number: int = signal.SIGTERM, within_s: float = 60) -> tuple[int, float]:
        """Send a signal; (exit code, seconds it took)."""
        began = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(within_s), time.monotonic() - began

    def wait_until_idle(self, within_s: float) -> float:
        """Seconds until no run has the device or waits for it."""
        began = time.monotonic()
        while (device := self.health()["device"])["is_busy"] or device["num_waiting"]:
            assert time.monotonic() - began < within_s, device
            time.sleep(0.05)
        return time.monotonic() - began

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + START_SECONDS
        while True:
            assert self.process.poll() is None and time.monotonic() < end, self.log()
            try:
                if self.health()["status"] == "ok":
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.2)
