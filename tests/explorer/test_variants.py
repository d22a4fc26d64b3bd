"""Published kinds of drafters that the goldens lack: held to a twin without transformers, then traced from files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from explorer.__main__ import main
from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.files import read_tensors, weight_files
from explorer.models.eagle_layer import EagleDrafter
from explorer.trace import Trace, read_trace
from explorer.trace_check import check_trace
from tests.support.checkpoints import Facts, golden_dir, vllm_copy
from tests.support.eagle3_files import LAYERS, VOCAB, write_eagle3
from tests.support.eagle_twin import Twin
from tests.support.goldens import FOLDER, golden
from tests.support.variants import EAGLE_VARIANTS, with_repeated_block

NUM_TOKENS = 80


@pytest.mark.parametrize("name", ["eagle_bias", "eagle_nobias", *EAGLE_VARIANTS])
def test_predicted_features_are_the_twins(tmp_path: Path, name: str) -> None:
    folder = EAGLE_VARIANTS[name](tmp_path) if name in EAGLE_VARIANTS else golden_dir(name)
    facts = Facts()
    drafter = load_eagle(str(folder), facts).module
    assert isinstance(drafter, EagleDrafter)
    tensors, config = read_tensors(weight_files(folder)), json.loads((folder / "config.json").read_text())
    twin = Twin(tensors, config["num_attention_heads"], config.get("rope_theta", 10000.0), config["rms_norm_eps"])
    generator = torch.Generator().manual_seed(1)
    tokens, features = torch.randint(320, (12,), generator=generator), torch.randn(12, 64, generator=generator)
    expected = twin.features(tensors["embed_tokens.weight"].float(), tokens, features)
    found = drafter(tokens, features, torch.arange(12), None, None)
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-4)


def trace_of(tmp_path: Path, method: str, base: str, drafter: Path, ids: list[int]) -> Trace:
    out = tmp_path / f"{method}.json"
    arguments = ["trace", "--method", method, "--target", str(FOLDER / base), "--drafter", str(drafter)]
    arguments += ["--prompt-ids", ",".join(map(str, ids)), "--max-new-tokens", str(NUM_TOKENS), "--ignore-stop"]
    assert main([*arguments, "--no-baseline", "--out", str(out)]) == 0
    trace = read_trace(out)
    check_trace(trace)
    return trace


def prompts_of(base: str) -> list[tuple[list[int], list[int]]]:
    figures = golden(f"hf_greedy__{base}")
    runs = [run for run in figures["runs"] if run["mode"] == "noeos"][:2]
    return [(figures["prompts"][run["prompt"]]["ids"], run["output"][:NUM_TOKENS]) for run in runs]


@pytest.mark.parametrize("method", ["eagle1", "eagle2"])
@pytest.mark.parametrize("name", EAGLE_VARIANTS)
def test_eagle_variants_write_the_targets_output(tmp_path: Path, name: str, method: str) -> None:
    folder = EAGLE_VARIANTS[name](tmp_path)
    base = "base_b" if folder.name == "eagle_nobias" else "base_a"
    for ids, output in prompts_of(base):
        assert trace_of(tmp_path, method, base, folder, ids).output.token_ids == output


def test_an_eagle3_drafter_writes_the_targets_output(tmp_path: Path) -> None:
    folder = write_eagle3(tmp_path / "own", layers=LAYERS)
    for ids, output in prompts_of("base_a"):
        trace = trace_of(tmp_path, "eagle3", "base_a", folder, ids)
        assert trace.output.token_ids == output
        assert trace.settings == {"total_tokens": 60, "depth": 7, "top_k": 10}
        assert trace.drafter is not None and trace.drafter.name == "own"
        draftable = {token for token in range(VOCAB) if token % 3}
        assert {token for step in trace.steps for token in step.tree.token[1:]} <= draftable


@pytest.mark.parametrize(
    ("method", "other"), [("eagle3", "eagle1 or eagle2"), ("eagle2", "eagle3"), ("eagle1", "eagle3")]
)
def test_a_drafter_of_another_kind_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str, other: str
) -> None:
    folder = golden_dir("eagle_bias") if method == "eagle3" else write_eagle3(tmp_path / "own", layers=LAYERS)
    arguments = ["trace", "--method", method, "--target", str(FOLDER / "base_a"), "--drafter", str(folder)]
    assert main([*arguments, "--prompt-ids", "5,6", "--out", str(tmp_path / "t.json")]) == 2
    assert f"choose the method {other}" in capsys.readouterr().err.splitlines()[-1]


def test_scores_that_tie_cost_no_node_its_parent(tmp_path: Path) -> None:
    """Drafts of probability 1 are there by the dozen, and every row's probability is that of a child of its parent."""
    folder = EAGLE_VARIANTS["tied scores"](tmp_path)
    (ids, output), *_ = prompts_of("base_a")
    trace = trace_of(tmp_path, "eagle2", "base_a", folder, ids)
    assert trace.output.token_ids == output
    certain = [prob for step in trace.steps for prob in step.tree.draft_prob[1:] if prob == 1.0]
    assert len(certain) > 5 * len(trace.steps)
    for step in trace.steps:
        for row in range(1, len(step.tree)):
            assert step.tree.score[row] == pytest.approx(
                step.tree.score[step.tree.parent[row]]
                + torch.tensor(step.tree.draft_prob[row]).log().clamp(-1e9).item(),
                rel=1e-4,
                abs=1e-4,
            )


@pytest.mark.parametrize(
    ("base", "make"),
    [
        ("base_a", lambda folder: with_repeated_block(folder, "medusa_a")),
        ("base_b", lambda folder: with_repeated_block(folder, "medusa_b")),
        ("base_a", vllm_copy),
    ],
    ids=["repeated block, own matrix", "repeated block, shared matrix", "vLLM"],
)
def test_medusa_variants_write_the_targets_output(tmp_path: Path, base: str, make: object) -> None:
    folder = make(tmp_path)  # type: ignore[operator]
    for ids, output in prompts_of(base):
        assert trace_of(tmp_path, "medusa", base, folder, ids).output.token_ids == output


def test_a_drafter_of_another_target_is_said_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (ids, output), *_ = prompts_of("base_a")
    trace = trace_of(tmp_path, "eagle2", "base_a", golden_dir("eagle_nobias"), ids)
    assert trace.output.token_ids == output, "slow, but right"
    notes = [
        line for line in capsys.readouterr().err.splitlines() if line.startswith("note: this drafter does not seem")
    ]
    assert len(notes) == 1
