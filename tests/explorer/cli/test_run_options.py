"""The commands that decode share the options of a run."""

from __future__ import annotations

import pytest

from explorer.__main__ import build_parser

COMMANDS = {
    "trace": ["--method", "eagle2", "--prompt", "x", "--out", "t.json"],
    "bench": [],
    "diagnose": [],
    "lab": ["tree"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_mean_the_same_everywhere(command: str) -> None:
    words = ["--target", "t", "--drafter", "d", "--max-new-tokens", "5", "--set", "a=1", "--set", "b=2"]
    args = build_parser().parse_args([command, *COMMANDS[command], *words])
    assert (args.target, args.max_new_tokens, args.set) == ("t", 5, ["a=1", "b=2"])
    takes_many = command != "trace"  # a drafter for each of its methods
    assert args.drafter == (["d"] if takes_many else "d")
    plain = build_parser().parse_args([command, *COMMANDS[command]])
    assert (plain.target, plain.drafter, plain.set) == ("smollm2", [] if takes_many else None, [])
