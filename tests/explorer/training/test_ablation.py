"""The ablation: one factor at a time on a part of the text, measured once, told in a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.training import ablation
from explorer.training.ablation import Variant, ablate, to_markdown
from explorer.training.acceptance import TextChoice
from explorer.training.loop import LoopOptions
from explorer.training.plan import Plan
from tests.support.tiny import tiny_target
from tests.support.training import tiny_corpus, tiny_loaded_target, write_corpus

VARIANTS = (
    Variant("base", "as shipped", part=0.5),
    Variant("draft vocabulary", "20", {"token_weight": 0.1}, draft_vocab=20),
)


def test_variants_are_trained_apart_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablation, "VARIANTS", VARIANTS)
    monkeypatch.setattr(ablation, "TEXT", TextChoice(2, 16))
    write_corpus(tmp_path / "text" / "a.npz", tiny_corpus(80))
    loop = LoopOptions(epochs=1, batch_tokens=256, warmup_steps=2)
    plan = Plan(tmp_path, tmp_path / "out", draft_vocab_size=40, loop=loop)
    table = ablate(plan, tiny_loaded_target(), tiny_target())
    lines = table.read_text().splitlines()
    assert lines[0].startswith("| factor | value | depth 1 |") and "tau 60/5/10" in lines[0]
    assert [line.split(" | ")[1] for line in lines[2:]] == ["as shipped", "20"]
    kept = tmp_path / "ablation" / VARIANTS[0].name / "figures.json"
    stamp = kept.stat().st_mtime_ns
    (tmp_path / "ablation" / VARIANTS[1].name / "figures.json").unlink()
    ablate(plan, tiny_loaded_target(), tiny_target())
    assert kept.stat().st_mtime_ns == stamp
    assert table.read_text().splitlines()[:3] == lines[:3]


def test_names_are_folders_and_factors_change_one_thing() -> None:
    assert len({variant.name for variant in ablation.VARIANTS}) == len(ablation.VARIANTS)
    base = ablation.VARIANTS[0]
    for variant in ablation.VARIANTS[1:]:
        changed = [variant.options != base.options, variant.draft_vocab is not None, variant.part != base.part]
        assert sum(changed) == 1 and len(variant.options) <= 1, variant
        assert "/" not in variant.name


def test_markdown() -> None:
    assert to_markdown([{"a": 1, "b": 2}]) == "| a | b |\n|---|---|\n| 1 | 2 |\n"
