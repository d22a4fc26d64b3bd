"""Medusa against the original implementation's figures; its static tree against the published buffers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from explorer.checkpoints.medusa import load_medusa
from explorer.checkpoints.token_map import TOKEN_MAP_FILE
from explorer.config import Sampling
from explorer.methods.medusa import Medusa, MedusaSettings
from explorer.sampling import Sampler
from explorer.tree import DraftTree
from explorer.verify import Verdict, verify_typical
from tests.support.checkpoints import copy_golden, edit_tensors, vllm_copy
from tests.support.goldens import FOLDER, assert_static_run, golden, golden_target, replay
from tests.support.tiny import greedy, tiny_drafter, tiny_target


@pytest.mark.parametrize(("base", "name"), [("base_a", "medusa_a"), ("base_b", "medusa_b"), ("medusa_c", "medusa_c")])
def test_every_greedy_round_equals_the_original(base: str, name: str) -> None:
    target = golden_target(base)
    heads = load_medusa(str(FOLDER / name), target).module
    figures = golden(f"medusa__{name}")
    runs = [run for run in figures["runs"] if run["temperature"] == 0]
    assert runs
    for run in runs:
        method = Medusa(target, heads, MedusaSettings("mc_sim_7b_63", 64))
        assert_static_run(target, method, figures, run)


@pytest.mark.parametrize(("base", "name"), [("base_a", "medusa_a"), ("base_b", "medusa_b"), ("medusa_c", "medusa_c")])
def test_every_typical_round_equals_the_original(base: str, name: str) -> None:
    target = golden_target(base)
    heads = load_medusa(str(FOLDER / name), target).module
    figures, settings = golden(f"medusa__{name}"), MedusaSettings("mc_sim_7b_63", 64)
    runs = [run for run in figures["runs"] if run["temperature"] > 0]
    assert runs
    for run in runs:
        sampler = Sampler(Sampling(run["temperature"], acceptance="typical"))

        def judge(tree: DraftTree, logits: Tensor, sampler: Sampler = sampler) -> Verdict:
            return verify_typical(tree, logits, sampler, settings.threshold, settings.alpha)

        assert_static_run(target, Medusa(target, heads, settings), figures, run, judge)


def test_a_path_shorter_than_its_neighbours_is_never_padded() -> None:
    """The original pads short paths with token 0 and accepts the pad where the target wants token 0."""
    target = golden_target("base_b")
    figures = golden("medusa_pad_bug")
    heads = load_medusa(str(FOLDER / "medusa_b"), target).module
    assert figures["runs"]
    for run in figures["runs"]:
        method = Medusa(target, heads, MedusaSettings("mc_sim_7b_63", 64))
        new_tokens: list[int] = []
        for draft, _, verdict in replay(target, method, run["prompt_ids"], len(run["expected_output"])):
            new_tokens += [draft.tree().token_list[row] for row in verdict.path]
        assert new_tokens[: len(run["expected_output"])] == run["expected_output"]
        assert run["expected_output"] != run["reference_output"]


def test_a_tree_deeper_than_the_heads_is_cut_and_said() -> None:
    target = golden_target("base_b")
    heads = load_medusa(str(FOLDER / "medusa_b"), target).module
    method = Medusa(target, heads, MedusaSettings("mc_sim_7b_63", 500))
    assert any("3 heads" in notice for notice in method.notices)
    assert any("64 rows" in notice for notice in method.notices)
    assert method.settings.total_tokens == 62  # 61 nodes of depth 3 or less, and the root


def test_the_record_gets_each_heads_list_and_ranks() -> None:
    target = golden_target("base_a")
    heads = load_medusa(str(FOLDER / "medusa_a"), target).module
    method = Medusa(target, heads, MedusaSettings("mc_sim_7b_63", 64))
    (draft, _, _), *_ = replay(target, method, [1, 3, 7], 1)
    assert draft.extra is not None
    assert draft.rank_of is not None
    lists = draft.extra["heads"]
    assert [len(shown) for shown in lists] == [10] * 5
    for row in range(1, len(draft.tree())):
        depth = int(draft.tree().depths[row])
        assert draft.tree().token_list[row] in [token for token, _ in lists[depth - 1]]
    assert [draft.rank_of(0, token) for token, _ in lists[0]] == list(range(10))


def test_heads_over_a_reduced_vocabulary_draft_the_targets_tokens(tmp_path: Path) -> None:
    tokens = torch.arange(0, 320, 3)
    folder = vllm_copy(tmp_path)
    edit_tensors(folder, "model.safetensors", "model.safetensors", lambda tensors: tensors.update(token_map=tokens))
    target = golden_target("base_a")
    figures = golden("medusa__medusa_a")
    run = next(run for run in figures["runs"] if run["temperature"] == 0 and run["mode"] == "noeos")
    heads = load_medusa(str(folder), target).module
    method, new_tokens = Medusa(target, heads, MedusaSettings("mc_sim_7b_63", 64)), list[int]()
    for draft, _, verdict in replay(target, method, figures["prompts"][run["prompt"]]["ids"], 30):
        tree = draft.tree()
        assert all(token % 3 == 0 for token in tree.token_list[1:])
        assert draft.rank_of is not None
        assert [draft.rank_of(0, tree.token_list[row]) for row in tree.children(0)] == list(range(10))
        assert draft.rank_of(0, 1) is None
        new_tokens += [tree.token_list[row] for row in verdict.path]
    assert new_tokens == run["output"][: len(new_tokens)]


def test_the_shipped_heads_draft_from_their_token_map(tmp_path: Path) -> None:
    """Heads that the target's LM head reads, cut to some of its rows: the same output, drafts of those tokens alone."""
    tokens = torch.arange(0, 320, 3)
    folder, target = copy_golden("medusa_b", tmp_path), golden_target("base_b")
    save_file({"token_map": tokens}, folder / TOKEN_MAP_FILE)
    prompt = golden("medusa__medusa_b")["prompts"]["b00"]["ids"]
    method, new_tokens = Medusa(target, load_medusa(str(folder), target).module, MedusaSettings()), list[int]()
    for draft, _, verdict in replay(target, method, prompt, 30):
        assert all(token % 3 == 0 for token in draft.tree().token_list[1:])
        new_tokens += [draft.tree().token_list[row] for row in verdict.path]
    assert new_tokens == greedy(target, prompt, len(new_tokens))


def test_ranks_beyond_the_vocabulary_are_left_out_and_said() -> None:
    target = tiny_target(vocab_size=5)
    method = Medusa(target, tiny_drafter("medusa", target), MedusaSettings("mc_sim_7b_63", 64))
    assert any("5 tokens" in notice for notice in method.notices)
    (draft, _, _), *_ = replay(target, method, [1, 2], 1)
    assert len(draft.tree().children(0)) == 5
