"""The training loop both drafters share: seeded, checkpointed, resumed exactly, stopped on held-out agreement."""

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from tqdm import tqdm

from explorer.errors import SettingError
from explorer.training.dataset import Batch, FeatureSet
from explorer.training.interrupts import held_back
from explorer.training.storage import write_state


@dataclass(frozen=True)
class LoopOptions:
    """How long and how fast. batch_tokens counts padded tokens; save_every and evaluate_every count steps.

    is_bfloat16: products in bfloat16 (weights and sums stay float32): twice as fast on processors that have it.
    """

    epochs: int = 6
    batch_tokens: int = 1024
    learning_rate: float = 1e-3
    warmup_steps: int = 100
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    seed: int = 0
    save_every: int = 20
    evaluate_every: int = 400
    patience: int = 6
    is_bfloat16: bool = False


class Recipe(Protocol):
    """What differs between drafters: the trained network, its loss, and its score on held-out text."""

    @property
    def network(self) -> nn.Module:
        """What is trained."""

    @property
    def options(self) -> Any:
        """Settings of the recipe, a dataclass: a run is resumed only under the same ones."""

    def loss(self, batch: Batch, generator: torch.Generator, progress: float) -> Tensor:
        """Scalar loss of a batch; `progress` runs from 0 to 1; all randomness comes from `generator`."""

    def evaluate(self) -> dict[str, float]:
        """Figures on held-out text; the one named "score" is what early stopping maximises."""


@dataclass
class Progress:
    """State of a run: all that a checkpoint holds besides tensors."""

    step: int = 0
    seconds: float = 0.0
    best_score: float = -math.inf
    evaluations_since_best: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


def train(
    recipe: Recipe, data: FeatureSet, options: LoopOptions, folder: Path, shares: Mapping[str, float] | None = None
) -> Progress:
    """Run the recipe to its end and leave the best weights in `recipe.network`.

    `folder/last.pt` is written at intervals and when Ctrl-C or `kill` ends the run, after the batch under way;
    a run that finds it goes on from there, on the same batches with the same noise, because both depend on the seed
    and the step alone. shares: of the learning rate, for parameters by the beginning of their names; 1 for all others.
    Raises SettingError if that run had other settings or other data.
    """
    identity = {"loop": asdict(options), "recipe": asdict(recipe.options), "tokens": len(data.corpus.tokens)}
    schedule = [
        data.batch_indices(options.batch_tokens, options.seed * 1000 + epoch) for epoch in range(options.epochs)
    ]
    batches = [batch for epoch in schedule for batch in epoch]
    shares = {"": 1.0} | dict(shares or {})
    optimizer = _optimizer(recipe.network, options, list(shares))
    state = _resume(recipe.network, optimizer, folder / "last.pt", identity)

    def save() -> None:
        tensors = {"network": recipe.network.state_dict(), "optimizer": optimizer.state_dict()}
        progress = {"progress": dict(vars(state)), "identity": identity}
        write_state(folder / "last.pt", {**tensors, **progress})

    length = len(batches)
    with held_back() as interrupt, tqdm(total=length, initial=state.step, desc=folder.name, mininterval=10) as bar:
        while state.step < len(batches) and state.evaluations_since_best < options.patience:
            rate = _learning_rate(options, state.step / len(batches), state.step)
            for index, group in enumerate(optimizer.param_groups):
                group["lr"] = rate * list(shares.values())[index // 2]
            started = time.monotonic()
            loss = _step(recipe, optimizer, data.batch(batches[state.step]), options, state, len(batches))
            state.seconds += time.monotonic() - started
            state.step += 1
            bar.update()
            if state.step % options.evaluate_every == 0 or state.step == len(batches):
                _evaluate(recipe, state, loss, folder)
                bar.write(str(state.history[-1]))
            if state.step % options.save_every == 0 or state.step == len(batches) or interrupt.is_asked:
                save()
            if interrupt.is_asked:
                raise KeyboardInterrupt
    recipe.network.load_state_dict(torch.load(folder / "best.pt", weights_only=True)["network"])
    return state


def _optimizer(network: nn.Module, options: LoopOptions, beginnings: list[str]) -> torch.optim.AdamW:
    """Two groups for each beginning of names, its matrices and its vectors; the longest that fits has a parameter."""
    groups: dict[str, tuple[list[nn.Parameter], list[nn.Parameter]]] = {each: ([], []) for each in beginnings}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            own = max((each for each in beginnings if name.startswith(each)), key=len)
            groups[own][parameter.ndim <= 1].append(parameter)
    decays = (options.weight_decay, 0.0)
    split = [(found, decay) for pair in groups.values() for found, decay in zip(pair, decays, strict=True)]
    described = [{"params": found, "weight_decay": decay} for found, decay in split]
    return torch.optim.AdamW(described, lr=options.learning_rate, betas=(0.9, 0.95))


def _learning_rate(options: LoopOptions, share: float, step: int) -> float:
    """At a step, after this share of them all: a linear warmup under a cosine that ends at a fiftieth."""
    warmup = min(1.0, (step + 1) / options.warmup_steps)
    cosine = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share))
    return options.learning_rate * warmup * cosine


def _step(
    recipe: Recipe, optimizer: torch.optim.Optimizer, batch: Batch, options: LoopOptions, state: Progress, total: int
) -> float:
    generator = torch.Generator().manual_seed(options.seed * 1_000_003 + state.step)
    recipe.network.train()
    with torch.autocast("cpu", torch.bfloat16, enabled=options.is_bfloat16):
        loss = recipe.loss(batch, generator, state.step / total)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(recipe.network.parameters(), options.clip_norm)
    optimizer.step()
    return loss.item()


def _evaluate(recipe: Recipe, state: Progress, loss: float, folder: Path) -> None:
    recipe.network.eval()
    with torch.inference_mode():
        figures = recipe.evaluate()
    state.history.append({"step": state.step, "loss": round(loss, 4), **{k: round(v, 4) for k, v in figures.items()}})
    if figures["score"] > state.best_score:
        state.best_score = figures["score"]
        state.evaluations_since_best = 0
        write_state(folder / "best.pt", {"network": recipe.network.state_dict()})
    else:
        state.evaluations_since_best += 1


def _resume(network: nn.Module, optimizer: torch.optim.Optimizer, path: Path, identity: dict[str, Any]) -> Progress:
    if not path.exists():
        return Progress()
    saved = torch.load(path, weights_only=True)
    if saved["identity"] != identity:
        raise SettingError(
            f"{path} belongs to a run with other settings or text: repeat them, or move that folder away"
        )
    network.load_state_dict(saved["network"])
    optimizer.load_state_dict(saved["optimizer"])
    return Progress(**saved["progress"])
