"""Writers that are killed, and disks that are full: the older file stays as it was, and one line says why."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from explorer.errors import TraceError
from explorer.trace import read_trace, write_trace
from explorer.trace_files import write_atomically
from tests.structure.source import ROOT
from tests.support.traces import make_trace

WRITER = """
import sys
from pathlib import Path
from explorer.trace import read_trace, write_trace
first, second = read_trace(sys.argv[1]), read_trace(sys.argv[2])
print("writing", flush=True)
while True:
    write_trace(first, sys.argv[3])
    write_trace(second, sys.argv[3])
"""
TINY_FILES = 4096  # bytes that a file may have where the disk is "full"


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_killed_writer_leaves_a_whole_trace(tmp_path: Path, name: str) -> None:
    sources = [tmp_path / "a.json", tmp_path / "b.json"]
    for seed, source in enumerate(sources):
        write_trace(make_trace("eagle2", 6, 20, seed=seed), source)
    both = [read_trace(source) for source in sources]
    for delay in (0.0, 0.013, 0.05, 0.11):
        command = [sys.executable, "-c", WRITER, *map(str, sources), str(tmp_path / name)]
        writer = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.2 + delay)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert read_trace(tmp_path / name) in both
    write_trace(both[0], tmp_path / name)
    assert read_trace(tmp_path / name) == both[0]


@pytest.mark.parametrize("arguments", [["--to", "html"], ["--to", "perfetto"], ["--to", "svg"]])
def test_a_full_disk_is_one_line_and_the_old_file_stays(tmp_path: Path, arguments: list[str]) -> None:
    trace, out = tmp_path / "trace.json", tmp_path / "out" / "old"
    write_trace(make_trace("eagle2", 6, 20), trace)
    out.parent.mkdir()
    out.write_text("old")

    def fill_the_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (TINY_FILES, TINY_FILES))

    command = [sys.executable, "-m", "explorer", "export", str(trace), *arguments, "--out", str(out)]
    answer = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120, preexec_fn=fill_the_disk
    )
    assert answer.returncode == 2, answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert "cannot write" in answer.stderr
    assert out.read_text() == "old"
    assert [path.name for path in out.parent.iterdir()] == ["old"], "nothing half-written stays behind"


def test_a_folder_that_refuses_is_a_trace_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(TraceError, match="cannot write"):
        write_atomically(tmp_path / "file" / "trace.json", b"{}")
