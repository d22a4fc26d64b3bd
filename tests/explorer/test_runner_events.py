"""Requests and events are values: what a request stands for when little is said, and that nobody can change one."""

import dataclasses
import typing

import pytest

from explorer import runner_events
from explorer.config import DEFAULT_TARGET, Sampling
from explorer.runner_events import Event, RunRequest, Status, drain


def test_a_request_that_says_little_is_a_greedy_run_on_the_default_target_with_a_baseline():
    request = RunRequest("eagle2", prompt="Hi")
    assert (request.target, request.sampling, request.baseline) == (DEFAULT_TARGET, Sampling(), True)
    assert (request.drafter, request.preset, dict(request.settings)) == (None, None, {})
    assert {request.dtype, request.device, request.backend} == {"auto"}
    assert request.use_chat_template and not request.ignore_stop


def test_requests_and_events_cannot_be_changed():
    values = [RunRequest, *typing.get_args(Event)]
    assert all(dataclasses.is_dataclass(value) and value.__dataclass_params__.frozen for value in values)
    with pytest.raises(dataclasses.FrozenInstanceError):
        RunRequest("eagle2").method = "medusa"


def test_every_event_is_named_in_the_union():
    named = {value.__name__ for value in typing.get_args(Event)}
    defined = {
        name
        for name, value in vars(runner_events).items()
        if isinstance(value, type) and value.__module__ == runner_events.__name__
    }
    assert defined - {"RunRequest", "DeviceState"} == named


def test_draining_hands_over_each_event_and_returns_the_result():
    def work():
        yield Status("loading")
        yield Status("measuring")
        return 7

    seen = []
    assert (drain(work(), seen.append), drain(work())) == (7, 7)
    assert seen == [Status("loading"), Status("measuring")]
