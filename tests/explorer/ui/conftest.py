"""Fixtures of the page's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.ui.context import Context
from tests.support.page import make_context, make_recordings


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two synthetic recordings."""
    return make_recordings(tmp_path_factory.mktemp("traces"))


@pytest.fixture
def context(recordings: Path) -> Context:
    """A page's context with a fake runner."""
    return make_context(recordings)
