"""The first fetch: one thread, its progress for everyone who waits, its failure for each of them, and a second try."""

from __future__ import annotations

import threading

import pytest

from explorer.checkpoints import smollm2
from explorer.errors import FetchError
from explorer.runner import Runner
from explorer.runner_events import Status
from explorer.target_fetch import TargetFetch


class FakeFetch:
    """Stands in for smollm2.fetch: reports one stage, then waits to be let go, then fails or not."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.num_calls = 0
        self.may_end = threading.Event()

    def __call__(self, report: smollm2.Progress) -> None:
        self.num_calls += 1
        report(1, 4, "downloading")
        self.may_end.wait(10)
        if self.error is not None:
            raise self.error


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeFetch:
    fetch = FakeFetch()
    monkeypatch.setattr(smollm2, "fetch", fetch)
    return fetch


def until_downloading(waiting: object) -> Status:
    return next(status for status in waiting if status.fraction is not None)  # type: ignore[attr-defined]


def test_two_who_wait_see_one_fetch(fake: FakeFetch) -> None:
    shared = TargetFetch()
    first, second = shared.wait(), shared.wait()
    expected = Status("fetching the default target: downloading", 0.25)
    assert (until_downloading(first), until_downloading(second)) == (expected, expected)
    fake.may_end.set()
    assert (list(first), list(second), fake.num_calls) == ([], [], 1)


def test_whoever_stops_waiting_does_not_stop_the_fetch(fake: FakeFetch) -> None:
    shared = TargetFetch()
    waiting = shared.wait()
    until_downloading(waiting)
    waiting.close()
    worker = shared.begin()
    assert worker.is_alive()
    fake.may_end.set()
    worker.join(10)
    assert fake.num_calls == 1


def test_a_failure_reaches_each_run_and_the_next_one_tries_again(fake: FakeFetch) -> None:
    fake.error = FetchError("there is no network")
    fake.may_end.set()
    shared = TargetFetch()
    for attempt in (1, 2):
        with pytest.raises(FetchError, match="no network"):
            list(shared.wait())
        assert fake.num_calls == attempt
    fake.error = None
    assert all(isinstance(status, Status) for status in shared.wait())


@pytest.mark.parametrize("is_here", [True, False])
def test_the_start_of_the_app_fetches_only_what_is_missing(
    fake: FakeFetch, monkeypatch: pytest.MonkeyPatch, is_here: bool
) -> None:
    monkeypatch.setattr(smollm2, "is_fetched", lambda: is_here)
    fake.may_end.set()
    runner = Runner()
    runner.fetch_default_target()
    if not is_here:
        list(runner._store.default_target.wait())
    assert (fake.num_calls > 0) is not is_here
