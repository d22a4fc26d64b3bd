"""A drafter that adapts its target, from its files to the screen: one run, one target, and the original left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from explorer.__main__ import main
from explorer.checkpoints.target import load_target
from explorer.checkpoints.target_adapter import adapt
from explorer.config import Sampling
from explorer.runner import Runner
from explorer.runner_events import Event, Finished, Notice, RunRequest
from explorer.target import Target
from explorer.trace import Trace, from_json, read_trace, to_json
from explorer.trace_check import check_trace
from tests.support.goldens import FOLDER
from tests.support.medusa2_files import write_medusa2
from tests.support.tiny import greedy

BASE, PLAIN_HEADS = str(FOLDER / "base_b"), str(FOLDER / "medusa_b")


def request(drafter: str, sampling: Sampling | None = None, numerics: str = "fast") -> RunRequest:
    return RunRequest(
        "medusa",
        prompt="Count the red cats",
        target=BASE,
        drafter=drafter,
        settings={"total_tokens": 12},
        max_new_tokens=24,
        sampling=sampling or Sampling(),
        numerics=numerics,
    )


def finished(events: Iterator[Event] | list[Event]) -> Trace:
    return next(event.trace for event in events if isinstance(event, Finished))


def adapted_target(source: str) -> Target:
    loaded = adapt(load_target(BASE), source)
    return Target(loaded.model, loaded.tokenizer, loaded.name, loaded.stop_ids, loaded.backend)


def test_greedy_output_is_that_of_the_adapted_target_token_for_token(tmp_path: Path) -> None:
    runner, source = Runner(), str(write_medusa2(tmp_path))
    plain = finished(runner.run(request(PLAIN_HEADS)))
    events = list(runner.run(request(source)))
    trace = finished(events)
    said = next(event.text for event in events if isinstance(event, Notice) and "adapted" in event.text)
    assert said.startswith("lossless with respect to the adapted target, not base_b itself")
    assert "1,234 held-out tokens first choice as the original's 87.5 %, mean KL 0.25" in said
    assert trace.target.name == "base_b adapted by medusa2"
    assert trace.baseline is not None
    assert trace.baseline.output_equal
    assert trace.output.token_ids != plain.output.token_ids
    assert trace.output.token_ids == greedy(adapted_target(source), trace.prompt.token_ids, 24)
    check_trace(trace)
    assert from_json(to_json(trace)).target.adapter == trace.target.adapter
    again = finished(runner.run(request(PLAIN_HEADS)))
    assert again.output == plain.output
    assert again.target.adapter is None


@pytest.mark.parametrize("rule", ["rejection", "typical"])
def test_only_what_is_lossless_is_called_so(tmp_path: Path, rule: str) -> None:
    sampling = Sampling(temperature=0.8, seed=1, acceptance=rule)
    events = list(Runner().run(request(str(write_medusa2(tmp_path)), sampling)))
    said = " ".join(event.text for event in events if isinstance(event, Notice))
    assert "the adapted target" in said
    assert ("lossless" in said) is (rule == "rejection")


def test_bitwise_numerics_run_on_the_adapted_target_too(tmp_path: Path) -> None:
    trace = finished(Runner().run(request(str(write_medusa2(tmp_path)), numerics="bitwise")))
    assert trace.target.numerics == "bitwise"
    assert trace.target.adapter is not None
    assert trace.baseline is not None
    assert trace.baseline.output_equal


def test_trace_and_show_say_which_target_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, source = tmp_path / "t.json", str(write_medusa2(tmp_path))
    words = ("--method", "medusa", "--target", BASE, "--drafter", source, "--prompt", "Cats?", "--max-new-tokens", "8")
    assert main(["trace", *words, "--out", str(out)]) == 0
    told = capsys.readouterr()
    assert "lossless with respect to the adapted target" in " ".join((told.out + told.err).split())
    adapter = read_trace(out).target.adapter
    assert adapter is not None
    assert (adapter.original, adapter.agreement) == ("base_b", 0.875)
    assert main(["show", str(out)]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "medusa on base_b adapted by medusa2" in shown
    assert "first choice as the original's 87.5 %" in shown
