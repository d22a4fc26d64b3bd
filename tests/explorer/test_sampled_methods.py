"""Sampled decoding as a whole: every method's output follows the target's own distribution, whatever it drafts.

Once computed (every branch of one step on three tokens) and once drawn (seeded runs against exact probabilities, on a
tiny target and on the golden one).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer import engine
from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.medusa import load_medusa
from explorer.config import Sampling, describe
from explorer.engine import DecodeOptions, Decoding
from explorer.methods import eagle1, medusa
from explorer.methods.eagle2 import Eagle2, Eagle2Settings
from explorer.methods.registry import METHODS
from explorer.sampling import Sampler
from explorer.target import Target
from explorer.verify import verify_rejection
from tests.support.branches import branches, completed_law, exact_law, largest_difference
from tests.support.chance import chance_of
from tests.support.goldens import FOLDER, golden, golden_target
from tests.support.tiny import greedy, tiny_drafter, tiny_target

PROMPT = [1, 0, 2]
FEW = {"total_tokens": 5, "depth": 1, "top_k": 2, "gamma": 2, "block": 2, "window": 2, "ngram": 3, "guesses": 2}
SMALL_TREE = ((0,), (1,), (0, 0))
RARE = 1e-3  # seeded, so a test that passes once passes always; a wrong rule ends far below


def build(name: str, target: Target, **wanted: int) -> Any:
    """A method over a tiny drafter; of the wanted settings it takes those that it has."""
    method = METHODS[name]
    known = {item.name for item in describe(method.Settings)}
    settings = method.Settings(**{key: value for key, value in wanted.items() if key in known})
    return method(target, tiny_drafter(name, target), settings)


def exact_after(target: Target, prompt: list[int], sampling: Sampling) -> Callable[[tuple[int, ...]], Tensor]:
    """Prefix of new tokens -> [V] warped probabilities of the next one, by plain forward passes."""
    sampler = Sampler(sampling)

    @cache
    def after(prefix: tuple[int, ...]) -> Tensor:
        target.start(0)
        return sampler.warp(target.prefill([*prompt, *prefix]).logits[0])

    return after


def marginal(after: Callable[[tuple[int, ...]], Tensor], position: int, vocab: int) -> Tensor:
    """[V] law of the token at ``position``, counted from 0."""
    probs = torch.zeros(vocab, dtype=torch.float64)
    for tokens, prob in exact_law(after, position + 1).items():
        probs[tokens[-1]] += prob
    return probs


@pytest.mark.parametrize("sampling", [Sampling(0.9), Sampling(1.3, top_p=0.85)], ids=["temperature", "top_p"])
@pytest.mark.parametrize("name", METHODS)
def test_the_law_of_a_step_is_the_targets(name: str, sampling: Sampling, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (eagle1, medusa):
        monkeypatch.setattr(module, "load_tree", lambda _: SMALL_TREE)
    target = tiny_target(vocab_size=3)
    method = build(name, target, **FEW, pool_from_prompt=True)
    after = exact_after(target, PROMPT, sampling)

    def one_step(sampler: Sampler) -> tuple[list[int], Any]:
        monkeypatch.setattr(engine, "Sampler", lambda _: sampler)
        decoding = Decoding(target, method, PROMPT, DecodeOptions(20, sampling))
        decoding.prefill()
        step = next(decoding.steps())
        return decoding.output, step.draws

    found = completed_law(branches(one_step, sampling), after, 3)
    assert sum(found.values()) == pytest.approx(1, abs=1e-5)
    assert largest_difference(found, exact_law(after, 3)) < 1e-5  # the tree pass is float32


@pytest.mark.parametrize("name", METHODS)
def test_drawn_tokens_follow_the_targets_distribution(name: str) -> None:
    target, sampling = tiny_target(vocab_size=12), Sampling(0.8, top_p=0.95)
    method = build(name, target, total_tokens=12, depth=2, top_k=3, ngram=3, pool_from_prompt=True)
    own_text = [] if method.needs_drafter else greedy(target, PROMPT, 24)  # where guesses from the text are found
    prompt = [*PROMPT, *own_text]
    outputs, num_accepted = [], 0
    for seed in range(250):
        options = DecodeOptions(3, Sampling(0.8, top_p=0.95, seed=seed))
        decoding = Decoding(target, method, prompt, options)
        decoding.prefill()
        num_accepted += sum(step.num_accepted for step in decoding.steps())
        outputs.append(decoding.output)
    assert name == "autoregressive" or num_accepted > 25, "the drafts must matter"
    after = exact_after(target, prompt, sampling)
    for position in range(3):
        drawn = (output[position] for output in outputs)
        assert chance_of(drawn, marginal(after, position, 12)) > RARE


GOLDEN_DRAFTERS = {"autoregressive": None, "medusa": "medusa_a", "eagle1": "eagle_bias", "eagle2": "eagle_bias"}


def golden_method(name: str, target: Target) -> Any:
    source, load = GOLDEN_DRAFTERS[name], load_medusa if name == "medusa" else load_eagle
    drafter = load(str(FOLDER / source), target).module if source else None
    settings = {"total_tokens": 16} if name in ("medusa", "eagle2") else {}
    return METHODS[name](target, drafter, METHODS[name].Settings(**settings))


@pytest.mark.parametrize("item", golden("sampling_exact__base_a")["items"], ids=lambda i: f"{i['id']}-{i['top_p']}")
def test_warped_golden_probabilities_are_exact(item: dict[str, Any]) -> None:
    target = golden_target("base_a")
    after = exact_after(target, item["prompt_ids"], Sampling(item["temperature"], item["top_p"]))
    torch.testing.assert_close(after(()).double(), torch.tensor(item["p1"], dtype=torch.float64), atol=2e-6, rtol=0)
    for first, second, joint in item["joint_top40"][:10]:
        assert float(after(())[first] * after((first,))[second]) == pytest.approx(joint, abs=2e-6)


@pytest.mark.parametrize("item", [1, 2], ids=["s0-top_p", "s1"])
@pytest.mark.parametrize("name", GOLDEN_DRAFTERS)
def test_golden_draws_follow_the_golden_distributions(name: str, item: int) -> None:
    figures = golden("sampling_exact__base_a")["items"][item]
    target = golden_target("base_a")
    method, outputs = golden_method(name, target), []
    for seed in range(120):
        sampling = Sampling(figures["temperature"], figures["top_p"], seed=seed)
        decoding = Decoding(target, method, figures["prompt_ids"], DecodeOptions(2, sampling, ignore_stop=True))
        decoding.prefill()
        list(decoding.steps())
        outputs.append(decoding.output)
    for position, law in enumerate((figures["p1"], figures["p2_marginal"])):
        assert chance_of((output[position] for output in outputs), torch.tensor(law)) > RARE


@pytest.mark.parametrize("number", range(4))
def test_how_many_drafts_are_accepted_follows_the_golden_law(number: int) -> None:
    figures = golden("sampling_eagle2_first_round__eagle_bias")
    item, exact = figures["items"][number], golden("sampling_exact__base_a")["items"][number]
    assert (item["id"], item["top_p"]) == (exact["id"], exact["top_p"])
    target, sampling = golden_target("base_a"), Sampling(item["temperature"], item["top_p"])
    method = Eagle2(target, golden_method("eagle2", target).drafter, Eagle2Settings(*figures["setting"]))
    for expected in item["first_round"]:
        target.start(0)
        output = target.prefill(exact["prompt_ids"])
        method.start(exact["prompt_ids"], output, Sampler(sampling))
        tree = method.draft(expected["root"]).tree()
        assert tree.token_list == expected["tokens"]
        assert tree.parent_list == expected["parents"]
        logits = target.forward(tree).logits
        law = accept_length_law(tree, logits, sampling, len(expected["accept_length_law"]))
        assert law == pytest.approx(expected["accept_length_law"], abs=2e-5)


def accept_length_law(tree: Any, logits: Tensor, sampling: Sampling, size: int) -> list[float]:
    law = [0.0] * size

    def run(sampler: Sampler) -> tuple[list[int], Any]:
        sampler.draw = lambda probs: int(probs.argmax())  # type: ignore[method-assign]  # only the length matters
        verdict = verify_rejection(tree, logits, sampler)
        return [len(verdict.path) - 1], verdict.draws

    for weight, (length,) in branches(run, sampling):
        law[length] += weight
    return law
