"""Every sentence and judgement the screen shows, computed from the record once. Standard library only.

Tokens inside a sentence are quoted, shortened, and wrapped in bidirectional isolates, so that a right-to-left or
hostile label cannot reorder or break the words around it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from explorer.plain_steps import plain_sentence
from explorer.trace import DrawRecord, Label, Step

MISS_CLASSES = ("not_drafted", "pruned", "elsewhere", "outranked", "sampled")
QUOTE_LENGTH = 24  # characters of a token label inside a sentence
LISTED = 6  # tokens in one list inside a sentence
# controls, line and paragraph separators, zero-width space, byte order mark, every bidirectional control
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
    "\ufffe\uffff]"  # no characters at all, and forbidden in XML
)


@dataclass(frozen=True)
class RowSentences:
    """Why each row has its state: ``texts`` holds each sentence once, ``index`` [N] says which is a row's."""

    texts: list[str]
    index: list[int]


def visible(label: str) -> str:
    """The label with every invisible or reordering character spelled out as ``⟨U+200B⟩``."""
    return _INVISIBLE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", label)


def quote(vocab: Mapping[str, Label], token: int) -> str:
    """A token for use inside a sentence; an id without a label is shown as its number."""
    label = vocab.get(str(token))
    text = visible(label.label) if label else f"#{token}"
    if len(text) > QUOTE_LENGTH:
        half = (QUOTE_LENGTH - 1) // 2
        text = f"{text[:half]}…{text[-half:]}"
    return f"‘\u2068{text}\u2069’"


def percent(probability: float | None) -> str:
    """A probability for reading: 62 %, 0.3 %, or below 0.01 %; an absent one is a dash."""
    if probability is None:
        return "–"
    value = 100 * probability
    if 0 < value < 0.01:
        return "<0.01 %"
    return f"{value:.0f} %" if value >= 10 else f"{value:.2g} %"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """A count with its noun: 1 row, 5 rows."""
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def listing(words: Sequence[str], num_more: int = 0) -> str:
    """Words as a sentence lists them: "a, b and c", and with more behind them "a, b and 4 more"."""
    shown = [*words, f"{num_more} more"] if num_more else list(words)
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def quoted(vocab: Mapping[str, Label], tokens: Sequence[int]) -> str:
    """Tokens as a sentence lists them; beyond LISTED the rest is counted."""
    shown = tokens if len(tokens) <= LISTED else tokens[: LISTED - 1]
    return listing([quote(vocab, token) for token in shown], len(tokens) - len(shown))


def depths(parents: list[int]) -> list[int]:
    """Distance of every row to the root, [N]; parents come before their children."""
    result: list[int] = []
    for parent in parents:
        result.append(0 if parent < 0 else result[parent] + 1)
    return result


def attention_sentences(step: Step) -> list[str]:
    """What a row at depth 0, 1, ... attends to, and its position id; depth decides both."""
    texts = []
    for depth in range(max(depths(step.tree.parent)) + 1):
        ancestors = "1 ancestor" if depth == 1 else f"{depth} ancestors"
        seen = f"{step.prefix_len} prefix + {ancestors} + itself" if depth else f"{step.prefix_len} prefix + itself"
        texts.append(f"Sees {seen}; position {step.prefix_len + depth}")
    return texts


def row_sentences(step: Step, vocab: Mapping[str, Label]) -> RowSentences:
    """One sentence per row that says why it has its state; rows that share a reason share the sentence."""
    texts: dict[str, int] = {}
    facts = _Facts.of(step, vocab)
    index = []
    for row, state in enumerate(step.tree.state):
        draw = facts.draws.get(row)
        if state in ("accepted", "rejected") and draw is not None and draw.uniform is not None:
            text = _drawn(draw)
        else:
            text = _REASONS[state](facts, row)
        index.append(texts.setdefault(text, len(texts)))
    return RowSentences(list(texts), index)


@dataclass(frozen=True)
class _Facts:
    """A step with what its rows' sentences look up, made once: a hostile file may have thousands of rows.

    stop [N]: for each row the nearest ancestor that is not unreachable. taken: parent -> its child on the path.
    """

    step: Step
    vocab: Mapping[str, Label]
    draws: dict[int, DrawRecord]
    stop: list[int]
    taken: dict[int, int]

    @classmethod
    def of(cls, step: Step, vocab: Mapping[str, Label]) -> _Facts:
        draws: dict[int, DrawRecord] = {}
        for draw in step.draws:
            draws.setdefault(draw.row, draw)
        stop: list[int] = []
        for parent in step.tree.parent:
            is_deeper = parent > 0 and step.tree.state[parent] == "unreachable"
            stop.append(stop[parent] if is_deeper else parent)
        taken = {step.tree.parent[row]: row for row in step.path if row > 0}
        return cls(step, vocab, draws, stop, taken)

    def threshold(self, row: int) -> float | None:
        """Of the test that was made on a row, if it had one."""
        return self.draws[row].threshold if row in self.draws else None


def _drawn(draw: DrawRecord) -> str:
    sign, verdict = ("below", "Accepted") if draw.accepted else ("above", "Rejected")
    chance = "–" if draw.prob is None else f"{draw.prob:.3g}"
    return f"{verdict}: the draw {draw.uniform:.3g} is {sign} the acceptance probability {chance}."


def _root_reason(facts: _Facts, _row: int) -> str:
    index = facts.step.index
    chosen = "the prompt pass" if index == 0 else f"step {index}"
    return f"The last token of the output, chosen by {chosen}. It is not in the KV cache yet: this pass writes it."


def _accepted_reason(facts: _Facts, row: int) -> str:
    tree, threshold = facts.step.tree, facts.threshold(row)
    if threshold is not None:
        return f"Accepted: its target probability is above the threshold {threshold:.3g}."
    parent = quote(facts.vocab, tree.token[tree.parent[row]])
    return f"Accepted: after {parent} it is the target's first choice ({percent(tree.target_prob[row])})."


def _rejected_reason(facts: _Facts, row: int) -> str:
    tree, threshold = facts.step.tree, facts.threshold(row)
    if threshold is not None:
        return f"Rejected: its target probability is below the threshold {threshold:.3g}."
    parent = tree.parent[row]
    after, top = quote(facts.vocab, tree.token[parent]), tree.target_top[parent]
    if not top:
        return f"Rejected: after {after} the target wanted another token."
    return f"Rejected: after {after} the target wanted {quote(facts.vocab, top[0][0])} ({percent(top[0][1])})."


def _untried_reason(facts: _Facts, row: int) -> str:
    tree = facts.step.tree
    if tree.accept_prob[row] is not None:
        return "It passes the test, but a longer path was chosen."
    taken = facts.taken.get(tree.parent[row])
    if taken is None:
        return "Never tested: the walk ended before it."
    return f"Never tested: its sibling {quote(facts.vocab, tree.token[taken])} was accepted first."


def _unreachable_reason(facts: _Facts, row: int) -> str:
    tree, ancestor = facts.step.tree, facts.stop[row]
    if (draw := facts.draws.get(row)) is not None:
        return f"It {'passes' if draw.accepted else 'fails'} the test, but another path was chosen above it."
    state = "rejected" if tree.state[ancestor] == "rejected" else "not taken"
    return f"Never tested: it hangs below {quote(facts.vocab, tree.token[ancestor])}, which was {state}."


def _window_reason(_facts: _Facts, _row: int) -> str:
    return "Window row: it rides along to find new n-grams and is never accepted."


_REASONS = {
    "root": _root_reason,
    "accepted": _accepted_reason,
    "rejected": _rejected_reason,
    "untried": _untried_reason,
    "unreachable": _unreachable_reason,
    "window": _window_reason,
}


def ghost_sentence(step: Step) -> str:
    """Why the ghosts of this step were not sent to the target."""
    rank = f"the best {len(step.tree) - 1}"
    return f"Drafted, then pruned: its score is not among {rank}, so the target never saw it."


def miss_class(step: Step) -> str | None:
    """Which way the draft missed the token the target chose where the walk ended; None where it missed nothing.

    pruned: drafted there, cut by the rerank. elsewhere: drafted at the same depth under another parent. outranked:
    in the drafter's list, beyond its top-k. sampled: drafted there, or by a drafter that draws, but the draw went
    otherwise. not_drafted: else.
    """
    if step.next_kind == "bonus":
        return None
    end, token = step.path[-1], step.next_token
    if _is_drafted_at_end(step):
        return "sampled"
    if _is_pruned(step):
        return "pruned"
    level = depths(step.tree.parent)
    drafted = zip(step.tree.token, step.tree.role, level, strict=True)
    if any(t == token and role == "draft" and depth == level[end] + 1 for t, role, depth in drafted):
        return "elsewhere"
    if step.next_draft_rank is None:
        return "not_drafted"
    return "sampled" if step.extra.get("sampled") is True else "outranked"


def _is_drafted_at_end(step: Step) -> bool:
    """True where the target's own token had been drafted, and rejected, right where the walk ended."""
    end, tree = step.path[-1], step.tree
    below = (
        t
        for t, parent, role in zip(tree.token, tree.parent, tree.role, strict=True)
        if (parent, role) == (end, "draft")
    )
    return step.next_token in below


def _is_pruned(step: Step) -> bool:
    """True where the target's own token is a ghost right below the end of the path."""
    return (step.path[-1], step.next_token) in zip(step.ghosts.parent, step.ghosts.token, strict=True)


def miss_clause(step: Step) -> str | None:
    """How the draft missed the target's choice, to follow its name ("was ..."); None after a complete path."""
    kind = miss_class(step)
    if kind is None:
        return None
    rank = None if step.next_draft_rank is None else step.next_draft_rank + 1
    drawn = f"was number {rank} in the drafter's list here, but the drafter drew otherwise"
    return {
        "sampled": "was drafted here, but the draw went otherwise" if _is_drafted_at_end(step) else drawn,
        "pruned": "was drafted here, but the rerank pruned it",
        "elsewhere": "was drafted at this depth, but on another branch",
        "outranked": f"was number {rank} in the drafter's list here, too low to be drafted",
        "not_drafted": "was not drafted here",
    }[kind]


def own_token_sentence(step: Step, vocab: Mapping[str, Label]) -> str:
    """What the target's own token is, and whether the draft could have had it."""
    own, clause = quote(vocab, step.next_token), miss_clause(step)
    if step.num_drafted == 0:
        return f"{own} is what the target chose; nothing was drafted."
    if clause is None:
        text = f"Bonus: the path was accepted to its end, and the same pass already says what follows, {own}."
        return text + (" It had been drafted too, but the rerank pruned it." if _is_pruned(step) else "")
    return f"The target's own choice where the walk ended: {own} {clause}."


def step_sentence(step: Step, vocab: Mapping[str, Label]) -> str:
    """The caption of a whole step: what was drafted, what was accepted, what the target added."""
    own, clause = quote(vocab, step.next_token), miss_clause(step)
    if step.num_drafted == 0:
        if step.plain_reason is None:
            return f"One target pass, one token: {own}."
        return f"A plain pass, because {plain_sentence(step)}. The target chose {own}."
    accepted = [quote(vocab, step.tree.token[row]) for row in step.path[1:]]
    start = f"{step.num_drafted} drafted, {len(accepted)} accepted{': ' if accepted else ''}{' '.join(accepted)}. "
    end = f"Bonus token: {own}." if clause is None else f"Then the target chose {own}, which {clause}."
    if step.is_cut:
        kept = "1 token was" if len(step.emitted) == 1 else f"{len(step.emitted)} tokens were"
        end += f" The run stopped inside this path: {kept} kept."
    return start + end
