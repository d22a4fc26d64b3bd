"""A run as one HTML file that opens from disk: the page's own viewer and its view JSON, and no network.

The caller hands in what explorer.views.viewer makes, so that this file holds a page and nothing of the viewer. The
view JSON is data, never markup: it lies in a script element of a type that no browser runs, in ASCII, with <, > and &
spelled as JSON escapes. A content policy of the page lets exactly this one script run and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from typing import Any

from explorer.insight import visible

TITLE_LENGTH, PROMPT_LENGTH = 60, 400  # characters
MARKUP = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="Draft Tree Explorer">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
body {{ margin: 0; font: 13px/1.4 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }}
.bar {{ display: flex; gap: 12px; align-items: center; height: 30px; padding: 4px 10px 0; box-sizing: border-box; }}
h1 {{ flex: 1; min-width: 0; margin: 0; font-size: 14px; font-weight: 650; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; }}
#scheme {{ font: inherit; font-size: 12px; color: inherit; background: none; border: 1px solid; border-radius: 5px;
  opacity: .75; padding: 1px 10px; cursor: pointer; }}
.is-presenting .bar {{ display: none; }}
.dtx {{ --dtx-height: max(520px, calc(100vh - 30px)); }}
</style>
</head>
<body>
<header class="bar"><h1 dir="auto" title="{prompt}">{prompt}</h1>
<button id="scheme" type="button" title="Light or dark" aria-label="Light or dark"></button></header>
{shell}
<noscript><p>This replay is drawn by a script in this file; nothing is fetched. Allow scripts to see it.</p></noscript>
<script type="application/json" id="replay">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def replay_page(view: Mapping[str, Any], shell: str, script: str, *, start: int = 0) -> str:
    """The whole page.

    view: view JSON of a finished run (explorer.views.viewer.view_payload). shell, script: the viewer's SHELL and
    replay_js(). start: the index of the step it opens with; an address that ends in #step=N opens with that one,
    counted from 1.
    """
    head = view["header"]
    run = f"{head['method']} on {head['target']['name']}"
    prompt = " ".join(str(head["prompt"]).split()) or f"prompt of {len(head['prompt_tokens'])} tokens"
    code = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return PAGE.format(
        policy=f"default-src 'none'; script-src 'sha256-{code}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        title=_text(f"{_cut(prompt, TITLE_LENGTH)} · {run}"),
        prompt=_text(_cut(prompt, PROMPT_LENGTH)),
        shell=shell,
        data=json.dumps({**view, "start": start}, separators=(",", ":"), allow_nan=False).translate(MARKUP),
        script=script,
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _text(text: str) -> str:
    """Text of unknown make as HTML text or attribute."""
    return html.escape(visible(text))
