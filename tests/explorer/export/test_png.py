"""Pixels from a Chromium; where there is none, one line that says what to do."""

import builtins
import math
import os
import struct
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from explorer.config import repo_path
from explorer.errors import SettingError
from explorer.export.png import MAX_PIXELS, SCALE, find_browser, svg_png
from explorer.trace import write_trace
from tests.support.traces import make_trace

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="10"/>'


class NoChromium:
    """A Playwright whose own browser was never installed."""

    class chromium:
        executable_path = "/nowhere/chrome"


@pytest.mark.browser
def test_a_picture_of_twice_the_size(chromium_path, tmp_path):
    """By the command line in a process of its own: Playwright runs once a process, and the browser tests have it."""
    trace = make_trace("eagle2", 3, 12, hostile=True)
    write_trace(trace, tmp_path / "t.json")
    line = "export t.json --to svg,png --step 1 --out ."
    done = subprocess.run(
        [sys.executable, "-m", "explorer", *line.split()],
        cwd=tmp_path,
        env=os.environ | {"CHROMIUM": chromium_path, "PYTHONPATH": str(repo_path())},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    picture = (tmp_path / "t-step1.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    root = ElementTree.parse(tmp_path / "t-step1.svg").getroot()
    size = [SCALE * math.ceil(float(root.attrib[side])) for side in ("width", "height")]
    assert list(struct.unpack(">II", picture[16:24])) == size
    assert len(picture) > 10_000, "something is drawn"


def test_without_playwright_one_line_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("playwright"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(SettingError, match="pip install playwright") as caught:
        svg_png(SVG % 10)
    assert "\n" not in str(caught.value)


def test_a_browser_that_is_not_there(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    with pytest.raises(SettingError, match="/nowhere/chromium is not there"):
        find_browser(NoChromium)


def test_the_search_ends_with_playwrights_own(monkeypatch, tmp_path):
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingError, match="/nowhere/chrome is not there"):
        find_browser(NoChromium)
    browser = tmp_path / "google-chrome"
    browser.write_text("#!/bin/sh\n")
    browser.chmod(0o755)
    assert find_browser(NoChromium) == str(browser)


def test_a_picture_beyond_a_browsers_reach_is_refused():
    with pytest.raises(SettingError, match="export svg"):
        svg_png(SVG % (MAX_PIXELS // SCALE + 1))
