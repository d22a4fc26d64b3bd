"""The recorded real traces of the project, each read once."""

from __future__ import annotations

import json
from functools import lru_cache

from explorer.config import repo_path
from explorer.trace import Trace, read_trace

RECORDED = sorted(path.name.split(".")[0] for path in repo_path("assets", "traces").glob("*.json.gz"))
_MANIFEST = json.loads(repo_path("assets", "traces", "manifest.json").read_text(encoding="utf-8"))
# name -> whether the output is plain decoding's, None where they were not compared
EQUAL: dict[str, bool | None] = {entry["file"].split(".")[0]: entry["output_equal"] for entry in _MANIFEST}
# Those with a drafter, whose nodes have probabilities.
DRAFTED = [entry["file"].split(".")[0] for entry in _MANIFEST if entry["drafter"]]


@lru_cache(maxsize=2)
def recorded(name: str) -> Trace:
    """A recorded trace by its name in the manifest, without endings."""
    return read_trace(repo_path("assets", "traces", f"{name}.json.gz"))


def plain(text: str) -> str:
    """A sentence without the isolates around its tokens."""
    return text.replace("\u2068", "").replace("\u2069", "")
