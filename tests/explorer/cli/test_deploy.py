"""``deploy`` prints a command that was checked; what would fail there fails here, in one line."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from explorer.__main__ import main
from tests.explorer.checkpoints.test_layouts import reduced
from tests.support.checkpoints import golden_dir
from tests.support.eagle3_files import write_eagle3

TARGET = str(golden_dir("base_a"))


def deploy(server: str, drafter: Path, *more: str) -> int:
    return main(["deploy", "--server", server, "--drafter", str(drafter), "--target", TARGET, *more])


@pytest.fixture
def converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    for name, source, layout in (
        ("heads", golden_dir("medusa_b"), "vllm"),
        ("chain", reduced(tmp_path / "a"), "vllm"),
        ("tree", reduced(tmp_path / "b"), "sglang"),
    ):
        assert main(["convert", str(source), "--to", layout, "--target", TARGET, "--out", str(tmp_path / name)]) == 0
    capsys.readouterr()
    return tmp_path


def words(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return shlex.split(capsys.readouterr().out.replace("\\\n", " "))


def test_vllm_gets_a_chain(converted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, method in (("heads", "medusa"), ("chain", "eagle")):
        assert deploy("vllm", converted / name, "--num-speculative-tokens", "2") == 0
        command = words(capsys)
        assert command[:3] == ["vllm", "serve", TARGET]
        config = json.loads(command[4])
        assert config == {"method": method, "model": str(converted / name), "num_speculative_tokens": 2}


def test_sglang_gets_a_tree_and_the_token_map(converted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert deploy("sglang", converted / "tree") == 0
    command = words(capsys)
    given = dict(pairwise(command))
    assert given["--speculative-draft-model-path"] == str(converted / "tree")
    assert given["--speculative-token-map"] == str(converted / "tree" / "token_map.pt")
    assert (given["--speculative-num-steps"], given["--speculative-num-draft-tokens"]) == ("5", "8")
    assert deploy("sglang", converted / "tree", "--topk", "1", "--num-steps", "3") == 0
    assert "--speculative-num-draft-tokens 4" in " ".join(words(capsys))


@pytest.mark.parametrize(
    ("server", "drafter", "more", "says"),
    [
        ("vllm", "heads", ["--num-speculative-tokens", "99"], "the number of heads"),
        ("vllm", "heads", ["--topk", "2"], "--topk is not for vllm"),
        ("vllm", "heads", ["--port", "0"], "--port must be"),
        ("vllm", "heads", ["--num-gpus", "0"], "--num-gpus must be"),
        ("sglang", "tree", ["--num-speculative-tokens", "3"], "--num-speculative-tokens is not for sglang"),
        ("sglang", "tree", ["--num-draft-tokens", "1000"], "--num-draft-tokens must be from 2"),
        ("vllm", "tree", [], "convert"),
        ("sglang", "chain", [], "convert"),
        ("sglang", "heads", [], "SGLang has no Medusa"),
        ("vllm", "nowhere", [], "does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_one_line(
    converted: Path, capsys: pytest.CaptureFixture[str], server: str, drafter: str, more: list[str], says: str
) -> None:
    assert deploy(server, converted / drafter, *more) == 2
    captured = capsys.readouterr()
    assert says in captured.err and captured.err.count("\n") == 1
    assert captured.out == ""


def test_an_eagle3_drafter_is_served_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_eagle3(tmp_path / "in", layers=[1, 2, 3])
    for server in ("vllm", "sglang"):
        out = tmp_path / server
        assert main(["convert", str(source), "--to", server, "--target", TARGET, "--out", str(out)]) == 0
        capsys.readouterr()
        assert deploy(server, out) == 0
        printed = words(capsys)
        if server == "vllm":
            assert json.loads(printed[printed.index("--speculative-config") + 1])["method"] == "eagle3"
        else:
            assert printed[printed.index("--speculative-algorithm") + 1] == "EAGLE3"
