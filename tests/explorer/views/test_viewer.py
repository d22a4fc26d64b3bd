"""View JSON and the viewer's sources: complete, rounded, incremental, and free of templates."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from explorer import insight
from explorer.mask_words import mask_sentence, visibility_sentences
from explorer.trace import Label
from explorer.trace_check import used_ids
from explorer.views.viewer import (
    ASSETS,
    JS_FILES,
    MAX_BYTES,
    SHELL,
    labels,
    replay_js,
    view_payload,
    view_step,
    viewer_css,
    viewer_js,
    viewer_source,
)
from tests.support.traces import make_trace

MAX_JS_LINES = 300
HOSTS = ("gradio.js", "page.js", "replay.js")  # what the pages that mount the viewer add to it


def test_columns_are_the_record() -> None:
    trace = make_trace("eagle2", 6, 30)
    for step in trace.steps:
        view = view_step(trace, step)
        assert (view["tok"], view["par"], view["state"]) == (step.tree.token, step.tree.parent, step.tree.state)
        assert (view["path"], view["emitted"], view["prefix"]) == (step.path, step.emitted, step.prefix_len)
        assert sorted(view["order"]) == list(range(len(step.tree)))
        assert len(view["row"]) == len(view["col"]) == len(view["why"]) == len(step.tree)
        assert view["col"] == insight.depths(step.tree.parent)
        assert {len(column) for name, column in view["ghosts"].items() if name != "why"} == {len(step.ghosts)}
        assert view["own"]["col"] == view["col"][step.path[-1]] + 1
        assert [view["reasons"][index] for index in view["why"]]
        assert view["mask"] == mask_sentence(trace, step)
        seen = visibility_sentences(step)
        assert view["seen"] == [seen.texts, seen.index]


def test_probabilities_have_four_digits_and_null_where_there_is_none() -> None:
    trace = make_trace("eagle2", 2, 20)
    view = view_step(trace, trace.steps[0])
    assert view["q"][0] is None
    for shown, recorded in zip(view["q"][1:], trace.steps[0].tree.draft_prob[1:], strict=True):
        assert recorded is not None
        assert shown == float(f"{recorded:.4g}")


def test_tests_that_took_a_number_are_there_in_full() -> None:
    for acceptance, num_numbers in (("greedy", 0), ("rejection", 2), ("typical", 2)):
        trace = make_trace("medusa", 6, 30, acceptance=acceptance)
        step = next(step for step in trace.steps if step.draws)
        view = view_step(trace, step)["draws"]
        assert len(view) == (len(step.draws) if num_numbers else 0), "greedy compares, it draws nothing"
        for draw in step.draws if num_numbers else []:
            *numbers, is_accepted, mass, top = view[draw.row]
            assert numbers == [
                None if value is None else float(f"{value:.4g}") for value in (draw.prob, draw.uniform, draw.threshold)
            ]
            assert is_accepted == draw.accepted
            assert (mass is None) == (draw.residual_mass is None)
            assert [token for token, _ in top] == [token for token, _ in draw.residual_top]
            assert {token for token, _ in top} <= used_ids(step), "their labels are sent"


def test_the_rule_is_named_with_what_it_means() -> None:
    trace = make_trace("medusa", 3, 12, acceptance="typical")
    label, meaning = view_payload(trace)["header"]["rule"]
    assert "not distribution-preserving" in label
    assert "not distribution-preserving" in meaning


def test_incremental_payloads_make_the_whole() -> None:
    trace = make_trace("eagle2", 9, 30)
    whole = view_payload(trace, trace_id="t")
    vocab, steps = {}, []
    for start in (0, 1, 4, 9):
        end = {0: 1, 1: 4, 4: 9, 9: 9}[start]
        part = view_payload(type(trace)(**vars(trace) | {"steps": trace.steps[:end]}), start, is_done=end == 9)
        assert part["from"] == start
        assert not vocab.keys() & part["vocab"].keys(), "a label is sent once"
        vocab |= part["vocab"]
        steps += part["steps"]
        assert ("header" in part) == (start == 0 or part["done"])
    assert steps == whole["steps"]
    assert vocab == whole["vocab"]
    shown = set().union(*(used_ids(step) for step in trace.steps)) | set(trace.prompt.token_ids)
    assert {str(token) for token in shown} <= vocab.keys()


def test_a_long_run_comes_in_parts() -> None:
    trace = make_trace("eagle2", 9, 30)
    whole, parts, start = view_payload(trace), [], 0
    while start < 9:
        parts.append(view_payload(trace, start, limit=4))
        start += len(parts[-1]["steps"])
    assert [len(part["steps"]) for part in parts] == [4, 4, 1]
    assert [step for part in parts for step in part["steps"]] == whole["steps"]
    assert {token: label for part in parts for token, label in part["vocab"].items()} == whole["vocab"]
    assert [part["num_steps"] for part in parts] == [9, 9, 9]
    assert ["header" in part for part in parts] == [True, False, True]


def test_a_start_beyond_the_end_is_an_empty_answer() -> None:
    payload = view_payload(make_trace(steps=3), 99)
    assert (payload["from"], payload["steps"], payload["num_steps"]) == (3, [], 3)


def test_payload_is_strict_json_and_small() -> None:
    text = json.dumps(view_payload(make_trace("eagle2", 40, 60)), allow_nan=False, separators=(",", ":"))
    assert len(text) < 500_000


def test_labels_carry_no_invisible_character() -> None:
    payload = view_payload(make_trace("eagle2", 8, 60, hostile=True))
    assert payload["vocab"]
    for label, kind, *_ in payload["vocab"].values():
        assert label == insight.visible(label)
        assert kind in ("text", "space", "special", "bytes")


def test_labels_bring_their_bytes_where_they_were_recorded() -> None:
    recorded_labels = labels({"1": Label("␣a", "text", "2061"), "2": Label("A" * 99, "text", "41" * 99)}, [1, 2, 3])
    assert recorded_labels == {"1": ["␣a", "text", "2061"], "2": ["A" * 99, "text", "41" * MAX_BYTES]}
    assert labels({"1": Label("a", "text")}, [1]) == {"1": ["a", "text"]}


def test_shell_and_style_hold_nothing_a_template_would_evaluate() -> None:
    assert "$" not in SHELL
    assert "{" not in SHELL
    assert "`" not in viewer_css()
    assert "${" not in viewer_css()


@pytest.mark.parametrize("name", [*JS_FILES, *HOSTS])
def test_scripts_build_no_markup_from_strings(name: str) -> None:
    source = (ASSETS / name).read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MAX_JS_LINES
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "import ", "http"):
        assert forbidden not in source.replace("http://www.w3.org/2000/svg", ""), f"{name} uses {forbidden}"


def test_every_script_in_the_folder_is_listed() -> None:
    assert sorted(path.name for path in ASSETS.glob("*.js")) == sorted([*JS_FILES, *HOSTS])


def test_nothing_is_styled_that_is_never_drawn() -> None:
    styled = set(re.findall(r"\.(dtx-[a-z]+)", viewer_css()))
    scripts = "".join((ASSETS / name).read_text(encoding="utf-8") for name in JS_FILES)
    assert styled - set(re.findall(r"dtx-[a-z]+", scripts)) == set()


def test_every_function_of_the_scripts_is_used() -> None:
    scripts = "".join((ASSETS / name).read_text(encoding="utf-8") for name in [*JS_FILES, *HOSTS])
    defined = re.findall(r"function (\w+)\(", scripts) + re.findall(r"^const (\w+)", scripts, re.MULTILINE)
    assert [name for name in defined if len(re.findall(rf"\b{name}\b", scripts)) < 2] == []


def test_the_source_brings_its_style_and_one_name() -> None:
    source = viewer_source()
    assert source.startswith("const mountViewer = ")
    assert json.dumps(viewer_css()) in source


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine; the browser tests run the scripts")
def test_scripts_compile_as_a_function_body() -> None:
    names = "'element', 'trigger', 'props', 'server', 'upload', 'watch'"
    check = f"new Function({names}, require('fs').readFileSync(0, 'utf8'))"
    for script in (viewer_js(), replay_js()):
        result = subprocess.run(["node", "-e", check], input=script, text=True, capture_output=True, check=False)
        assert result.returncode == 0, result.stderr
