"""tests/ mirrors the source tree: each module has its test file, or stands here with the reason why not."""

from __future__ import annotations

import pytest

from tests.structure.source import ROOT, modules

# Module -> why it has no test file of its own.
TESTED_ELSEWHERE = {
    "explorer.errors": "class names only",
}

# Test file -> what it tests, where that is more than one module.
ACROSS_MODULES: dict[str, str] = {
    "tests/explorer/training/test_recipes.py": "text, drafters and their acceptance from end to end",
    "tests/explorer/test_default_target.py": "every method against transformers' generate",
    "tests/explorer/test_lossless.py": "sampling and verification: the exact law of what they give",
    "tests/explorer/test_sampled_methods.py": "every method, sampled: the law of its output",
    "tests/explorer/test_backends.py": "whole runs on Triton kernels, in their interpreter",
    "tests/explorer/test_variants.py": "kinds of drafters that the goldens lack, from file to trace",
    "tests/explorer/test_adapted_targets.py": "a drafter that adapts its target, from file to screen",
    "tests/explorer/test_architectures.py": "every method on trained targets of four architectures",
}


def mirror_of(name: str) -> str:
    """Where the test of a module stands, relative to the repository root."""
    parts = name.split(".")
    return "/".join(["tests", *parts[:-1], f"test_{parts[-1].strip('_')}.py"])


MODULES = [name for name, path in modules().items() if path.name != "__init__.py"]


@pytest.mark.parametrize("name", MODULES)
def test_each_module_has_a_test_file(name: str) -> None:
    has_file = (ROOT / mirror_of(name)).is_file()
    if name in TESTED_ELSEWHERE:
        assert not has_file, f"{name} has a test file now; strike it from TESTED_ELSEWHERE"
    else:
        assert has_file, f"write {mirror_of(name)}, or name the reason in TESTED_ELSEWHERE"


def test_the_exceptions_exist() -> None:
    assert set(TESTED_ELSEWHERE) <= set(MODULES)


def test_no_test_file_outlives_its_module() -> None:
    sources = {mirror_of(name) for name in MODULES} | ACROSS_MODULES.keys()
    folders = [ROOT / "tests" / "explorer", ROOT / "tests" / "kernels"]
    found = {path.relative_to(ROOT).as_posix() for folder in folders for path in folder.rglob("test_*.py")}
    assert sorted(found - sources) == [], "a test of several modules is named in ACROSS_MODULES"
