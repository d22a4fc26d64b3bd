"""Reading checkpoint files that somebody else wrote: strictly, and with one CheckpointError whatever is wrong."""

from __future__ import annotations

import json
import os
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from explorer.checkpoints.int8 import dequantize, with_scales
from explorer.errors import CheckpointError, DeviceError, ExplorerError

MAX_JSON_BYTES = 64 * 1024 * 1024  # larger than any index or config in use
MAX_REPORT_CHARS = 8000  # names and values in a report are the file's own, and may be of any length
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # each may be sharded behind NAME.index.json
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_SMALL_FILES = ["*.json", "*.jinja", "*.model", "*.txt", "token_map.safetensors", "target_adapter.safetensors"]

Shape = tuple[int, ...]


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' bars and load reports off the terminal: what they say, our own errors say."""
    from transformers.utils import logging

    verbosity, had_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if had_bars:
            logging.enable_progress_bar()


@contextmanager
def parsing(what: str) -> Iterator[None]:
    """Turn whatever a parser raises on broken or hostile files into one CheckpointError; wraps only such calls."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parsers about what they read; errors are told
            yield
    except ExplorerError:
        raise
    except torch.OutOfMemoryError as error:
        raise DeviceError(f"{what} does not fit into the device's memory: choose a smaller one, or the CPU") from error
    except Exception as error:  # tokenizers raises plain Exception, a hostile pickle nearly anything
        raise CheckpointError(f"{what} cannot be read: {brief(error)}") from error


def brief(error: BaseException) -> str:
    """The first line of an error in at most 300 characters, led by its class where it says nothing else."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


def locate(source: str, what: str, weights: Sequence[str] = ("*.safetensors", "*.bin")) -> Path:
    """The directory of ``source``: itself, or the local copy of that hub id, downloaded where there is a network.

    ``weights`` are file patterns in order of preference; the first that the repository has is taken. Raises
    CheckpointError for anything else.
    """
    with parsing(f"{what} {source!r}"):
        path = Path(source).expanduser()
        if source and path.is_dir():  # an empty name would be the current directory
            return path
        exists = bool(source) and path.exists()
    if exists:
        raise CheckpointError(f"{what} {source!r} is a file: name the directory that holds the checkpoint")
    if not _HUB_ID.fullmatch(source) or source.endswith((".json", ".safetensors", ".bin", ".pt")):
        raise CheckpointError(f"{what} {source!r} does not exist: name a checkpoint directory or a hub id (owner/name)")
    return _download(source, what, weights)


def _download(source: str, what: str, weights: Sequence[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        for pattern in weights:
            folder = Path(snapshot_download(source, allow_patterns=[*_SMALL_FILES, pattern]))
            if any(folder.glob(pattern)):
                return folder
    except (OSError, HFValidationError) as error:
        raise CheckpointError(
            f"{what} {source!r} is no directory here and cannot be brought from the hub ({brief(error)}): check the "
            "spelling and the network, or name a local directory"
        ) from error
    raise CheckpointError(f"{what} {source!r} has no weights: none of {', '.join(weights)} is in its repository")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; CheckpointError where it is missing, oversized, broken or no object."""
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise CheckpointError(f"{path} is larger than {MAX_JSON_BYTES // 2**20} MiB, which no such file is")
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not JSON: {brief(error)}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} must hold a JSON object")
    return value


def read_config(folder: Path) -> dict[str, Any]:
    """``config.json`` of a checkpoint directory."""
    return read_json(folder / "config.json")


def weight_files(folder: Path, extra: Sequence[str] = ()) -> list[Path]:
    """The files that hold the weights; ``extra`` are further single-file names, looked for first."""
    for name in (*extra, *_WEIGHTS):
        if (folder / name).exists():
            return [folder / name]
        index = folder / f"{name}.index.json"
        if index.exists():
            return _shards(folder, read_json(index), index)
    raise CheckpointError(f"{folder} holds no weights: expected one of {', '.join((*extra, *_WEIGHTS))} or its index")


def _shards(folder: Path, index: dict[str, Any], path: Path) -> list[Path]:
    names = index.get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(name, str) for name in names.values()):
        raise CheckpointError(f"{path}: weight_map must map tensor names to files")
    shards = sorted(set(names.values()))
    for name in shards:
        if Path(name).name != name or not (folder / name).is_file():
            raise CheckpointError(f"{path}: the shard {name!r} is not in {folder}")
    return [folder / name for name in shards]


def read_tensors(paths: Iterable[Path], wanted: Callable[[str], bool] | None = None) -> dict[str, Tensor]:
    """Tensors of one or more weight files by name, on the CPU; ``wanted`` picks some without reading the others.

    8-bit integers come as the float16 that they stand for (explorer.checkpoints.int8). Pickled files are read without
    running code (weights_only). Raises CheckpointError for broken files and for entries that are no tensors.
    """
    files = list(paths)
    found = _read_stored(files, _everything if wanted is None else with_scales(wanted))
    what = os.path.commonpath(files or [Path()])  # the file, or the folder of several
    report = Report(what)
    with parsing(what):
        tensors = dequantize(found, report)
    report.raise_if_any()
    return tensors


def is_quantized(paths: Iterable[Path]) -> bool:
    """Whether these weight files hold 8-bit integers, with the scales that belong to them or without."""
    return any(_holds_int8(path) for path in paths)


def _holds_int8(path: Path) -> bool:
    with parsing(str(path)):
        if path.suffix != ".safetensors":
            return any(tensor.dtype == torch.int8 for tensor in _read_pickle(path, _everything).values())
        from safetensors import safe_open

        with safe_open(path, framework="pt") as file:
            return any(file.get_slice(name).get_dtype() == "I8" for name in file.keys())  # noqa: SIM118


def _read_stored(paths: Iterable[Path], wanted: Callable[[str], bool]) -> dict[str, Tensor]:
    """Tensors as they are in the files."""
    found: dict[str, Tensor] = {}
    for path in paths:
        read = _read_safetensors if path.suffix == ".safetensors" else _read_pickle
        with parsing(str(path)):
            found |= read(path, wanted)
    return found


def _everything(_name: str) -> bool:
    return True


def _read_safetensors(path: Path, wanted: Callable[[str], bool]) -> dict[str, Tensor]:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        stored = dict.fromkeys(file.keys())
        # safetensors.torch.save_model writes a tensor with several names once, and its other names into the metadata.
        names = {k: v for k, v in (file.metadata() or {}).items() if v in stored} | {name: name for name in stored}
        return {name: file.get_tensor(at) for name, at in names.items() if wanted(name)}


def _read_pickle(path: Path, wanted: Callable[[str], bool]) -> dict[str, Tensor]:
    # Mapped, what is not wanted of a whole model's shard is never read; the older file format cannot be mapped.
    is_mapped = wanted is not _everything and zipfile.is_zipfile(path)
    state = torch.load(path, map_location="cpu", weights_only=True, mmap=is_mapped)
    if not isinstance(state, dict) or not all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in state.items()
    ):
        raise CheckpointError(f"{path} must hold a flat dictionary of tensors")
    if odd := [name for name, value in state.items() if not _is_plain(value)]:
        raise CheckpointError(f"{path} must hold plain dense tensors, which {min(odd)!r} is not")
    return {name: value.clone() if is_mapped else value for name, value in state.items() if wanted(name)}


def _is_plain(tensor: Tensor) -> bool:
    """Dense, with a number in the file for each of its own: a pickle may claim any size, or none of its numbers."""
    is_dense = tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized
    return (
        is_dense
        and tensor.device.type == "cpu"
        and tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()
    )


class Report:
    """Everything that is wrong with one checkpoint, raised together. target: the name of the one it has to fit."""

    def __init__(self, what: str, target: str | None = None) -> None:
        self._what = what
        self._fits = "does not fit" if target is None else f"does not fit the target {target!r}"
        self._problems: list[str] = []

    @property
    def num_problems(self) -> int:
        """How many were noted so far."""
        return len(self._problems)

    def add(self, problem: str) -> None:
        """Note one problem, a clause without a full stop."""
        self._problems.append(problem)

    def require_equal(self, name: str, found: int, wanted: int) -> None:
        """Note a number that must be the target's and is not."""
        if found != wanted:
            self.add(f"{name} {found}, but the target has {wanted}")

    def compare(self, expected: Mapping[str, Shape], found: Mapping[str, Shape]) -> None:
        """Note every missing, leftover and misshapen tensor."""
        missing = sorted(expected.keys() - found.keys())
        leftover = sorted(found.keys() - expected.keys())
        if missing:
            self.add(f"missing: {', '.join(missing)}")
        if leftover:
            self.add(f"unexpected: {', '.join(leftover)}")
        for name in sorted(expected.keys() & found.keys()):
            if expected[name] != found[name]:
                self.add(f"{name} has shape {list(found[name])}, expected {list(expected[name])}")

    def raise_if_any(self) -> None:
        """Raise one CheckpointError that lists all of it."""
        if self._problems:
            text = f"{self._what} {self._fits}: {'; '.join(self._problems)}"
            raise CheckpointError(text if len(text) <= MAX_REPORT_CHARS else f"{text[:MAX_REPORT_CHARS]} ...")


def shapes_of(tensors: Mapping[str, Tensor]) -> dict[str, Shape]:
    """Name -> shape."""
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def expected_shapes(build: Callable[[], nn.Module]) -> dict[str, Shape]:
    """Shapes of the state dict of the module that ``build`` makes, without allocating it: sizes may be hostile."""
    with torch.device("meta"):
        return shapes_of(build().state_dict())
