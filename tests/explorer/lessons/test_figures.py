"""Placeholders become what the record says; the sentences that lean on figures hold in the recordings."""

from __future__ import annotations

import pytest

from explorer.errors import TraceError
from explorer.lessons.figures import FIGURES, Recordings, Scene, fill
from explorer.lessons.steps import find_step
from explorer.trace import Trace
from tests.support.recorded import EQUAL, plain, recorded
from tests.support.traces import make_trace

MADE = {"one": make_trace("eagle2", 12, 16), "two": make_trace("medusa", 8, 24)}


def scene(trace: Trace, rule: str = "most_accepted") -> Scene:
    return Scene(trace, find_step(trace, rule), Recordings({"one": True, "two": None}, MADE.__getitem__))


def figure(trace: Trace, name: str, rule: str = "first") -> float:
    """A figure of a recorded trace as a number."""
    found = Scene(trace, find_step(trace, rule), Recordings(EQUAL, recorded))
    return float(fill("{" + name + "}", found).split()[0])


def test_figures_of_run_and_step() -> None:
    trace = MADE["one"]
    here = scene(trace)
    stats = trace.stats
    assert fill("{tau}, {num_accepted} of {num_drafted}", here) == (
        f"{stats.mean_acceptance_length:.2f}, {stats.num_accepted_draft_tokens} of {stats.num_draft_tokens}"
    )
    assert fill("{accepted}+1={gained} {drafted} {prefix}", here) == (
        f"{here.step.num_accepted}+1={len(here.step.path)} {here.step.num_drafted} {here.step.prefix_len}"
    )
    size = len(here.step.tree)
    assert fill("{step_rows} {all_cells}", here) == f"{size} {size * size}"


def test_another_recording_and_a_step_of_it() -> None:
    here = scene(MADE["one"])
    assert fill("{tau@two}", here) == f"{MADE['two'].stats.mean_acceptance_length:.2f}"
    wanted = find_step(MADE["two"], "most_accepted")
    assert fill("{accepted@two:most_accepted}", here) == str(wanted.num_accepted)


def test_cost_is_in_plain_tokens() -> None:
    trace = MADE["one"]
    assert trace.baseline is not None
    assert trace.baseline.tokens_per_second is not None
    total = sum(step.ms.total for step in trace.steps) / len(trace.steps)
    assert fill("{step_cost}", scene(trace)) == f"{total * trace.baseline.tokens_per_second / 1000:.2f}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{tau@three}", "'three', which is not here"),
        ("{size}", "no figure is called 'size'"),
        ("{threshold}", "no value"),
    ],
)
def test_what_cannot_be_filled_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(TraceError, match=problem):
        fill(text, scene(MADE["one"]))


def test_braces_that_are_no_placeholders_stay() -> None:
    assert fill("{ tau } {Tau} {}", scene(MADE["one"])) == "{ tau } {Tau} {}"


def test_every_figure_is_text_or_absent() -> None:
    for trace in MADE.values():
        for name, compute in FIGURES.items():
            value = compute(scene(trace))
            assert value is None or (isinstance(value, str) and value), name


# What the lessons say in words about the recordings must be so in the recordings.


def test_eagle_and_medusa_are_close_at_the_first_place_and_far_apart_at_the_second() -> None:
    medusa, eagle = (recorded(name).stats.acceptance_by_depth for name in ("medusa-code", "eagle2-code"))
    assert medusa[0] == pytest.approx(eagle[0], abs=0.1)
    assert medusa[1] is not None and eagle[1] is not None
    assert eagle[1] > 2 * medusa[1]


def test_more_rows_accept_more_at_a_lower_rate_and_cost_more() -> None:
    for small, large in (("eagle2-code", "eagle2-code-60"), ("medusa-code", "medusa-code-64")):
        few, many = recorded(small), recorded(large)
        assert figure(few, "tau") < figure(many, "tau")
        assert figure(few, "rate") > figure(many, "rate")
        assert figure(few, "step_cost") < figure(many, "step_cost")
        assert figure(many, "speedup") < 1


def test_the_greedy_runs_are_equal_to_plain_decoding() -> None:
    assert figure(recorded("eagle2-code"), "num_equal") == figure(recorded("eagle2-code"), "num_greedy") >= 10
    assert fill("{num_equal} of {num_greedy}", scene(MADE["one"])) == "1 of 1"


def test_typical_accepts_more_than_greedy_and_not_only_first_choices() -> None:
    assert figure(recorded("medusa-chat-typical"), "tau") > figure(recorded("medusa-chat"), "tau")
    assert figure(recorded("medusa-chat-typical"), "uncommon_share") > 0


def test_the_accepted_token_that_is_not_the_favourite_is_named_beside_the_favourite() -> None:
    trace = recorded("medusa-chat-typical")
    found = Scene(trace, find_step(trace, "against_argmax"), Recordings(EQUAL, recorded))
    taken, favourite = (plain(fill(name, found)).rsplit(" (", 1) for name in ("{uncommon}", "{uncommon_favourite}"))
    assert taken[0] != favourite[0]
    assert float(taken[1].split()[0]) < float(favourite[1].split()[0])
    assert FIGURES["uncommon"](scene(MADE["one"])) is None, "greedy accepts favourites only"


def test_medusa_drafts_one_shape_and_eagle_many() -> None:
    assert figure(recorded("medusa-code"), "shapes") == 1
    assert figure(recorded("eagle2-code"), "shapes") > 10


def test_medusas_heads_are_smaller_than_eagles_layer_here() -> None:
    assert figure(recorded("medusa-code"), "drafter_params") < figure(recorded("eagle2-code"), "drafter_params")


def test_what_eagle_looked_at_is_as_many_as_the_formula_says() -> None:
    trace = recorded("eagle2-chat")
    k, depth = trace.settings["top_k"], trace.settings["depth"]
    assert figure(trace, "considered", "wanted_pruned") == k + depth * k * k


def test_french_is_the_hardest_of_the_four_prompts() -> None:
    for method in ("eagle2", "medusa"):
        taus = {prompt: figure(recorded(f"{method}-{prompt}"), "tau") for prompt in ("maths", "code", "chat", "french")}
        assert min(taus, key=taus.__getitem__) == "french"


def test_deep_is_sure_and_wide_is_torn() -> None:
    trace = recorded("eagle2-code")
    deep, wide = (find_step(trace, rule).tree.target_top[0] for rule in ("deepest", "widest"))
    assert deep is not None
    assert wide is not None
    assert deep[0][1] > 0.9
    assert wide[0][1] < 0.6
    found = Scene(trace, find_step(trace, "deepest"), Recordings(EQUAL, recorded))
    assert "100 %" in plain(fill("{root_favourite}", found)) or "9" in fill("{root_favourite}", found)
