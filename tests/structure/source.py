"""The project's files as the structure tests see them: modules, what they import, what git tracks."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def modules() -> dict[str, Path]:
    """Dotted name -> file, for every Python module that ships (``explorer``, ``kernels``, ``app``)."""
    files = [*ROOT.glob("app.py"), *ROOT.glob("explorer/**/*.py"), *ROOT.glob("kernels/**/*.py")]
    return {_dotted(path): path for path in sorted(files)}


def _dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(name: str, *, at_run_time: bool = False) -> frozenset[str]:
    """Dotted names of all that a module imports anywhere in it; ours down to the module.

    ``at_run_time`` leaves out what is imported for type checkers only.
    """
    tree = ast.parse(modules()[name].read_text(encoding="utf-8"))
    skipped = _type_checking_nodes(tree) if at_run_time else set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            base = node.module or ""
            # `from explorer.methods import base` imports the module explorer.methods.base.
            below = {f"{base}.{alias.name}" for alias in node.names} & modules().keys()
            found.update(below or {base})
    return frozenset(found)


def _type_checking_nodes(tree: ast.Module) -> set[ast.AST]:
    guarded = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    return {inner for node in guarded for statement in node.body for inner in ast.walk(statement)}


def tracked_files() -> list[Path]:
    """Every file git tracks and the working tree holds; empty where this is no git checkout."""
    try:
        answer = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    paths = [ROOT / name for name in answer.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]
