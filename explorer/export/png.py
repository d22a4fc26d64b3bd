"""An SVG as PNG, drawn by a Chromium through Playwright.

Chromium, because the picture is then the one on the page: it shapes right-to-left and combining scripts, finds a font
for every letter and draws emoji. Small rasterisers were weighed: they name fixed font families, and where one is
missing its text silently is too. Neither Playwright nor a browser is needed for anything else that is exported.
"""

from __future__ import annotations

import base64
import math
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from explorer.errors import SettingError

if TYPE_CHECKING:
    from playwright.sync_api import Playwright

SCALE = 2  # pixels per px: sharp on a projector and in print
MAX_PIXELS = 16_384  # Chromium's longest side
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WHAT_TO_DO = "install it with: pip install playwright, then: playwright install chromium; svg needs neither"


def svg_png(svg: bytes) -> bytes:
    """The PNG of an SVG file that states its width and height; raises SettingError where it cannot be drawn here."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise SettingError(f"png needs Playwright and a Chromium: {WHAT_TO_DO}") from error
    root = ElementTree.fromstring(svg)
    width, height = (math.ceil(float(root.attrib[side])) for side in ("width", "height"))
    if SCALE * max(width, height) > MAX_PIXELS:
        raise SettingError(f"png: the picture is {width} by {height}, too large for a browser to draw: export svg")
    address = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_browser(playwright))
            context = browser.new_context(
                viewport={"width": width, "height": height},
                device_scale_factor=SCALE,
                java_script_enabled=False,
                offline=True,
            )
            page = context.new_page()
            page.goto(address)
            picture = page.screenshot()
            browser.close()
            return picture
    except Error as error:
        raise SettingError(f"png: the browser did not draw ({error.message.splitlines()[0]}); {WHAT_TO_DO}") from error


def find_browser(playwright: Playwright) -> str:
    """A Chromium: ``$CHROMIUM``, one on PATH, or Playwright's own; raises SettingError where there is none."""
    named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    path = named or playwright.chromium.executable_path
    if not Path(path).exists():
        raise SettingError(f"png needs a Chromium, and {path} is not there: {WHAT_TO_DO}")
    return path
