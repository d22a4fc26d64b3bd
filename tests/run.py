"""The one command that checks this project: ``python3 tests/run.py``. Standard library only.

It makes ``.venv`` (or uses an active environment that already has what is needed), installs the requirements, brings
Chromium and the default target where it can, then runs ruff, mypy and pytest, and exits with 1 if any of them failed.
``--fast`` leaves out the browser, the default target and slow tests; every other argument goes to pytest.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
REQUIREMENTS = ("-r", "requirements.txt", "-r", "tests/requirements.txt")
PYTHONS = ((3, 10), (3, 12))  # lowest and highest version this project is checked with
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAX_WORKERS = 4  # each holds a default target of its own: about 2 GB
APT_TIMEOUT_S, BROWSER_TIMEOUT_S, FETCH_TIMEOUT_S = 240, 240, 420
ENVIRONMENT = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",  # the default target is no hub download, and a test must not become one
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}


def main(arguments: Sequence[str]) -> int:
    """Prepare, run every check, print one line per check and pytest's own summary last; 0 if all passed."""
    os.chdir(ROOT)
    if sys.version_info < PYTHONS[0]:
        sys.exit(f"Python {PYTHONS[0][0]}.{PYTHONS[0][1]} or newer is needed; this is {sys.version.split()[0]}.")
    if sys.version_info[:2] > PYTHONS[1]:
        print(f"Note: checked with Python 3.10 to 3.12; this is {sys.version.split()[0]}.", flush=True)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else every process compiles torch anew, for some 20 s
    fast = "--fast" in arguments
    passed_on = [argument for argument in arguments if argument != "--fast"]
    started = time.monotonic()
    python = prepare_python()
    if fast:
        passed_on = ["-m", "not browser and not default_target and not slow and not soak", *passed_on]
    else:
        prepare_chromium(python)
        prepare_default_target(python)
    return run_checks(python, passed_on, started)


def heading(title: str) -> float:
    """Print a section heading; returns the time it began, in seconds."""
    print(f"\n=== {title}", flush=True)
    return time.monotonic()


def succeeds(*command: str, timeout_s: float | None = None, quiet: bool = False) -> bool:
    """Run a command in the repository root; False if it fails, is missing, or takes longer than ``timeout_s``."""
    output = subprocess.DEVNULL if quiet else None
    try:
        return subprocess.run(command, timeout=timeout_s, stdout=output, stderr=output, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired) as error:
        if not quiet:
            print(error, flush=True)
        return False


# --- Python and its packages


def prepare_python() -> str:
    """Path of a Python that has every requirement: the active environment's, or that of ``.venv``, installed now."""
    active = os.environ.get("VIRTUAL_ENV")
    candidates = [python_of(Path(active))] if active else []
    if sys.prefix != sys.base_prefix:
        candidates.insert(0, sys.executable)
    for candidate in (*candidates, python_of(VENV)):
        if has_requirements(candidate):
            return candidate
    began = heading("install: .venv and its packages (minutes on a fresh machine)")
    python = make_venv()
    # A bar per download on a terminal; a log gets errors only. Byte code is made when a module is first imported.
    quiet = () if sys.stdout.isatty() else ("-qq",)
    if not succeeds(python, "-m", "pip", "install", "--no-compile", *quiet, *REQUIREMENTS):
        sys.exit("pip could not install the requirements (its reason stands above); the checks need them.")
    print(f"installed in {time.monotonic() - began:.0f} s", flush=True)
    return python


def python_of(venv: Path) -> str:
    """Path of an environment's interpreter."""
    return str(venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def has_requirements(python: str) -> bool:
    """True if this interpreter has a pip that finds every requirement already installed (asks no index)."""
    command = [python, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps", *REQUIREMENTS]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return False
    return answer.returncode == 0 and "Would install" not in answer.stdout


def make_venv() -> str:
    """Make ``.venv`` unless a working one is there; returns its Python."""
    python = python_of(VENV)
    if succeeds(python, "-m", "pip", "--version", quiet=True):
        return python
    made = importlib.util.find_spec("ensurepip") and succeeds(sys.executable, "-m", "venv", "--clear", str(VENV))
    if not made and importlib.util.find_spec("pip"):
        # Debian and Ubuntu ship Python without ensurepip: an empty environment, then this Python's pip fills it.
        made = succeeds(sys.executable, "-m", "venv", "--clear", "--without-pip", str(VENV)) and succeeds(
            sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "pip"
        )
    if not made:
        sys.exit(
            "Could not make .venv: this Python has no working ensurepip. On Debian or Ubuntu: apt install python3-venv"
        )
    return python


# --- What some tests need, brought where this machine allows it


def prepare_chromium(python: str) -> None:
    """Leave the path of a working Chromium in ``$CHROMIUM``, or say that browser tests are skipped."""
    began = heading("chromium")
    path = find_chromium() or install_chromium(python)
    if path:
        os.environ["CHROMIUM"] = path
        print(f"{path} ({time.monotonic() - began:.0f} s)", flush=True)
    else:
        print("no Chromium here and none could be installed: browser tests are skipped", flush=True)


def find_chromium() -> str | None:
    """The first of ``$CHROMIUM`` and the usual names on PATH that really runs (Ubuntu's may be an empty shell)."""
    names = (os.environ.pop("CHROMIUM", ""), *CHROMIUM_NAMES)
    paths = [path for path in map(shutil.which, names) if path]
    return next((path for path in paths if succeeds(path, "--version", timeout_s=30, quiet=True)), None)


def install_chromium(python: str) -> str | None:
    """Bring Chromium by apt (as root), else by Playwright; returns its path, or None."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if is_root and shutil.which("apt-get"):
        os.environ.setdefault("DEBIAN_FRONTEND", "noninteractive")
        install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium")
        for command in (("apt-get", "update", "-qq"), install):
            succeeds(*command, timeout_s=APT_TIMEOUT_S, quiet=True)
        path = find_chromium()
        if path:
            return path
    libraries = ("--with-deps",) if is_root else ()
    succeeds(python, "-m", "playwright", "install", *libraries, "chromium", timeout_s=BROWSER_TIMEOUT_S)
    ask = "from playwright.sync_api import sync_playwright as s\nwith s() as p: print(p.chromium.executable_path)"
    answer = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    path = answer.stdout.strip()
    return path if path and succeeds(path, "--version", timeout_s=30, quiet=True) else None


def prepare_default_target(python: str) -> None:
    """Fetch the default target (nothing to do when it is in the cache), or say that its tests are skipped."""
    began = heading("default target: python -m explorer fetch")
    if succeeds(python, "-m", "explorer", "fetch", timeout_s=FETCH_TIMEOUT_S):
        print(f"ready ({time.monotonic() - began:.0f} s)", flush=True)
    else:
        print("the default target could not be brought here: default_target tests are skipped", flush=True)


# --- The checks


def run_checks(python: str, pytest_arguments: Sequence[str], started: float) -> int:
    """Run every check to its end, whatever the others say; prints results and pytest's last line; 1 if any failed."""
    results: list[str] = []
    failed = False
    for title, command in (
        ("ruff check", ("ruff", "check", ".")),
        ("ruff format", ("ruff", "format", "--check", ".")),
        ("mypy", ("mypy",)),
        ("pytest", ("pytest", *workers(pytest_arguments), *pytest_arguments)),
    ):
        began = heading(" ".join(command))
        passed, summary = stream(python, "-m", *command)
        failed = failed or not passed
        results.append(f"{title}: {'ok' if passed else 'FAILED'} ({time.monotonic() - began:.1f} s)")
    print(f"\n=== {', '.join(results)}; {time.monotonic() - started:.0f} s in all")
    print(summary, flush=True)
    return int(failed)


def workers(pytest_arguments: Sequence[str]) -> tuple[str, ...]:
    """Options that spread the test files over the processors, unless the caller says how many or wants a debugger.

    In their own order, longest first (tests/conftest.py); else pytest-xdist begins with the files of most tests.
    """
    number = min(MAX_WORKERS, os.cpu_count() or 1)
    is_told = any(argument.startswith(("-n", "--numprocesses", "--pdb")) for argument in pytest_arguments)
    return () if number == 1 or is_told else ("-n", str(number), "--dist", "loadfile", "--no-loadscope-reorder")


def stream(*command: str) -> tuple[bool, str]:
    """Run a command and pass its output on as it comes; (whether it succeeded, its last line that is not empty)."""
    tail = b""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        while chunk := os.read(process.stdout.fileno(), 4096):
            sys.stdout.buffer.write(chunk)
            sys.stdout.flush()
            tail = (tail + chunk)[-4096:]
    lines = tail.decode(errors="replace").strip().splitlines()
    return process.returncode == 0, lines[-1] if lines else ""


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
