"""The target is changed, its drafters lose, and everything is as before in the end."""

from __future__ import annotations

import pytest
import torch

from explorer.laboratory import desync
from explorer.laboratory.session import Session
from explorer.runner_events import drain
from tests.support.lab import golden_requests


def test_noise_costs_agreement_and_is_gone_afterwards() -> None:
    session = Session(golden_requests("eagle2", max_new_tokens=24), ["Count to ten", "Hello"])
    target = session.target
    target.start(8)
    before = target.prefill([1, 2, 3]).logits
    found = drain(desync.run(session))
    assert [trial.value for trial in found["trials"]] == list(desync.NOISES)
    first, last = found["changed"][0], found["changed"][-1]
    assert (first.noise, first.agreement) == (0.0, 1.0)
    assert last.agreement < 1 or last.perplexity != first.perplexity
    target.start(8)
    assert torch.equal(target.prefill([1, 2, 3]).logits, before)


def test_losses_are_those_of_the_output_alone() -> None:
    target = Session(golden_requests("eagle2"), ["x"]).target
    ids = [5, 6, 7, 8, 9]
    chosen, losses = desync.read_output(target, ids, 2)
    for place, (choice, loss) in enumerate(zip(chosen, losses, strict=True), start=3):
        target.start(8)
        logits = target.prefill(ids[:place]).logits[0].float()
        assert int(choice) == int(logits.argmax())
        assert float(loss) == pytest.approx(-float(logits.log_softmax(-1)[ids[place]]), rel=1e-3)
