"""Profiles equal decoding: what drafting along a finished text predicts is what a real run measures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from explorer.engine import DecodeOptions, Decoding
from explorer.methods.base import Method
from explorer.methods.eagle2 import Eagle2
from explorer.methods.eagle3 import Eagle3
from explorer.methods.medusa import Medusa, MedusaSettings
from explorer.prediction import Profile
from explorer.target import Target
from explorer.training.acceptance import TextChoice, profile_eagle, profile_medusa
from explorer.training.corpus import Corpus
from explorer.training.dataset import FeatureSet
from tests.support.tiny import greedy, tiny_drafter, tiny_target

PROMPTS = ([5, 9, 2], [40, 7, 7, 31], [11], [3, 59, 22, 8, 1])
NUM_NEW = 28
CHOICE = TextChoice(num_conversations=len(PROMPTS), num_tokens=NUM_NEW)


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target(initializer_range=0.6)


@pytest.fixture(scope="module")
def held_out(target: Target) -> FeatureSet:
    """The target's own greedy answers with its own hidden states, and a sampled one that must be passed over."""
    texts = [[*prompt, *greedy(target, prompt, NUM_NEW)] for prompt in PROMPTS]
    features, layers = [], []
    for text in texts:
        target.start(len(text), layers=(0, 1))
        output = target.prefill(text)
        features.append(output.hidden)
        layers.append(torch.cat([output.layers[layer] for layer in (0, 1)], dim=-1))
    texts.append([1, 2, 3, 4])
    features.append(torch.zeros(4, target.hidden_size))
    layers.append(torch.zeros(4, 2 * target.hidden_size))
    corpus = Corpus(
        tokens=np.array([token for text in texts for token in text], np.uint16),
        lens=np.array([len(text) for text in texts], np.int32),
        start=np.array([*map(len, PROMPTS), 2], np.int32),
        temp=np.array([0, 0, 0, 0, 0.8], np.float32),
    )
    return FeatureSet(corpus, torch.cat(features).numpy(), torch.cat(layers).numpy())


def decoded_tau(target: Target, method: Method) -> float:
    steps = []
    for prompt in PROMPTS:
        decoding = Decoding(target, method, list(prompt), DecodeOptions(NUM_NEW))
        decoding.prefill()
        steps += [step for step in decoding.steps() if not step.is_cut]
    return sum(len(step.emitted) for step in steps) / len(steps)


def shape_of(profile: Profile, **settings: Any) -> list[float]:
    return next(shape.tau for shape in profile.shapes if shape.settings == settings)


@pytest.mark.parametrize("kind", [Eagle2, Eagle3])
def test_an_eagle_profile_equals_decoding(kind: type[Eagle2], target: Target, held_out: FeatureSet) -> None:
    drafter = tiny_drafter(kind.name, target)
    profile = profile_eagle(kind, target, drafter, held_out, CHOICE, {2: (1, 3), 4: (1, 3)})
    assert profile.method == kind.name
    assert profile.num_tokens == len(PROMPTS) * (NUM_NEW - 1)
    assert len(profile.shapes) == 4 and len(shape_of(profile, depth=1, top_k=2)) == 1 + 2 + 4
    for depth, top_k, rows in ((1, 2, 3), (3, 2, 9), (1, 4, 6), (3, 4, 50)):
        tau = shape_of(profile, depth=depth, top_k=top_k)
        measured = decoded_tau(target, kind(target, drafter, kind.Settings(rows, depth, top_k)))
        assert tau[rows - 1] == pytest.approx(measured, abs=1e-4), (depth, top_k, rows)
        assert tau[0] == 1.0
    assert max(shape_of(profile, depth=3, top_k=4)) > 1  # or the test has shown nothing


def test_medusa_profile_equals_decoding(target: Target, held_out: FeatureSet) -> None:
    heads = tiny_drafter("medusa", target)
    profile = profile_medusa(target, heads, held_out, "mc_sim_7b_63", CHOICE)
    tau = profile.shapes[0].tau
    assert profile.shapes[0].settings == {"tree": "mc_sim_7b_63"}
    for rows in (2, 12, len(tau)):
        measured = decoded_tau(target, Medusa(target, heads, MedusaSettings("mc_sim_7b_63", rows)))
        assert tau[rows - 1] == pytest.approx(measured, abs=1e-4), rows
    assert tau[-1] > 1
