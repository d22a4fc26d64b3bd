"""The recipes from end to end: text, features, a trained drafter, its files and its card."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.eagle3 import IS_DRAFTED, load_eagle3, published_layers
from explorer.checkpoints.files import read_tensors
from explorer.checkpoints.medusa import load_medusa
from explorer.checkpoints.target import LoadedTarget, load_target
from explorer.checkpoints.token_map import TOKEN_MAP_FILE
from explorer.errors import SettingError
from explorer.methods.eagle2 import Eagle2
from explorer.methods.eagle3 import Eagle3
from explorer.models.layer_inputs import decoder_layers
from explorer.prediction import PROFILE_FILE, Profile, profile_text
from explorer.target import Target
from explorer.training.acceptance import profile_eagle, profile_medusa
from explorer.training.corpus import Corpus, frequent_tokens
from explorer.training.dataset import FeatureSet, read_features
from explorer.training.draft_model import DraftModelOptions, DraftModelRecipe
from explorer.training.eagle import EagleOptions, EagleRecipe
from explorer.training.eagle3 import Eagle3Options, Eagle3Recipe
from explorer.training.export import CardFacts, save_draft_model, save_eagle, save_eagle3, save_medusa, write_card
from explorer.training.features import compute_features
from explorer.training.gather import gather, read_gathered
from explorer.training.loop import LoopOptions, Progress, Recipe, train
from explorer.training.medusa import MedusaOptions, MedusaRecipe
from explorer.training.storage import replace_file, write_json
from explorer.training.target_parts import eagle3_config, eagle_config, lent_weights
from explorer.training.trees import expected_length, grow_tree, merge_trees

GROWN_TREE = "smollm2-63"  # listed best first, so that its beginnings are the grown trees of every smaller budget
TREE_SIZE = 63
SHOWN_SIZES = (9, 15, 31, 63)
CARD_GAMMA = 5  # chain length that a draft model's card counts with


@dataclass(frozen=True)
class Plan:
    """One call of a recipe. work: folder for text, features and checkpoints; out: where the drafter folders go.
    start_from: a drafter folder whose weights the run begins with, to go on training on more text. feature_layers: the
    decoder layers whose inputs an EAGLE-3 drafter reads, none for the published three."""

    work: Path
    out: Path
    text: tuple[Path, ...] = ()
    text_note: str = "Conversations that the target wrote itself (`train generate`)."
    command: str = ""
    max_tokens: int | None = None
    draft_vocab_size: int = 8192
    start_from: Path | None = None
    feature_layers: tuple[int, ...] = ()
    loop: LoopOptions = field(default_factory=LoopOptions)

    @property
    def text_paths(self) -> list[Path]:
        """Named files, or else what `train generate` left in the work folder."""
        return list(self.text) or [self.work / "text"]


@dataclass(frozen=True)
class Prepared:
    """Everything a recipe reads: the text with its features, and the draft vocabulary, most frequent token first."""

    target_name: str
    training: FeatureSet
    held_out: FeatureSet
    draft_tokens: torch.Tensor


def prepare(plan: Plan, target: LoadedTarget, layers: tuple[int, ...] = ()) -> Prepared:
    """Gather the text, compute the features that are missing, read both; with what enters ``layers``, if any.

    Raises SettingError if what lies in the work folder belongs to other text or another target.
    """
    training, held_out = read_gathered(gather(plan.text_paths, plan.work / "corpus", plan.loop.seed))
    folder = plan.work / "features"
    _check_manifest(folder, training, target.name)
    # Whole conversations, right-padded: ordinary causal attention is what is wanted here, not the tree's.
    target.model.set_attn_implementation("sdpa")
    body = target.model.get_decoder()
    compute_features(held_out, body, folder / "held-out")
    compute_features(training, body, folder / "training", plan.max_tokens)
    entered = _layers_folder(plan, layers) if layers else None
    if entered is not None:
        compute_features(held_out, body, entered / "held-out", layers=layers)
        compute_features(training, body, entered / "training", plan.max_tokens, layers)
    vocab_size = target.model.get_output_embeddings().weight.shape[0]
    tokens = frequent_tokens(training, min(plan.draft_vocab_size, vocab_size), vocab_size)
    return Prepared(
        target_name=target.name,
        training=read_features(folder / "training", plan.max_tokens, entered and entered / "training"),
        held_out=read_features(folder / "held-out", layers=entered and entered / "held-out"),
        draft_tokens=torch.from_numpy(tokens),
    )


def _layers_folder(plan: Plan, layers: tuple[int, ...]) -> Path:
    return plan.work / "features" / f"layers-{'-'.join(map(str, layers))}"


def feature_layers(plan: Plan, target: LoadedTarget) -> tuple[int, ...]:
    """The layers whose inputs an EAGLE-3 drafter of this target reads: the plan's, else the published three.

    None for a target that is too small for these. Raises SettingError for layers that the target does not have.
    """
    num_layers = len(decoder_layers(target.model.get_decoder()))
    wrong = [layer for layer in plan.feature_layers if not 0 <= layer < num_layers]
    if wrong or len(set(plan.feature_layers)) < len(plan.feature_layers):
        raise SettingError(f"--feature-layers: give different layers from 0 to {num_layers - 1} of this target")
    return plan.feature_layers or published_layers(num_layers) or ()


def _check_manifest(folder: Path, corpus: Corpus, target_name: str) -> None:
    manifest = {"target": target_name, "text_sha256": hashlib.sha256(corpus.tokens.tobytes()).hexdigest()}
    path = folder / "manifest.json"
    if not path.exists():
        write_json(path, manifest)
    elif json.loads(path.read_text(encoding="utf-8")) != manifest:
        raise SettingError(f"{folder} holds features of other text or another target; name another --work folder.")


def train_medusa(plan: Plan, target: LoadedTarget, options: MedusaOptions, trees_file: Path | None) -> Path:
    """Train the heads, measure them, write the folder; with `trees_file` also put the grown trees there."""
    data = prepare(plan, target)
    _, lm_head = lent_weights(target)
    recipe = MedusaRecipe(lm_head, data.draft_tokens, data.held_out, options)
    state = _fit(plan, recipe, data, "medusa")
    accuracy = recipe.rank_accuracy().tolist()
    tree = grow_tree(accuracy, TREE_SIZE)
    folder = plan.out / "medusa"
    save_medusa(recipe.network, folder, target.name, data.draft_tokens)
    write_json(folder / "head_accuracy.json", [[round(value, 5) for value in row] for row in accuracy])
    if trees_file is not None:
        merge_trees(trees_file, {GROWN_TREE: tree})
    figures: dict[str, Any] = {f"head {h} right, first guess": f"{row[0]:.3f}" for h, row in enumerate(accuracy)}
    figures |= {f"head {h} right within 10": f"{sum(row):.3f}" for h, row in enumerate(accuracy)}
    for size in SHOWN_SIZES:
        figures[f"expected tokens per pass, {size} nodes"] = f"{expected_length(accuracy, tree[:size]):.3f}"
    card = _card(plan, f"Medusa heads for {target.name}", data, figures, state)
    write_card(folder, replace(card, recipe=asdict(options) | card.recipe))
    return folder


def fit_eagle(plan: Plan, target: LoadedTarget, data: Prepared, options: EagleOptions) -> tuple[EagleRecipe, Progress]:
    """Train the EAGLE layer in `work/eagle`."""
    embedding, lm_head = lent_weights(target)
    torch.manual_seed(plan.loop.seed)  # for the initial weights; everything later has generators of its own
    config = eagle_config(target, len(data.draft_tokens))
    recipe = EagleRecipe(config, data.draft_tokens, embedding, lm_head, data.held_out, options)
    return recipe, _fit(plan, recipe, data, "eagle")


def train_eagle(plan: Plan, target: LoadedTarget, options: EagleOptions) -> Path:
    """Train the EAGLE layer, measure it, write the folder."""
    data = prepare(plan, target)
    recipe, state = fit_eagle(plan, target, data, options)
    agreement = recipe.depth_agreement(num_depths=5)
    folder = plan.out / "eagle"
    save_eagle(recipe.network, folder, target.name)
    figures = {f"first guess right at depth {d + 1}": f"{value:.3f}" for d, value in enumerate(agreement)}
    card = _card(plan, f"EAGLE drafter for {target.name}", data, figures, state)
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
    state = _fit(plan, recipe, data, "eagle3")
    agreement = recipe.depth_agreement(num_depths=5)
    recipe.fold()
    folder = plan.out / "eagle3"
    save_eagle3(recipe.network, folder, target.name)
    figures = {f"first guess right at depth {d + 1}": f"{value:.3f}" for d, value in enumerate(agreement)}
    card = _card(plan, f"EAGLE-3 drafter for {target.name}", data, figures, state)
    reads = {"inputs of layers": ", ".join(map(str, layers))}
    write_card(folder, replace(card, recipe=reads | asdict(options) | card.recipe))
    return folder


def train_draft_model(plan: Plan, target: LoadedTarget, options: DraftModelOptions) -> Path:
    """Train the target's first layers into a draft model, measure it, write the folder."""
    data = prepare(plan, target)
    _, lm_head = lent_weights(target)
    recipe = DraftModelRecipe(target.model.get_decoder(), lm_head, data.draft_tokens, data.held_out, options)
    state = _fit(plan, recipe, data, "draft_model")
    alpha = recipe.agreement()
    folder = plan.out / "draft_model"
    save_draft_model(recipe.network, folder, target.name)
    expected = sum(alpha**length for length in range(CARD_GAMMA + 1))  # arXiv 2211.17192, equation 1
    figures = {
        "first choice is the target's": f"{alpha:.3f}",
        f"expected tokens per pass, gamma {CARD_GAMMA}, were the tokens alike and independent": f"{expected:.2f}",
    }
    card = _card(plan, f"Draft model for {target.name}", data, figures, state)
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
        entered = _layers_folder(plan, loaded.feature_layers) / "held-out"
        held_out = read_features(plan.work / "features" / "held-out", layers=entered)
        _write_profile(eagle3, profile_eagle(Eagle3, target, loaded.module, held_out))
    return plan.out


def _write_profile(folder: Path, profile: Profile) -> None:
    replace_file(folder / PROFILE_FILE, profile_text(profile).encode())


def _fit(plan: Plan, recipe: Recipe, data: Prepared, name: str) -> Progress:
    folder = plan.work / name
    folder.mkdir(parents=True, exist_ok=True)
    if plan.start_from is not None:
        _load_weights(recipe.network, plan.start_from)
        if isinstance(recipe, Eagle3Recipe):  # trained on features of another size than a finished drafter reads
            recipe.unfold()
    return train(recipe, data.training, plan.loop, folder)


def _card(plan: Plan, title: str, data: Prepared, figures: dict[str, Any], state: Progress) -> CardFacts:
    num_tokens = len(data.training.corpus.tokens)
    text = (
        f"{plan.text_note}\n\nTraining: {len(data.training):,} conversations, {num_tokens:,} tokens, loss on answer "
        f"tokens only. Held out: {len(data.held_out):,} conversations, never trained on."
    )
    recipe = asdict(plan.loop) | {"steps": state.step, "training minutes": round(state.seconds / 60, 1)}
    recipe["date"] = time.strftime("%Y-%m-%d", time.gmtime())
    return CardFacts(title, data.target_name, text, plan.command, recipe, figures, state.history)


def _load_weights(network: nn.Module, folder: Path) -> None:
    """Begin with the weights of a finished drafter; its shape and draft vocabulary must be the same."""
    files = set(folder.glob("*.safetensors")) - {folder / TOKEN_MAP_FILE}
    stored = read_tensors(sorted(files), lambda name: name != IS_DRAFTED)
    own = network.state_dict()
    fits = stored.keys() == own.keys() and all(stored[name].shape == own[name].shape for name in own)
    if not fits or ("d2t" in own and not torch.equal(stored["d2t"], own["d2t"])):
        raise SettingError(f"{folder} holds no drafter of this shape and draft vocabulary to start from")
    network.load_state_dict(stored)
