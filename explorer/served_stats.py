"""What vLLM and SGLang say in an answer of how its drafts went, as counts of our own words. Standard library only.

vLLM (docs/features/speculative_decoding/acceptance_metrics.md of vllm-project/vllm, v0.32): ``metrics`` holds
``speculative_decoding`` where the server was started with ``--per-request-spec-decode-metrics``. SGLang (srt/managers/
tokenizer_manager_components/spec_decoding_meta.py and srt/entrypoints/openai/utils.py of sgl-project/sglang):
``/generate`` answers with ``meta_info``; its OpenAI endpoints answer with ``sglext.spec_tokens_details`` where the
request says ``return_spec_tokens_details``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from explorer.errors import SettingError
from explorer.tables import Table, number
from explorer.trace_files import MAX_TRACE_BYTES

VLLM, SGLANG = "vLLM", "SGLang"
MAX_HISTOGRAM = 1024  # no server drafts as many tokens in a step
MAX_COUNT = 2**53  # what a float still counts one by one; larger ones cannot be divided
TOTAL = "all"
NOTE = (
    "tau is tokens a step with the target's own, 1 + accepted / steps. Where SGLang gives no count of accepted drafts "
    "it is (tokens - 1) / steps, for the prompt pass gave the first token; SGLang's own spec_accept_length counts that "
    "one too."
)


@dataclass(frozen=True)
class RequestStats:
    """One answer's drafts. Counts are None where the server does not give them; steps are its verify passes."""

    server: str
    name: str
    num_steps: int
    num_accepted: int | None = None
    num_drafted: int | None = None
    num_tokens: int | None = None
    histogram: list[int] = field(default_factory=list)

    @property
    def tau(self) -> float | None:
        """Mean acceptance length, the target's own token included; None where nothing was verified or counted."""
        if not self.num_steps:
            return None
        if self.num_accepted is not None:
            return 1 + self.num_accepted / self.num_steps
        return (self.num_tokens - 1) / self.num_steps if self.num_tokens else None

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted drafts over proposed ones."""
        if self.num_accepted is None or not self.num_drafted:
            return None
        return self.num_accepted / self.num_drafted


def read_stats(answer: object, name: str = "") -> RequestStats | None:
    """The statistics in one answer (its JSON), or None where it holds none. name: what it is called without an id."""
    if not isinstance(answer, Mapping):
        return None
    called = answer.get("id")
    name = called if isinstance(called, str) and called else name
    vllm = _inside(answer, "metrics", "speculative_decoding")
    if (steps := read_count(vllm, "num_spec_steps")) is not None:
        accepted, drafted = (read_count(vllm, f"num_{kind}_tokens") for kind in ("accepted_draft", "draft"))
        tokens = read_count(_inside(answer, "usage"), "completion_tokens")
        return RequestStats(VLLM, name, steps, accepted, drafted, tokens, _counts(vllm, "acceptance_histogram"))
    return _read_sglang(answer, name)


def _read_sglang(answer: Mapping[str, Any], name: str) -> RequestStats | None:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else {}
    places = (answer.get("meta_info"), _inside(answer, "sglext", "spec_tokens_details"), first.get("meta_info"))
    for place in places:
        found = place if isinstance(place, Mapping) else {}
        steps = read_count(found, "spec_verify_ct")
        if steps is None:
            continue
        tokens = read_count(found, "completion_tokens")
        return RequestStats(
            SGLANG,
            str(found.get("id") or name),
            steps,
            read_count(found, "spec_num_correct_drafts", "spec_accepted_drafts"),
            read_count(found, "spec_num_proposed_drafts", "spec_proposed_drafts"),
            read_count(_inside(answer, "usage"), "completion_tokens") if tokens is None else tokens,
            _counts(found, "spec_correct_drafts_histogram", "spec_accept_histogram"),
        )
    return None


def read_answers(path: Path) -> tuple[list[RequestStats], int]:
    """(statistics of the answers in a JSON lines file, how many answers hold none); SettingError names a bad line."""
    try:
        if path.stat().st_size > MAX_TRACE_BYTES:
            raise SettingError(f"{path} is larger than {MAX_TRACE_BYTES // 2**20} MiB: split it")
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SettingError(f"{path} cannot be read: {reason}") from error
    found, silent = [], 0
    for place, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SettingError(f"{path}:{place} is not JSON: give the server's answers, one a line") from error
        for item in answer if isinstance(answer, list) else [answer]:  # SGLang answers a batch with a list
            stats = read_stats(item, f"line {place}")
            silent += stats is None
            found += [stats] if stats else []
    return found, silent


def answers_table(found: list[RequestStats]) -> Table:
    """A row for each answer, and one for all: steps and drafts pooled."""
    rows = [_row(item.name, item) for item in found]
    if len(found) > 1:
        rows.append(_row(TOTAL, pooled(found)))
    head = ["request", "server", "tokens", "steps", "tau", "drafts accepted", "steps by accepted drafts"]
    return Table("Drafts by request", head, rows, NOTE)


def pooled(found: list[RequestStats]) -> RequestStats:
    """All answers as one. A count that one of them lacks is lacking, and no prompt pass but the first is counted."""
    width = max((len(item.histogram) for item in found), default=0)
    columns = [[*item.histogram, *[0] * (width - len(item.histogram))] for item in found]
    tokens = _total(item.num_tokens for item in found)
    return RequestStats(
        " and ".join(dict.fromkeys(item.server for item in found)),
        TOTAL,
        sum(item.num_steps for item in found),
        _total(item.num_accepted for item in found),
        _total(item.num_drafted for item in found),
        None if tokens is None else tokens - len(found) + 1,
        [sum(column) for column in zip(*columns, strict=True)],
    )


def _row(name: str, item: RequestStats) -> list[str]:
    rate = item.acceptance_rate
    tokens = "–" if item.num_tokens is None else str(item.num_tokens)
    share = "–" if rate is None else f"{100 * rate:.1f} %"
    counts = " ".join(map(str, item.histogram)) or "–"
    return [name, item.server, tokens, str(item.num_steps), number(item.tau, 2), share, counts]


def _total(values: Any) -> int | None:
    known = list(values)
    return None if None in known else sum(known)


def _inside(value: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    found: Any = value
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def read_count(value: Mapping[str, Any], *names: str) -> int | None:
    """The first of these fields that is a count, at most MAX_COUNT; None for anything else."""
    for name in names:
        found = value.get(name)
        if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= MAX_COUNT:
            return found
    return None


def _counts(value: Mapping[str, Any], *names: str) -> list[int]:
    for name in names:
        found = value.get(name)
        if isinstance(found, list) and 0 < len(found) <= MAX_HISTOGRAM:
            counts = [count for item in found if (count := read_count({name: item}, name)) is not None]
            if len(counts) == len(found):
                return counts
    return []
