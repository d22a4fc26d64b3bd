"""How the draft of one step came to be, stage by stage, each method in its own words. Standard library only.

Nodes are numbered as on every screen: rows 0..N-1 in engine order, then ghosts. A stage is a level of the tree where
the method drafts level by level, and everything at once where it copies or carries its guesses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from explorer.insight import depths, percent, plural, quote, quoted
from explorer.trace import Step, Trace


@dataclass(frozen=True)
class Stage:
    """One stage of drafting.

    nodes: what appears. parents: the nodes it was drafted after. ms: what the drafter's pass took, None where the
    record does not have it apart.
    """

    caption: str
    nodes: list[int]
    parents: list[int]
    ms: float | None = None


@dataclass(frozen=True)
class Level:
    """What was drafted at one depth, from 1: ``nodes`` by falling score, ``parents`` in order, each once."""

    depth: int
    nodes: list[int]
    parents: list[int]


def drafted_levels(step: Step) -> list[Level]:
    """The drafted rows and the ghosts by depth; window rows are no drafts."""
    parents, scores = step.tree.parent + step.ghosts.parent, step.tree.score + step.ghosts.score
    found: dict[int, list[int]] = {}
    for node, depth in enumerate(depths(parents)):
        if node >= len(step.tree) or step.tree.role[node] == "draft":
            found.setdefault(depth, []).append(node)
    return [
        Level(
            depth,
            nodes=sorted(nodes, key=lambda node: (-scores[node], node)),
            parents=sorted({parents[node] for node in nodes}),
        )
        for depth, nodes in sorted(found.items())
    ]


def draft_stages(trace: Trace, step: Step) -> list[Stage]:
    """The stages of a step's draft, in order; none where nothing was drafted."""
    facts = _Facts.of(trace, step)
    return _STAGES.get(trace.method, _by_level)(facts)


@dataclass(frozen=True)
class _Facts:
    """A step with what its captions look up."""

    trace: Trace
    step: Step
    levels: list[Level]
    tokens: list[int]
    probs: list[float | None]

    @classmethod
    def of(cls, trace: Trace, step: Step) -> _Facts:
        tokens, probs = step.tree.token + step.ghosts.token, step.tree.draft_prob + step.ghosts.draft_prob
        return cls(trace, step, drafted_levels(step), tokens, probs)

    @property
    def are_drawn(self) -> bool:
        """Whether the drafter drew its tokens by chance."""
        return self.step.extra.get("sampled") is True

    def name(self, node: int) -> str:
        return quote(self.trace.vocab, self.tokens[node])

    def names(self, nodes: list[int]) -> str:
        return quoted(self.trace.vocab, [self.tokens[node] for node in nodes])

    def path_prob(self, node: int) -> float:
        """The product of the draft probabilities down to a node."""
        return math.exp(min(0.0, (self.step.tree.score + self.step.ghosts.score)[node]))

    def pass_ms(self, level: Level) -> float | None:
        """The time of a level's pass, where the drafter made one a level."""
        passes = self.step.ms.draft
        return passes[level.depth - 1] if len(passes) == len(self.levels) else None

    def whole_ms(self) -> float | None:
        """The time of all passes, where there were any."""
        return sum(self.step.ms.draft) if self.step.ms.draft else None

    def number(self, name: str) -> int | None:
        """A whole number of the step's ``extra``."""
        value = self.step.extra.get(name)
        return value if type(value) is int else None


def _by_level(facts: _Facts) -> list[Stage]:
    """A method whose way of drafting is not known here."""
    return [
        Stage(f"Depth {level.depth}: {_nodes(level)} drafted.", level.nodes, level.parents, facts.pass_ms(level))
        for level in facts.levels
    ]


def _dynamic(facts: _Facts) -> list[Stage]:
    """EAGLE-2 and EAGLE-3: each pass expands the nodes with the best scores of the level above."""
    stages = []
    for level in facts.levels:
        best, count = facts.name(level.nodes[0]), _shown_of(facts, level)
        if level.depth == 1:
            sure = percent(facts.probs[level.nodes[0]])
            text = f"Draft pass 1 reads the root and gives what may follow it: {count}, the surest {best} with {sure}."
        else:
            sure = percent(facts.path_prob(level.nodes[0]))
            text = (
                f"Draft pass {level.depth} reads the surest nodes of depth {level.depth - 1} together and drafts after "
                f"each of them: {count}. The surest path ends in {best} with {sure}."
            )
        stages.append(Stage(text, level.nodes, level.parents, facts.pass_ms(level)))
    return stages


def _shown_of(facts: _Facts, level: Level) -> str:
    """How many nodes a level has; the record may list only the best of what was pruned."""
    step, top_k = facts.step, facts.trace.settings.get("top_k")
    size = None
    if step.num_pruned == len(step.ghosts):
        size = len(level.nodes)
    elif type(top_k) is int:
        sizes = [top_k] + [top_k * top_k] * (len(step.ms.draft) - 1)
        if sum(sizes) == step.num_drafted + step.num_pruned and level.depth <= len(sizes):
            size = sizes[level.depth - 1]
    if size == len(level.nodes):
        return _nodes(level)
    shown = f"the best {len(level.nodes)} in the picture"
    return shown if size is None else f"{plural(size, 'node')}, {shown}"


def _eagle1(facts: _Facts) -> list[Stage]:
    """Each pass fills one level of the static tree."""
    verb = "draws tokens for" if facts.are_drawn else "fills"
    stages = []
    for level in facts.levels:
        reads = "the root" if level.depth == 1 else f"the nodes of depth {level.depth - 1} that have places below"
        text = f"Draft pass {level.depth} reads {reads} and {verb} depth {level.depth} of the static tree: "
        text += f"{_nodes(level)}."
        stages.append(Stage(text, level.nodes, level.parents, facts.pass_ms(level)))
    return stages


def _medusa(facts: _Facts) -> list[Stage]:
    """All heads read one hidden state in one pass; each fills a depth."""
    stages = []
    for level in facts.levels:
        tokens = len({facts.tokens[node] for node in level.nodes})
        if level.depth == 1:
            text = "All heads read the one hidden state that chose the root. "
            text += f"Head 1 guesses what follows: {_nodes(level)}."
        else:
            text = (
                f"Head {level.depth} guesses {level.depth} tokens ahead without knowing what comes before: its "
                f"{plural(tokens, 'candidate')} stand below {plural(len(level.parents), 'node')} alike, "
                f"{_nodes(level)}."
            )
        stages.append(Stage(text, level.nodes, level.parents, facts.whole_ms() if level.depth == 1 else None))
    return stages


def _draft_model(facts: _Facts) -> list[Stage]:
    """One pass a token."""
    stages = []
    for level in facts.levels:
        node = level.nodes[0]
        last, verb = facts.name(level.parents[0]), "draws" if facts.are_drawn else "would write"
        guess = f"{facts.name(node)} ({percent(facts.probs[node])})"
        text = f"Draft pass {level.depth}: after {last} the draft model {verb} {guess}."
        stages.append(Stage(text, level.nodes, level.parents, facts.pass_ms(level)))
    return stages


def _jacobi(facts: _Facts) -> list[Stage]:
    """The block of guesses at once."""
    nodes = _all_nodes(facts)
    if not nodes:
        return []
    carried = facts.number("num_carried")
    text = f"The block of guesses, {len(nodes)} long: {facts.names(nodes)}."
    if carried is not None and 0 <= carried <= len(nodes):
        text += f" {_origin(carried, len(nodes) - carried)}"
    return [Stage(text, nodes, [0], facts.whole_ms())]


def _prompt_lookup(facts: _Facts) -> list[Stage]:
    """A copy from the text so far, at once."""
    nodes = _all_nodes(facts)
    if not nodes:
        return []
    matched = facts.number("matched")
    last = "token" if matched == 1 else "tokens" if matched is None else f"{matched} tokens"
    text = f"The last {last} stood in the text before: what followed there is drafted again, {facts.names(nodes)}."
    return [Stage(text, nodes, [0], facts.whole_ms())]


def _lookahead(facts: _Facts) -> list[Stage]:
    """The pool's n-grams as one tree, then the window that rides along."""
    step, stages = facts.step, list[Stage]()
    nodes, guesses = _all_nodes(facts), step.extra.get("guess_tokens")
    if nodes:
        count = plural(len(guesses), "n-gram") if isinstance(guesses, list) else "n-grams"
        text = f"The pool has {count} that may follow {facts.name(0)}: as one tree, {plural(len(nodes), 'node')}."
        stages.append(Stage(text, nodes, [0], facts.whole_ms()))
    window = [row for row, role in enumerate(step.tree.role) if role == "window"]
    if window:
        text = f"The window of {plural(len(window), 'row')} rides along: it finds new n-grams and is never accepted."
        stages.append(Stage(text, window, sorted({step.tree.parent[row] for row in window} - set(window))))
    return stages


_STAGES: dict[str, Callable[[_Facts], list[Stage]]] = {
    "eagle1": _eagle1,
    "eagle2": _dynamic,
    "eagle3": _dynamic,
    "medusa": _medusa,
    "draft_model": _draft_model,
    "jacobi": _jacobi,
    "lookahead": _lookahead,
    "prompt_lookup": _prompt_lookup,
}


def _all_nodes(facts: _Facts) -> list[int]:
    return sorted(node for level in facts.levels for node in level.nodes)


def _nodes(level: Level) -> str:
    return plural(len(level.nodes), "node")


def _origin(num_carried: int, num_new: int) -> str:
    """Where a Jacobi block comes from."""
    if not num_new:
        return "All are what the target said in the last pass."
    if not num_carried:
        return "All are tokens of the prompt, taken at random."
    first = "first is" if num_carried == 1 else f"first {num_carried} are"
    return f"The {first} what the target said in the last pass, the rest tokens of the prompt, taken at random."
