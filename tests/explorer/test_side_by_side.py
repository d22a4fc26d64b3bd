"""Names of runs that stand together, and the refusal of runs that do not belong together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.errors import TraceError
from explorer.methods.registry import METHODS
from explorer.side_by_side import METHOD_LABELS, check_comparable, method_label, run_labels
from tests.support.traces import make_trace

EAGLE, MEDUSA = make_trace("eagle2", 3, 12), make_trace("medusa", 3, 12)


def test_labels_are_the_methods_own() -> None:
    for name, method in METHODS.items():
        assert METHOD_LABELS[name] == method.label
    assert method_label("my\u202emethod") == "my⟨U+202E⟩method"


def test_runs_of_several_methods_are_called_by_them() -> None:
    assert run_labels([EAGLE, MEDUSA]) == ["EAGLE-2", "Medusa"]


def test_runs_of_one_method_are_told_apart_by_what_differs_alone() -> None:
    other = replace(EAGLE, settings=EAGLE.settings | {"depth": 7})
    seeded = replace(EAGLE, sampling=replace(EAGLE.sampling, temperature=0.7, seed=3))
    assert run_labels([EAGLE, other]) == ["EAGLE-2 (depth 5)", "EAGLE-2 (depth 7)"]
    assert run_labels([EAGLE, seeded]) == ["EAGLE-2 (temperature 0)", "EAGLE-2 (temperature 0.7)"]
    larger = replace(EAGLE, settings={"total_tokens": 60, "depth": 7, "top_k": 10})
    assert run_labels([EAGLE, larger]) == ["EAGLE-2 (total_tokens 12)", "EAGLE-2 (total_tokens 60)"]
    assert run_labels([EAGLE, larger, other])[::2] == [
        "EAGLE-2 (total_tokens 12, depth 5)",
        "EAGLE-2 (total_tokens 12, depth 7)",
    ]
    assert run_labels([EAGLE, EAGLE, MEDUSA]) == ["EAGLE-2, run 1", "EAGLE-2, run 2", "Medusa"]


def test_a_sampling_choice_does_not_hide_a_setting_of_the_same_name() -> None:
    other = replace(EAGLE, settings=EAGLE.settings | {"top_k": 4})
    assert run_labels([EAGLE, other]) == ["EAGLE-2 (top_k 10)", "EAGLE-2 (top_k 4)"]


def test_other_prompts_and_other_targets_are_refused_in_words() -> None:
    prompt = replace(EAGLE.prompt, text="Another question that is long enough to be cut somewhere", token_ids=[1, 2])
    with pytest.raises(TraceError, match=r"different prompts.*Another question.*choose runs of one prompt"):
        check_comparable([EAGLE, replace(EAGLE, prompt=prompt)])
    prompt = replace(EAGLE.prompt, token_ids=[1, 2])
    with pytest.raises(TraceError, match=r"read one prompt differently \(41 and 2 tokens; another template"):
        check_comparable([EAGLE, replace(EAGLE, prompt=prompt)])
    with pytest.raises(TraceError, match=r"different targets.*choose runs of one target"):
        check_comparable([replace(EAGLE, target=replace(EAGLE.target, name="other")), EAGLE])
    with pytest.raises(TraceError, match="choose at least one"):
        check_comparable([])


def test_the_same_prompt_may_be_answered_with_other_methods_devices_and_rules() -> None:
    sampled = replace(EAGLE, sampling=replace(EAGLE.sampling, temperature=1.0))
    elsewhere = replace(EAGLE, target=replace(EAGLE.target, device_name="another"))
    check_comparable([EAGLE, sampled, elsewhere])
