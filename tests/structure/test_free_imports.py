"""Importing any module is free, what must work without torch does, and our ``kernels`` package stays ours."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import subprocess
import sys

import pytest

from tests.structure.source import ROOT, modules
from tests.structure.test_imports import level_of

# Imports every module of argv[1] in one process, after the libraries: what is reported is then the module's own doing.
PROBE = """
import importlib, json, os, socket, sys, threading, warnings
import gradio, plotly.graph_objects, torch, transformers.models.llama.modeling_llama
def refuse(*args, **kwargs):
    raise RuntimeError("reached for the network")
socket.socket.connect = socket.create_connection = refuse
found = {}
for name in json.loads(sys.argv[1]):
    before = dict(os.environ), torch.get_num_threads(), torch.get_default_dtype(), threading.active_count()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        importlib.import_module(name)
    after = dict(os.environ), torch.get_num_threads(), torch.get_default_dtype(), threading.active_count()
    said = [str(one.message) for one in caught if not issubclass(one.category, DeprecationWarning)]
    if said or before != after:
        found[name] = said or "changed the environment, torch's settings or started a thread"
print(json.dumps(found))
"""
# The same without the heavy libraries: an import of one fails at once.
WITHOUT = """
import importlib, json, runpy, sys
for library in ("torch", "transformers", "gradio", "triton", "numpy"):
    sys.modules[library] = None
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
sys.argv = ["explorer", *sys.argv[2:]]
if sys.argv[1:]:
    runpy.run_module("explorer", run_name="__main__")
"""
FREE = [name for name in modules() if name not in ("app", "explorer.__main__")]
LIGHT = [
    name
    for name in FREE
    if name != "explorer"
    and (level_of(name) in (0, "export") or name == "explorer.cli" or name.startswith("explorer.cli."))
]


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)


def test_importing_any_module_is_free() -> None:
    answer = run_python(PROBE, json.dumps(FREE))
    assert answer.returncode == 0, answer.stderr[-2000:]
    assert json.loads(answer.stdout.splitlines()[-1]) == {}


def test_the_light_half_imports_without_torch() -> None:
    answer = run_python(WITHOUT, json.dumps(LIGHT))
    assert answer.returncode == 0, answer.stderr[-2000:]


def test_views_import_without_torch() -> None:
    views = [name for name in FREE if name.startswith("explorer.views")]
    program = (
        f"import importlib, json, sys\nsys.modules['torch'] = None\nfor n in {views!r}: importlib.import_module(n)"
    )
    answer = run_python(program)
    assert answer.returncode == 0, answer.stderr[-2000:]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["trace", "--help"], ["show", "--help"], ["export", "--help"], ["fetch", "--help"]]
)
def test_help_needs_no_torch(arguments: list[str]) -> None:
    answer = run_python(WITHOUT, "[]", *arguments)
    assert answer.returncode == 0, answer.stderr[-2000:]
    assert "usage:" in answer.stdout
    assert answer.stderr == ""


def test_no_distribution_is_named_kernels() -> None:
    names = {(found.metadata["Name"] or "").lower() for found in importlib.metadata.distributions()}
    assert "kernels" not in names, "uninstall the package 'kernels': it hides the project's own kernels/"


def test_kernels_is_ours_and_its_init_is_a_docstring() -> None:
    import kernels

    assert kernels.__file__ == str(ROOT / "kernels" / "__init__.py")
    # transformers looks at kernels.__version__ to decide whether that package is there.
    assert not hasattr(kernels, "__version__")


@pytest.mark.parametrize("name", [name for name, path in modules().items() if path.name == "__init__.py"])
def test_packages_hold_a_docstring_only(name: str) -> None:
    body = ast.parse(modules()[name].read_text(encoding="utf-8")).body
    assert len(body) == 1
    assert isinstance(body[0], ast.Expr)
    assert isinstance(body[0].value, ast.Constant)


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in modules().values()} - {ROOT}
    assert sorted(str(folder) for folder in folders if not (folder / "__init__.py").is_file()) == []
