"""EAGLE-3 drafters come back bit for bit from every layout; what a server has no place for is refused.

Facts, where they were read: vllm/model_executor/models/llama_eagle3.py of vllm-project/vllm (00bd1493: ``midlayer.`` is
renamed, three hidden states go into ``fc``, biases of q, k and v come with one in the output),
python/sglang/srt/models/llama_eagle3.py of sgl-project/sglang (03d5a777: q, k and v have no bias, ``draft_vocab_size``
None means the target's own head). Of vllm-project/speculators, convert/eagle/eagle3_converter.py (00823a74) and the
release 0.9.0 from its package: models/eagle3/{config,core,model_definitions}.py. What is written here was loaded once
by that release's own Eagle3SpeculatorConfig and Eagle3DraftModel, whose logits were ours to 2e-6, with both residuals;
what its save_pretrained wrote was read back here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load
from torch import Tensor

from explorer.checkpoints.drafter_source import Eagle3Source, read_drafter
from explorer.checkpoints.eagle3 import FEATURE_LAYERS
from explorer.checkpoints.layouts import write_layout
from explorer.checkpoints.serving import check_layout
from explorer.checkpoints.target_ends import read_target_ends
from explorer.errors import CheckpointError
from tests.explorer.checkpoints.test_layouts import put, same
from tests.support.checkpoints import edit_json, golden_dir
from tests.support.eagle3_files import DRAFTED, HIDDEN, VOCAB, eagle3_tensors, write_eagle3

ENDS = read_target_ends(str(golden_dir("base_a")))
LAYERS = [1, 2, 3]


def drafter(folder: Path, tensors: dict[str, Tensor] | None = None, layers: list[int] | None = None) -> Eagle3Source:
    found = read_drafter(str(write_eagle3(folder, tensors, layers=LAYERS if layers is None else layers)), ENDS)
    assert isinstance(found, Eagle3Source)
    return found


def with_biases() -> dict[str, Tensor]:
    tensors = eagle3_tensors()
    for name, size in (("q", HIDDEN), ("k", HIDDEN // 2), ("v", HIDDEN // 2)):
        tensors[f"midlayer.self_attn.{name}_proj.bias"] = torch.ones(size)
    return tensors


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("layout", ["eagle", "vllm", "sglang", "speculators"])
def test_a_drafter_comes_back_bit_for_bit(tmp_path: Path, layout: str, dtype: torch.dtype) -> None:
    stored = {name: t.to(dtype) if t.is_floating_point() else t for name, t in eagle3_tensors().items()}
    source = drafter(tmp_path / "in", stored)
    back = read_drafter(str(put(write_layout(layout, source), tmp_path / "out")), ENDS)
    assert isinstance(back, Eagle3Source)
    assert same(source.weights, back.weights) and back.config == source.config
    assert source.token_map is not None and back.token_map is not None and torch.equal(source.token_map, back.token_map)


@pytest.mark.parametrize("layout", ["eagle", "vllm", "sglang", "speculators"])
def test_a_head_shared_with_the_target_is_written_out(tmp_path: Path, layout: str) -> None:
    tensors = eagle3_tensors()
    del tensors["lm_head.weight"]
    source = read_drafter(str(write_eagle3(tmp_path / "in", tensors, layers=LAYERS, lm_head_shared=True)), ENDS)
    back = read_drafter(str(put(write_layout(layout, source), tmp_path / "out")), ENDS)
    assert isinstance(back, Eagle3Source)
    ids = back.draft_ids()
    assert ids is not None
    assert torch.equal(back.weights["lm_head.weight"].float(), ENDS.lm_head.weight[ids].float())


@pytest.mark.parametrize("layout", ["vllm", "sglang"])
def test_a_server_loads_what_was_written_for_it(tmp_path: Path, layout: str) -> None:
    folder = put(write_layout(layout, drafter(tmp_path / "in")), tmp_path / "out")
    check_layout(layout, folder, "out", read_drafter(str(folder), ENDS))
    edit_json(folder / "config.json", architectures=["LlamaForCausalLM"])
    with pytest.raises(CheckpointError, match=rf"architectures is not .* --to {layout}"):
        check_layout(layout, folder, "out", read_drafter(str(folder), ENDS))


def test_the_layers_are_named_where_each_server_looks(tmp_path: Path) -> None:
    source = drafter(tmp_path / "in")
    for layout, nested in (("vllm", None), ("sglang", {FEATURE_LAYERS: [0, 1, 2]})):
        config = json.loads(write_layout(layout, source).files["config.json"])
        assert config[FEATURE_LAYERS] == LAYERS
        assert config.get("eagle_config") == nested, "SGLang names the layer whose output is read"
        assert config["draft_vocab_size"] == DRAFTED and config["vocab_size"] == VOCAB
    folder = put(write_layout("vllm", source), tmp_path / "vllm")
    with pytest.raises(CheckpointError, match="stand outside eagle_config"):
        check_layout("sglang", folder, "vllm", read_drafter(str(folder), ENDS))


def test_an_own_embedding_goes_along_and_a_copy_does_not(tmp_path: Path) -> None:
    for name, embedding, is_kept in (
        ("own", torch.randn(VOCAB, HIDDEN), True),
        ("copy", ENDS.embed_tokens.weight.detach().clone(), False),
    ):
        source = drafter(tmp_path / name, eagle3_tensors() | {"embed_tokens.weight": embedding})
        back = read_drafter(str(put(write_layout("eagle", source), tmp_path / f"{name}-out")), ENDS)
        assert isinstance(back, Eagle3Source)
        assert (back.embedding is not None) is is_kept


def test_what_a_server_has_no_place_for_is_refused(tmp_path: Path) -> None:
    biased, narrow = (
        drafter(tmp_path / "b", with_biases()),
        drafter(tmp_path / "n", eagle3_tensors(num_features=2), [1, 3]),
    )
    for layout, server in (("vllm", "vLLM"), ("sglang", "SGLang")):
        with pytest.raises(CheckpointError, match=f"biases in q, k and v, which {server}"):
            write_layout(layout, biased)
        with pytest.raises(CheckpointError, match=f"reads 2 layers, and {server}"):
            write_layout(layout, narrow)
    with pytest.raises(CheckpointError, match="no layer's output"):
        write_layout("sglang", drafter(tmp_path / "first", layers=[0, 1, 2]))
    with pytest.raises(CheckpointError, match="biases in q, k and v alone, which speculators"):
        write_layout("speculators", biased)
    with pytest.raises(CheckpointError, match="not for EAGLE-3 drafters; those go into eagle, vllm, sglang, specu"):
        write_layout("medusa-a", biased)


@pytest.mark.parametrize("normed", [False, True], ids=["bare residual", "normed residual"])
def test_speculators_has_what_its_schema_and_vllm_read(tmp_path: Path, normed: bool) -> None:
    """models/eagle3/config.py of speculators 0.9.0; configs/speculators/{base,algos}.py of vLLM (cfb173ab)."""
    folder = write_eagle3(tmp_path / "in", layers=LAYERS, norm_before_residual=normed)
    source = read_drafter(str(folder), ENDS)
    written = write_layout("speculators", source)
    config, stored = json.loads(written.files["config.json"]), load(written.files["model.safetensors"])
    assert not written.notes
    assert stored.keys() == {name.replace("midlayer.", "layers.0.") for name in eagle3_tensors()}
    assert config["norm_before_residual"] is normed, "where it is missing, vLLM takes true and speculators false"
    assert (config["draft_vocab_size"], config["transformer_layer_config"]["vocab_size"]) == (DRAFTED, VOCAB)
    assert config[FEATURE_LAYERS] == LAYERS and config["transformer_layer_config"]["model_type"] == "llama"
    assert not {"draft_vocab_size", FEATURE_LAYERS, "architectures"} & config["transformer_layer_config"].keys()
    back = read_drafter(str(put(written, tmp_path / "out")), ENDS)
    assert isinstance(back, Eagle3Source) and back.config == source.config  # type: ignore[union-attr]
    assert back.base == config["speculators_config"]["verifier"]["name_or_path"]
    check_layout("vllm", tmp_path / "out", "out", back)
    with pytest.raises(CheckpointError, match="speculators' layout"):
        check_layout("sglang", tmp_path / "out", "out", back)


def test_what_vllm_reads_of_speculators_must_be_there(tmp_path: Path) -> None:
    for changes, says in (
        ({"speculators_config": {"verifier": {}}}, "no proposal_methods with speculative_tokens"),
        ({"speculators_config": {"proposal_methods": [{"speculative_tokens": 3}]}}, "no verifier"),
    ):
        folder = put(write_layout("speculators", drafter(tmp_path / says / "in")), tmp_path / says / "out")
        edit_json(folder / "config.json", **changes)
        with pytest.raises(CheckpointError, match=says):
            check_layout("vllm", folder, "out", read_drafter(str(folder), ENDS))


def test_speculators_holds_more_than_vllm_reads(tmp_path: Path) -> None:
    written = write_layout("speculators", drafter(tmp_path / "n", eagle3_tensors(num_features=2), [1, 2]))
    assert "it reads 2 layers" in written.notes[0]
    folder = put(written, tmp_path / "out")
    with pytest.raises(CheckpointError, match="it reads 2 layers, and 3 are read there"):
        check_layout("vllm", folder, "out", read_drafter(str(folder), ENDS))


def test_a_normed_residual_goes_only_where_it_is_known(tmp_path: Path) -> None:
    source = read_drafter(str(write_eagle3(tmp_path / "in", layers=LAYERS, norm_before_residual=True)), ENDS)
    assert isinstance(source, Eagle3Source) and source.config.norm_before_residual
    for layout, who in (("eagle", "the authors' code"), ("sglang", "SGLang")):
        with pytest.raises(CheckpointError, match=f"normed hidden state .* and {who} to the bare one"):
            write_layout(layout, source)
    folder = put(write_layout("vllm", source), tmp_path / "vllm")
    back = read_drafter(str(folder), ENDS)
    assert isinstance(back, Eagle3Source) and back.config == source.config
    check_layout("vllm", folder, "vllm", back)
    with pytest.raises(CheckpointError, match="norm_before_residual is true, which is not read there"):
        check_layout("sglang", folder, "vllm", back)
