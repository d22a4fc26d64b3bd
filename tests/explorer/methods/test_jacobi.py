"""Jacobi's block against its definition: the fixed-point iteration, run by whole passes of the target."""

from __future__ import annotations

import pytest
import torch

from explorer.config import Sampling
from explorer.methods.jacobi import Jacobi, JacobiSettings
from explorer.sampling import Sampler
from explorer.target import Target
from tests.support.goldens import golden, golden_target, replay
from tests.support.tiny import VOCAB, greedy, tiny_target

PROMPT = [3, 1, 4, 1, 5]


def choices_after(target: Target, ids: list[int], num_last: int) -> list[int]:
    """The target's argmax after each of the last tokens of ``ids``, by one plain causal pass."""
    target.start(0)
    with torch.inference_mode():
        logits = target.head(target.prefill(ids).hidden)
    return logits[-num_last:].argmax(dim=-1).tolist()


@pytest.mark.parametrize("block", [1, 2, 7])
def test_each_pass_is_one_iteration(block: int) -> None:
    """The guesses of a step are the argmaxes of the step before, behind what that step fixed."""
    target, plain, text = tiny_target(), tiny_target(), list(PROMPT)
    method, carried = Jacobi(target, None, JacobiSettings(block)), list[int]()
    for draft, _, verdict in replay(target, method, PROMPT, 12):
        tree = draft.tree()
        root, guesses = tree.token_list[0], tree.token_list[1:]
        assert tree.parent_list == list(range(-1, block))
        assert guesses[: len(carried)] == carried
        assert set(guesses[len(carried) :]) <= set(PROMPT)
        assert draft.extra == {"guess_tokens": guesses, "num_carried": len(carried)}
        iterated = choices_after(plain, [*text, root, *guesses], block + 1)
        num_accepted = len(verdict.path) - 1
        assert iterated[num_accepted] == verdict.next_token
        carried = iterated[num_accepted + 1 :]
        text += [root, *verdict.accepted_tokens]
    assert text[len(PROMPT) :] == greedy(target, PROMPT, len(text) - len(PROMPT))


def test_guesses_are_right_before_their_turn_on_a_trained_target() -> None:
    target, figures = golden_target("base_a"), golden("hf_greedy__base_a")
    run = next(run for run in figures["runs"] if (run["prompt"], run["mode"]) == ("a02", "noeos"))
    prompt, method = figures["prompts"][run["prompt"]]["ids"], Jacobi(target, None, JacobiSettings(6))
    output: list[int] = []
    for draft, _, verdict in replay(target, method, prompt, 60):
        output += [draft.tree().token_list[row] for row in verdict.path]
    assert output == run["output"][: len(output)]
    assert len(output) > 62


def test_first_guesses_follow_the_seed() -> None:
    drafts = []
    for seed in (0, 0, 1):
        target = tiny_target()
        method = Jacobi(target, None, JacobiSettings(20))
        prompt = list(range(VOCAB))
        method.start(prompt, target.prefill(prompt), Sampler(Sampling(seed=seed)))
        drafts.append(method.draft(7).tree().token_list)
    assert drafts[0] == drafts[1] != drafts[2]
