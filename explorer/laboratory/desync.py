"""Desynchronisation: the target's matrices get noise, as after a fine-tuning that the drafters did not see.

The noise is in memory alone and gone afterwards: the very tensors are put back (explorer.models.perturbation).
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import torch
from torch import Tensor

from explorer.lab_records import Changed
from explorer.laboratory.session import Condition, Session
from explorer.methods.registry import METHODS
from explorer.runner_events import Status
from explorer.target import Target

NOISES = (0.0, 0.02, 0.05, 0.1)
NUM_PROMPTS = 2


def run(session: Session) -> Generator[Status, None, dict[str, list[Any]]]:
    """The trials and, for each noise, the target along its own text from before."""
    trials, changed = [], []
    before: list[Tensor] = []
    for number, noise in enumerate(NOISES):
        conditions = [
            Condition(METHODS[request.method].label, "noise", noise, session.with_prompts(request, NUM_PROMPTS))
            for request in session.requests
        ]
        span = (number / len(NOISES), (number + 1) / len(NOISES))
        with session.target.perturbed(noise):
            trials += yield from session.trials(conditions, span)
            texts = list(session.written.values())[:NUM_PROMPTS]
            readings = [read_output(session.target, ids, count) for ids, count in texts]
        chosen = [choice for choice, _ in readings]
        before = before or chosen
        changed.append(_changed(noise, before, chosen, [loss for _, loss in readings]))
    return {"trials": trials, "changed": changed}


def _changed(noise: float, before: list[Tensor], chosen: list[Tensor], losses: list[Tensor]) -> Changed:
    same = torch.cat([one == other for one, other in zip(before, chosen, strict=True)])
    return Changed(noise, float(same.float().mean()), math.exp(min(float(torch.cat(losses).mean()), 700.0)))


def read_output(target: Target, token_ids: list[int], num_output: int) -> tuple[Tensor, Tensor]:
    """For each of the last ``num_output`` tokens: the target's choice in its place, and the loss in nats, both [n]."""
    target.start(len(token_ids))
    hidden = target.prefill(token_ids).hidden[-num_output - 1 : -1]
    with torch.inference_mode():
        logits = target.head(hidden).float()
    wanted = torch.tensor(token_ids[-num_output:], device=logits.device)
    losses = torch.nn.functional.cross_entropy(logits, wanted, reduction="none")
    return logits.argmax(dim=-1).cpu(), losses.cpu()
