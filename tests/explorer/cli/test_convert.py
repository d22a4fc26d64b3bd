"""``convert`` from end to end: a folder that runs, a card that came along, mistakes in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.__main__ import main
from explorer.checkpoints.int8_folder import LAYOUT
from explorer.checkpoints.layouts import LAYOUTS
from explorer.cli.convert import NAMES
from tests.support.checkpoints import copy_golden, golden_dir

TARGET = str(golden_dir("base_a"))


def convert(drafter: Path, layout: str, out: Path, target: str = TARGET) -> int:
    return main(["convert", str(drafter), "--to", layout, "--target", target, "--out", str(out)])


def test_what_was_converted_drafts_as_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    assert convert(golden_dir("eagle_nobias"), "sglang", tmp_path / "out") == 0
    for drafter in (golden_dir("eagle_nobias"), tmp_path / "out"):
        trace = tmp_path / "t.json"
        options = ["--method", "eagle2", "--prompt", "Count to ten.", "--max-new-tokens", "12", "--no-baseline"]
        assert main(["trace", *options, "--target", TARGET, "--drafter", str(drafter), "--out", str(trace)]) == 0
        read = json.loads(trace.read_text(encoding="utf-8"))
        outputs.append([step["tree"]["token"] for step in read["steps"]])
    assert outputs[0] == outputs[1]
    assert "note: fc got a bias of zeros" in capsys.readouterr().out


def test_the_card_travels_along(tmp_path: Path) -> None:
    folder = copy_golden("medusa_b", tmp_path)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n\n# Heads of mine\n", encoding="utf-8")
    assert convert(folder, "vllm", tmp_path / "out") == 0
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlicense: mit\n---\n\n# Heads of mine\n\n## Layout\n")
    assert "`vllm`" in card and "- the target's LM head is in the file once" in card
    assert convert(golden_dir("medusa_b"), "vllm", tmp_path / "bare") == 0
    assert not (tmp_path / "bare" / "README.md").exists()


def test_integers_need_no_target_and_go_back_into_a_layout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = copy_golden("medusa_b", tmp_path), tmp_path / "int8"
    (folder / "README.md").write_text("# Heads of mine\n", encoding="utf-8")
    (folder / "head_accuracy.json").write_text("{}", encoding="utf-8")
    assert convert(folder, "int8", out, "/nowhere/target") == 0
    assert {path.name for path in out.iterdir()} == {path.name for path in folder.iterdir()}
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "the layout `int8`: 8-bit integers with a float16 scale for every 64 weights of a row" in card
    assert convert(out, "int8", tmp_path / "again") == 2
    assert capsys.readouterr().err == f"{out} is stored as 8-bit integers already\n"
    assert convert(out, "vllm", tmp_path / "vllm") == 0
    assert "note: the weights were 8-bit integers, and are the float16" in capsys.readouterr().out
    assert "quantization_config" not in (tmp_path / "vllm" / "config.json").read_text(encoding="utf-8")


def test_help_names_every_layout() -> None:
    assert NAMES.replace(" or ", ", ").split(", ") == [*LAYOUTS, LAYOUT]


@pytest.mark.parametrize(
    ("drafter", "layout", "target", "says"),
    [
        ("eagle_bias", "gguf", TARGET, "allowed are medusa-a"),
        ("eagle_bias", "vllm", TARGET, "fc has a bias"),
        ("medusa_a", "sglang", TARGET, "not for Medusa heads"),
        ("base_a", "eagle", TARGET, "does not fit"),
        ("nowhere", "eagle", TARGET, "does not exist"),
        ("eagle_bias", "eagle", "/nowhere/target", "does not exist"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], drafter: str, layout: str, target: str, says: str
) -> None:
    assert convert(golden_dir(drafter), layout, tmp_path / "out", target) == 2
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_in_it_is_not_written_into(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    assert convert(golden_dir("medusa_b"), "vllm", tmp_path) == 2
    assert "name a new or empty folder" in capsys.readouterr().err
