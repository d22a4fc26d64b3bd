"""Target presets own the defaults; a broken presets file is named, and any other target gets the published settings."""

import json

import pytest

from explorer.errors import SettingError
from explorer.target_presets import find_target, load_targets

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
        ({"tiny": GOOD["tiny"] | {"drafters": {"eagle9": "x"}}}, "eagle9"),
        ({"tiny": GOOD["tiny"] | {"default_preset": {"cpu": "huge"}}}, "huge"),
    ],
)
def test_broken_preset_files_are_named(tmp_path, content, says):
    with pytest.raises(SettingError, match=says):
        load_targets(_write(tmp_path, content))
