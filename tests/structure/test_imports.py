"""Imports point one way: a module may import its own level and lower ones, and only the libraries its folder is for."""

from __future__ import annotations

import sys

import networkx as nx
import pytest

from tests.structure.source import imports, modules

VIEWS, EXPORT = "views", "export"  # side branches: beside L1..L6, read only by L7 (and views.layout by export)
# The longest matching prefix decides. A new module must be named here, or stand in a folder that is.
LEVELS: dict[str, int | str] = {
    "explorer.errors": 0,
    "explorer.codec": 0,
    "explorer.config": 0,
    "explorer.presets": 0,
    "explorer.target_presets": 0,
    "explorer.trace": 0,
    "explorer.trace_check": 0,
    "explorer.trace_files": 0,
    "explorer.metrics": 0,
    "explorer.mask_words": 0,
    "explorer.insight": 0,
    "explorer.kernel_words": 0,
    "explorer.prediction": 0,
    "explorer.projections": 0,
    "explorer.cost_words": 0,
    "explorer.rules": 0,
    "explorer.adapter_words": 0,
    "explorer.questions": 0,
    "explorer.measurement": 0,
    "explorer.shards": 0,
    "explorer.client_report": 0,
    "explorer.served_stats": 0,
    "explorer.event_stream": 0,
    "explorer.server_figures": 0,
    "explorer.server_commands": 0,
    "explorer.bench_report": 0,
    "explorer.bench_words": 0,
    "explorer.bench_markdown": 0,
    "explorer.bench_compare": 0,
    "explorer.markdown": 0,
    "explorer.token_classes": 0,
    "explorer.spots": 0,
    "explorer.advice": 0,
    "explorer.diagnose": 0,
    "explorer.diagnose_words": 0,
    "explorer.diagnose_markdown": 0,
    "explorer.tables": 0,
    "explorer.tallies": 0,
    "explorer.calibration": 0,
    "explorer.compare": 0,
    "explorer.counterfactual": 0,
    "explorer.drafting": 0,
    "explorer.fallback": 0,
    "explorer.lab_findings": 0,
    "explorer.lab_records": 0,
    "explorer.lab_words": 0,
    "explorer.lessons": 0,
    "explorer.microsteps": 0,
    "explorer.misses": 0,
    "explorer.moments": 0,
    "explorer.panels": 0,
    "explorer.plain_steps": 0,
    "explorer.quiz": 0,
    "explorer.race": 0,
    "explorer.side_by_side": 0,
    "explorer.theory": 0,
    "explorer.static_tree": 0,
    "explorer.timeline": 0,
    "explorer.trace_diff": 0,
    "explorer.walk": 0,
    "explorer.clock": 1,  # methods time their own passes
    "explorer.tree": 1,
    "explorer.sampling": 1,
    "explorer.verify": 1,
    "explorer.devices": 1,
    "explorer.endpoints": 1,
    "explorer.client_bench": 1,
    "explorer.server_metrics": 1,
    "explorer.models": 2,
    "explorer.checkpoints": 2,
    "explorer.target": 3,
    "explorer.bitwise": 3,
    "explorer.graphed": 3,
    "explorer.methods": 4,
    "explorer.engine": 5,
    "explorer.record": 5,
    "explorer.text": 5,
    "explorer.store": 6,
    "explorer.loading": 6,
    "explorer.drafter_check": 6,
    "explorer.target_fetch": 6,
    "explorer.runner": 6,
    "explorer.runner_events": 6,
    "explorer.run_setup": 6,
    "explorer.run_trace": 6,
    "explorer.device_queue": 6,
    "explorer.bench": 6,
    "explorer.peers": 6,
    "explorer.cost": 6,
    "explorer.kernel_cost": 6,
    "explorer.laboratory": 6,
    "explorer.training": 6,
    "explorer.views": VIEWS,
    "explorer.export": EXPORT,
    "explorer.takeaway": 7,
    "explorer.service": 7,
    "explorer.ui": 7,
    "explorer.cli": 7,
    "explorer.__main__": 7,
    "app": 7,
    "kernels": "kernels",
}
PACKAGE_ONLY = {"explorer"}  # a docstring: below everything

# Library -> where it may be imported. A library not named here may be imported from level 1 up.
ALLOWED_IN: dict[str, tuple[str, ...]] = {
    "gradio": ("explorer.ui", "app"),
    "plotly": ("explorer.views",),
    "transformers": (
        "explorer.checkpoints",
        "explorer.models",
        "explorer.text",
        "explorer.training",
        "explorer.bench",
    ),
    "playwright": ("explorer.export.png",),
    "triton": ("kernels",),
}
SIDE_LIBRARIES = {VIEWS: {"networkx", "plotly"}, EXPORT: {"networkx", "playwright"}, "kernels": {"torch", "triton"}}


def level_of(name: str) -> int | str:
    """The level of a module; a module without one is an error that says what to do."""
    prefixes = [prefix for prefix in LEVELS if name == prefix or name.startswith(prefix + ".")]
    assert prefixes, f"{name} has no level: give it one in {__name__}.LEVELS"
    return LEVELS[max(prefixes, key=len)]


def may_import(importer: str, imported: str) -> bool:
    """Whether the arrow from one of our modules to another points the allowed way."""
    low, high = level_of(imported), level_of(importer)
    if low == "kernels" or high == "kernels":
        return low == high or high in (1, 2, 3, 4, 5, 6, 7)
    if high == EXPORT:
        return low in (0, EXPORT) or imported == "explorer.views.layout"
    if high == VIEWS:
        return low in (0, VIEWS)
    if low in (VIEWS, EXPORT):
        return high == 7
    return int(low) <= int(high)


def library_is_allowed(name: str, library: str) -> bool:
    """Whether one of our modules may import this top-level library."""
    if library in sys.stdlib_module_names:
        return True
    places = ALLOWED_IN.get(library)
    if places is not None and not any(name == place or name.startswith(place + ".") for place in places):
        return False
    level = level_of(name)
    return level != 0 if isinstance(level, int) else library in SIDE_LIBRARIES[level]


def is_ours(name: str) -> bool:
    return name.split(".")[0] in ("explorer", "kernels", "app")


@pytest.mark.parametrize("name", [name for name in modules() if name not in PACKAGE_ONLY])
def test_imports_point_one_way(name: str) -> None:
    ours = {imported for imported in imports(name) if is_ours(imported) and imported not in PACKAGE_ONLY}
    unknown = ours - modules().keys()
    assert not unknown, f"{name} imports {sorted(unknown)}, which does not exist"
    wrong = sorted(imported for imported in ours if not may_import(name, imported))
    assert not wrong, f"{name} (level {level_of(name)}) may not import {wrong}"


@pytest.mark.parametrize("name", [name for name in modules() if name not in PACKAGE_ONLY])
def test_each_library_stays_in_its_place(name: str) -> None:
    libraries = {imported.split(".")[0] for imported in imports(name) if not is_ours(imported)}
    wrong = sorted(library for library in libraries if not library_is_allowed(name, library))
    assert not wrong, f"{name} (level {level_of(name)}) may not import {wrong}"


def test_no_module_imports_itself_in_a_circle() -> None:
    arrows = nx.DiGraph()
    for name in modules():
        arrows.add_edges_from((name, imported) for imported in imports(name, at_run_time=True) if is_ours(imported))
    assert [sorted(circle) for circle in nx.strongly_connected_components(arrows) if len(circle) > 1] == []


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("explorer.engine", "explorer.methods.base", True),
        ("explorer.methods.base", "explorer.engine", False),
        ("explorer.models.attention", "kernels.dispatch", True),
        ("kernels.dispatch", "explorer.tree", False),
        ("explorer.trace", "kernels.dispatch", False),
        ("explorer.views.viewer", "explorer.insight", True),
        ("explorer.views.viewer", "explorer.tree", False),
        ("explorer.views.viewer", "explorer.export.html", False),
        ("explorer.export.html", "explorer.views.layout", True),
        ("explorer.export.html", "explorer.views.theme", False),
        ("explorer.runner", "explorer.views.viewer", False),
        ("explorer.ui.app", "explorer.views.viewer", True),
        ("explorer.insight", "explorer.views.layout", False),
    ],
)
def test_the_table_itself(importer: str, imported: str, allowed: bool) -> None:
    assert may_import(importer, imported) is allowed


@pytest.mark.parametrize(
    ("name", "library", "allowed"),
    [
        ("explorer.trace", "torch", False),
        ("explorer.trace", "json", True),
        ("explorer.views.charts", "plotly", True),
        ("explorer.views.charts", "torch", False),
        ("explorer.ui.app", "plotly", False),
        ("explorer.ui.app", "gradio", True),
        ("explorer.cli.serve", "gradio", False),
        ("explorer.export.png", "playwright", True),
        ("explorer.export.html", "playwright", False),
        ("explorer.engine", "transformers", False),
        ("explorer.text", "transformers", True),
        ("kernels.dispatch", "numpy", False),
    ],
)
def test_the_library_table_itself(name: str, library: str, allowed: bool) -> None:
    assert library_is_allowed(name, library) is allowed
