"""Answers as vLLM and SGLang document them, and the tau that follows from their counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.errors import SettingError
from explorer.served_stats import answers_table, pooled, read_answers, read_stats

# The example of docs/features/speculative_decoding/acceptance_metrics.md, vllm-project/vllm 02cf515f.
VLLM = {
    "id": "chatcmpl-1",
    "choices": [],
    "usage": {"completion_tokens": 54},
    "metrics": {
        "speculative_decoding": {
            "mean_acceptance_length": 1.2325581395348837,
            "draft_acceptance_rate": 0.07751937984496124,
            "acceptance_histogram": [39, 1, 0, 3],
            "num_spec_steps": 43,
            "num_accepted_draft_tokens": 10,
            "num_draft_tokens": 129,
            "num_spec_tokens": 3,
        }
    },
}
# The fields of srt/managers/tokenizer_manager_components/spec_decoding_meta.py, sgl-project/sglang; three draft tokens
# a step, two of which are drafts (speculative_num_draft_tokens counts the target's own).
COUNTS = {
    "spec_accept_rate": 0.5,
    "spec_accept_length": 2.25,
    "spec_num_correct_drafts": 4,
    "spec_num_proposed_drafts": 8,
    "spec_verify_ct": 4,
    "spec_correct_drafts_histogram": [1, 2, 1],
}
SGLANG = {"text": "…", "meta_info": {"id": "a1", "completion_tokens": 9} | COUNTS}


def test_vllm_says_what_its_own_figures_say() -> None:
    stats = read_stats(VLLM)
    assert stats is not None
    told = VLLM["metrics"]["speculative_decoding"]  # type: ignore[index]
    assert stats.tau == pytest.approx(told["mean_acceptance_length"])
    assert stats.acceptance_rate == pytest.approx(told["draft_acceptance_rate"])
    assert (stats.name, stats.num_steps, stats.histogram) == ("chatcmpl-1", 43, [39, 1, 0, 3])


def test_sglang_counts_the_prompts_token_and_we_do_not() -> None:
    stats = read_stats(SGLANG)
    assert stats is not None
    assert stats.tau == 1 + 4 / 4  # (9 - 1) / 4 as well; its own spec_accept_length is 9 / 4
    assert stats.acceptance_rate == COUNTS["spec_accept_rate"]
    old = read_stats({"meta_info": {"completion_tokens": 9, "spec_verify_ct": 4}}, "line 1")
    assert old is not None
    assert (old.tau, old.acceptance_rate, old.name) == (2.0, None, "line 1")


@pytest.mark.parametrize(
    "answer",
    [{"sglext": {"spec_tokens_details": COUNTS}}, {"choices": [{"meta_info": COUNTS}]}, {"meta_info": COUNTS}],
    ids=["sglext", "choice", "native"],
)
def test_sglang_is_read_wherever_it_says_so(answer: dict[str, object]) -> None:
    stats = read_stats(answer | {"usage": {"completion_tokens": 9}})
    assert stats is not None
    assert (stats.num_accepted, stats.num_drafted, stats.num_tokens, stats.histogram) == (4, 8, 9, [1, 2, 1])


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"metrics": None, "meta_info": 3},
        {"metrics": {"speculative_decoding": None}},
        {"meta_info": {"spec_verify_ct": -1}},
        {"meta_info": {"spec_verify_ct": True}},
        {"choices": [None]},
    ],
)
def test_answers_without_statistics_have_none(answer: object) -> None:
    assert read_stats(answer) is None


def test_odd_counts_are_left_out() -> None:
    odd = {"meta_info": {"spec_verify_ct": 2, "spec_num_correct_drafts": 1.5, "spec_accept_histogram": [1, -2]}}
    stats = read_stats(odd)
    assert stats is not None
    assert (stats.num_accepted, stats.histogram, stats.tau) == (None, [], None)
    none = read_stats({"meta_info": {"spec_verify_ct": 0, "spec_num_correct_drafts": 0}})
    assert none is not None
    assert none.tau is None


def test_all_answers_are_pooled_by_steps() -> None:
    first, second = (read_stats(answer) for answer in (VLLM, SGLANG))
    assert first is not None and second is not None
    both = pooled([first, second])
    assert both.tau == 1 + 14 / 47
    assert both.acceptance_rate == 14 / 137
    assert both.histogram == [40, 3, 1, 3]
    assert (both.server, both.num_tokens) == ("vLLM and SGLang", 62)
    bare = [read_stats({"meta_info": {"completion_tokens": n, "spec_verify_ct": 4}}) for n in (9, 13)]
    assert pooled([item for item in bare if item]).tau == (8 + 12) / 8, "each prompt pass gave a token"


def test_a_file_of_answers(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    lines = [VLLM, [SGLANG, {"text": "no statistics"}], {"choices": []}]
    path.write_text("\n\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    found, silent = read_answers(path)
    assert ([item.name for item in found], silent) == (["chatcmpl-1", "a1"], 2)
    rows = answers_table(found).rows
    assert rows[0][:6] == ["chatcmpl-1", "vLLM", "54", "43", "1.23", "7.8 %"]
    assert rows[-1][0] == "all"


@pytest.mark.parametrize(("data", "says"), [(b"{}\n{nope\n", ":2 is not JSON"), (b"\xff\xfe", "not UTF-8")])
def test_other_files_are_refused(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_bytes(data)
    with pytest.raises(SettingError, match=says):
        read_answers(path)
    with pytest.raises(SettingError, match="cannot be read"):
        read_answers(tmp_path / "none.jsonl")
