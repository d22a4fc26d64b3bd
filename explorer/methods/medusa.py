"""Medusa: independent heads over one hidden state, combined in a static tree (arXiv 2401.10774, section 2.1.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from explorer.clock import Clock
from explorer.config import ACCEPTANCES, setting
from explorer.methods.base import Draft, Method
from explorer.models.graphs import Capture, Repeated
from explorer.models.medusa_heads import MedusaHeads
from explorer.presets import load_tree, tree_names
from explorer.sampling import Sampler
from explorer.static_tree import StaticTree
from explorer.tree import DraftTree
from explorer.verify import Verdict

if TYPE_CHECKING:
    from explorer.target import Target, TargetOutput

_NUM_SHOWN = 10  # candidates a head that the record keeps, the published trees' top-k


@dataclass(frozen=True)
class MedusaSettings:
    """A static tree of ranks and how much of it is used; the published thresholds of typical acceptance."""

    tree: str = setting("mc_sim_7b_63", kind="choice", choices=tree_names, help="static tree of candidate ranks")
    total_tokens: int = setting(
        64, kind="int", min=2, max=512, step=1, allow_auto=True, help="rows verified, root included"
    )
    threshold: float = setting(0.09, kind="float", min=0, max=1, step=0.01, help="typical acceptance: never asks more")
    alpha: float = setting(
        0.3, kind="float", min=0, max=1, step=0.01, help="typical acceptance: share of exp(-entropy)"
    )


class _Guesses(NamedTuple):
    """logits: [heads, draft vocabulary]. tokens (target ids) and probs: [heads, candidates], the best first."""

    logits: Tensor
    tokens: Tensor
    probs: Tensor


class Medusa(Method):
    """Drafts one static tree from the hidden state that chose the root."""

    name = "medusa"
    label = "Medusa"
    needs_drafter = True
    can_rest = True
    Settings = MedusaSettings
    acceptances = ACCEPTANCES

    def __init__(self, target: Target, drafter: MedusaHeads, settings: MedusaSettings) -> None:
        from explorer.models.packed import is_packable, pack, pack_linears

        super().__init__(target, drafter, settings)
        if is_packable(target.lm_head):  # nothing is left to do where another run did it
            pack_linears(drafter)
        is_cut = drafter.token_map is not None and not drafter.own_lm
        self._head = pack(drafter.head_layer(target.lm_head)) if is_cut else target.head
        paths = load_tree(settings.tree)
        num_heads = drafter.num_heads
        fitting = [path for path in paths if max(path) < drafter.num_draft_tokens]
        if len(fitting) < len(paths):
            self.notices.append(f"tree: the drafter knows {drafter.num_draft_tokens} tokens, higher ranks are left out")
        self._static = StaticTree.build(fitting, num_heads, settings.total_tokens)
        depth = max(map(len, paths), default=0)
        if depth > num_heads:
            self.notices.append(
                f"the tree {settings.tree} is {depth} deep, the drafter has {num_heads} heads: cut there"
            )
        if settings.total_tokens > len(paths) + 1:
            self.notices.append(f"total_tokens: the tree {settings.tree} has {len(paths) + 1} rows, all are used")
        self.settings = replace(settings, total_tokens=len(self._static.parents))
        self._clock = Clock(target.device)
        self._hidden = torch.empty(0)
        self._captured = None if target.capture is None else self._capture(target.capture)

    def start(self, prompt_ids: list[int], output: TargetOutput, sampler: Sampler) -> float | None:
        """Remember the hidden state that chose the first token; heads have no prompt pass."""
        self._hidden = output.hidden[-1:]
        return None

    def draft(self, root: int) -> Draft:
        """Fill the static tree with the heads' best candidates."""
        self._clock.start()
        with torch.inference_mode():
            if self._captured is None:
                guesses = self._guess(self._hidden)
            else:
                self._input.copy_(self._hidden)
                guesses = self._captured()
        logits, tokens, probs_list = guesses.logits, guesses.tokens.tolist(), guesses.probs.tolist()
        elapsed = self._clock.lap()
        static = self._static
        cells = [(depth - 1, rank) for depth, rank in zip(static.depths, static.ranks, strict=True)]
        tree = DraftTree.from_lists(
            tokens=[root, *(tokens[head][rank] for head, rank in cells)],
            parents=static.parents,
            draft_probs=[float("nan"), *(probs_list[head][rank] for head, rank in cells)],
        )
        shown = [
            [[token, prob] for token, prob in zip(*rows, strict=True)][:_NUM_SHOWN]
            for rows in zip(tokens, probs_list, strict=True)
        ]
        extra: dict[str, Any] = {"heads": shown}
        if self._captured is not None:
            extra["execution"] = self._captured.execution
        return Draft(tree, passes_ms=[elapsed], rank_of=partial(self._rank_of, logits), extra=extra)

    def rest(self, root: int) -> None:
        """Nothing waits: the heads read one hidden state, the last."""

    def update(self, verdict: Verdict, output: TargetOutput) -> None:
        """The next root was chosen from the last accepted row: its hidden state drafts next."""
        self._hidden = output.hidden[verdict.path[-1]][None]

    def _guess(self, hidden: Tensor) -> _Guesses:
        """What all heads guess after one hidden state [1, H]."""
        logits = self.drafter(hidden, self._head)[:, 0].float()
        top = logits.topk(min(self._num_candidates(), logits.shape[-1]), dim=-1)
        probs = (top.values - logits.logsumexp(dim=-1, keepdim=True)).exp()
        return _Guesses(logits, self.drafter.to_target(top.indices), probs)

    def _capture(self, capture: Capture) -> Repeated[_Guesses]:
        self._input = torch.zeros(1, self.target.hidden_size, dtype=self.target.dtype, device=self.target.device)
        return Repeated(partial(self._guess, self._input), capture, attrgetter("probs"))

    def _num_candidates(self) -> int:
        return max(_NUM_SHOWN, 1 + max(self._static.ranks, default=0))

    def _rank_of(self, logits: Tensor, row: int, token: int) -> int | None:
        head, draft_id = self._static.depths[row - 1] if row else 0, self.drafter.to_draft(token)
        return None if head >= len(logits) or draft_id is None else int((logits[head] > logits[head, draft_id]).sum())
