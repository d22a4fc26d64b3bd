"""``python -m explorer record``: re-make the recorded traces that the page shows without a model."""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

from explorer.config import Sampling, repo_path
from explorer.errors import SettingError
from explorer.trace import Trace, write_trace
from explorer.trace_files import write_atomically

HELP = "re-make the recorded traces of assets/traces and their manifest with the default target"
MAX_NEW_TOKENS = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the traces go, and which of them."""
    parser.description = f"{HELP}; what is recorded stands in assets/presets/recordings.json."
    parser.add_argument("--out", type=Path, default=repo_path("assets", "traces"), metavar="DIR", help="folder to fill")
    parser.add_argument("--only", nargs="+", metavar="FILE", help="re-make these only; the others stay as they are")


def run(args: argparse.Namespace) -> int:
    """Record one after another; the manifest is written last, so that it never names a missing file."""
    plan = _plan()
    chosen = set(args.only or (item["file"] for item in plan))
    if unknown := chosen - {item["file"] for item in plan}:
        raise SettingError(f"--only: no recording is called {', '.join(sorted(unknown))}; see recordings.json")
    from explorer.runner import Runner

    runner, entries = Runner(), _old_entries(args.out)
    for item in plan:
        if item["file"] in chosen:
            trace = _record(runner, item)
            write_trace(trace, args.out / item["file"])
            entries[item["file"]] = _entry(item, trace)
            print(f"{item['file']}: {_summary(trace)}", flush=True)
    listed = [entries[item["file"]] for item in plan if item["file"] in entries]
    text = json.dumps(listed, ensure_ascii=False, indent=1) + "\n"
    write_atomically(args.out / "manifest.json", text.encode())
    return 0


def _plan() -> list[dict[str, Any]]:
    """The recordings to make, with the prompts' texts in place of their labels."""
    prompts = {item["label"]: item["text"] for item in _read("prompts.json")}
    return [item | {"prompt": prompts[item["prompt"]]} for item in _read("recordings.json")]


def _read(name: str) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = json.loads(repo_path("assets", "presets", name).read_text(encoding="utf-8"))
    return read


def _old_entries(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / "manifest.json"
    return {entry["file"]: entry for entry in json.loads(path.read_text(encoding="utf-8"))} if path.exists() else {}


def _record(runner: Any, item: dict[str, Any]) -> Trace:
    from explorer.runner_events import Finished, RunRequest

    request = RunRequest(
        method=item["method"],
        prompt=item["prompt"],
        preset=item.get("preset"),
        max_new_tokens=item.get("max_new_tokens", MAX_NEW_TOKENS),
        sampling=Sampling(**item.get("sampling", {})),
    )
    trace = None
    for event in runner.run(request):
        if isinstance(event, Finished):
            trace = event.trace
    assert trace is not None  # a run ends with Finished or raises
    return trace


def _entry(item: dict[str, Any], trace: Trace) -> dict[str, Any]:
    return {
        "file": item["file"],
        "title": item["title"],
        "method": trace.method,
        "prompt": trace.prompt.text,
        "target": trace.target.name,
        "drafter": trace.drafter.name if trace.drafter else None,
        "output_equal": trace.baseline.output_equal if trace.baseline else None,
        "dtype": trace.target.dtype,
        "device": f"{trace.target.device_name} ({trace.target.device})",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }


def _summary(trace: Trace) -> str:
    tau, speedup = trace.stats.mean_acceptance_length, trace.stats.speedup
    equal = "?" if trace.baseline is None else trace.baseline.output_equal
    return f"{len(trace.steps)} steps, tau {tau or 0:.2f}, speedup {speedup or 0:.2f}, equal to autoregressive: {equal}"
