"""Target presets own the defaults; a broken presets file is named, and any other target gets the published settings."""

import json

import pytest
from jinja2 import Environment, StrictUndefined

from explorer.config import repo_path
from explorer.errors import SettingError
from explorer.target_presets import drafter_path, find_target, is_source, load_targets

LLAMA = "meta-llama/Meta-Llama-3-8B-Instruct"
GOOD = {
    "tiny": {
        "label": "Tiny",
        "source": "somewhere/tiny",
        "drafters": {"eagle2": "assets/drafters/tiny/eagle"},
        "settings": {"small": {"eagle2": {"total_tokens": 16}}},
        "default_preset": {"cpu": "small"},
    }
}


def _write(tmp_path, content):
    path = tmp_path / "targets.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_presets_own_the_defaults(tmp_path):
    preset = load_targets(_write(tmp_path, GOOD))["tiny"]
    assert preset.method_settings("eagle2", "cpu") == {"total_tokens": 16}
    assert preset.method_settings("eagle2", "cuda") == {}
    assert preset.method_settings("eagle2", "cpu", "paper") == {}
    with pytest.raises(SettingError, match="'huge'.*small, paper"):
        preset.method_settings("eagle2", "cpu", "huge")


def test_an_unlisted_target_gets_the_published_settings(tmp_path):
    targets = load_targets(_write(tmp_path, GOOD))
    assert find_target("tiny", targets) is targets["tiny"]
    assert find_target("somewhere/tiny", targets) is targets["tiny"]
    assert find_target("/models/x", targets).method_settings("eagle2", "cpu") == {}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "cannot be read"),
        ("[]", "object"),
        ({"tiny": {"label": "x"}}, "source"),
        ({"tiny": GOOD["tiny"] | {"extra": 1}}, "nothing else"),
        ({"tiny": GOOD["tiny"] | {"drafters": []}}, "tiny.drafters"),
        ({"tiny": GOOD["tiny"] | {"chat_template": {}}}, "tiny.chat_template must be text"),
        ({"tiny": GOOD["tiny"] | {"drafters": {"eagle9": "x"}}}, "eagle9"),
        ({"tiny": GOOD["tiny"] | {"default_preset": {"cpu": "huge"}}}, "huge"),
    ],
)
def test_broken_preset_files_are_named(tmp_path, content, says):
    with pytest.raises(SettingError, match=says):
        load_targets(_write(tmp_path, content))


def test_the_published_targets_stand_beside_the_default():
    targets = load_targets()
    assert next(iter(targets)) == "smollm2"
    found = {preset.source: preset.drafters for preset in targets.values()}
    vicuna, llama, qwen = (found[source] for source in ("lmsys/vicuna-7b-v1.3", LLAMA, "Qwen/Qwen2-7B-Instruct"))
    assert vicuna["medusa"] == "FasterDecoding/medusa-vicuna-7b-v1.3"
    assert vicuna["eagle1"] == vicuna["eagle2"] == "yuhuili/EAGLE-Vicuna-7B-v1.3"
    assert llama["eagle2"] == "yuhuili/EAGLE-LLaMA3-Instruct-8B" and qwen["eagle2"] == "yuhuili/EAGLE-Qwen2-7B-Instruct"
    assert found["meta-llama/Llama-3.1-8B-Instruct"] == {"eagle3": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"}
    whole = "FasterDecoding/medusa-1.0-vicuna-7b-v1.5"
    assert found[whole] == {"medusa": whole}, "Medusa-2 files hold the heads beside the target"


def test_other_targets_get_the_published_settings():
    for name, preset in load_targets().items():
        if name != "smollm2":
            assert preset.method_settings("eagle2", "cpu") == {} == preset.method_settings("eagle2", "cuda")


def test_the_chat_template_of_a_target_that_has_none():
    template = Environment(undefined=StrictUndefined).from_string(load_targets()["vicuna-7b-v1.3"].chat_template)
    turns = [{"role": role, "content": text} for role, text in (("user", "a?"), ("assistant", "b."), ("user", "c?"))]
    known = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True}
    text = template.render(messages=turns, **known)
    assert text.startswith("<s>A chat between a curious user") and text.endswith(
        "questions. USER: a? ASSISTANT: b.</s>USER: c? ASSISTANT:"
    )
    system = {"role": "system", "content": "Be brief."}
    assert template.render(messages=[system, turns[0]], **known) == "<s>Be brief. USER: a? ASSISTANT:"


def test_a_presets_drafter_stands_in_the_repository_or_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inside = "assets/drafters/smollm2-135m-instruct/eagle"
    assert drafter_path(inside) == str(repo_path(*inside.split("/")))
    for source in ("owner/name", str(tmp_path), "~nobody-here/x", "a\0b"):
        assert drafter_path(source) == source


@pytest.mark.parametrize(
    ("text", "expected"),
    [("owner/name-1.5", True), (".", True), ("name", False), ("/nowhere/x", False), ("a\0b", False), ("a/b/c", False)],
)
def test_what_can_be_a_checkpoint(text, expected):
    assert is_source(text) is expected
