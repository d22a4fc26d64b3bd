"""The recipes from end to end: text, features, a trained drafter, its files and its card."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.eagle3 import load_eagle3
from explorer.checkpoints.medusa import load_medusa
from explorer.checkpoints.target import LoadedTarget, load_target
from explorer.checkpoints.target_adapter import target_norm
from explorer.errors import SettingError
from explorer.methods.eagle2 import Eagle2
from explorer.methods.eagle3 import Eagle3
from explorer.prediction import PROFILE_FILE, Profile, profile_text
from explorer.target import Target
from explorer.training.acceptance import profile_eagle, profile_medusa
from explorer.training.dataset import read_features
from explorer.training.draft_model import DraftModelOptions, DraftModelRecipe
from explorer.training.eagle import EagleOptions, EagleRecipe
from explorer.training.eagle3 import Eagle3Options, Eagle3Recipe
from explorer.training.export import (
    ADAPTED,
    save_draft_model,
    save_eagle,
    save_eagle3,
    save_medusa,
    save_medusa2,
    write_card,
)
from explorer.training.loop import Progress
from explorer.training.medusa import MedusaOptions, MedusaRecipe
from explorer.training.medusa2 import ADAPTER_NAMES, Medusa2Options, Medusa2Recipe
from explorer.training.plan import Plan, Prepared, card_facts, feature_layers, fit, layers_folder, load_weights, prepare
from explorer.training.storage import replace_file, write_json
from explorer.training.target_parts import eagle3_config, eagle_config, lent_weights
from explorer.training.trees import expected_length, grow_tree, merge_trees

GROWN_TREE = "smollm2-63"  # listed best first, so that its beginnings are the grown trees of every smaller budget
TREE_SIZE = 63
SHOWN_SIZES = (9, 15, 31, 63)
CARD_GAMMA = 5  # chain length that a draft model's card counts with


def train_medusa(plan: Plan, target: LoadedTarget, options: MedusaOptions, trees_file: Path | None) -> Path:
    """Train the heads, measure them, write the folder; with `trees_file` also put the grown trees there."""
    data = prepare(plan, target)
    _, lm_head = lent_weights(target)
    recipe = MedusaRecipe(lm_head, data.draft_tokens, data.held_out, options)
    state = fit(plan, recipe, data, "medusa")
    accuracy = recipe.rank_accuracy().tolist()
    tree = grow_tree(accuracy, TREE_SIZE)
    folder = plan.out / "medusa"
    save_medusa(recipe.network, folder, target.name, data.draft_tokens)
    write_json(folder / "head_accuracy.json", [[round(value, 5) for value in row] for row in accuracy])
    if trees_file is not None:
        merge_trees(trees_file, {GROWN_TREE: tree})
    figures = _head_figures(accuracy, tree)
    card = card_facts(plan, f"Medusa heads for {target.name}", data, figures, state)
    write_card(folder, replace(card, recipe=asdict(options) | card.recipe))
    return folder


def train_medusa2(plan: Plan, target: LoadedTarget, options: Medusa2Options) -> Path:
    """Train finished heads on, together with an adapter of the target; measure both, write the folder.

    The heads are those of the plan's ``start_from``, else of ``train medusa``. SettingError where there are none.
    """
    heads = plan.start_from or plan.out / "medusa"
    if not heads.is_dir():
        raise SettingError(f"{heads} is not there: run `train medusa` first, or name finished heads with --start-from")
    data = prepare(plan, target)
    _, lm_head = lent_weights(target)
    decoder = target.model.get_decoder().cpu()  # it is trained through, where recipes run
    torch.manual_seed(plan.loop.seed)  # for the adapter's initial weights
    recipe = Medusa2Recipe(decoder, lm_head, data.draft_tokens, data.held_out, options)
    load_weights(recipe.network.heads, heads)
    state = fit(replace(plan, start_from=None), recipe, data, "medusa2", {ADAPTER_NAMES: options.adapter_share})
    found, folder, adapter = recipe.measure(), plan.out / "medusa2", recipe.network.adapter
    facts = {"target": target.name, "rank": options.rank, "scale": options.alpha / options.rank}
    facts |= {"target_norm": target_norm(decoder)}
    facts |= {"mean_kl": found.mean_kl, "agreement": found.agreement, "num_tokens": found.num_tokens}
    save_medusa2(recipe.network.heads, adapter, folder, facts, data.draft_tokens)
    accuracy = found.accuracy.tolist()
    write_json(folder / "head_accuracy.json", [[round(value, 5) for value in row] for row in accuracy])
    figures: dict[str, Any] = {
        "mean KL of the adapted target from the original": f"{found.mean_kl:.2g} nats",
        "first choice as the original's": f"{100 * found.agreement:.1f} %",
        "held-out tokens": f"{found.num_tokens:,}",
    } | _head_figures(accuracy, grow_tree(accuracy, TREE_SIZE))
    card = card_facts(plan, f"Medusa-2 heads and adapter for {target.name}", data, figures, state)
    write_card(folder, replace(card, recipe=asdict(options) | card.recipe, claim=ADAPTED))
    return folder


def _head_figures(accuracy: list[list[float]], tree: list[list[int]]) -> dict[str, Any]:
    """What a card says of heads. accuracy: by head and rank; tree: grown from it, best paths first."""
    figures: dict[str, Any] = {f"head {h} right, first guess": f"{row[0]:.3f}" for h, row in enumerate(accuracy)}
    figures |= {f"head {h} right within 10": f"{sum(row):.3f}" for h, row in enumerate(accuracy)}
    for size in SHOWN_SIZES:
        figures[f"expected tokens per pass, {size} nodes"] = f"{expected_length(accuracy, tree[:size]):.3f}"
    return figures


def fit_eagle(plan: Plan, target: LoadedTarget, data: Prepared, options: EagleOptions) -> tuple[EagleRecipe, Progress]:
    """Train the EAGLE layer in `work/eagle`."""
    embedding, lm_head = lent_weights(target)
    torch.manual_seed(plan.loop.seed)  # for the initial weights; everything later has generators of its own
    config = eagle_config(target, len(data.draft_tokens))
    recipe = EagleRecipe(config, data.draft_tokens, embedding, lm_head, data.held_out, options)
    return recipe, fit(plan, recipe, data, "eagle")


def train_eagle(plan: Plan, target: LoadedTarget, options: EagleOptions) -> Path:
    """Train the EAGLE layer, measure it, write the folder."""
    data = prepare(plan, target)
    recipe, state = fit_eagle(plan, target, data, options)
    agreement = recipe.depth_agreement(num_depths=5)
    folder = plan.out / "eagle"
    save_eagle(recipe.network, folder, target.name)
    figures = {f"first guess right at depth {d + 1}": f"{value:.3f}" for d, value in enumerate(agreement)}
    card = card_facts(plan, f"EAGLE drafter for {target.name}", data, figures, state)
    write_card(folder, replace(card, recipe=asdict(options) | card.recipe))
    return folder


def train_eagle3(plan: Plan, target: LoadedTarget, options: Eagle3Options) -> Path:
    """Train EAGLE-3's layer, measure it, write the folder."""
    layers = feature_layers(plan, target)
    if not layers:
        raise SettingError(f"{target.name} has too few layers for EAGLE-3's own three: name some with --feature-layers")
    data = prepare(plan, target, layers)
    embedding, lm_head = lent_weights(target)
    torch.manual_seed(plan.loop.seed)  # for the initial weights; everything later has generators of its own
    config = eagle3_config(target, len(data.draft_tokens), layers)
    recipe = Eagle3Recipe(config, data.draft_tokens, embedding, lm_head, data.held_out, options)
    state = fit(plan, recipe, data, "eagle3")
    agreement = recipe.depth_agreement(num_depths=5)
    recipe.fold()
    folder = plan.out / "eagle3"
    save_eagle3(recipe.network, folder, target.name, has_own_head=options.own_head)
    figures = {f"first guess right at depth {d + 1}": f"{value:.3f}" for d, value in enumerate(agreement)}
    card = card_facts(plan, f"EAGLE-3 drafter for {target.name}", data, figures, state)
    reads = {"inputs of layers": ", ".join(map(str, layers))}
    write_card(folder, replace(card, recipe=reads | asdict(options) | card.recipe))
    return folder


def train_draft_model(plan: Plan, target: LoadedTarget, options: DraftModelOptions) -> Path:
    """Train the target's first layers into a draft model, measure it, write the folder."""
    data = prepare(plan, target)
    _, lm_head = lent_weights(target)
    recipe = DraftModelRecipe(target.model.get_decoder(), lm_head, data.draft_tokens, data.held_out, options)
    state = fit(plan, recipe, data, "draft_model")
    alpha = recipe.agreement()
    folder = plan.out / "draft_model"
    save_draft_model(recipe.network, folder, target.name)
    expected = sum(alpha**length for length in range(CARD_GAMMA + 1))  # arXiv 2211.17192, equation 1
    figures = {
        "first choice is the target's": f"{alpha:.3f}",
        f"expected tokens per pass, gamma {CARD_GAMMA}, were the tokens alike and independent": f"{expected:.2f}",
    }
    card = card_facts(plan, f"Draft model for {target.name}", data, figures, state)
    write_card(folder, replace(card, recipe=asdict(options) | card.recipe))
    return folder


def decoding_target(source: str) -> Target:
    """The target as decoding uses it, float32 with tree attention; what reads text for a recipe is another copy."""
    loaded = load_target(source, dtype="float32")
    return Target(loaded.model, loaded.tokenizer, loaded.name, loaded.stop_ids, loaded.backend)


def profile_drafters(plan: Plan, target: Target) -> Path:
    """Measure what the finished drafters' trees are worth on held-out text, and write the profile beside each.

    The features must be there already.
    """
    held_out = read_features(plan.work / "features" / "held-out")
    medusa, eagle, eagle3 = (plan.out / name for name in ("medusa", "eagle", "eagle3"))
    if medusa.is_dir():
        heads = load_medusa(str(medusa), target).module
        _write_profile(medusa, profile_medusa(target, heads, held_out, GROWN_TREE))
    if eagle.is_dir():
        _write_profile(eagle, profile_eagle(Eagle2, target, load_eagle(str(eagle), target).module, held_out))
    if eagle3.is_dir():
        loaded = load_eagle3(str(eagle3), target)
        entered = layers_folder(plan, loaded.feature_layers) / "held-out"
        held_out = read_features(plan.work / "features" / "held-out", layers=entered)
        _write_profile(eagle3, profile_eagle(Eagle3, target, loaded.module, held_out))
    return plan.out


def _write_profile(folder: Path, profile: Profile) -> None:
    replace_file(folder / PROFILE_FILE, profile_text(profile).encode())
