"""Every kind of drafter stored as 8-bit integers: read back, drafting, and written in the other layouts again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from explorer.__main__ import main
from explorer.checkpoints.drafter_source import DrafterSource, read_drafter
from explorer.checkpoints.files import read_tensors, weight_files
from explorer.checkpoints.int8_folder import quantize_folder
from explorer.checkpoints.layouts import LAYOUTS, write_layout
from explorer.checkpoints.medusa import FILES
from explorer.checkpoints.target_adapter import ADAPTER_FILE
from explorer.checkpoints.target_ends import read_target_ends
from explorer.checkpoints.written import Written
from explorer.errors import CheckpointError
from explorer.trace import read_trace
from tests.explorer.checkpoints.test_layouts import put, reduced
from tests.support.checkpoints import copy_golden, edit_json, golden_dir, vllm_copy
from tests.support.eagle3_files import LAYERS, eagle3_tensors, write_eagle3, write_speculators
from tests.support.medusa2_files import write_medusa2
from tests.support.variants import with_one_kv_head

ENDS = read_target_ends(str(golden_dir("base_a")))


def borrowing(folder: Path) -> Path:
    """A draft model without embedding and LM head: the first layer of golden base_a, whose target it drafts for."""
    made = copy_golden("base_a", folder)
    config = json.loads((made / "config.json").read_text()) | {"num_hidden_layers": 1, "embedding_shared": True}
    (made / "config.json").write_text(json.dumps(config))
    kept = ("model.layers.0.", "model.norm.")
    tensors = {name: t for name, t in load_file(made / "model.safetensors").items() if name.startswith(kept)}
    save_file(tensors, made / "model.safetensors")
    return made


def with_token_map(folder: Path) -> Path:
    made = copy_golden("medusa_b", folder)
    save_file({"token_map": torch.arange(0, 320, 2)}, made / "token_map.safetensors")
    return made


HEADLESS: dict[str, Any] = {"layers": LAYERS, "lm_head_shared": True}


def headless() -> dict[str, Tensor]:
    return {name: tensor for name, tensor in eagle3_tensors().items() if name != "lm_head.weight"}


# Name -> (method, golden target, what makes the folder).
KINDS: dict[str, tuple[str, str, Callable[[Path], Path]]] = {
    "medusa-a": ("medusa", "base_a", lambda folder: copy_golden("medusa_a", folder)),
    "medusa-b": ("medusa", "base_b", with_token_map),
    "medusa, vLLM's": ("medusa", "base_a", vllm_copy),
    "medusa2": ("medusa", "base_b", write_medusa2),
    "eagle1": ("eagle1", "base_a", reduced),
    "eagle2, shards": ("eagle2", "base_a", with_one_kv_head),
    "eagle3": ("eagle3", "base_a", lambda folder: write_eagle3(folder / "own", layers=LAYERS)),
    "eagle3, shared head": ("eagle3", "base_a", lambda folder: write_eagle3(folder / "own", headless(), **HEADLESS)),
    "eagle3, speculators'": (
        "eagle3",
        "base_a",
        lambda folder: write_speculators(folder / "own", eagle_aux_hidden_state_layer_ids=LAYERS),
    ),
    "draft model, whole": ("draft_model", "base_a", lambda folder: copy_golden("base_a", folder)),
    "draft model, borrowing": ("draft_model", "base_a", borrowing),
}


def to_int8(source: Path, folder: Path) -> Path:
    return put(quantize_folder(source), folder)


def read_back(folder: Path, plain: Path) -> Path:
    """The same drafter with plain float16 in its files."""
    shutil.copytree(folder, plain)
    for path in plain.glob("*.safetensors"):
        save_file(read_tensors([path]), path, metadata={"format": "pt"})
    edit_json(plain / "config.json", quantization_config=None)
    return plain


def raw(path: Path) -> dict[str, Tensor]:
    """The tensors of a file as they are stored."""
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_drafter_writes_the_targets_output(tmp_path: Path, kind: str) -> None:
    method, base, make = KINDS[kind]
    folder = to_int8(make(tmp_path), tmp_path / "int8")
    (path,) = weight_files(folder, extra=FILES)
    assert torch.int8 in {tensor.dtype for tensor in raw(path).values()}
    out = tmp_path / "t.json"
    arguments = ["trace", "--method", method, "--target", str(golden_dir(base)), "--drafter", str(folder)]
    arguments += ["--prompt", "Count the red cats", "--max-new-tokens", "32", "--ignore-stop", "--out", str(out)]
    assert main(arguments) == 0
    trace = read_trace(out)
    assert trace.baseline is not None
    assert trace.baseline.output_equal
    assert len(trace.output.token_ids) == 32
    assert trace.stats.num_accepted_draft_tokens > 0 or method == "eagle3", "random tensors draft nothing right"


@pytest.mark.parametrize("kind", KINDS)
def test_it_drafts_as_its_weights_read_back_do(tmp_path: Path, kind: str) -> None:
    """Stored as integers or as the float16 that they stand for: the same trees, token for token."""
    method, base, make = KINDS[kind]
    folder = to_int8(make(tmp_path), tmp_path / "int8")
    trees = []
    for drafter in (folder, read_back(folder, tmp_path / "plain")):
        out = tmp_path / "t.json"
        arguments = ["trace", "--method", method, "--target", str(golden_dir(base)), "--drafter", str(drafter)]
        arguments += ["--prompt", "Count the red cats", "--max-new-tokens", "12", "--no-baseline", "--out", str(out)]
        assert main(arguments) == 0
        trace = read_trace(out)
        trees.append([(step.tree.token, step.tree.draft_prob) for step in trace.steps])
    assert str(trees[0]) == str(trees[1])  # as text, in which a missing probability equals itself


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "draft model" not in kind and kind != "medusa2"])
def test_every_other_layout_gets_plain_weights(tmp_path: Path, kind: str) -> None:
    """What is written, or refused, is what would be of a file with plain float16."""
    _, base, make = KINDS[kind]
    ends = read_target_ends(str(golden_dir(base)))
    folder = to_int8(make(tmp_path), tmp_path / "int8")
    drafter = read_drafter(str(folder), ends)
    plain = read_drafter(str(read_back(folder, tmp_path / "plain")), ends)
    num_written = 0
    for layout in [name for name, other in LAYOUTS.items() if drafter.kind in other.makers]:
        found, expected = (written_or_refused(layout, each) for each in (drafter, plain))
        assert found == expected
        if isinstance(found, str):
            continue
        num_written += 1
        assert b"quantization_config" not in found["config.json"]
        tensors = read_tensors(weight_files(put(Written(found), tmp_path / layout), extra=FILES))
        assert not [name for name in tensors if name.endswith("_scale")]
        assert torch.int8 not in {tensor.dtype for tensor in tensors.values()}
    assert num_written >= 2


def written_or_refused(layout: str, drafter: DrafterSource) -> dict[str, bytes] | str:
    try:
        return write_layout(layout, drafter).files
    except CheckpointError as error:
        return str(error)


def test_bytes_are_the_same_every_time_and_all_else_is_copied(tmp_path: Path) -> None:
    made = with_token_map(tmp_path)
    for name, content in (("README.md", b"# Heads of mine\n"), ("acceptance.json", b"{}"), (".hidden", b"")):
        (made / name).write_bytes(content)
    (made / "folder").mkdir()
    written = quantize_folder(made)
    assert written == quantize_folder(made)
    assert written.notes == []
    copied = {"README.md", "acceptance.json", "token_map.safetensors"}
    assert written.files.keys() == copied | {"config.json", "medusa_lm_head.safetensors"}
    assert all(written.files[name] == (made / name).read_bytes() for name in copied)
    config = json.loads(written.files["config.json"])
    stored = config.pop("quantization_config")
    assert config == json.loads((made / "config.json").read_text())
    assert stored["config_groups"]["group_0"]["weights"]["group_size"] == 64


def test_a_file_of_weights_is_half_as_large(tmp_path: Path) -> None:
    made = write_eagle3(tmp_path / "own", {name: _half(tensor) for name, tensor in eagle3_tensors().items()})
    before, after = (made / "model.safetensors").stat().st_size, len(quantize_folder(made).files["model.safetensors"])
    assert after < 0.6 * before


def _half(tensor: Tensor) -> Tensor:
    return tensor.half() if tensor.is_floating_point() else tensor


def test_shards_and_pickles_become_one_file(tmp_path: Path) -> None:
    made = with_one_kv_head(tmp_path)
    assert len(weight_files(made)) > 1
    assert quantize_folder(made).files.keys() == {"config.json", "model.safetensors"}
    made = copy_golden("medusa_a", tmp_path)
    (made / "config.json").unlink(missing_ok=True)
    files = quantize_folder(made).files
    assert files.keys() == {"config.json", "medusa_lm_head.safetensors"}
    assert json.loads(files["config.json"]).keys() == {"quantization_config"}


def test_the_adapter_of_a_target_is_left_alone(tmp_path: Path) -> None:
    made = write_medusa2(tmp_path)
    assert quantize_folder(made).files[ADAPTER_FILE] == (made / ADAPTER_FILE).read_bytes()


def test_integers_are_not_made_twice(tmp_path: Path) -> None:
    for made in (copy_golden("eagle_bias", tmp_path), write_medusa2(tmp_path)):
        folder = to_int8(made, tmp_path / f"{made.name}-int8")
        with pytest.raises(CheckpointError) as caught:
            quantize_folder(folder)
        assert str(caught.value) == f"{folder} is stored as 8-bit integers already"


def test_what_is_no_drafter_with_matrices_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds a target beside its Medusa heads: choose medusa-b"):
        quantize_folder(golden_dir("medusa_c"))
    with pytest.raises(CheckpointError, match="holds no weights"):
        quantize_folder(tmp_path)
    save_file({"norm.weight": torch.ones(4)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="holds no matrices that could be stored"):
        quantize_folder(tmp_path)
