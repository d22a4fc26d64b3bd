"""Broken and hostile files end in one CheckpointError each; the report lists everything at once."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from explorer.checkpoints import files
from explorer.checkpoints.files import Report, expected_shapes, locate, quiet, read_json, read_tensors, weight_files
from explorer.errors import CheckpointError, DeviceError
from tests.support.checkpoints import golden_dir


def refused(call: object, *arguments: object) -> str:
    """The message of the CheckpointError that ``call`` must raise."""
    with pytest.raises(CheckpointError) as caught:
        call(*arguments)  # type: ignore[operator]
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe{}", "is not JSON"),
        (b"[]", "must hold a JSON object"),
        (b"[" * 100_000, "is not JSON"),
        (b"", "is not JSON"),
    ],
)
def test_broken_json(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert says in refused(read_json, path)


def test_json_that_is_missing_a_loop_or_oversized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    assert "cannot read" in refused(read_json, loop)
    assert "cannot read" in refused(read_json, tmp_path / "missing.json")
    monkeypatch.setattr(files, "MAX_JSON_BYTES", 4)
    (tmp_path / "large.json").write_text('{"a": 1}')
    assert "is larger than" in refused(read_json, tmp_path / "large.json")


def test_locate_takes_directories(tmp_path: Path) -> None:
    assert locate(str(tmp_path), "target") == tmp_path


@pytest.mark.parametrize(
    "source", ["/does/not/exist", "not a name", "../up", "", "a/b/c", "missing.safetensors", "~nobody-here/x", "a\0b"]
)
def test_locate_refuses_what_is_no_directory_and_no_hub_id(source: str) -> None:
    assert repr(source) in refused(locate, source, "target")


def test_locate_refuses_files_and_loops(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "is a file" in refused(locate, str(tmp_path / "file"), "target")
    refused(locate, str(loop), "target")


def test_a_hub_id_without_network_is_one_sentence() -> None:
    message = refused(locate, "nobody/nothing", "EAGLE drafter")
    assert "EAGLE drafter 'nobody/nothing' is no directory here" in message
    assert "check the spelling and the network" in message


def test_weight_files_prefers_the_named_ones(tmp_path: Path) -> None:
    for name in ("pytorch_model.bin", "model.safetensors", "medusa_lm_head.pt"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in weight_files(tmp_path)] == ["model.safetensors"]
    assert [path.name for path in weight_files(tmp_path, ("medusa_lm_head.pt",))] == ["medusa_lm_head.pt"]


def test_no_weights_lists_what_is_looked_for(tmp_path: Path) -> None:
    assert "model.safetensors, pytorch_model.bin" in refused(weight_files, tmp_path)


def test_sharded_weights_are_read_whole() -> None:
    paths = weight_files(golden_dir("medusa_c"))
    index = json.loads((golden_dir("medusa_c") / "model.safetensors.index.json").read_text())
    assert read_tensors(paths).keys() == index["weight_map"].keys()
    assert len(read_tensors(paths, lambda name: name.startswith("medusa_head."))) == 15


@pytest.mark.parametrize(
    "weight_map", [{"a": "../secret.safetensors"}, {"a": "missing.safetensors"}, {"a": 3}, {}, None, ["a"], {"a": ""}]
)
def test_an_index_may_only_name_shards_beside_it(tmp_path: Path, weight_map: object) -> None:
    (tmp_path.parent / "secret.safetensors").write_bytes(b"")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    assert "model.safetensors.index.json" in refused(weight_files, tmp_path)


class Exploit:
    """Would create a file when unpickled without care."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self._path),)


def test_pickles_run_no_code(tmp_path: Path) -> None:
    torch.save({"a": Exploit(tmp_path / "pwned")}, tmp_path / "zip.bin")
    (tmp_path / "raw.pt").write_bytes(pickle.dumps(Exploit(tmp_path / "pwned"), protocol=2))
    for name in ("zip.bin", "raw.pt"):
        assert "cannot be read" in refused(read_tensors, [tmp_path / name])
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("name", ["a.safetensors", "a.bin", "a.pt"])
@pytest.mark.parametrize("content", [b"", b"\0" * 64, b"\xff" * 64, b"<html>", b"PK\x03\x04broken"])
def test_broken_weights(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    refused(read_tensors, [path])


def test_truncated_weights(tmp_path: Path) -> None:
    save_file({"a": torch.ones(64, 64)}, tmp_path / "a.safetensors")
    torch.save({"a": torch.ones(64, 64)}, tmp_path / "a.bin")
    for name in ("a.safetensors", "a.bin"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:-500])
        assert str(path) in refused(read_tensors, [path])


@pytest.mark.parametrize("is_zip", [True, False])
def test_some_tensors_of_a_pickle_outlive_its_file(tmp_path: Path, is_zip: bool) -> None:
    path = tmp_path / "a.bin"
    torch.save({"a": torch.arange(4096.0), "b": torch.ones(2)}, path, _use_new_zipfile_serialization=is_zip)
    found = read_tensors([path], wanted=lambda name: name == "a")
    path.write_bytes(b"")
    assert found.keys() == {"a"}
    assert torch.equal(found["a"], torch.arange(4096.0))


def test_names_of_a_tensor_that_safetensors_stored_once(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / "a.safetensors", metadata={"b": "a", "format": "pt", "a": "nothing"})
    found = read_tensors([tmp_path / "a.safetensors"])
    assert found.keys() == {"a", "b"}
    assert torch.equal(found["b"], torch.ones(2))
    assert read_tensors([tmp_path / "a.safetensors"], wanted=lambda name: name == "b").keys() == {"b"}


@pytest.mark.parametrize("value", [[1], {"a": 1}, {"a": {"b": torch.ones(1)}}, {1: torch.ones(1)}])
def test_a_pickle_must_be_a_flat_dictionary_of_tensors(tmp_path: Path, value: object) -> None:
    torch.save(value, tmp_path / "a.bin")
    assert "flat dictionary of tensors" in refused(read_tensors, [tmp_path / "a.bin"])


def test_the_report_lists_everything_in_one_error() -> None:
    report = Report("drafter 'x'")
    report.compare({"a": (2, 3), "b": (1,), "gone": ()}, {"a": (3, 2), "b": (1,), "extra": (4,)})
    report.require_equal("hidden size", 64, 576)
    report.require_equal("vocabulary", 320, 320)
    with pytest.raises(CheckpointError) as caught:
        report.raise_if_any()
    assert str(caught.value) == (
        "drafter 'x' does not fit: missing: gone; unexpected: extra; a has shape [3, 2], expected [2, 3]; "
        "hidden size 64, but the target has 576"
    )


def test_an_empty_report_is_silent() -> None:
    report = Report("drafter")
    report.compare({"a": (1,)}, {"a": (1,)})
    report.raise_if_any()


def test_expected_shapes_allocates_nothing() -> None:
    huge = 10**7
    shapes = expected_shapes(lambda: torch.nn.Linear(huge, huge))
    assert shapes == {"weight": (huge, huge), "bias": (huge,)}


def test_out_of_memory_is_the_devices_fault() -> None:
    with pytest.raises(DeviceError, match="does not fit into the device's memory"), files.parsing("target 'x'"):
        raise torch.OutOfMemoryError("CUDA out of memory")


def test_quiet_restores_what_it_changed() -> None:
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with quiet():
        assert not logging.is_progress_bar_enabled()
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
