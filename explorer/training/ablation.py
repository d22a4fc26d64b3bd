"""What each choice of the EAGLE recipe is worth: one factor at a time, on a part of the text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from explorer.checkpoints.target import LoadedTarget
from explorer.cost import measure_drafts
from explorer.methods.eagle2 import Eagle2, Eagle2Settings
from explorer.runner_events import drain
from explorer.target import Target
from explorer.training.acceptance import TextChoice, profile_eagle
from explorer.training.dataset import FeatureSet
from explorer.training.eagle import EagleOptions
from explorer.training.gather import gather, read_gathered
from explorer.training.plan import Plan, Prepared, prepare
from explorer.training.run import fit_eagle
from explorer.training.storage import replace_file, write_json

SHARE = 4  # variants read a quarter of the text
NUM_DEPTHS = 5
TREES = (Eagle2Settings(12, 3, 4), Eagle2Settings(60, 5, 10))  # the small one first
LARGEST_DRAFT_VOCAB = 16384
TEXT = TextChoice(num_conversations=24, num_tokens=96)


@dataclass(frozen=True)
class Variant:
    """One change to the base recipe. options: changed EagleOptions; part: how much of the quarter is read."""

    factor: str
    value: str
    options: dict[str, Any] = field(default_factory=dict)
    draft_vocab: int | None = None
    part: float = 1.0

    @property
    def name(self) -> str:
        """Its folder's name."""
        return f"{self.factor}-{self.value}".replace(" ", "-").replace("/", "-")


VARIANTS = (
    Variant("base", "as shipped"),
    Variant("token weight", "0.1", {"token_weight": 0.1}),
    Variant("token weight", "2.0", {"token_weight": 2.0}),
    Variant("feature weight", "0.1", {"feature_weight": 0.1}),
    Variant("own features", "none", {"own_share": 0.0}),
    Variant("own features", "0.6", {"own_share": 0.6}),
    Variant("draft vocabulary", "4096", draft_vocab=4096),
    Variant("draft vocabulary", "16384", draft_vocab=LARGEST_DRAFT_VOCAB),
    Variant("text", "1/8", part=0.5),
    Variant("text", "1/16", part=0.25),
)


def ablate(plan: Plan, target: LoadedTarget, plain: Target) -> Path:
    """Train every variant in a folder of its own, measure it, and write the table; what is measured is kept.

    target reads the text for the recipe, plain decodes. tau is EAGLE-2's along held-out text; drafting is timed for
    the small tree.
    """
    folder = plan.work / "ablation"
    training, _ = read_gathered(gather(plan.text_paths, plan.work / "corpus", plan.loop.seed))
    quarter = replace(plan, max_tokens=len(training.tokens) // SHARE, draft_vocab_size=LARGEST_DRAFT_VOCAB)
    data = prepare(quarter, target)
    rows: list[dict[str, Any]] = []
    for variant in VARIANTS:
        done = folder / variant.name / "figures.json"
        if not done.exists():
            part = _part(data, variant, plan.draft_vocab_size)
            write_json(done, _measure(replace(plan, work=folder / variant.name), target, plain, part, variant))
        rows.append({"factor": variant.factor, "value": variant.value} | json.loads(done.read_text(encoding="utf-8")))
        replace_file(folder / "table.md", to_markdown(rows).encode())
    return folder / "table.md"


def to_markdown(rows: list[dict[str, Any]]) -> str:
    """The variants' figures as a table."""
    names = list(rows[0])
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(str(row[name]) for name in names)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _part(data: Prepared, variant: Variant, draft_vocab_size: int) -> Prepared:
    """The first conversations of the shuffled text, and a draft vocabulary of the variant's size."""
    corpus = data.training.corpus
    last = int((corpus.offsets <= corpus.offsets[-1] * variant.part).sum()) - 1
    training = FeatureSet(corpus.take(np.arange(last)), data.training.features[: corpus.offsets[last]])
    return replace(data, training=training, draft_tokens=data.draft_tokens[: variant.draft_vocab or draft_vocab_size])


def _measure(plan: Plan, target: LoadedTarget, plain: Target, data: Prepared, variant: Variant) -> dict[str, Any]:
    recipe, state = fit_eagle(plan, target, data, replace(EagleOptions(), **variant.options))
    agreement = recipe.depth_agreement(NUM_DEPTHS)
    drafter = recipe.network.eval().requires_grad_(False)
    grid = {settings.top_k: (settings.depth,) for settings in TREES}
    profile = profile_eagle(Eagle2, plain, drafter, data.held_out, TEXT, grid)
    figures: dict[str, Any] = {f"depth {d + 1}": f"{value:.3f}" for d, value in enumerate(agreement)}
    for settings, shape in zip(TREES, profile.shapes, strict=True):
        name = f"tau {settings.total_tokens}/{settings.depth}/{settings.top_k}"
        figures[name] = f"{shape.tau[min(settings.total_tokens, len(shape.tau)) - 1]:.3f}"
    draft_ms = drain(measure_drafts(plain, Eagle2, drafter, profile)).draft_ms
    figures["draft ms, small tree"] = f"{draft_ms[0]:.1f}"
    return figures | {"training minutes": f"{state.seconds / 60:.0f}"}
