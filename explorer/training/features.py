"""The target's own hidden states over the training text: what drafters learn from, computed once."""

from collections.abc import Sequence
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


def compute_features(
    corpus: Corpus, body: nn.Module, folder: Path, max_tokens: int | None = None, layers: Sequence[int] = ()
) -> list[Path]:
    """Write one `.npz` per piece of the corpus: its arrays and `features` float16 [T, H]; existing ones are kept.

    body: the target without its LM head (a transformers base model); its output is after the final norm, which is
    what the LM head and EAGLE's drafter read (reference: `eagle/ge_data` of SafeAILab/EAGLE). max_tokens: stop after
    the piece that reaches it. layers: the features are what enters these decoder layers, side by side, instead.
    """
    written: list[Path] = []
    total = min(max_tokens or len(corpus.tokens), len(corpus.tokens))
    with tqdm(total=total, unit="token", unit_scale=True, desc="features", mininterval=5) as progress:
        for number, piece in enumerate(corpus.shards(SHARD_TOKENS)):
            if progress.n >= total:
                break
            path = folder / f"{number:05d}.npz"
            if not path.exists():
                _write_piece(piece, body, layers, path, progress)
            else:
                progress.update(len(piece.tokens))
                progress.initial = progress.n
            written.append(path)
    return written


def _write_piece(piece: Corpus, body: nn.Module, layers: Sequence[int], path: Path, progress: tqdm) -> None:
    offsets = piece.offsets
    features: np.ndarray | None = None
    for batch in batches_by_length(piece.lens, BATCH_TOKENS):
        hidden = _hidden_states(body, [piece.conversation(i) for i in batch], layers).half().cpu().numpy()
        if not np.isfinite(hidden).all():  # the residual stream may hold a few huge values
            raise SettingError("a hidden state of this target is too large for float16: name other --feature-layers")
        if features is None:
            features = np.zeros((len(piece.tokens), hidden.shape[-1]), dtype=np.float16)
        for row, index in enumerate(batch):
            features[offsets[index] : offsets[index + 1]] = hidden[row, : piece.lens[index]]
        progress.update(int(piece.lens[batch].sum()))
    arrays = {"tokens": piece.tokens, "lens": piece.lens, "start": piece.start, "temp": piece.temp}
    write_npz(path, arrays | {"features": features if features is not None else np.zeros((0, 0), np.float16)})


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
def _hidden_states(body: nn.Module, conversations: list[np.ndarray], layers: Sequence[int]) -> Tensor:
    longest = max(len(tokens) for tokens in conversations)
    # Padding stands on the right, where causal attention never looks, so it needs no mask and any token will do.
    padded = np.zeros((len(conversations), longest), dtype=np.int64)
    for row, tokens in enumerate(conversations):
        padded[row, : len(tokens)] = tokens
    device = next(body.parameters()).device
    entered = dict.fromkeys(layers, torch.empty(0))
    with layer_inputs(body, entered):
        last: Tensor = body(input_ids=torch.from_numpy(padded).to(device), use_cache=False).last_hidden_state
    return torch.cat(list(entered.values()), dim=-1) if layers else last
