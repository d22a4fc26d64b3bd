"""Damaged targets, drafters and caches: refused in one sentence or loaded, never a traceback, never another file."""

from __future__ import annotations

import io
import json
import logging
import logging.handlers
import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from explorer.checkpoints import smollm2
from explorer.checkpoints.drafter_source import EagleSource, read_drafter
from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.eagle3 import load_eagle3
from explorer.checkpoints.layouts import LAYOUTS, SGLANG_MAP, write_layout
from explorer.checkpoints.medusa import load_medusa
from explorer.checkpoints.serving import SGLANG, VLLM, check_layout
from explorer.checkpoints.target import load_target
from explorer.checkpoints.target_ends import read_target_ends
from explorer.checkpoints.token_map import TOKEN_MAP_FILE
from explorer.checkpoints.vllm_medusa import from_vllm
from explorer.errors import CheckpointError, ExplorerError
from explorer.prediction import PROFILE_FILE, read_profile
from tests.faults.hostile import ODD_VALUES, damaged, misfilled
from tests.support.checkpoints import Facts, copy_golden, vllm_copy
from tests.support.eagle3_files import BIN, LAYERS, VOCAB, eagle3_tensors, write_eagle3
from tests.support.goldens import FOLDER, golden_target

FUZZ = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], max_examples=15)
LONG = settings(FUZZ, max_examples=400)
DRAFTERS: dict[str, tuple[Callable[..., Any], str]] = {
    "eagle_bias": (load_eagle, "base_a"),
    "medusa_b": (load_medusa, "base_b"),
}


def copy_of(name: str, folder: Path) -> Path:
    """The golden checkpoint, to be damaged."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(FOLDER / name, folder)
    return folder


def damage_one(folder: Path, data: st.DataObject) -> None:
    """Damage one of the files: JSON ones in their values or their bytes, the others in their bytes."""
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    content = path.read_bytes()
    ways = damaged(content[:4096]).map(lambda head: head + content[4096:])
    if path.suffix == ".json" and len(content) < 4096:
        ways = st.one_of(ways, misfilled(json.loads(content)).map(lambda value: json.dumps(value).encode()))
    path.write_bytes(data.draw(ways))


def try_to_load(load: Callable[[], object]) -> None:
    """It loads, or says what is wrong on one page."""
    try:
        load()
    except ExplorerError as error:
        if not 0 < len(str(error)) < 20_000:
            pytest.fail("an error that says nothing, or too much")


def damaged_target(tmp_path: Path, data: st.DataObject) -> None:
    folder = copy_of("base_a", tmp_path / "target")
    damage_one(folder, data)
    try_to_load(lambda: load_target(str(folder), device="cpu", dtype="auto", backend="auto"))


def damaged_drafter(tmp_path: Path, name: str, data: st.DataObject) -> None:
    load, target = DRAFTERS[name]
    folder = copy_of(name, tmp_path / "drafter")
    damage_one(folder, data)
    try_to_load(lambda: load(str(folder), golden_target(target)))


@FUZZ
@given(data=st.data())
def test_a_damaged_target(tmp_path: Path, data: st.DataObject) -> None:
    damaged_target(tmp_path, data)


@pytest.mark.parametrize("name", DRAFTERS)
@FUZZ
@given(data=st.data())
def test_a_damaged_drafter(tmp_path: Path, name: str, data: st.DataObject) -> None:
    damaged_drafter(tmp_path, name, data)


@pytest.mark.soak
@LONG
@given(data=st.data())
def test_many_damaged_targets(tmp_path: Path, data: st.DataObject) -> None:
    damaged_target(tmp_path, data)


@pytest.mark.soak
@pytest.mark.parametrize("name", DRAFTERS)
@LONG
@given(data=st.data())
def test_many_damaged_drafters(tmp_path: Path, name: str, data: st.DataObject) -> None:
    damaged_drafter(tmp_path, name, data)


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "sub/x.safetensors", ".."])
def test_an_index_names_no_file_outside_its_folder(tmp_path: Path, name: str) -> None:
    shutil.copy(FOLDER / "base_a" / "model.safetensors", tmp_path / "secret.safetensors")
    folder = copy_of("base_a", tmp_path / "target")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(CheckpointError):
        load_target(str(folder), device="cpu", dtype="auto", backend="auto")


@settings(FUZZ, max_examples=150)
@given(data=st.data())
def test_a_damaged_mark_of_the_fetched_target_means_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    monkeypatch.setattr(smollm2, "target_dir", lambda: tmp_path)
    marker = {"conversion": smollm2.CONVERSION, "sha256": smollm2.GGUF.sha256, "files": {"model.safetensors": 5}}
    wrong = misfilled(marker).map(lambda value: json.dumps(value).encode())
    deep = st.just(b"[" * 100_000)
    content = data.draw(st.one_of(damaged(json.dumps(marker).encode()), wrong, deep))
    (tmp_path / smollm2._MARKER).write_bytes(content)
    assert smollm2.is_fetched() in (False, True)


@settings(FUZZ, max_examples=150)
@given(data=st.data())
def test_a_damaged_profile_is_one_error(tmp_path: Path, data: st.DataObject) -> None:
    source = next((FOLDER.parent.parent / "assets" / "drafters").glob(f"**/{PROFILE_FILE}"))
    content = source.read_bytes()
    wrong = misfilled(json.loads(content)).map(lambda value: json.dumps(value).encode())
    odd = st.sampled_from(ODD_VALUES).map(lambda value: json.dumps(value).encode())
    (tmp_path / PROFILE_FILE).write_bytes(data.draw(st.one_of(damaged(content), wrong, odd, st.just(b"[" * 100_000))))
    try:
        read_profile(tmp_path)
    except CheckpointError as error:
        if not str(error):
            pytest.fail("an error that says nothing")


def write_drafter(kind: str, folder: Path) -> Path:
    """A drafter of a kind that one of the readers below knows."""
    if kind == "eagle3":
        return write_eagle3(folder, layers=LAYERS)
    if kind == "vllm":
        return vllm_copy(folder)
    if kind == "speculators":
        ends = read_target_ends(str(FOLDER / "base_a"))
        source = read_drafter(str(FOLDER / "eagle_nobias"), ends)
        assert isinstance(source, EagleSource)
        for name, data in write_layout(kind, replace(source, embedding=None)).files.items():
            (folder / name).write_bytes(data)
        return folder
    made = copy_golden("medusa_b", folder)
    save_file({"token_map": torch.arange(0, VOCAB, 4)}, made / TOKEN_MAP_FILE)
    return made


def read_in_every_way(kind: str, folder: Path, layout: str) -> None:
    """As a run reads it, and as ``convert`` and ``deploy`` do."""
    if kind == "eagle3":
        load_eagle3(str(folder), Facts())
        return
    source = read_drafter(str(folder), read_target_ends(str(FOLDER / "base_a")))
    write_layout(layout, source)
    check_layout(VLLM, folder, str(folder), source)


@pytest.mark.parametrize("kind", ["eagle3", "vllm", "speculators", "token map"])
@FUZZ
@given(data=st.data())
def test_a_damaged_drafter_of_another_layout(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    shutil.rmtree(tmp_path / "drafter", ignore_errors=True)
    (tmp_path / "drafter").mkdir()
    folder = write_drafter(kind, tmp_path / "drafter")
    damage_one(folder, data)
    layout = data.draw(st.sampled_from(sorted(LAYOUTS)))
    try_to_load(lambda: read_in_every_way(kind, folder, layout))


@settings(FUZZ, max_examples=60)
@given(data=st.data())
def test_a_config_of_eagle3_that_nobody_wrote_on_purpose(tmp_path: Path, data: st.DataObject) -> None:
    folder = write_eagle3(tmp_path / "drafter", layers=LAYERS)
    path = folder / "config.json"
    path.write_text(json.dumps(data.draw(misfilled(json.loads(path.read_text())))))
    try_to_load(lambda: load_eagle3(str(folder), Facts()))


def nested(tensor: torch.Tensor) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nested tensors may change
        return torch._nested_tensor_from_tensor_list([tensor.float()])


ODD_TENSORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sparse": lambda tensor: tensor.to_sparse(),
    "without numbers": lambda tensor: torch.empty(tensor.shape, dtype=tensor.dtype, device="meta"),
    "repeated without end": lambda tensor: torch.zeros(1, dtype=tensor.dtype).expand(2**40),
    "nested": lambda tensor: nested(tensor),
}


@pytest.mark.parametrize("odd", ODD_TENSORS)
@pytest.mark.parametrize("name", ["fc.weight", "d2t", "t2d", "embed_tokens.weight"])
def test_a_pickle_holds_plain_tensors_or_is_refused(tmp_path: Path, name: str, odd: str) -> None:
    """A pickle can describe tensors of any size, and some without a single number, in a few bytes."""
    tensors = {"embed_tokens.weight": torch.ones(VOCAB, 64)} | eagle3_tensors()
    folder = write_eagle3(tmp_path, tensors | {name: ODD_TENSORS[odd](tensors[name])}, file=BIN, layers=LAYERS)
    with pytest.raises(CheckpointError, match=f"plain dense tensors, which '{name}' is not"):
        load_eagle3(str(folder), Facts())


@pytest.mark.parametrize("size", [2**31, 2**70, 10**400], ids=["2^31", "2^70", "10^400"])
@pytest.mark.parametrize("field", ["vocab_size", "hidden_size", "draft_vocab_size", "head_dim", "rope_theta"])
def test_sizes_beyond_any_in_use_are_refused(tmp_path: Path, field: str, size: int) -> None:
    folder = write_eagle3(tmp_path, layers=LAYERS, **{field: size})
    try_to_load(lambda: load_eagle3(str(folder), Facts()))


def test_a_report_on_names_without_end_has_one(tmp_path: Path) -> None:
    """Names are the file's own: of any length, and as many as it likes."""
    many = {f"midlayer.{number}.{'x' * 90}": torch.zeros(1) for number in range(300)}
    folder = write_eagle3(tmp_path, eagle3_tensors() | many, layers=LAYERS)
    with pytest.raises(CheckpointError, match="unexpected: midlayer.0") as caught:
        load_eagle3(str(folder), Facts())
    assert len(str(caught.value)) < 10_000


def test_a_token_map_longer_than_its_matrix_copies_no_row(tmp_path: Path) -> None:
    """Rows that repeat would take what the file's size does not tell."""
    folder = vllm_copy(tmp_path)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    save_file(tensors | {"token_map": torch.zeros(10 * VOCAB, dtype=torch.int64)}, path)
    found, _ = from_vllm(load_file(path))
    assert {len(tensor) for name, tensor in found.items() if name.endswith(".1.weight")} == {VOCAB}
    with pytest.raises(CheckpointError, match="different target ids"):
        load_medusa(str(folder), Facts())


def test_a_config_that_is_refused_is_refused_alone(tmp_path: Path) -> None:
    """transformers would warn of token ids that a drafter's config has by default."""
    logger, heard = logging.getLogger("transformers"), logging.handlers.BufferingHandler(100)
    logger.addHandler(heard)
    try:
        try_to_load(lambda: load_eagle3(str(write_eagle3(tmp_path, layers=LAYERS, vocab_size=1)), Facts()))
    finally:
        logger.removeHandler(heard)
    assert [record.getMessage() for record in heard.buffer] == []


def test_two_names_for_one_tensor_are_refused(tmp_path: Path) -> None:
    """The later one would be taken, whichever that is."""
    speculators = write_drafter("speculators", tmp_path)
    path = speculators / "model.safetensors"
    tensors = load_file(path)
    save_file(tensors | {"fc.weight": torch.zeros_like(tensors["fusion_fc.weight"])}, path)
    with pytest.raises(CheckpointError, match="fc.weight.* under two names"):
        load_eagle(str(speculators), Facts())
    heads = vllm_copy(tmp_path)
    path = heads / "model.safetensors"
    tensors = load_file(path)
    first = "blocks.0.layers.0.weight"
    save_file(tensors | {f"medusa_heads.{first}": torch.zeros_like(tensors[first])}, path)
    with pytest.raises(CheckpointError, match=f"{first}.* under two names"):
        load_medusa(str(heads), Facts())


@pytest.mark.parametrize(
    "ids", [[1, 1], [-1], [VOCAB], [], ["x"], {"a": 1}, torch.ones(3, 3), None], ids=lambda ids: str(ids)[:12]
)
def test_a_token_map_that_the_server_would_not_load(tmp_path: Path, ids: object) -> None:
    ends = read_target_ends(str(FOLDER / "base_a"))
    for name, data in write_layout("sglang", read_drafter(str(FOLDER / "eagle_bias"), ends)).files.items():
        (tmp_path / name).write_bytes(data)
    source = read_drafter(str(tmp_path), ends)
    check_layout(SGLANG, tmp_path, "drafter", source)
    buffer = io.BytesIO()
    torch.save(ids, buffer)
    for content in (buffer.getvalue(), buffer.getvalue()[:-20], b""):
        (tmp_path / SGLANG_MAP).write_bytes(content)
        with pytest.raises(CheckpointError, match=SGLANG_MAP):
            check_layout(SGLANG, tmp_path, "drafter", source)
