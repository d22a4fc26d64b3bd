"""The record: one immutable value per decoding step, and the trace file that holds a whole run.

Every picture, number, export and test is a function of these records. Standard library only.
Columns have one entry per row of a verify pass; row 0 is the root. Times are milliseconds, probabilities are raw
softmax values unless a comment says otherwise; ``None`` stands for "there is none" (null in the file).
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from explorer.adapter_words import AdapterRecord
from explorer.codec import decode, encode
from explorer.errors import TraceError
from explorer.trace_check import NEXT_KINDS as NEXT_KINDS
from explorer.trace_check import PLAIN_REASONS as PLAIN_REASONS
from explorer.trace_check import ROLES as ROLES
from explorer.trace_check import STATES as STATES
from explorer.trace_check import STOPS as STOPS
from explorer.trace_check import check_trace
from explorer.trace_files import A_TRACE, read_bytes, unpack, what_it_is, write_atomically

SCHEMA = "draft-tree-trace"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class TreeColumns:
    """The rows sent to the target in engine order, [N] each; ``state`` is the verdict on each row."""

    token: list[int]
    parent: list[int]
    role: list[str]
    draft_prob: list[float | None]
    score: list[float]
    target_prob: list[float | None]
    target_rank: list[int | None]
    accept_prob: list[float | None]
    state: list[str]
    target_top: list[list[tuple[int, float]] | None]

    def __len__(self) -> int:
        return len(self.token)


@dataclass(frozen=True)
class GhostColumns:
    """Nodes the drafter expanded and its rerank cut, [G] each; ``parent`` counts tree rows first, then ghosts."""

    token: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    draft_prob: list[float | None] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    target_prob: list[float | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.token)


@dataclass(frozen=True)
class DrawRecord:
    """One acceptance test, in the order it was made; ``prob`` and ``residual_*`` are the warped values it used.

    residual_mass: the probability that this test rejects. residual_top: the favourites of what is left after that, as
    a distribution; the next sibling is tested on it, and at last the target's own token is drawn from it.
    """

    row: int
    uniform: float | None
    prob: float | None
    accepted: bool
    threshold: float | None = None
    residual_mass: float | None = None
    residual_top: list[tuple[int, float]] = field(default_factory=list)


@dataclass(frozen=True)
class StepTimes:
    """Milliseconds of one step; ``draft`` has one entry per drafter pass, ``record`` is kept out of every speed."""

    draft: list[float]
    verify: float
    commit: float
    other: float
    record: float

    @property
    def total(self) -> float:
        """Milliseconds that count as decoding: everything but ``record``."""
        return sum(self.draft) + self.verify + self.commit + self.other


@dataclass(frozen=True)
class Step:
    """One draft-verify-commit."""

    index: int
    prefix_len: int
    tree: TreeColumns
    ghosts: GhostColumns
    num_pruned: int
    draws: list[DrawRecord]
    path: list[int]
    next_token: int
    next_kind: str
    next_prob: float | None
    next_draft_rank: int | None
    emitted: list[int]
    ms: StepTimes
    extra: dict[str, Any] = field(default_factory=dict)
    plain_reason: str | None = None

    @property
    def is_cut(self) -> bool:
        """True where fewer tokens were kept than the verifier decided (a stop token or a limit inside the path)."""
        return len(self.emitted) < len(self.path)

    @property
    def num_accepted(self) -> int:
        """Drafted tokens on the accepted path, before any cut."""
        return len(self.path) - 1

    @property
    def num_drafted(self) -> int:
        """Rows of role draft."""
        return sum(role == "draft" for role in self.tree.role)


@dataclass(frozen=True)
class SamplingRecord:
    """How tokens were chosen; ``acceptance`` is the rule that verified the drafts."""

    temperature: float
    top_p: float
    top_k: int
    seed: int
    acceptance: str


@dataclass(frozen=True)
class TargetRecord:
    """The model whose output is reproduced, and how it ran."""

    name: str
    dtype: str
    device: str
    device_name: str
    num_parameters: int
    backend: str
    execution: str = "eager"
    cache: str = "rows"
    numerics: str = "fast"
    adapter: AdapterRecord | None = None


@dataclass(frozen=True)
class DrafterRecord:
    """The drafter's weights, target embeddings and LM head not counted."""

    name: str
    num_parameters: int
    num_bytes: int


@dataclass(frozen=True)
class PromptRecord:
    """What was asked: the plain text, what the chat template made of it, and the ids the target read."""

    text: str
    rendered: str
    token_ids: list[int]


@dataclass(frozen=True)
class Label:
    """How a token is drawn: kind is text, space, special or bytes. hex: its bytes; null in files made before them."""

    label: str
    kind: str
    hex: str | None = None


@dataclass(frozen=True)
class PrefillTimes:
    """Milliseconds of the prompt passes; ``drafter`` is null for drafter-free methods."""

    target: float
    drafter: float | None


@dataclass(frozen=True)
class Output:
    """All new tokens (the first token and everything emitted), with their text."""

    token_ids: list[int]
    text: str


@dataclass(frozen=True)
class Divergence:
    """The first place where the output left the baseline; ``gap`` is the baseline's top-2 logit gap there."""

    index: int
    token: int | None
    baseline_token: int | None
    gap: float | None


@dataclass(frozen=True)
class Baseline:
    """The autoregressive lane of the same run; ``output_equal`` is null for sampled runs."""

    output_equal: bool | None
    first_divergence: Divergence | None
    tokens_per_second: float | None
    ms_per_token: list[float]


@dataclass(frozen=True)
class Stats:
    """Counts and means over complete steps; explorer.metrics derives them. Null where nothing was measured."""

    num_steps: int
    num_cut_steps: int
    num_draft_tokens: int
    num_accepted_draft_tokens: int
    mean_acceptance_length: float | None
    draft_acceptance_rate: float | None
    acceptance_by_depth: list[float | None]
    acceptance_histogram: list[int]
    tokens_per_second: float | None
    speedup: float | None


@dataclass(frozen=True)
class Trace:
    """One run: everything needed to show, measure and check it without a model."""

    method: str
    settings: dict[str, Any]
    sampling: SamplingRecord
    target: TargetRecord
    drafter: DrafterRecord | None
    prompt: PromptRecord
    vocab: dict[str, Label]
    prefill_ms: PrefillTimes
    first_token: int
    steps: list[Step]
    output: Output
    stop: str
    baseline: Baseline | None
    stats: Stats


def to_json(trace: Trace) -> str:
    """The trace as strict JSON text (NaN and infinities become null)."""
    head = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION}
    return json.dumps(head | encode(trace), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Trace:
    """Read a trace; raises TraceError naming the field that is missing, mistyped or inconsistent."""
    try:
        raw = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"not a trace: the file is not strict JSON ({error})") from error
    if not isinstance(raw, dict):
        raise TraceError("not a trace: the top level must be an object")
    if raw.get("schema") != SCHEMA:
        raise TraceError(f"schema: this is {what_it_is(raw)}, not a trace; {A_TRACE}")
    if raw.get("schema_version") != SCHEMA_VERSION:
        raise TraceError(
            f"schema_version: this program reads version {SCHEMA_VERSION}, the file says {raw.get('schema_version')!r}"
        )
    trace = decode(Trace, raw, "trace")
    check_trace(trace)
    return trace


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write ``.json`` or ``.json.gz`` atomically: a failure leaves any older file as it was."""
    data = to_json(trace).encode()
    write_atomically(Path(path), gzip.compress(data, mtime=0) if Path(path).suffix == ".gz" else data)


def read_trace(path: str | Path) -> Trace:
    """Read a trace file; raises TraceError, with its name, for a missing, oversized, broken or unknown one."""
    data = read_bytes(Path(path))
    try:
        return from_json(unpack(data))
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
