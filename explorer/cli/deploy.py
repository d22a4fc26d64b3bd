"""``python -m explorer deploy``: the command that serves a target with its drafter, checked before it is printed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.config import DEFAULT_TARGET
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

if TYPE_CHECKING:
    from explorer.checkpoints.drafter_source import DrafterSource

HELP = "print the command that serves a target with a drafter in vLLM or SGLang, checked against both"
SERVERS = ("vllm", "sglang")
MAX_PORT = 65535
CHAIN = 3  # tokens; as in vLLM's examples, and no more than heads there are
TREE = Tree(5, 4, 8)  # SGLang's own defaults for Llama


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The server, the two models, how much is drafted."""
    parser.add_argument("--server", required=True, choices=SERVERS)
    parser.add_argument("--drafter", required=True, metavar="DIR_OR_ID", help="in the server's layout (see convert)")
    parser.add_argument(
        "--target", default=DEFAULT_TARGET, metavar="DIR_OR_ID", help="its target: preset, directory or hub id"
    )
    parser.add_argument("--num-speculative-tokens", type=int, metavar="N", help=f"vllm: length of the chain ({CHAIN})")
    parser.add_argument("--num-steps", type=int, metavar="N", help=f"sglang: levels of the tree ({TREE.num_steps})")
    parser.add_argument("--topk", type=int, metavar="N", help=f"sglang: children of a node ({TREE.topk})")
    parser.add_argument(
        "--num-draft-tokens",
        type=int,
        metavar="N",
        help=f"sglang: rows verified, root included ({TREE.num_draft_tokens})",
    )
    parser.add_argument("--num-gpus", type=int, default=1, metavar="N", help="GPUs that share the target (1)")
    parser.add_argument("--port", type=int, metavar="N", help="where the server listens (default: its own)")


def run(args: argparse.Namespace) -> int:
    """Read the drafter as its server would, then print the command."""
    _check(args)
    from explorer.checkpoints.drafter_source import read_drafter  # torch and transformers
    from explorer.checkpoints.files import locate
    from explorer.checkpoints.serving import check_layout
    from explorer.checkpoints.target import find_folder
    from explorer.checkpoints.target_ends import read_target_ends
    from explorer.target_presets import drafter_path, find_target, load_targets

    target = find_target(args.target, load_targets()).source
    source = drafter_path(args.drafter)
    ends = read_target_ends(target)
    drafter = read_drafter(source, ends)
    folder = locate(source, "drafter")
    check_layout(args.server, folder, args.drafter, drafter, args.target)
    is_local = Path(target).expanduser().is_dir() or target == DEFAULT_TARGET
    served = str(find_folder(target)[0].resolve()) if is_local else target
    named = str(folder.resolve()) if Path(source).expanduser().is_dir() else source
    make = _vllm if args.server == "vllm" else _sglang
    print(for_shell(make(args, served, named, folder, drafter)))
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse numbers that cannot be, and options of the other server."""
    if args.num_gpus < 1:
        raise SettingError(f"--num-gpus must be at least 1, not {args.num_gpus}")
    if args.port is not None and not 1 <= args.port <= MAX_PORT:
        raise SettingError(f"--port must be a number from 1 to {MAX_PORT}, not {args.port}")
    foreign = {"vllm": ("num_steps", "topk", "num_draft_tokens"), "sglang": ("num_speculative_tokens",)}[args.server]
    for name in foreign:
        if getattr(args, name) is not None:
            raise SettingError(f"--{name.replace('_', '-')} is not for {args.server}")
    if args.server == "sglang":
        check_tree(_tree(args))


def _tree(args: argparse.Namespace) -> Tree:
    steps = TREE.num_steps if args.num_steps is None else args.num_steps
    topk = TREE.topk if args.topk is None else args.topk
    chosen = args.num_draft_tokens
    if chosen is None:  # what fits the other two
        chosen = steps + 1 if topk == 1 else min(TREE.num_draft_tokens, Tree(steps, topk, 0).num_candidates + 1)
    return Tree(steps, topk, chosen)


def _vllm(args: argparse.Namespace, target: str, named: str, _folder: Path, drafter: DrafterSource) -> list[str]:
    from explorer.checkpoints.drafter_source import MedusaSource

    num_heads = drafter.num_heads if isinstance(drafter, MedusaSource) else None
    num_tokens = args.num_speculative_tokens
    if num_tokens is None:
        num_tokens = min(CHAIN, num_heads or CHAIN)
    check_chain(num_tokens, num_heads)
    return vllm_command(target, named, drafter.kind, num_tokens, args.num_gpus, args.port)


def _sglang(args: argparse.Namespace, target: str, named: str, folder: Path, drafter: DrafterSource) -> list[str]:
    from explorer.checkpoints.serving import token_map

    found = token_map(folder)
    listed = None if found is None else f"{named}/{found.name}"
    served = SglangDrafter(named, drafter.kind.upper(), listed)
    return sglang_command(target, served, _tree(args), args.num_gpus, args.port)
