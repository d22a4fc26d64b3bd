"""Damaged targets, drafters and caches: refused in one sentence or loaded, never a traceback, never another file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer.checkpoints import smollm2
from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.medusa import load_medusa
from explorer.checkpoints.target import load_target
from explorer.errors import CheckpointError, ExplorerError
from explorer.prediction import PROFILE_FILE, read_profile
from tests.faults.hostile import ODD_VALUES, damaged, misfilled
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
