"""A page without a model: a Context over a fake runner and a folder of synthetic recordings."""

from __future__ import annotations

import json
from pathlib import Path

from explorer.config import TargetPreset
from explorer.trace import write_trace
from explorer.ui.context import Context, RunsRequests
from explorer.ui.controls import COMMON, SAMPLING, method_forms
from explorer.ui.options import AppOptions
from explorer.ui.store import Library, TraceStore
from tests.support.fake_runner import FakeRunner
from tests.support.traces import make_trace

TINY = TargetPreset(
    "tiny",
    "Tiny target",
    "/nowhere/tiny",
    drafters={"eagle2": "/nowhere/eagle"},
    settings={"small": {"eagle2": {"total_tokens": 8, "depth": 2, "top_k": 2}}},
    default_preset={"cpu": "small"},
)
LARGE = TargetPreset("large", "Large target", "someone/large", drafters={"eagle2": "someone/eagle", "medusa": "a/b"})
RECORDINGS = (("eagle2-code", "Code · EAGLE-2", "eagle2", 12), ("medusa-chat", "Chat · Medusa", "medusa", 5))


def make_recordings(folder: Path, recordings: tuple[tuple[str, str, str, int], ...] = RECORDINGS) -> Path:
    """Synthetic recordings (name, title, method, steps) with their manifest, written into ``folder``."""
    entries = []
    for name, title, method, steps in recordings:
        trace = make_trace(method, steps, 60 if steps >= 40 else 16)
        write_trace(trace, folder / f"{name}.json.gz")
        entry = {"file": f"{name}.json.gz", "title": title, "method": method, "target": trace.target.name}
        entries.append(entry | {"device": "a made-up CPU", "date": "2026-01-02", "prompt": "p", "drafter": "d"})
    (folder / "manifest.json").write_text(json.dumps(entries), encoding="utf-8")
    return folder


def make_context(folder: Path, runner: RunsRequests | None = None) -> Context:
    """A page's context over ``folder``'s recordings."""
    options = AppOptions((TINY, LARGE), traces_dir=folder, max_new_tokens=64, max_prompt_chars=500, max_kept_runs=3)
    store = TraceStore(Library(folder), options.max_kept_runs)
    return Context(options, runner or FakeRunner(make_trace("eagle2", 6, 12)), store, method_forms())


def form_values(context: Context, **changes: object) -> tuple[object, ...]:
    """What the form would send: a small EAGLE-2 run, with some values changed by name."""
    values: dict[str, object] = dict.fromkeys(COMMON)
    values |= {"prompt": "Say hello.", "method": "eagle2", "target": "tiny", "system": "", "max_new_tokens": 32}
    values |= {f"sampling.{item.name}": item.default for item in SAMPLING}
    values |= {item.name: item.setting.default for item in context.fields}
    return tuple((values | changes).values())
