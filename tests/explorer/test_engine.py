"""The loop: every method reproduces greedy decoding, and stops, budgets and limits cut where they should."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest
import torch

from explorer.config import CACHES, Sampling
from explorer.engine import FALLBACK, DecodeOptions, Decoding
from explorer.errors import PromptError, SettingError
from explorer.fallback import FallbackPolicy
from explorer.methods.registry import METHODS
from explorer.target import Target
from explorer.trace import Step
from tests.support.tiny import ARCHITECTURES, VOCAB, Oracle, greedy, tiny_drafter, tiny_target

PROMPT = [3, 1, 4, 1, 5]


def run(target: Target, method: Any, prompt: list[int], num_tokens: int, **options: Any) -> tuple[Decoding, list[Step]]:
    decoding = Decoding(target, method, prompt, DecodeOptions(num_tokens, **options))
    decoding.prefill()
    return decoding, list(decoding.steps())


def build(name: str, target: Target) -> Any:
    method = METHODS[name]
    return method(target, tiny_drafter(name, target), method.Settings())


@pytest.mark.parametrize("prompt", [[7], [7, 8], PROMPT], ids=len)
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("name", METHODS)
def test_output_equals_plain_greedy_decoding(name: str, cache: str, prompt: list[int]) -> None:
    target = tiny_target()
    expected = greedy(target, prompt, 40)
    decoding, steps = run(target, build(name, target), prompt, 40, cache=cache)
    assert decoding.output == expected
    assert decoding.stop == "max_new_tokens"
    assert sum(len(step.emitted) for step in steps) == 39
    assert len(decoding.gaps) == 40


@functools.cache
def target_of(architecture: str, vocab_size: int) -> tuple[Target, list[int]]:
    """A target of that architecture and what plain decoding makes of PROMPT."""
    target = tiny_target(architecture=architecture, vocab_size=vocab_size)
    return target, greedy(target, [token % vocab_size for token in PROMPT], 40)


@pytest.mark.parametrize("vocab_size", [5, VOCAB])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", METHODS)
def test_output_equals_plain_greedy_decoding_on_every_architecture(
    name: str, architecture: str, vocab_size: int
) -> None:
    """Of five tokens a drafter has the right one now and then, whatever it knows: then accepted rows are proved too."""
    target, expected = target_of(architecture, vocab_size)
    decoding, steps = run(target, build(name, target), [token % vocab_size for token in PROMPT], 40)
    assert decoding.output == expected
    if METHODS[name].needs_drafter and vocab_size == 5:
        assert len(steps) < 39, "nothing was ever accepted"


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("num_tokens", range(1, 14))
def test_the_budget_is_met_exactly(depth: int, num_tokens: int) -> None:
    target = tiny_target()
    expected = greedy(target, PROMPT, 20)
    decoding, steps = run(target, Oracle(target, expected, depth), PROMPT, num_tokens)
    assert decoding.output == expected[:num_tokens]
    assert decoding.stop == "max_new_tokens"
    assert target.length == len(PROMPT) + num_tokens - 1  # everything but the last token is in the cache
    assert all(not step.is_cut for step in steps[:-1])


@pytest.mark.parametrize("position", range(9))
def test_a_stop_token_ends_the_output_wherever_it_lies_in_a_path(position: int) -> None:
    target = tiny_target()
    expected = greedy(target, PROMPT, 20)
    stop_at = expected.index(expected[position])
    target.stop_ids = frozenset([expected[position]])
    decoding, _ = run(target, Oracle(target, expected, 4), PROMPT, 20)
    assert decoding.output == expected[: stop_at + 1]
    assert decoding.stop == "eos"
    assert target.length == len(PROMPT) + stop_at
    again, _ = run(target, Oracle(target, expected, 4), PROMPT, 20, ignore_stop=True)
    assert again.output == expected


def test_stop_inside_the_budget_beats_the_budget() -> None:
    target = tiny_target()
    expected = greedy(target, PROMPT, 20)
    last = next(i for i in range(3, 20) if expected[i] not in expected[:i])
    target.stop_ids = frozenset([expected[last]])
    decoding, _ = run(target, Oracle(target, expected, 6), PROMPT, last + 1)
    assert (decoding.stop, decoding.output) == ("eos", expected[: last + 1])


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("room", [1, 2, 3, 7])
def test_the_context_limit_ends_a_run_in_the_middle_of_a_tree(name: str, room: int) -> None:
    target = tiny_target(max_position_embeddings=32)
    prompt = [(5 * i) % VOCAB for i in range(32 - room)]
    expected = greedy(target, prompt, room)
    decoding, steps = run(target, build(name, target), prompt, 50)
    assert decoding.output == expected
    assert decoding.stop == "context_limit"
    for step in steps:
        deepest = 0
        depths = [0] * len(step.tree)
        for row in range(1, len(step.tree)):
            depths[row] = depths[step.tree.parent[row]] + 1
            deepest = max(deepest, depths[row])
        assert step.prefix_len + deepest < 31


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.can_rest])
@pytest.mark.parametrize("vocab_size", [5, VOCAB])
def test_rests_change_no_token_and_no_later_draft(name: str, vocab_size: int) -> None:
    """After a rest the drafter knows what it would have known: the same root has the same tree."""
    target, expected = target_of("llama", vocab_size)
    prompt = [token % vocab_size for token in PROMPT]
    never_pays = FallbackPolicy(1e-9)
    decoding = Decoding(target, build(name, target), prompt, DecodeOptions(40), never_pays)
    decoding.prefill()
    steps = list(decoding.steps())
    assert decoding.output == expected
    plain = [step.plain_reason == FALLBACK for step in steps]
    assert any(plain) and not all(plain)
    assert all(len(step.tree) == 1 and step.extra[FALLBACK]["left"] > 0 for step in steps if step.plain_reason)
    after_rest = [step for step, rested in zip(steps[1:], plain, strict=False) if rested and not step.plain_reason]
    for step in after_rest:
        known = step.prefix_len - len(prompt)  # output tokens in the cache: the rest of the run is cut off
        _, again = run(target, build(name, target), [*prompt, *expected[:known]], 3)
        assert again[0].tree.token[1:] != [] and again[0].tree.token == step.tree.token
    assert after_rest


def test_a_method_that_falls_back_says_so() -> None:
    target = tiny_target()
    method = METHODS["draft_model"](
        target, tiny_target(1, max_position_embeddings=8), METHODS["draft_model"].Settings()
    )
    _, steps = run(target, method, PROMPT, 12)
    assert steps[0].plain_reason is None
    assert steps[-1].plain_reason == "fallback"


def test_a_step_without_room_for_drafts_says_so() -> None:
    target = tiny_target(max_position_embeddings=16)
    prompt = [(3 * i) % VOCAB for i in range(14)]
    _, steps = run(target, build("eagle2", target), prompt, 50)
    assert steps[-1].plain_reason == "context_limit"
    assert len(steps[-1].tree) == 1
    assert steps[-1].num_pruned > 0


@pytest.mark.parametrize("name", METHODS)
def test_kv_after_a_run_equals_a_fresh_prompt_pass(name: str) -> None:
    target = tiny_target()
    decoding, _ = run(target, build(name, target), PROMPT, 25)
    held = target.cache.committed().clone()
    target.start(0)
    target.prefill([*PROMPT, *decoding.output[:-1]])
    torch.testing.assert_close(held, target.cache.committed(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", METHODS)
def test_a_seed_decides_a_sampled_run(name: str) -> None:
    target = tiny_target()
    method = build(name, target)

    def outputs(seed: int) -> tuple[list[int], list[Any]]:
        decoding, steps = run(target, method, PROMPT, 25, sampling=Sampling(1.0, seed=seed))
        return decoding.output, [(step.tree, step.draws) for step in steps]

    first = outputs(3)
    torch.rand(5)  # other users of torch's own generator do not matter
    assert outputs(3) == first
    assert outputs(4)[0] != first[0]


@pytest.mark.parametrize("name", METHODS)
def test_rejection_at_temperature_zero_gives_the_greedy_output(name: str) -> None:
    target = tiny_target()
    decoding, _ = run(target, build(name, target), PROMPT, 30, sampling=Sampling(acceptance="rejection"))
    assert decoding.output == greedy(target, PROMPT, 30)


@pytest.mark.parametrize("room", [1, 2, 5])
@pytest.mark.parametrize("name", METHODS)
def test_sampled_runs_meet_budgets_and_limits(name: str, room: int) -> None:
    target = tiny_target(max_position_embeddings=32)
    method = build(name, target)
    for seed in range(3):
        options = {"sampling": Sampling(1.0, seed=seed)}
        decoding, _ = run(target, method, PROMPT, room, **options)
        assert (len(decoding.output), decoding.stop) == (room, "max_new_tokens")
        decoding, steps = run(target, method, [(5 * i) % VOCAB for i in range(32 - room)], 50, **options)
        assert (len(decoding.output), decoding.stop) == (room, "context_limit")
        assert all(len(step.draws) >= len(step.path) - 1 for step in steps)


@pytest.mark.parametrize("name", METHODS)
def test_stops_and_budgets_cut_a_sampled_run_and_change_nothing_before(name: str) -> None:
    target = tiny_target(vocab_size=12)  # few tokens, so that paths of several are accepted
    method, options = build(name, target), {"sampling": Sampling(0.7, seed=1)}
    whole, steps = run(target, method, PROMPT, 24, **options)
    assert not method.needs_drafter or max(step.num_accepted for step in steps) >= 2
    for num_tokens in range(1, 24, 3):
        assert run(target, method, PROMPT, num_tokens, **options)[0].output == whole.output[:num_tokens]
    for token in set(whole.output):
        target.stop_ids = frozenset([token])
        decoding, _ = run(target, method, PROMPT, 24, **options)
        assert decoding.output == whole.output[: whole.output.index(token) + 1]
        assert decoding.stop == "eos"
        assert target.length == len(PROMPT) + len(decoding.output) - 1


def test_typical_runs_draw_nothing() -> None:
    target = tiny_target()
    sampled = Sampling(0.7, acceptance="typical")
    outputs = [run(target, build("medusa", target), PROMPT, 20, sampling=replace(sampled, seed=s)) for s in (0, 1)]
    assert outputs[0][0].output == outputs[1][0].output
    for step in outputs[0][1]:
        assert all(draw.uniform is None and draw.threshold is not None for draw in step.draws)


def test_runs_do_not_leak_into_each_other() -> None:
    target = tiny_target()
    method = build("eagle2", target)
    first, _ = run(target, method, PROMPT, 20)
    run(target, method, [9, 9], 20)
    again, _ = run(target, method, PROMPT, 20)
    assert again.output == first.output


def test_non_finite_logits_stop_the_run() -> None:
    target = tiny_target()
    decoding = Decoding(target, build("medusa", target), PROMPT, DecodeOptions(20))
    decoding.prefill()
    steps = decoding.steps()
    next(steps)
    target.head = lambda hidden: torch.full((*hidden.shape[:-1], VOCAB), float("nan"))
    assert list(steps) == []
    assert decoding.stop == "non_finite"


def test_impossible_prompts_and_options_are_refused_in_words() -> None:
    target = tiny_target(max_position_embeddings=16)
    method = build("autoregressive", target)
    with pytest.raises(PromptError, match="empty"):
        Decoding(target, method, [], DecodeOptions(5))
    with pytest.raises(PromptError, match="has 16 tokens.*at most 15"):
        Decoding(target, method, [1] * 16, DecodeOptions(5))
    with pytest.raises(PromptError, match=f"ids go from 0 to {VOCAB - 1}"):
        Decoding(target, method, [1, VOCAB], DecodeOptions(5))
    with pytest.raises(PromptError, match="ids go from"):
        Decoding(target, method, [-1], DecodeOptions(5))
    with pytest.raises(SettingError, match="at least 1"):
        DecodeOptions(0)
    with pytest.raises(SettingError, match="autoregressive has no typical acceptance: choose greedy or rejection"):
        Decoding(target, method, [1], DecodeOptions(5, Sampling(0.7, acceptance="typical")))
