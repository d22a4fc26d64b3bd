"""The target's own hidden states over the training text: what drafters learn from, computed once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from explorer.errors import SettingError
from explorer.models.layer_inputs import layer_inputs
from explorer.training.corpus import Corpus
from explorer.training.storage import write_npz

SHARD_TOKENS = 24_000
BATCH_TOKENS = 2_048


@dataclass(frozen=True)
class Entered:
    """Also wanted of each pass: what enters these decoder layers, side by side, in a folder of its own."""

    layers: Sequence[int]
    folder: Path


def compute_features(
    corpus: Corpus, body: nn.Module, folder: Path, max_tokens: int | None = None, entered: Entered | None = None
) -> list[Path]:
    """Write one `.npz` per piece of the corpus: its arrays and `features` float16 [T, H]; existing ones are kept.

    body: the target without its LM head (a transformers base model); its output is after the final norm, which is
    what the LM head and EAGLE's drafter read (reference: `eagle/ge_data` of SafeAILab/EAGLE). max_tokens: stop after
    the piece that reaches it. entered: from the same passes a piece in its folder too, with `features` [T, F]. Returns
    the pieces of ``folder``. Raises SettingError where a hidden state is too large for float16.
    """
    written: list[Path] = []
    total = min(max_tokens or len(corpus.tokens), len(corpus.tokens))
    with tqdm(total=total, unit="token", unit_scale=True, desc="features", mininterval=5) as progress:
        for number, piece in enumerate(corpus.shards(SHARD_TOKENS)):
            if progress.n >= total:
                break
            name = f"{number:05d}.npz"
            wanted: dict[Path, Sequence[int] | None] = {folder / name: None}
            if entered is not None:
                wanted[entered.folder / name] = entered.layers
            missing = {path: layers for path, layers in wanted.items() if not path.exists()}
            if missing:
                _write_piece(piece, body, missing, progress)
            else:
                progress.update(len(piece.tokens))
                progress.initial = progress.n
            written.append(folder / name)
    return written


def _write_piece(piece: Corpus, body: nn.Module, wanted: Mapping[Path, Sequence[int] | None], progress: tqdm) -> None:
    """One pass over the piece for all files; None: the last hidden states, else those that enter the layers."""
    offsets = piece.offsets
    found: dict[Path, np.ndarray] = {}
    for batch in batches_by_length(piece.lens, BATCH_TOKENS):
        states = _hidden_states(body, [piece.conversation(i) for i in batch], list(wanted.values()))
        for path, state in zip(wanted, states, strict=True):
            hidden = state.half().cpu().numpy()
            if not np.isfinite(hidden).all():  # the residual stream may hold a few huge values
                raise SettingError("a hidden state here is too large for float16: name other --feature-layers")
            kept = found.setdefault(path, np.zeros((len(piece.tokens), hidden.shape[-1]), dtype=np.float16))
            for row, index in enumerate(batch):
                kept[offsets[index] : offsets[index + 1]] = hidden[row, : piece.lens[index]]
        progress.update(int(piece.lens[batch].sum()))
    arrays = {"tokens": piece.tokens, "lens": piece.lens, "start": piece.start, "temp": piece.temp}
    for path in wanted:
        write_npz(path, arrays | {"features": found.get(path, np.zeros((0, 0), np.float16))})


def batches_by_length(lens: np.ndarray, max_tokens: int) -> list[np.ndarray]:
    """Indices grouped so that similar lengths meet and no padded batch exceeds `max_tokens` (one row always may)."""
    batches: list[np.ndarray] = []
    current: list[int] = []
    for index in np.argsort(-lens, kind="stable"):
        if current and (len(current) + 1) * lens[current[0]] > max_tokens:
            batches.append(np.array(current))
            current = []
        current.append(int(index))
    if current:
        batches.append(np.array(current))
    return batches


@torch.inference_mode()
def _hidden_states(
    body: nn.Module, conversations: list[np.ndarray], wanted: Sequence[Sequence[int] | None]
) -> list[Tensor]:
    longest = max(len(tokens) for tokens in conversations)
    # Padding stands on the right, where causal attention never looks, so it needs no mask and any token will do.
    padded = np.zeros((len(conversations), longest), dtype=np.int64)
    for row, tokens in enumerate(conversations):
        padded[row, : len(tokens)] = tokens
    device = next(body.parameters()).device
    entered = dict.fromkeys((layer for layers in wanted for layer in layers or ()), torch.empty(0))
    with layer_inputs(body, entered):
        last: Tensor = body(input_ids=torch.from_numpy(padded).to(device), use_cache=False).last_hidden_state
    return [last if layers is None else torch.cat([entered[layer] for layer in layers], dim=-1) for layers in wanted]
