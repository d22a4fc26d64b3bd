"""Launch commands have the flags that vLLM and SGLang document, and sizes that cannot be are refused."""

from __future__ import annotations

import json
import shlex

import pytest

from explorer.errors import SettingError
from explorer.server_commands import (
    SglangDrafter,
    Tree,
    check_chain,
    check_tree,
    for_shell,
    sglang_command,
    vllm_command,
)

# What these commands use: fields of vllm/config/speculative.py (docs/features/speculative_decoding/eagle.md of
# vllm-project/vllm), options of docs/advanced_features/speculative_decoding.md (sgl-project/sglang).
VLLM_FIELDS = {"method", "model", "num_speculative_tokens", "draft_tensor_parallel_size"}
SGLANG_OPTIONS = {
    "--model-path",
    "--speculative-algorithm",
    "--speculative-draft-model-path",
    "--speculative-num-steps",
    "--speculative-eagle-topk",
    "--speculative-num-draft-tokens",
    "--speculative-token-map",
    "--tp-size",
    "--enable-metrics",
    "--port",
}


def test_vllms_command() -> None:
    command = vllm_command("org/target", "/d r/after", "eagle", 4, 2, 8001)
    config = json.loads(command[command.index("--speculative-config") + 1])
    assert config == {
        "method": "eagle", "model": "/d r/after", "num_speculative_tokens": 4, "draft_tensor_parallel_size": 1,
    }  # fmt: skip
    assert set(config) <= VLLM_FIELDS
    assert command[:3] == ["vllm", "serve", "org/target"]
    assert command[-4:] == ["--tensor-parallel-size", "2", "--port", "8001"]
    alone = vllm_command("t", "d", "medusa", 3, 1, None)
    assert alone[:4] == ["vllm", "serve", "t", "--speculative-config"] and len(alone) == 5


def test_sglangs_command() -> None:
    command = sglang_command("t", SglangDrafter("d", token_map="d/token_map.pt"), Tree(5, 4, 8), 2, 30000)
    assert {word for word in command if word.startswith("--")} == SGLANG_OPTIONS
    assert command[command.index("--speculative-num-draft-tokens") + 1] == "8"
    other = sglang_command("t", SglangDrafter("d", "EAGLE3"), Tree(5, 4, 8), 1, None)
    assert "--speculative-token-map" not in other
    assert other[other.index("--speculative-algorithm") + 1] == "EAGLE3"


def test_the_shell_reads_back_the_same_words() -> None:
    command = vllm_command("it's $HOME", "a b", "medusa", 3, 1, 80)
    text = for_shell(command)
    assert shlex.split(text.replace("\\\n", " ")) == command
    assert text.count("\n") == 2


@pytest.mark.parametrize("tree", [Tree(5, 4, 8), Tree(3, 1, 4), Tree(1, 4, 5), Tree(1, 1, 2), Tree(2, 2, 7)])
def test_trees_that_can_be(tree: Tree) -> None:
    check_tree(tree)


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        (Tree(0, 4, 8), "--num-steps must be at least 1"),
        (Tree(5, 0, 8), "--topk must be at least 1"),
        (Tree(5, 4, 0), "--num-draft-tokens must be at least 1"),
        (Tree(3, 1, 3), "must be 4 for a chain of 3 steps"),
        (Tree(1, 4, 6), "from 2 to 5, not 6"),
        (Tree(2, 2, 8), "from 2 to 7, not 8"),
        (Tree(5, 4, 1), "from 2 to"),
    ],
)
def test_trees_that_cannot_be_are_refused(tree: Tree, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        check_tree(tree)


def test_a_chain_is_no_longer_than_there_are_heads() -> None:
    check_chain(5, 5)
    check_chain(50, None)
    for num_tokens, num_heads in ((6, 5), (0, None)):
        with pytest.raises(SettingError, match="--num-speculative-tokens must be"):
            check_chain(num_tokens, num_heads)
