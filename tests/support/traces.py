"""Synthetic but valid traces: right in every rule of the record, so views and metrics need no model to be tested.

``make_trace`` walks a made-up target over a made-up draft tree. The last complete passes are ordinary; where there are
enough of them one step in the middle is root-only (``plain_reason``) and the last one is cut inside its path.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace

from explorer.config import RERANKED
from explorer.trace import (
    Baseline,
    DrafterRecord,
    DrawRecord,
    GhostColumns,
    Label,
    Output,
    PrefillTimes,
    PromptRecord,
    SamplingRecord,
    Stats,
    Step,
    StepTimes,
    TargetRecord,
    Trace,
    TreeColumns,
)
from tests.support.words import HOSTILE, SPECIALS, WORDS, hex_of

PROMPT_TOKENS = 41
BASELINE_SPEED = 24.0  # tokens per second


@dataclass
class _Node:
    token: int
    parent: int
    prob: float | None
    score: float
    depth: int


@dataclass
class _Walk:
    """What the verifier decided on one tree."""

    path: list[int] = field(default_factory=lambda: [0])
    state: dict[int, str] = field(default_factory=dict)
    prob: dict[int, float] = field(default_factory=dict)
    draws: list[DrawRecord] = field(default_factory=list)


def make_trace(
    method: str = "eagle2",
    steps: int = 12,
    rows: int = 24,
    *,
    hostile: bool = False,
    acceptance: str = "greedy",
    seed: int = 0,
) -> Trace:
    """A valid trace of ``steps`` steps with about ``rows`` rows each (methods as in the command line's --method)."""
    rng = random.Random(f"{method}/{steps}/{rows}/{seed}")
    vocab = _vocab(hostile)
    prompt = [rng.randrange(len(vocab)) for _ in range(PROMPT_TOKENS)]
    first = rng.randrange(len(WORDS))
    made: list[Step] = []
    root, root_prob, prefix = first, 0.9, len(prompt)
    for index in range(steps):
        is_plain = method == "autoregressive" or (steps >= 6 and index == steps // 2)
        step = _step(rng, index, prefix, (root, root_prob), (method, 1 if is_plain else rows, acceptance))
        if is_plain and method != "autoregressive":
            step = replace(step, plain_reason="fallback")
        if index == steps - 1 and len(step.emitted) > 1:
            step = replace(step, emitted=step.emitted[:-1])
        made.append(step)
        root, root_prob, prefix = step.next_token, step.next_prob or 0.5, prefix + len(step.emitted)
    return _trace(method, made, (first, prompt), vocab, (rows, acceptance))


def _vocab(hostile: bool) -> dict[str, Label]:
    words = [HOSTILE[i % len(HOSTILE)] for i in range(len(WORDS))] if hostile else list(WORDS)
    labels = [Label(word, "space" if word in ("↵", "␣␣␣␣") else "text", hex_of(word)) for word in words]
    return {str(i): label for i, label in enumerate(labels + [Label(*special) for special in SPECIALS])}


def _step(rng: random.Random, index: int, prefix: int, root: tuple[int, float], shape: tuple[str, int, str]) -> Step:
    method, rows, acceptance = shape
    kept, cut = _draft(rng, root[0], method, rows)
    roles = ["root"] + ["draft"] * (len(kept) - 1)
    walk = _verify(rng, kept, acceptance)
    if method == "lookahead" and rows > 1:
        window = _window(rng, len(kept))
        kept, roles = kept + window, roles + ["window"] * len(window)
    children = [kept[i].token for i in range(len(kept)) if kept[i].parent == walk.path[-1] and roles[i] == "draft"]
    ghost_children = [node.token for node in cut if node.parent == walk.path[-1]]
    if ghost_children and rng.random() < 0.5:
        next_token = ghost_children[-1]
    else:
        next_token = rng.choice([t for t in range(len(WORDS)) if t not in children])
    next_prob = rng.uniform(0.3, 0.95)
    tops = {row: kept[after].token for row, after in zip(walk.path, walk.path[1:], strict=False)}
    tops[walk.path[-1]] = next_token
    tree = _columns(rng, kept, roles, walk, (tops, next_prob))
    tree.target_prob[0], tree.target_rank[0] = root[1], 0
    return Step(
        index=index,
        prefix_len=prefix,
        tree=tree,
        ghosts=_ghosts(rng, cut, len(kept)),
        num_pruned=len(cut) * 3,
        draws=walk.draws,
        path=walk.path,
        next_token=next_token,
        next_kind="recovered" if children else "bonus",
        next_prob=next_prob,
        next_draft_rank=len(children) + rng.randrange(9) if rng.random() < 0.4 else None,
        emitted=[kept[row].token for row in walk.path[1:]] + [next_token],
        ms=StepTimes([rng.uniform(2, 4) for _ in range(5)] if len(kept) > 1 else [], 30 + len(kept) / 3, 0.4, 0.9, 1.5),
    )


def _draft(rng: random.Random, root: int, method: str, rows: int) -> tuple[list[_Node], list[_Node]]:
    """The kept rows in level order and the nodes that the cut to ``rows`` left out (parents renumbered)."""
    has_prob = method not in ("lookahead", "jacobi", "prompt_lookup")
    is_chain = method in ("jacobi", "prompt_lookup", "draft_model")
    nodes, level = [_Node(root, -1, None, 0.0, 0)], [0]
    for depth in range(1, rows if is_chain else 6):
        beam = sorted(level, key=lambda i: -nodes[i].score)[: 1 if is_chain else 10]
        level = []
        for parent in sorted(beam):
            for token, prob in _children(rng, 1 if is_chain else 10):
                level.append(len(nodes))
                nodes.append(_Node(token, parent, prob, nodes[parent].score + math.log(prob), depth))
    ranked = sorted(range(len(nodes)), key=lambda i: (-nodes[i].score, i))
    keep = sorted(ranked[:rows])
    ghosts = sorted(ranked[rows : rows + 64]) if method in RERANKED else []
    numbers = {old: new for new, old in enumerate(keep + ghosts)}
    result = [replace(nodes[i], parent=numbers.get(nodes[i].parent, -1)) for i in keep + ghosts]
    if not has_prob:
        result = [replace(node, prob=None, score=0.0) for node in result]
    return result[: len(keep)], result[len(keep) :]


def _children(rng: random.Random, count: int) -> list[tuple[int, float]]:
    sharp = rng.uniform(0.5, 2.5)
    weights = [rng.uniform(0.5, 1.0) * (i + 1) ** -sharp for i in range(count)]
    total = sum(weights) * rng.uniform(1.02, 1.4)
    tokens = rng.sample(range(len(WORDS) + 3), count)
    return list(zip(tokens, sorted((w / total for w in weights), reverse=True), strict=True))


def _window(rng: random.Random, start: int) -> list[_Node]:
    """Two levels of Lookahead's window, three wide; its tokens may repeat."""
    parents = [0, start, start + 1, 0, start, start + 1]
    return [_Node(rng.randrange(len(WORDS)), parent, None, 0.0, 0) for parent in parents]


def _verify(rng: random.Random, kept: list[_Node], acceptance: str) -> _Walk:
    walk, here = _Walk(state={0: "root"}), 0
    while True:
        children = [i for i, node in enumerate(kept) if node.parent == here]
        wanted = next((c for c in children if rng.random() < 0.6), None)
        for child in children:
            if acceptance != "greedy" and wanted in walk.path:
                walk.state[child] = "untried"
                continue
            is_accepted = child == wanted
            prob = float(is_accepted) if acceptance == "greedy" else rng.uniform(0.1, 0.9)
            walk.prob[child] = prob
            walk.state[child] = "accepted" if is_accepted else "rejected"
            walk.draws.append(_draw(rng, child, prob, is_accepted, acceptance))
            if is_accepted:
                walk.path.append(child)
        if wanted is None:
            return walk
        here = wanted


def _draw(rng: random.Random, row: int, prob: float, accepted: bool, acceptance: str) -> DrawRecord:
    if acceptance == "greedy":
        return DrawRecord(row, None, prob, accepted)
    if acceptance == "typical":
        least = rng.uniform(0, prob) if accepted else rng.uniform(prob, 1)
        return DrawRecord(row, None, prob, accepted, least)
    uniform = rng.uniform(0, prob) if accepted else rng.uniform(prob, 1)
    if accepted:
        return DrawRecord(row, uniform, prob, True)
    return DrawRecord(row, uniform, prob, False, None, 1 - prob, [(5, 0.4), (6, 0.2)])


def _columns(
    rng: random.Random, kept: list[_Node], roles: list[str], walk: _Walk, wanted: tuple[dict[int, int], float]
) -> TreeColumns:
    tops, next_prob = wanted
    count = range(len(kept))
    states = ["window" if roles[i] == "window" else walk.state.get(i, "unreachable") for i in count]
    is_tested = {"accepted": (0, 0.5, 0.97), "rejected": (3, 0.001, 0.2)}
    ranks, probs = [], []
    for i in count:
        rank, low, high = is_tested.get(states[i], (5, 0.0001, 0.1))
        ranks.append(rank + (rng.randrange(20) if rank else 0))
        probs.append(rng.uniform(low, high))
    after = {row: probs[taken] for row, taken in zip(walk.path, walk.path[1:], strict=False)} | {
        walk.path[-1]: next_prob
    }
    return TreeColumns(
        token=[node.token for node in kept],
        parent=[node.parent for node in kept],
        role=roles,
        draft_prob=[node.prob for node in kept],
        score=[node.score for node in kept],
        target_prob=list(probs),
        target_rank=list(ranks),
        accept_prob=[walk.prob.get(i) for i in count],
        state=states,
        target_top=[_top(tops[i], after[i]) if i in tops else None for i in count],
    )


def _top(token: int, prob: float) -> list[tuple[int, float]]:
    others = [t for t in range(7) if t != token][:4]
    return [
        (token, prob),
        *((other, (1 - prob) * share) for other, share in zip(others, (0.5, 0.2, 0.1, 0.05), strict=True)),
    ]


def _ghosts(rng: random.Random, cut: list[_Node], num_rows: int) -> GhostColumns:
    return GhostColumns(
        token=[node.token for node in cut],
        parent=[node.parent for node in cut],
        draft_prob=[node.prob for node in cut],
        score=[node.score for node in cut],
        target_prob=[rng.uniform(0, 0.2) if node.parent < num_rows else None for node in cut],
    )


def _trace(
    method: str, steps: list[Step], begin: tuple[int, list[int]], vocab: dict[str, Label], shape: tuple[int, str]
) -> Trace:
    first, prompt = begin
    tokens = [first] + [token for step in steps for token in step.emitted]
    text = "".join(vocab[str(token)].label for token in tokens)
    is_sampled, is_plain = shape[1] != "greedy", method == "autoregressive"
    stats = _stats(steps, len(tokens), None if is_plain else BASELINE_SPEED)
    return Trace(
        method=method,
        settings={} if is_plain else {"total_tokens": shape[0], "depth": 5, "top_k": 10},
        sampling=SamplingRecord(0.7 if is_sampled else 0.0, 1.0, 0, 0, shape[1]),
        target=TargetRecord("SmolLM2-135M-Instruct", "float32", "cpu", "a made-up CPU", 134_515_008, "naive"),
        drafter=None if is_plain else DrafterRecord("made-up drafter", 4_200_000, 8_400_000),
        prompt=PromptRecord("Write a Python function that reverses a linked list.", "…", prompt),
        vocab=vocab,
        prefill_ms=PrefillTimes(52.0, None if is_plain else 4.0),
        first_token=first,
        steps=steps,
        output=Output(tokens, text),
        stop="max_new_tokens",
        baseline=None
        if is_plain
        else Baseline(None if is_sampled else True, None, BASELINE_SPEED, [41.0] * (len(tokens) - 1)),
        stats=stats,
    )


def _stats(steps: list[Step], num_output: int, baseline: float | None) -> Stats:
    whole = [step for step in steps if not step.is_cut]
    accepted, drafted = sum(step.num_accepted for step in whole), sum(step.num_drafted for step in whole)
    histogram = [0] * (max((step.num_accepted for step in whole), default=0) + 1)
    for step in whole:
        histogram[step.num_accepted] += 1
    speed = 1000 * (num_output - 1) / sum(step.ms.total for step in steps) if steps else None
    return Stats(
        num_steps=len(whole),
        num_cut_steps=len(steps) - len(whole),
        num_draft_tokens=drafted,
        num_accepted_draft_tokens=accepted,
        mean_acceptance_length=1 + accepted / len(whole) if whole else None,
        draft_acceptance_rate=accepted / drafted if drafted else None,
        acceptance_by_depth=_by_depth(whole),
        acceptance_histogram=histogram,
        tokens_per_second=speed,
        speedup=speed / baseline if speed and baseline else None,
    )


def _by_depth(steps: list[Step]) -> list[float | None]:
    """Of the steps whose accepted row at depth d - 1 has a drafted child, the share in which one was accepted."""
    tried: dict[int, list[bool]] = {}
    for step in steps:
        for depth, row in enumerate(step.path):
            children = [i for i, p in enumerate(step.tree.parent) if p == row and step.tree.role[i] == "draft"]
            if children:
                tried.setdefault(depth, []).append(depth + 1 < len(step.path))
    return [sum(tried[d]) / len(tried[d]) for d in sorted(tried)]
