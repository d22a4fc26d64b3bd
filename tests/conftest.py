"""What every test shares: a quiet, offline, bounded environment, and skips with a reason for what is absent here."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before any test imports torch, gradio or huggingface_hub.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
if "PYTEST_XDIST_WORKER_COUNT" in os.environ:  # side by side, two teams of threads on the same cores slow each other
    share = (os.cpu_count() or 1) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, share)))
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("GRADIO_RUN_HISTORY", "False")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

settings.register_profile(
    "project", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("project")

# Files of tests that take longest, longest first. The workers of a whole run take the files in this order and then in
# that of their names, so that none is left with a long one when the others are done.
LONGEST_FIRST = (
    "explorer/test_default_target.py",
    "browser/test_lessons.py",
    "browser/test_app.py",
    "faults/test_crowd.py",
    "explorer/methods/test_eagle2.py",
    "explorer/test_sampled_methods.py",
    "faults/test_trace_files.py",
    "explorer/test_backends.py",
    "browser/test_race_page.py",
    "browser/test_takeaway.py",
    "browser/test_viewer_moments.py",
    "explorer/test_main.py",
    "structure/test_free_imports.py",
    "kernels/tree_attention/test_triton.py",
    "kernels/tree_attention/test_triton_parts.py",
    "kernels/tree_attention/test_agreement.py",
    "kernels/test_dispatch.py",
    "faults/test_training.py",
    "explorer/service/test_zero_gpu.py",
    "explorer/test_bitwise.py",
)
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """Path of a Chromium: ``$CHROMIUM``, one on PATH, or the one Playwright installed."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    on_path = next((path for path in map(shutil.which, CHROMIUM_NAMES) if path), None)
    if on_path:
        return on_path
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The Chromium that tests marked ``browser`` drive."""
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium on this machine; set CHROMIUM to its path")
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first; skip, with the reason, tests whose target or browser is not on this machine."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    if any(item.get_closest_marker("default_target") for item in items):
        _skip_marked(items, "default_target", _why_no_target())
    if any(item.get_closest_marker("browser") for item in items):
        why = None if find_chromium() else "no Chromium on this machine; set CHROMIUM to its path"
        _skip_marked(items, "browser", why)


def _why_no_target() -> str | None:
    from explorer.checkpoints import smollm2

    return None if smollm2.is_fetched() else "the default target is not here; run: python -m explorer fetch"


def _skip_marked(items: list[pytest.Item], marker: str, why: str | None) -> None:
    if why is None:
        return
    for item in items:
        if item.get_closest_marker(marker):
            item.add_marker(pytest.mark.skip(reason=why))
