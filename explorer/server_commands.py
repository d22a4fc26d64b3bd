"""Launch commands of vLLM and SGLang with a drafter, as their documentation has them. Standard library only.

vLLM: ``--speculative-config`` takes JSON with method, model and num_speculative_tokens
(docs/features/speculative_decoding/eagle.md of vllm-project/vllm). SGLang: ``--speculative-*``
(docs/advanced_features/speculative_decoding.md of sgl-project/sglang), whose draft tokens count the root.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

from explorer.errors import SettingError


@dataclass(frozen=True)
class Tree:
    """SGLang's dynamic tree: levels below the root, children of a node, and rows verified, the root included."""

    num_steps: int
    topk: int
    num_draft_tokens: int

    @property
    def num_candidates(self) -> int:
        """Nodes that are drafted before the best are kept."""
        return self.topk + (self.num_steps - 1) * self.topk**2


def check_tree(tree: Tree) -> None:
    """Refuse a tree that SGLang could not build, or would change."""
    for name, value in (
        ("num-steps", tree.num_steps),
        ("topk", tree.topk),
        ("num-draft-tokens", tree.num_draft_tokens),
    ):
        if value < 1:
            raise SettingError(f"--{name} must be at least 1, not {value}")
    if tree.topk == 1 and tree.num_draft_tokens != tree.num_steps + 1:
        raise SettingError(
            f"--num-draft-tokens must be {tree.num_steps + 1} for a chain of {tree.num_steps} steps (--topk 1), the "
            f"root and each step's token, not {tree.num_draft_tokens}"
        )
    if not 2 <= tree.num_draft_tokens <= tree.num_candidates + 1:
        raise SettingError(
            f"--num-draft-tokens must be from 2 to {tree.num_candidates + 1}, not {tree.num_draft_tokens}: with "
            f"--num-steps {tree.num_steps} and --topk {tree.topk} there are {tree.num_candidates} drafts and the root"
        )


def check_chain(num_tokens: int, num_heads: int | None) -> None:
    """Refuse a chain that vLLM could not draft. num_heads: of Medusa, None for a drafter that goes on as it likes."""
    if num_tokens < 1:
        raise SettingError(f"--num-speculative-tokens must be at least 1, not {num_tokens}")
    if num_heads is not None and num_tokens > num_heads:
        raise SettingError(
            f"--num-speculative-tokens must be at most {num_heads}, the number of heads, not {num_tokens}: vLLM would "
            "make the missing heads up"
        )


def vllm_command(target: str, drafter: str, method: str, num_tokens: int, num_gpus: int, port: int | None) -> list[str]:
    """``vllm serve`` with a chain of so many tokens. method: medusa, eagle or eagle3."""
    config: dict[str, object] = {"method": method, "model": drafter, "num_speculative_tokens": num_tokens}
    if num_gpus > 1:
        config["draft_tensor_parallel_size"] = 1
    command = ["vllm", "serve", target, "--speculative-config", json.dumps(config)]
    command += ["--tensor-parallel-size", str(num_gpus)] if num_gpus > 1 else []
    return command + (["--port", str(port)] if port else [])


@dataclass(frozen=True)
class SglangDrafter:
    """What SGLang drafts with. algorithm: EAGLE or EAGLE3. token_map: a file with the draft vocabulary, if any."""

    path: str
    algorithm: str = "EAGLE"
    token_map: str | None = None


def sglang_command(target: str, drafter: SglangDrafter, tree: Tree, num_gpus: int, port: int | None) -> list[str]:
    """``sglang.launch_server`` with EAGLE's dynamic tree, and its metrics page."""
    command = ["python", "-m", "sglang.launch_server", "--model-path", target]
    command += ["--speculative-algorithm", drafter.algorithm, "--speculative-draft-model-path", drafter.path]
    command += ["--speculative-num-steps", str(tree.num_steps), "--speculative-eagle-topk", str(tree.topk)]
    command += ["--speculative-num-draft-tokens", str(tree.num_draft_tokens)]
    command += ["--speculative-token-map", drafter.token_map] if drafter.token_map else []
    command += ["--tp-size", str(num_gpus)] if num_gpus > 1 else []
    return [*command, "--enable-metrics", *(["--port", str(port)] if port else [])]


def for_shell(command: list[str]) -> str:
    """The command to paste into a shell: an option a line."""
    lines: list[list[str]] = [[]]
    for word in command:
        if word.startswith("--"):
            lines.append([])
        lines[-1].append(word)
    return " \\\n  ".join(shlex.join(line) for line in lines)
