"""One call of a recipe: its folders and text, the features computed once, training that resumes, what a card tells."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from explorer.checkpoints.eagle3 import HEAD, IS_DRAFTED, published_layers
from explorer.checkpoints.files import read_tensors
from explorer.checkpoints.target import LoadedTarget
from explorer.checkpoints.token_map import TOKEN_MAP_FILE
from explorer.errors import SettingError
from explorer.models.layer_inputs import decoder_layers
from explorer.training.corpus import Corpus, frequent_tokens
from explorer.training.dataset import FeatureSet, read_features
from explorer.training.eagle3 import Eagle3Recipe
from explorer.training.export import CardFacts
from explorer.training.features import Entered, compute_features
from explorer.training.gather import gather, read_gathered
from explorer.training.loop import LoopOptions, Progress, Recipe, train
from explorer.training.storage import write_json


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
    entered = layers_folder(plan, layers) if layers else None
    for corpus, part, max_tokens in ((held_out, "held-out", None), (training, "training", plan.max_tokens)):
        also = None if entered is None else Entered(layers, entered / part)
        compute_features(corpus, body, folder / part, max_tokens, also)
    vocab_size = target.model.get_output_embeddings().weight.shape[0]
    tokens = frequent_tokens(training, min(plan.draft_vocab_size, vocab_size), vocab_size)
    return Prepared(
        target_name=target.name,
        training=read_features(folder / "training", plan.max_tokens, entered and entered / "training"),
        held_out=read_features(folder / "held-out", layers=entered and entered / "held-out"),
        draft_tokens=torch.from_numpy(tokens),
    )


def layers_folder(plan: Plan, layers: tuple[int, ...]) -> Path:
    """Where what enters these decoder layers is kept."""
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


def fit(plan: Plan, recipe: Recipe, data: Prepared, name: str, shares: Mapping[str, float] | None = None) -> Progress:
    """Train in ``work/name`` from the weights that the plan starts from, if any; shares: as of ``train``."""
    folder = plan.work / name
    folder.mkdir(parents=True, exist_ok=True)
    if plan.start_from is not None:
        load_weights(recipe.network, plan.start_from)
        if isinstance(recipe, Eagle3Recipe):  # trained on features of another size than a finished drafter reads
            recipe.unfold()
    return train(recipe, data.training, plan.loop, folder, shares)


def card_facts(plan: Plan, title: str, data: Prepared, figures: dict[str, Any], state: Progress) -> CardFacts:
    """What the card tells of a finished training."""
    num_tokens = len(data.training.corpus.tokens)
    text = (
        f"{plan.text_note}\n\nTraining: {len(data.training):,} conversations, {num_tokens:,} tokens, loss on answer "
        f"tokens only. Held out: {len(data.held_out):,} conversations, never trained on."
    )
    recipe = asdict(plan.loop) | {"steps": state.step, "training minutes": round(state.seconds / 60, 1)}
    recipe["date"] = time.strftime("%Y-%m-%d", time.gmtime())
    return CardFacts(title, data.target_name, text, plan.command, recipe, figures, state.history)


def load_weights(network: nn.Module, folder: Path) -> None:
    """Begin with the weights of a finished drafter; its shape and draft vocabulary must be the same."""
    files = set(folder.glob("*.safetensors")) - {folder / TOKEN_MAP_FILE}
    stored = read_tensors(sorted(files), lambda name: name != IS_DRAFTED)
    own = network.state_dict()
    if HEAD in own and HEAD not in stored:  # the target's, which the network has already
        stored[HEAD] = own[HEAD]
    fits = stored.keys() == own.keys() and all(stored[name].shape == own[name].shape for name in own)
    if not fits or ("d2t" in own and not torch.equal(stored["d2t"], own["d2t"])):
        raise SettingError(f"{folder} holds no drafter of this shape and draft vocabulary to start from")
    network.load_state_dict(stored)
