"""What is said of an adapted target: which target the output belongs to, and how far that is from the original."""

from __future__ import annotations

from explorer.adapter_words import AdapterRecord, adapted_name, adapter_sentence, distance_text

ADAPTER = AdapterRecord("medusa2", "SmolLM2", 305_280, 0.01234, 0.9715, 12_345)


def test_the_sentence_names_both_targets_and_the_distance() -> None:
    said = adapter_sentence(ADAPTER)
    assert said.startswith("lossless with respect to the adapted target, not SmolLM2 itself")
    for piece in ("drafter medusa2", "on 12,345 held-out tokens", distance_text(ADAPTER)):
        assert piece in said
    assert distance_text(ADAPTER) == "first choice as the original's 97.2 %, mean KL 0.012"


def test_typical_acceptance_is_not_called_lossless() -> None:
    said = adapter_sentence(ADAPTER, is_lossless=False)
    assert "lossless" not in said and "the adapted target" in said


def test_near_agreements_are_told_apart() -> None:
    texts = [distance_text(AdapterRecord("d", "t", 1, 0.0, share, 1)) for share in (0.991, 0.998)]
    assert texts == [f"first choice as the original's {share} %, mean KL 0" for share in ("99.1", "99.8")]


def test_an_adapted_target_is_not_called_as_the_original() -> None:
    assert adapted_name("SmolLM2", "medusa2") == "SmolLM2 adapted by medusa2"
