"""The only loop: prompt pass, then draft, verify, commit until something ends the run. A generator of records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from explorer.clock import Clock
from explorer.config import Sampling
from explorer.errors import PromptError, SettingError
from explorer.fallback import FallbackPolicy
from explorer.methods.base import Draft, Method, check_acceptance
from explorer.record import StepFacts, build_step
from explorer.sampling import Sampler
from explorer.target import Target
from explorer.trace import PrefillTimes, Step, StepTimes
from explorer.tree import DraftTree
from explorer.verify import Verdict, finite_choices, is_finite, verify_greedy, verify_rejection, verify_typical

FALLBACK = "fallback"  # a plain step's reason, and the place in ``extra`` where the policy's figures lie
_ROOM = 64  # cache rows beyond the output that the first allocation leaves for a tree; more are made when needed


@dataclass(frozen=True)
class DecodeOptions:
    """What ends a run, how tokens are chosen, and what the target's cache does at a commit ("rows" or "slots")."""

    max_new_tokens: int
    sampling: Sampling = field(default_factory=Sampling)
    ignore_stop: bool = False
    cache: str = "rows"

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise SettingError(f"max_new_tokens must be at least 1, not {self.max_new_tokens}")


class Decoding:
    """One run of one method. Call ``prefill`` once, then exhaust ``steps`` (or drop it to cancel).

    output: all new tokens so far. stop: why the run ended, None while it runs. gaps: the target's top-2 logit gap where
    each output token was chosen, [len(output)].
    """

    def __init__(
        self,
        target: Target,
        method: Method,
        prompt_ids: list[int],
        options: DecodeOptions,
        fallback: FallbackPolicy | None = None,
    ) -> None:
        check_acceptance(method, options.sampling)
        self._fallback = fallback
        self._target = target
        self._method = method
        self._options = options
        self._prompt_ids = prompt_ids
        self._budget = min(options.max_new_tokens, target.context_limit - len(prompt_ids))
        self._clock = Clock(target.device)
        self._sampler = Sampler(options.sampling)
        self._root_logits = torch.empty(0)  # [V] the row that chose the current root
        self.prefill_ms = PrefillTimes(target=0.0, drafter=None)
        self.output: list[int] = []
        self.gaps: list[float] = []
        self.stop: str | None = None
        self._check_prompt()

    def _check_prompt(self) -> None:
        ids, limit, size = self._prompt_ids, self._target.context_limit, self._target.vocab_size
        if not ids:
            raise PromptError("the prompt is empty: write something")
        if self._budget < 1:
            raise PromptError(
                f"the prompt has {len(ids)} tokens; this target reads {limit} with its answer: use at most {limit - 1}"
            )
        if not all(0 <= token < size for token in ids):
            raise PromptError(f"a prompt token is outside the target's vocabulary: ids go from 0 to {size - 1}")

    @property
    def capacity(self) -> int:
        """Tokens that the target's cache is asked to hold: all of the run, and a tree."""
        return len(self._prompt_ids) + self._budget + _ROOM

    def prefill(self) -> None:
        """The prompt passes of target and drafter; chooses the first token, which may already end the run."""
        self._target.start(self.capacity, self._options.cache, self._method.feature_layers)
        self._clock.start()
        output = self._target.prefill(self._prompt_ids)
        target_ms = self._clock.lap()
        if not is_finite(output.logits):
            self.stop = "non_finite"
            return
        drafter_ms = self._method.start(self._prompt_ids, output, self._sampler)
        self.prefill_ms = PrefillTimes(target=target_ms, drafter=drafter_ms)
        self._root_logits = output.logits[0]
        self._emit([self._sampler.choose(output.logits[0])], output.logits)

    def steps(self) -> Iterator[Step]:
        """One record per step until a stop; dropping the generator leaves ``stop`` None."""
        index = 0
        while self.stop is None:
            step = self._step(index)
            if step is not None:
                yield step
            index += 1

    def _step(self, index: int) -> Step | None:
        """Draft, verify, commit; None where the target's numbers were not finite."""
        clock, target = self._clock, self._target
        clock.start()
        draft, plain_reason = self._fit(self._draft(self.output[-1]))
        tree = draft.tree()
        drafting_ms = clock.lap()
        output = target.forward(tree)
        verify_ms = clock.lap()
        verdict = self._judge(draft, tree, output.logits)
        if verdict is None:
            self.stop = "non_finite"
            return None
        prefix_len, emitted = target.length, self._cut(verdict)
        judging_ms = clock.lap()
        target.commit(verdict.path[: len(emitted)])  # the last emitted token is the next root, not yet in the cache
        commit_ms = clock.lap()
        self._method.update(verdict, output)
        other_ms = clock.lap() + judging_ms + max(drafting_ms - sum(draft.passes_ms), 0.0)
        facts = StepFacts(
            index, prefix_len, draft, tree, verdict, output.logits, self._root_logits, emitted, plain_reason
        )
        step = build_step(facts, StepTimes(list(draft.passes_ms), verify_ms, commit_ms, other_ms, record=0.0))
        if self._fallback is not None:
            self._fallback.observe(len(emitted), step.ms.total, is_plain=self._fallback.is_resting)
        self._root_logits = output.logits[verdict.path[-1]]
        self._emit(emitted, output.logits[list(verdict.path)])
        return replace(step, ms=replace(step.ms, record=clock.lap()))

    def _draft(self, root: int) -> Draft:
        """The method's own, or the root alone while the fallback policy rests."""
        if self._fallback is None or not self._fallback.is_resting:
            return self._method.draft(root)
        self._method.rest(root)
        extra = {FALLBACK: self._fallback.told()}
        return Draft(DraftTree.from_lists([root], [-1]), extra=extra, plain_reason=FALLBACK)

    def _judge(self, draft: Draft, tree: DraftTree, logits: Tensor) -> Verdict | None:
        """By the acceptance rule that the run's sampling names; None where a logit is not finite."""
        if self._options.sampling.rule == "greedy":
            choices = finite_choices(logits)
            return None if choices is None else verify_greedy(tree, logits, choices)
        if not is_finite(logits):
            return None
        if self._options.sampling.rule == "typical":
            settings = self._method.settings
            return verify_typical(tree, logits, self._sampler, settings.threshold, settings.alpha)
        return verify_rejection(tree, logits, self._sampler, draft.dists())

    def _fit(self, draft: Draft) -> tuple[Draft, str | None]:
        """Leave out rows too deep for the context; says why where that, or the method itself, leaves the root alone."""
        rows = torch.tensor(draft.kept_rows())
        fitting = rows[draft.considered.depths[rows] <= self._target.max_depth]
        if len(fitting) < len(rows):
            return draft._replace(kept=fitting), "context_limit" if len(fitting) == 1 else None
        is_plain = len(rows) == 1 and self._method.name != "autoregressive"
        return draft, (draft.plain_reason or "no_draft") if is_plain else None

    def _cut(self, verdict: Verdict) -> list[int]:
        """The tokens of a verdict that are kept: up to the first stop token, and never beyond the budget."""
        tokens = [*verdict.accepted_tokens, verdict.next_token]
        stop_at = next((i for i, token in enumerate(tokens) if self._is_stop(token)), len(tokens) - 1)
        return tokens[: min(stop_at + 1, self._budget - len(self.output))]

    def _is_stop(self, token: int) -> bool:
        return not self._options.ignore_stop and token in self._target.stop_ids

    def _emit(self, tokens: list[int], logits: Tensor) -> None:
        """Append tokens to the output; row i of ``logits`` chose token i. Ends the run where one of them does."""
        self.output += tokens
        top = logits[: len(tokens)].float().topk(2, dim=-1).values
        self.gaps += (top[:, 0] - top[:, 1]).tolist()
        if self._is_stop(tokens[-1]):
            self.stop = "eos"
        elif len(self.output) >= self._budget:
            self.stop = "max_new_tokens" if self._budget == self._options.max_new_tokens else "context_limit"
