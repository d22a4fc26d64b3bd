"""Plain decoding is the target's own greedy continuation, one token a pass."""

from __future__ import annotations

from explorer.config import Sampling
from explorer.engine import DecodeOptions, Decoding
from explorer.methods.autoregressive import Autoregressive
from explorer.methods.base import NoSettings
from tests.support.tiny import greedy, tiny_target

PROMPT = [3, 1, 4, 1, 5]


def test_one_token_a_pass_and_nothing_drafted() -> None:
    target = tiny_target()
    method = Autoregressive(target, None, NoSettings())
    decoding = Decoding(target, method, PROMPT, DecodeOptions(max_new_tokens=8, sampling=Sampling()))
    decoding.prefill()
    steps = list(decoding.steps())
    assert decoding.output == greedy(target, PROMPT, 8)
    assert [len(step.tree) for step in steps] == [1] * 7
    assert {step.next_kind for step in steps} == {"bonus"}
    assert all(step.emitted == [step.next_token] for step in steps)
    assert all(step.ms.draft == [] for step in steps)
