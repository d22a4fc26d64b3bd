"""A drafter's folder with its weights as 8-bit integers: half the size, and the same drafter up to rounding."""

from __future__ import annotations

from pathlib import Path

from explorer.checkpoints.files import is_quantized, read_config, read_tensors, weight_files
from explorer.checkpoints.int8 import CONFIG_KEY, GROUP_SIZE, quantization_config, quantize
from explorer.checkpoints.medusa import FILES, FULL_MODEL_PREFIX
from explorer.checkpoints.written import CONFIG, WEIGHTS, Written, json_bytes, tensor_bytes
from explorer.errors import CheckpointError

LAYOUT = "int8"
WHAT = f"8-bit integers with a float16 scale for every {GROUP_SIZE} weights of a row, as compressed-tensors stores them"


def quantize_folder(folder: Path) -> Written:
    """The files of a drafter of any kind, its matrices as of ``quantize``, everything beside the weights as it is.

    So is an adapter of the target: rounding it would make another target than the one that was measured. Raises
    CheckpointError where the weights are integers already, where they are a target's too, or cannot be read.
    """
    paths = weight_files(folder, extra=FILES)
    if is_quantized(paths):
        raise CheckpointError(f"{folder} is stored as 8-bit integers already")
    tensors = read_tensors(paths)
    if any(name.startswith(FULL_MODEL_PREFIX) for name in tensors):
        raise CheckpointError(f"{folder} holds a target beside its Medusa heads: choose medusa-b for the heads alone")
    stored = quantize(tensors)
    if stored.keys() == tensors.keys():
        raise CheckpointError(f"{folder} holds no matrices that could be stored as 8-bit integers")
    files = {path.name: path.read_bytes() for path in _beside_weights(folder)}
    files[FILES[0] if paths[0].name in FILES else WEIGHTS] = tensor_bytes(stored)
    config = read_config(folder) if (folder / CONFIG).is_file() else {}  # published heads may have none
    files[CONFIG] = json_bytes(config | {CONFIG_KEY: quantization_config(stored)})
    return Written(files)


def _beside_weights(folder: Path) -> list[Path]:
    """Every file that belongs to the drafter and is not rewritten: card, profile, token map, adapter, tokenizer."""
    weights = {*FILES, WEIGHTS, "pytorch_model.bin", CONFIG}
    shards = {path.name for path in weight_files(folder, extra=FILES)}
    files = (path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith("."))
    return [path for path in files if path.name not in weights | shards and not path.name.endswith(".index.json")]
