"""Settings are read strictly, clamped with a sentence, and refused with a sentence that says what is allowed."""

import dataclasses
import math

import pytest

from explorer import config
from explorer.config import Sampling, describe, parse_assignments, resolve, setting
from explorer.errors import SettingError


@dataclasses.dataclass(frozen=True)
class Settings:
    total_tokens: int = setting(60, kind="int", min=2, max=128, step=1, help="rows verified")
    threshold: float = setting(0.09, kind="float", min=0, max=1)
    is_on: bool = setting(True, kind="bool")
    tree: str = setting("small", kind="choice", choices=lambda: ("small", "big"))
    gamma: object = setting("auto", kind="int", min=1, max=9, allow_auto=True)


def test_describe_lists_the_settings_in_order():
    described = describe(Settings)
    assert [s.name for s in described] == ["total_tokens", "threshold", "is_on", "tree", "gamma"]
    assert described[0] == config.Setting("total_tokens", "int", 60, min=2, max=128, step=1, help="rows verified")
    assert described[3].choices == ("small", "big")


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("total_tokens", "16", 16),
        ("total_tokens", 16.0, 16),
        ("total_tokens", " 16 ", 16),
        ("total_tokens", "+" + "0" * 30 + "16", 16),
        ("threshold", "1e-2", 0.01),
        ("threshold", 1, 1.0),
        ("is_on", "off", False),
        ("is_on", "True", True),
        ("tree", "big", "big"),
        ("gamma", "auto", "auto"),
        ("gamma", "3", 3),
    ],
)
def test_resolve_reads_values(name, given, expected):
    settings, notices = resolve(Settings, {name: given})
    assert getattr(settings, name) == expected and type(getattr(settings, name)) is type(expected)
    assert notices == []


@pytest.mark.parametrize(
    ("name", "given", "used"),
    [
        ("total_tokens", "0", 2),
        ("total_tokens", -5, 2),
        ("total_tokens", "9" * 5000, 128),
        ("total_tokens", "-" + "9" * 5000, 2),
        ("threshold", "1.5", 1.0),
        ("gamma", "100", 9),
    ],
)
def test_out_of_range_is_clamped_with_a_sentence(name, given, used):
    settings, notices = resolve(Settings, {name: given})
    assert getattr(settings, name) == used
    assert len(notices) == 1 and name in notices[0] and str(used) in notices[0] and len(notices[0]) < 120


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("total_tokens", "12.5"),
        ("total_tokens", 12.5),
        ("total_tokens", "1_000"),
        ("total_tokens", "٣"),
        ("total_tokens", True),
        ("total_tokens", None),
        ("total_tokens", "auto"),
        ("total_tokens", math.nan),
        ("threshold", "nan"),
        ("threshold", "inf"),
        ("threshold", "1e999"),
        ("threshold", 10**400),
        ("is_on", "maybe"),
        ("is_on", 1),
        ("tree", "huge"),
        ("tree", ["small"]),
        ("gamma", "automatic"),
    ],
)
def test_unreadable_values_are_refused_by_name(name, given):
    with pytest.raises(SettingError, match=name):
        resolve(Settings, {name: given})


def test_an_unknown_name_lists_the_allowed_ones():
    with pytest.raises(SettingError, match=r"'dept'; allowed: total_tokens, threshold, is_on, tree, gamma"):
        resolve(Settings, {"dept": 3})


def test_parse_assignments():
    assert parse_assignments(["depth=3", " preset = paper "]) == {"depth": "3", "preset": "paper"}
    for bad in ("depth", "=3", "depth=", ""):
        with pytest.raises(SettingError, match="NAME=VALUE"):
            parse_assignments([bad])


@pytest.mark.parametrize(
    "values",
    [
        {"temperature": -0.1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"temperature": "0"},
        {"top_p": 0.0},
        {"top_p": 1.01},
        {"top_k": -1},
        {"top_k": 2.5},
        {"seed": -1},
        {"seed": 2**63},
        {"acceptance": "magic"},
    ],
)
def test_sampling_refuses(values):
    with pytest.raises(SettingError, match=next(iter(values))):
        Sampling(**values)


def test_rules_that_make_no_sense_at_a_temperature_are_refused():
    with pytest.raises(SettingError, match="set temperature 0, or choose rejection"):
        Sampling(temperature=0.7, acceptance="greedy")
    for temperature in (0.0, 1e-5):
        with pytest.raises(SettingError, match="needs a temperature above 0"):
            Sampling(temperature, acceptance="typical")
    assert Sampling(acceptance="rejection").rule == "rejection"  # equal to greedy, and allowed


def test_sampling_describes_its_own_controls():
    described = {item.name: item for item in config.describe(Sampling)}
    assert list(described) == ["temperature", "top_p", "top_k", "seed", "acceptance"]
    assert all(item.default == getattr(Sampling(), name) for name, item in described.items())
    values = {"temperature": "0.7", "top_p": "0.9", "seed": "12", "acceptance": "rejection"}
    assert config.resolve(Sampling, values) == (Sampling(0.7, 0.9, 0, 12, "rejection"), [])


def test_sampling_rule_follows_the_temperature():
    assert Sampling().is_greedy and Sampling().rule == "greedy"
    assert Sampling(temperature=1e-5).is_greedy and not Sampling(temperature=2e-5).is_greedy
    assert Sampling(temperature=0.7, top_p=1, top_k=40).rule == "rejection"
    assert Sampling(temperature=0.7, acceptance="typical").rule == "typical"


def test_prepare_environment_keeps_what_the_user_set(monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    for name in ("GRADIO_ANALYTICS_ENABLED", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    config.prepare_environment()
    import os

    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE" and os.environ["GRADIO_ANALYTICS_ENABLED"] == "False"
    assert "GOMP_SPINCOUNT" not in os.environ, "how threads wait was said already"
    monkeypatch.delenv("OMP_WAIT_POLICY")
    config.prepare_environment()
    assert int(os.environ["GOMP_SPINCOUNT"]) > 0
    monkeypatch.delenv("GOMP_SPINCOUNT")


def test_cache_dir_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("DRAFT_TREE_CACHE", str(tmp_path))
    assert config.cache_dir() == tmp_path
    monkeypatch.delenv("DRAFT_TREE_CACHE")
    assert config.cache_dir().name == "draft-tree-explorer"
