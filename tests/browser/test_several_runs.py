"""The views of several runs on the bare viewer: what is drawn equals the answers, and the clock moves it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from explorer.compare import compare_at
from explorer.race import race
from explorer.trace import Trace
from explorer.trace_diff import diff_traces
from tests.browser.harness import OpenViewer, ViewerServer, at, go
from tests.support.recorded import recorded
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser

EAGLE, MEDUSA = recorded("eagle2-code"), recorded("medusa-code")
SPANS = """(lane) => {
  const paths = [...document.querySelectorAll(`[data-lane="${lane}"] path.dtx-span`)];
  const rects = (path) => [...path.getAttribute("d").matchAll(/M([\\d.-]+) [\\d.]+h([\\d.]+)/g)];
  return Object.fromEntries(paths.map((path) => [path.getAttribute("class").match(/is-([a-z]+)/)[1],
    rects(path).map((found) => [Number(found[1]), Number(found[2])])]));
}"""
BARS = """bars => bars.map((bar) => [Number(bar.dataset.gain), bar.classList.contains("is-loss"),
  ...[["x", ".dtx-gainhit"], ["width", ".dtx-gainhit"], ["height", ".dtx-gainbar"]].map(
    ([name, part]) => Number(bar.querySelector(part).getAttribute(name)))])"""
SET_CLOCK = """(share) => {
  const clock = document.querySelector(".dtx-clock");
  clock.value = String(Number(clock.max) * share);
  clock.dispatchEvent(new Event("input", { bubbles: true }));
}"""
DRAWN = """(side) => [...document.querySelectorAll(`[data-side="${side}"] .dtx-node`)].map((node) =>
  [Number(node.dataset.small), node.getAttribute("class").match(/is-([a-z]+)/)[1],
    node.classList.contains("is-pruned") ? "pruned" : node.classList.contains("is-alone") ? "alone" : ""])"""


def show(page: Page, server: ViewerServer, view: str, *others: Trace) -> list[str]:
    """The view with these runs known to the page as the visitor's own; returns their ids."""
    ids = [server.add(trace) for trace in others]
    page.evaluate("(ids) => viewer.store.set({own: ids})", ids)
    page.locator(f'[data-view="{view}"]').click()
    return ids


def test_lanes_and_their_spans_are_the_races(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(EAGLE)
    show(page, server, "race", MEDUSA)
    expect(page.locator("[data-lane]")).to_have_count(3)
    found = race([EAGLE, MEDUSA])
    lead = max(lane.prefill_ms for lane in found.lanes)
    width = page.evaluate("Number(document.querySelector('.dtx-track').getAttribute('width'))")
    scale = width / (found.duration_ms + lead)
    for index, lane in enumerate(found.lanes):
        row = page.locator(f'[data-lane="{index}"]')
        assert row.locator(".dtx-lanename b").inner_text() == lane.label
        expect(row.locator(".dtx-laneresult b")).to_have_text(f"{lane.num_tokens} in {lane.total_ms / 1000:.2f} s")
        assert row.locator(".is-prefill").count() == (2 if lane.prefill_ms else 0), "apart, and in the name"
        drawn = page.evaluate(SPANS, index)
        starts, clock = dict[str, list[tuple[float, float]]](), 0.0
        for kind, ms in lane.spans:
            if ms > 0:
                starts.setdefault(kind, []).append(((clock + lead) * scale, ms * scale))
            clock += ms
        assert drawn.keys() == starts.keys()
        for kind, expected in starts.items():
            assert len(drawn[kind]) == len(expected)
            for (x, wide), (expected_x, expected_wide) in zip(drawn[kind], expected, strict=True):
                assert x == pytest.approx(expected_x, abs=0.05)
                assert wide == pytest.approx(expected_wide, abs=0.01)
    assert page.locator(".dtx-racecall").inner_text() == " ".join(found.sentences)
    expect(page.locator(".dtx-caption")).to_have_text(" ".join(found.notes))
    page.locator('[data-lane="1"]').hover()
    expect(page.locator(".dtx-caption")).to_have_text(f"Medusa. {found.verdicts[1]}")
    assert page.locator("[data-verdict]").all_inner_texts() == [
        f"{lane.label}: {verdict}" for lane, verdict in zip(found.lanes, found.verdicts, strict=False)
    ]


def test_the_clock_shows_what_each_lane_had_at_that_moment(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(EAGLE)
    show(page, server, "race", MEDUSA)
    expect(page.locator("[data-lane]")).to_have_count(3)
    found = race([EAGLE, MEDUSA])
    for share in (0.0, 0.31, 0.62):
        page.evaluate(SET_CLOCK, share)
        now = share * found.duration_ms
        for index, lane in enumerate(found.lanes):
            count = max(tokens for ms, tokens in lane.arrivals if ms <= now)
            row = page.locator(f'[data-lane="{index}"]')
            assert row.locator(".dtx-laneresult b").inner_text().split()[0] == str(count)
            last = row.locator(".dtx-lanetokens .dtx-token").last.text_content()
            assert last == EAGLE.vocab[str(lane.tokens[count - 1])].label
        leader = [index for ms, index in found.leads if ms <= now]
        marked = page.locator(".dtx-lane.is-leading").evaluate_all(
            "rows => rows.map((row) => Number(row.dataset.lane))"
        )
        assert marked == leader[-1:]
        assert page.locator(".dtx-racecall").inner_text() == [text for ms, text in found.calls if ms <= now][-1]


def test_space_replays_and_pauses_and_light_memory_is_kept(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(EAGLE)
    show(page, server, "race", MEDUSA)
    expect(page.locator("[data-lane]")).to_have_count(3)
    page.locator(".dtx").focus()
    page.keyboard.press(" ")
    page.wait_for_function("Number(document.querySelector('.dtx-clock').value) > 300")
    page.keyboard.press(" ")
    stopped = page.evaluate("document.querySelector('.dtx-clock').value")
    page.wait_for_timeout(300)
    assert page.evaluate("document.querySelector('.dtx-clock').value") == stopped
    assert float(stopped) < race([EAGLE, MEDUSA]).duration_ms
    assert not page.evaluate("viewer.store.playing"), "the steps do not play along"
    page.evaluate(SET_CLOCK, 0.99)
    assert (
        page.evaluate("Math.max(...[...document.querySelectorAll('.dtx-lanetokens')].map((e) => e.childElementCount))")
        <= 40
    )
    assert page.evaluate("document.querySelectorAll('.dtx-lane path').length") <= 5 * 3, "a path a kind, not a span"


def test_reduced_motion_leaves_the_scrubber_alone(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(EAGLE, reduced_motion="reduce")
    show(page, server, "race", MEDUSA)
    expect(page.locator("[data-lane]")).to_have_count(3)
    expect(page.locator(".dtx-raceplay")).to_be_hidden()
    page.evaluate(SET_CLOCK, 0.5)
    page.locator(".dtx").focus()
    page.keyboard.press(" ")
    before = page.evaluate("document.querySelector('.dtx-clock').value")
    page.wait_for_timeout(200)
    assert page.evaluate("document.querySelector('.dtx-clock').value") == before


def test_the_chooser_takes_runs_in_and_out(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(EAGLE)
    medusa, other = show(page, server, "race", MEDUSA, recorded("eagle2-code-60"))
    expect(page.locator("[data-lane]")).to_have_count(4)
    assert page.evaluate("viewer.store.others") == [medusa, other], "another method comes first"
    page.locator(f'[data-run="{medusa}"]').uncheck()
    expect(page.locator("[data-lane]")).to_have_count(3)
    expect(page.locator(".dtx-lanename b").nth(1)).to_have_text("EAGLE-2 (total_tokens 60)")
    page.locator(".dtx").focus()
    page.keyboard.press("4")
    expect(page.locator(".dtx-question")).to_contain_text("What would EAGLE-2 (total_tokens 60) have drafted after")
    page.locator(".dtx-rival").select_option(medusa)
    expect(page.locator(".dtx-question")).to_contain_text("What would Medusa have drafted after")


def test_a_run_alone_races_plain_decoding_and_says_so(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(EAGLE)
    show(page, server, "race", recorded("eagle2-chat"))
    expect(page.locator("[data-lane]")).to_have_count(2)
    expect(page.locator(".dtx-chooser")).to_contain_text("No other run of this prompt and target is here")


@pytest.mark.parametrize("step", [0, 3, 20])
def test_both_trees_are_what_was_drafted(open_viewer: OpenViewer, step: int) -> None:
    page, server = open_viewer(EAGLE)
    show(page, server, "compare", MEDUSA)
    go(page, step)
    found = compare_at(EAGLE, step, MEDUSA)
    expect(page.locator(".dtx-question")).to_have_text(found.question)
    expect(page.locator(".dtx-smalltree")).to_have_count(2)
    assert page.locator(".dtx-comparewords").inner_text() == " ".join(found.sentences)
    for index, (side, trace) in enumerate(zip(found.sides, (EAGLE, MEDUSA), strict=True)):
        record = trace.steps[side.step]
        own = len(record.tree) + len(record.ghosts)
        expected: list[list[Any]] = [[side.base, "root", ""], [own, "own", ""]]
        for row, match in zip(side.rows, side.matches, strict=True):
            mark = "" if match is not None else "pruned" if row in side.pruned_there else "alone"
            expected.append([row, record.tree.state[row], mark])
        assert sorted(page.evaluate(DRAWN, index)) == sorted(expected)


def test_large_trees_fold_what_was_not_reached_until_they_fit(open_viewer: OpenViewer) -> None:
    eagle, medusa = recorded("eagle2-code-60"), recorded("medusa-code-64")
    page, server = open_viewer(eagle)
    show(page, server, "compare", medusa)
    go(page, 12)
    expect(page.locator(".dtx-smalltree")).to_have_count(2)
    drawn = page.evaluate(DRAWN, 0)
    hidden = page.locator('[data-side="0"] .dtx-more').all_text_contents()
    assert hidden
    counts = [int(re.findall(r"\d+", text)[0]) for text in hidden]
    assert len(drawn) + sum(counts) == len(eagle.steps[12].tree) + 1, "rows and the target's own token"
    states = [state for _, state, _ in drawn]
    assert states.count("rejected") == eagle.steps[12].tree.state.count("rejected"), "what was tested stays"
    page.locator(".dtx-smallfold").click()
    assert len(page.evaluate(DRAWN, 0)) == len(eagle.steps[12].tree) + 1


def test_pointing_at_a_node_shows_its_match(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(EAGLE)
    show(page, server, "compare", MEDUSA)
    expect(page.locator(".dtx-smalltree")).to_have_count(2)
    here = compare_at(EAGLE, 0, MEDUSA).sides[0]
    row, match = next((row, match) for row, match in zip(here.rows, here.matches, strict=True) if match is not None)
    page.locator(f'[data-side="0"] [data-small="{row}"]').hover()
    active = page.locator(".dtx-smalltree .is-active").evaluate_all(
        "nodes => nodes.map((node) => Number(node.dataset.small))"
    )
    assert active == [row, match]


def parted(trace: Trace, step: int) -> Trace:
    """The run as if its step ``step`` had written another last token and ended there."""
    steps = [*trace.steps[:step], replace(trace.steps[step], next_token=1)]
    steps[-1] = replace(steps[-1], emitted=[*steps[-1].emitted[:-1], 1])
    tokens = [trace.first_token, *(token for each in steps for token in each.emitted)]
    return replace(trace, steps=steps, output=replace(trace.output, token_ids=tokens))


def test_where_nothing_can_be_compared_the_nearest_shared_step_is_offered(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(EAGLE)
    show(page, server, "compare", parted(MEDUSA, 10))
    go(page, 40)
    expect(page.locator(".dtx-comparewords")).to_contain_text(re.compile("part at token .* before this step"))
    page.locator(".dtx-nearest").click()
    expect(page.locator(".dtx-smalltree")).to_have_count(2)
    assert at(page) < 12


def test_gains_and_texts_are_the_differences(open_viewer: OpenViewer) -> None:
    other = parted(MEDUSA, 30)
    page, server = open_viewer(EAGLE)
    show(page, server, "diff", other)
    found = diff_traces(EAGLE, other)
    expect(page.locator(".dtx-gain")).to_have_count(len(found.gains))
    assert page.locator(".dtx-diffwords p").all_inner_texts() == found.sentences
    bars = page.locator(".dtx-gain").evaluate_all(BARS)
    most = max(abs(gain.gain_ms) for gain in found.gains)
    pitch = bars[0][3] / found.gains[0].num_tokens
    for gain, (step, is_loss, x, wide, high) in zip(found.gains, bars, strict=True):
        assert (step, is_loss) == (gain.step, gain.gain_ms < 0)
        assert x - bars[0][2] == pytest.approx((gain.start - found.gains[0].start) * pitch, abs=0.1)
        assert wide == pytest.approx(gain.num_tokens * pitch, abs=0.1)
        assert high == pytest.approx(max(1, abs(gain.gain_ms) / most * 38), abs=0.1)
    assert page.locator(".dtx-aligned .is-common").count() == found.num_common
    first = page.locator(".dtx-aligned .is-parted").first.locator("bdi").all_text_contents()
    assert found.split is not None
    assert first == [EAGLE.vocab[str(token)].label for token in found.split.tokens]
    page.locator('.dtx-gain[data-gain="7"]').click()
    assert at(page) == 7
    expect(page.locator(".dtx-gainline")).to_contain_text(found.gains[7].sentence)
    page.locator(".dtx-aligned [data-index]").nth(1).click()
    assert at(page) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_tokens_stay_text_in_every_view(open_viewer: OpenViewer, scheme: str) -> None:
    first = make_trace("eagle2", 6, 16, hostile=True)
    second = replace(make_trace("medusa", 6, 16, hostile=True), prompt=first.prompt, first_token=first.first_token)
    second.output.token_ids[0] = first.first_token
    page, server = open_viewer(first, color_scheme=scheme)
    show(page, server, "race", second)
    expect(page.locator("[data-lane]")).to_have_count(3)
    assert "<img src=x" in page.locator(".dtx-lanes").inner_text()
    for view, part in (("compare", ".dtx-smalltree"), ("diff", ".dtx-aligned")):
        page.locator(f'[data-view="{view}"]').click()
        expect(page.locator(part).first).to_be_visible()
    assert page.evaluate("window.__x") is None
    assert page.locator(".dtx img, .dtx script, .dtx b b").count() == 0
    seen = page.locator(".dtx").inner_text()
    assert not any(character in seen for character in "\0\u202e\u202c\u200b")


@pytest.mark.parametrize("view", ["race", "compare", "diff"])
def test_a_growing_run_is_waited_for(open_viewer: OpenViewer, view: str) -> None:
    page, _ = open_viewer(make_trace("eagle2", 6, 12), num_steps=2)
    page.locator(f'[data-view="{view}"]').click()
    expect(page.locator(".dtx-chooser")).to_have_text("Runs can be shown together when this one has ended.")
    assert page.locator("[data-lane], .dtx-smalltree, .dtx-gain").count() == 0


def test_phone_width_has_no_sideways_scroll(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(EAGLE, width=390, height=800)
    show(page, server, "race", MEDUSA)
    for view, part in (("race", "[data-lane]"), ("compare", ".dtx-smalltree"), ("diff", ".dtx-gain")):
        page.locator(f'[data-view="{view}"]').click()
        expect(page.locator(part).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_no_writing_in_a_chart_is_black_in_the_dark(open_viewer: OpenViewer) -> None:
    page, server = open_viewer(EAGLE, color_scheme="dark")
    for view in ("race", "diff"):
        show(page, server, view, MEDUSA)
        texts = page.locator(f".dtx-{view} svg text")
        expect(texts.first).to_be_visible()
        assert "rgb(0, 0, 0)" not in texts.evaluate_all("all => all.map((each) => getComputedStyle(each).fill)")
