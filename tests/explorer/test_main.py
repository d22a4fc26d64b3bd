"""The command line as a process: exit codes, one line for a mistake, no torch where none is needed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from explorer import __main__ as command_line
from explorer.cli import show
from explorer.config import repo_path
from explorer.errors import CheckpointError
from explorer.trace import write_trace
from tests.support.traces import make_trace


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "explorer", *map(str, arguments)],
        cwd=repo_path(),
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


@pytest.fixture
def trace_file(tmp_path):
    write_trace(make_trace(steps=30), tmp_path / "t.json")
    return tmp_path / "t.json"


WITHOUT_TORCH = """
import sys
from explorer.__main__ import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
heavy = {"torch", "transformers", "gradio", "plotly"} & set(sys.modules)
assert not heavy, heavy
sys.exit(code)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["trace", "--help"],
        ["show", "FILE"],
        ["show", "FILE", "--step", "2"],
        ["export", "FILE", "--to", "html,perfetto,stats,svg,graphml", "--out", "FOLDER"],
    ],
)
def test_help_show_and_export_need_no_torch(arguments, trace_file, tmp_path):
    places = {"FILE": str(trace_file), "FOLDER": str(tmp_path / "out")}
    arguments = [places.get(argument, argument) for argument in arguments]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *arguments], cwd=repo_path(), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_help_names_every_command():
    text = run("--help").stdout
    lines = [line.split() for line in text.splitlines() if line.startswith("    ")]
    assert {line[0] for line in lines} >= set(command_line.COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "COMMAND"),
        (["dance"], "dance"),
        (["show", "/nowhere.json"], "No such file"),
        (["export", "/nowhere.json", "--to", "svg", "--out", "x.svg"], "No such file"),
        (["trace", "--method", "magic", "--prompt", "x", "--out", "t.json"], "autoregressive"),
        (["trace", "--method", "eagle2", "--out", "t.json"], "--prompt"),
        (["trace", "--method", "eagle2", "--prompt", "x", "--out", "t.txt"], ".json.gz"),
        (["trace", "--method", "eagle2", "--prompt", "x", "--top-p", "7", "--out", "t.json"], "top_p"),
        (["trace", "--method", "eagle2", "--prompt", "x", "--out", "/proc/nowhere/t.json"], "cannot be written"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments, says, tmp_path):
    done = run(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and says in done.stderr and "Traceback" not in done.stderr


def test_errors_are_folded_to_one_line(monkeypatch, capsys):
    def fail(_):
        raise CheckpointError("several things:\n  - one\n  - two \ud800")

    monkeypatch.setattr(show, "run", fail)
    assert command_line.main(["show", "x"]) == 2
    assert capsys.readouterr().err.splitlines() == ["several things: - one - two \\ud800"]


def test_ctrl_c_is_130(monkeypatch, capsys):
    def fail(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(show, "run", fail)
    assert command_line.main(["show", "x"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def show_into(output, trace_file):
    """``show`` with its standard output going to a descriptor or file."""
    command = [sys.executable, "-m", "explorer", "show", str(trace_file)]
    return subprocess.run(command, cwd=repo_path(), stdout=output, stderr=subprocess.PIPE, text=True, timeout=120)


def test_a_broken_pipe_is_quiet(trace_file):
    reader, writer = os.pipe()
    os.close(reader)
    done = show_into(writer, trace_file)
    os.close(writer)
    assert done.returncode in (0, 1) and done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_behind_the_output_is_one_line(trace_file):
    with open("/dev/full", "w") as full:
        done = show_into(full, trace_file)
    assert done.returncode == 2
    assert done.stderr.startswith("the output cannot be written") and done.stderr.count("\n") == 1


def test_a_narrow_encoding_ends_nothing(trace_file):
    done = run("show", trace_file, env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc to know when torch is loaded")
def test_ctrl_c_while_it_runs_leaves_nothing(tmp_path):
    options = (
        "trace --method autoregressive --prompt x --ignore-stop --max-new-tokens 900 --target tests/goldens/base_a"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "explorer", *options.split(), "--out", str(tmp_path / "t.json")],
        cwd=repo_path(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    maps = Path(f"/proc/{process.pid}/maps")
    while "libtorch" not in maps.read_text() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert list(tmp_path.iterdir()) == []
