"""Every method in METHODS keeps the interface: a name, settings that describe themselves, three calls."""

from __future__ import annotations

import dataclasses

import pytest

from explorer.config import describe, resolve
from explorer.methods.base import Method
from explorer.methods.registry import METHODS


def test_the_baseline_and_both_papers_are_there() -> None:
    assert {"autoregressive", "medusa", "eagle2"} <= METHODS.keys()


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_complete(name: str) -> None:
    method = METHODS[name]
    assert issubclass(method, Method)
    assert method.name == name
    assert method.label
    assert not method.__abstractmethods__


@pytest.mark.parametrize("name", METHODS)
def test_settings_are_frozen_and_describe_themselves(name: str) -> None:
    settings = METHODS[name].Settings
    described = describe(settings)
    assert [one.name for one in described] == [field.name for field in dataclasses.fields(settings)]
    assert all(one.help for one in described)
    values, notices = resolve(settings, {})
    assert notices == []
    for one in described:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(values, one.name, one.default)
