"""The lessons on the real page with the recorded runs: every stop shows what it speaks of; the histogram converges."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from explorer.config import repo_path
from explorer.lab_records import shown_records
from explorer.lessons.data import load_lessons
from explorer.lessons.figures import Recordings
from explorer.target_presets import load_targets
from explorer.ui.store import Library
from explorer.views.lessons import stop_view
from tests.browser.app_server import AppServer
from tests.support.fake_runner import FakeRunner
from tests.support.traces import make_trace

pytestmark = pytest.mark.browser

LIBRARY = Library(repo_path("assets", "traces"))
RECORDINGS = Recordings({item.name: item.output_equal for item in LIBRARY}, LIBRARY.trace, shown_records())
PLACES = [(i, j) for i, lesson in enumerate(load_lessons()) for j in range(len(lesson.stops))]
HISTOGRAM = next((i, j) for i, j in PLACES if load_lessons()[i].stops[j].has_demo)
expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def server() -> Iterator[AppServer]:
    targets = (load_targets()["smollm2"],)
    with AppServer(FakeRunner(make_trace()), targets, repo_path("assets", "traces")) as running:
        yield running


def stop_at(place: tuple[int, int]) -> dict[str, Any]:
    return stop_view(RECORDINGS, *place)


def address(server: AppServer, place: tuple[int, int]) -> str:
    return f"{server.url}?lesson={place[0] + 1}&stop={place[1] + 1}"


def wait_for(page: Page, stop: dict[str, Any]) -> None:
    """Until the stop's text and its step are on screen."""
    expect(page.locator(".dtx-lesson-title")).to_have_text(stop["title"])
    num_steps = len(LIBRARY.trace(stop["trace"]).steps)
    expect(page.locator(".dtx-stepcount")).to_have_text(f"step {stop['step'] + 1} / {num_steps}")
    expect(page.locator(".dtx-lesson")).to_have_attribute("aria-busy", "false")


def box(part: Locator) -> dict[str, float]:
    found = part.bounding_box()
    assert found is not None
    return dict(found)


def check_todo(page: Page, todo: str) -> None:
    """The words in quotes that a thing to do names can be read on the page, and its keys are on the sheet of keys."""
    for name in re.findall("‘([^’]+)’", todo):
        words = re.compile(re.escape(name).replace("…", r"\d+"))
        expect(page.locator(".dtx").get_by_text(words).filter(visible=True).first).to_be_visible()
    keys = " ".join(page.locator(".dtx-keys dt").all_text_contents()).replace("1 … 5", "1 2 3 4 5").split()
    assert set(re.findall(r"[←→↑↓]|(?<=Press )\w(?=\W)", todo)) <= set(keys), todo


def check_on_screen(page: Page, stop: dict[str, Any]) -> None:
    """What a stop speaks of can be seen, next to the lesson and not under it."""
    assert page.locator(".dtx-lesson-text").inner_text().split() == stop["text"].split()
    assert stop["todo"] in page.locator(".dtx-lesson-todo").inner_text()
    check_todo(page, stop["todo"])
    assert page.locator(".dtx-lesson-formula").text_content() == "\n".join(stop["formula"])
    cells = page.locator(".dtx-lesson-table :is(th, td)").all_inner_texts()
    table = stop["table"]
    assert cells == ([*table["head"], *(cell for row in table["rows"] for cell in row)] if table else [])
    column = box(page.locator(".dtx-lesson"))
    pointed = page.locator(".is-pointed")
    assert pointed.count() == len(stop["look"])
    for part in pointed.all():
        assert box(part)["x"] >= column["x"] + column["width"]
        assert box(part)["y"] + box(part)["height"] <= 720
    wanted = page.locator(".dtx-card .dtx-top:not(.is-residual) li:first-child")
    if wanted.is_visible():
        card = box(page.locator(".dtx-card"))
        assert box(wanted)["x"] + box(wanted)["width"] <= card["x"] + card["width"], "what the target wanted is cut off"
    for field in ("view", "pane"):
        tab = page.locator(f'.dtx-tab[data-{field}="{stop[field]}"]')
        if tab.count():
            expect(tab).to_have_attribute("aria-pressed", "true")
    if stop["pin"] is not None:
        node = page.locator(f'.dtx-tree [data-node="{stop["pin"]}"]')
        expect(node).to_have_attribute("aria-selected", "true")
        tree = box(page.locator(".dtx-canvas"))
        assert tree["y"] <= box(node)["y"] + box(node)["height"] / 2 <= tree["y"] + tree["height"]
    body = page.locator(".dtx-lesson-body")
    assert body.evaluate("(e) => e.scrollWidth <= e.clientWidth"), "no line is cut off"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_stop_shows_what_it_speaks_of(server: AppServer, open_page: Callable[..., Page], scheme: str) -> None:
    page = open_page(address(server, (0, 0)), color_scheme=scheme)
    for place in PLACES:
        stop = stop_at(place)
        wait_for(page, stop)
        check_on_screen(page, stop)
        lesson, number = place
        expect(page).to_have_url(re.compile(rf"\?lesson={lesson + 1}&stop={number + 1}$"))
        expect(page.locator(".dtx-lesson-count")).to_have_text(f"{number + 1} / {len(load_lessons()[lesson].stops)}")
        assert page.locator(".dtx-lesson-dot[aria-current]").count() == 1
        if place != PLACES[-1]:
            page.locator(".dtx-lesson-next").click()
    expect(page.locator(".dtx-lesson-next")).to_be_disabled()


def test_a_lesson_has_the_page_and_gives_it_back(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{server.url}?trace=medusa-code&step=6")
    count, form = page.locator(".dtx-stepcount"), page.locator("#form")
    num_steps = len(LIBRARY.trace("medusa-code").steps)
    expect(count).to_have_text(f"step 6 / {num_steps}")
    page.locator(".dtx").focus()
    page.keyboard.press("ArrowRight")
    page.locator(".dtx-lessons").click()
    wait_for(page, stop_at((0, 0)))
    expect(page.locator(".dtx-lesson-title")).to_be_focused()
    for part in ("#form", "#summary", "#files", "#picker"):
        expect(page.locator(part)).to_be_hidden()
    page.keyboard.press("n")
    wait_for(page, stop_at((0, 1)))
    page.keyboard.press("Shift+N")
    wait_for(page, stop_at((0, 0)))
    page.keyboard.press("l")
    expect(page.locator(".dtx-lesson")).to_be_hidden()
    expect(form).to_be_visible()
    expect(count).to_have_text(f"step 7 / {num_steps}")
    expect(page.locator(".dtx-title strong")).to_have_text("Medusa")
    expect(page.locator(".dtx-lessons")).to_be_focused()
    assert page.locator(".is-pointed").count() == 0
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("trace=medusa-code&step=8"))
    assert "lesson" not in page.url


def test_lessons_are_picked_from_the_list_and_stops_by_their_marks(
    server: AppServer, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url)
    page.locator(".dtx-lessons").click()
    wait_for(page, stop_at((0, 0)))
    titles = page.locator(".dtx-lesson-picker option").all_inner_texts()
    assert titles == [f"{i + 1}. {lesson.title}" for i, lesson in enumerate(load_lessons())]
    page.locator(".dtx-lesson-picker").select_option(index=3)
    wait_for(page, stop_at((3, 0)))
    page.locator(".dtx-lesson-dot").nth(2).click()
    wait_for(page, stop_at((3, 2)))
    expect(page.locator(".dtx-order")).to_have_text("engine order")
    page.locator(".dtx-lesson-back").click()
    wait_for(page, stop_at((3, 1)))
    expect(page.locator(".dtx-order")).to_have_text("depth-first")


def test_an_address_that_leads_nowhere_opens_the_first_stop(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{server.url}?lesson=99&stop=1")
    wait_for(page, stop_at((0, 0)))
    page.locator(".dtx-lesson-close").click()
    expect(page.locator(".dtx-lesson")).to_be_hidden()
    expect(page.locator("#form")).to_be_visible()
    expect(page.locator(".dtx-tree .dtx-node").first).to_be_visible()


def test_a_phone_has_the_lesson_above_the_viewer(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(address(server, (6, 0)), width=390, height=800)
    wait_for(page, stop_at((6, 0)))
    lesson, tree = box(page.locator(".dtx-lesson")), box(page.locator(".dtx-treebox"))
    assert lesson["y"] + lesson["height"] <= tree["y"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("place", [(1, 1), (5, 4)])
def test_a_phone_cuts_no_sentence_and_no_number_off(
    server: AppServer, open_page: Callable[..., Page], place: tuple[int, int]
) -> None:
    """(5, 4) asks for the times at the end of the line below the tree."""
    page = open_page(address(server, place), width=390, height=844)
    wait_for(page, stop_at(place))
    expect(page.locator(".dtx-caption small")).to_contain_text("rest")
    caption = page.locator(".dtx-caption")
    assert caption.evaluate("(e) => e.scrollHeight - e.clientHeight") <= 1
    shares = page.locator(".dtx-card .dtx-top:not(.is-residual) li span:last-child")
    assert shares.count() > 1
    assert shares.evaluate_all("(all) => all.filter((e) => e.scrollWidth > e.clientWidth).length") == 0


def numbers(page: Page) -> dict[str, float]:
    found = page.locator(".dtx-demo").evaluate("(e) => ({...e.dataset})")
    return {name: float(value or "nan") for name, value in found.items()}


def test_rejection_converges_to_the_target_and_typical_does_not(
    server: AppServer, open_page: Callable[..., Page]
) -> None:
    """Bound: the mean distance of n draws from k outcomes is at most ½ √((k - 1) / n); the seeds are fixed."""
    demo = stop_at(HISTOGRAM)["demo"]
    page = open_page(address(server, HISTOGRAM), reduced_motion="reduce")
    start = page.locator(".dtx-demo-start")
    for _ in range(3):
        start.click()  # at once: reduced motion
        expect(page.locator(".dtx-demo-count")).to_have_text(f"{demo['num_draws']} draws")
        found = numbers(page)
        bound = math.sqrt((len(demo["probs"]) - 1) / demo["num_draws"]) / 2
        assert found["total"] == demo["num_draws"]
        assert found["rejection"] <= 1.25 * bound, "one run may lie somewhat above the mean"
        assert found["typical"] == pytest.approx(demo["typical_distance"], abs=1e-6)
        expect(start).to_have_text("Draw again")
    shown = page.locator('.dtx-demo tr [data-rule="typical"]').all_inner_texts()
    assert [place for place, share in enumerate(shown) if share == "100 %"] == [demo["typical"]]
    drafted = page.locator(".dtx-demo tr.is-drafted").evaluate_all("(rows) => rows.map((r) => Number(r.dataset.place))")
    assert sorted(drafted) == sorted(sibling["index"] for sibling in demo["siblings"])


def test_the_draws_are_animated_and_can_be_stopped(server: AppServer, open_page: Callable[..., Page]) -> None:
    page = open_page(address(server, HISTOGRAM))
    start = page.locator(".dtx-demo-start")
    start.click()
    page.wait_for_function("Number(document.querySelector('.dtx-demo').dataset.total) >= 3")
    expect(start).to_have_text("Stop")
    start.click()
    expect(start).to_have_text("Draw")
    total = numbers(page)["total"]
    page.wait_for_timeout(400)
    assert 3 <= numbers(page)["total"] == total < 4000
    page.locator(".dtx-lesson-back").click()
    expect(page.locator(".dtx-demo")).to_be_hidden()
    assert page.locator('.dtx-tab[data-pane="histogram"]').is_hidden()
