"""The offline page as text: one script, one data block, nothing to fetch, and no token that could become markup."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from explorer.export.html import PROMPT_LENGTH, replay_page
from explorer.views.viewer import SHELL, replay_js, view_payload, viewer_source
from tests.support.traces import make_trace

HOSTILE_PROMPT = (
    '</title></h1><script>window.__x=1</script>"><img src=x onerror="window.__x=1">\u202e${window.__x=1}\ufeff'
)


class Page(HTMLParser):
    """What a browser would make of the page: elements, and the text of scripts, title and heading."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.open = [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.open.append((tag, len(self.elements)))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]] = self.texts.get(self.open[-1], "") + data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag):
        return [text for (name, _), text in self.texts.items() if name == tag]


def make_page(trace, **options):
    return replay_page(view_payload(trace, trace_id="t"), SHELL, replay_js(), **options)


@pytest.fixture(scope="module")
def hostile():
    trace = make_trace("eagle2", 6, 40, hostile=True)
    return replace(trace, prompt=replace(trace.prompt, text=HOSTILE_PROMPT))


def test_the_data_is_the_view_json_of_the_run(hostile):
    data, script = Page(make_page(hostile, start=3)).text("script")
    view = json.loads(json.dumps(view_payload(hostile, trace_id="t")))
    assert json.loads(data) == view | {"start": 3}
    assert script == replay_js()
    assert viewer_source() in script, "the same viewer as on the page"


def test_hostile_text_is_data_and_never_markup(hostile):
    text = make_page(hostile)
    page = Page(text)
    assert len(page.all("script")) == 2 and page.all("img") == [] and len(page.all("h1")) == 1
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    data = page.text("script")[0]
    assert data.isascii() and not set("<>&") & set(data)
    assert text.count("</script>") == 2 and "<!--" not in text.split("<body>")[1]
    assert "\u202e" not in text and "\ufeff" not in text
    (shown,) = page.text("h1")
    assert "<img src=x onerror=" in shown and "⟨U+202E⟩" in shown
    assert "</h1>" in page.text("title")[0]


def test_nothing_is_fetched_and_only_this_script_may_run(hostile):
    page = Page(make_page(hostile))
    linked = [a[name] for _, a in page.elements for name in ("src", "href", "action", "srcset") if name in a]
    assert linked == ["data:,"]
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    digest = base64.b64encode(hashlib.sha256(page.text("script")[1].encode()).digest()).decode()
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'" and "connect-src" not in rules
    assert rules["style-src"] == "'unsafe-inline'", "the viewer brings its style sheet itself"
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", page.text("script")[1])


def test_the_script_cannot_end_itself():
    assert "</script" not in replay_js().lower() and "<!--" not in replay_js()


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("Two\nlines  of\ttext", "Two lines of text"),
        ("", "prompt of 41 tokens"),
        ("x" * 1000, "x" * (PROMPT_LENGTH - 1) + "…"),
    ],
)
def test_the_prompt_is_the_heading(text, heading):
    trace = make_trace(steps=2)
    page = Page(make_page(replace(trace, prompt=replace(trace.prompt, text=text))))
    assert page.text("h1") == [heading]
    assert page.text("title")[0].endswith(f"{trace.method} on {trace.target.name}")


def test_a_run_without_steps_has_a_page_too():
    data = json.loads(Page(make_page(make_trace(steps=0))).text("script")[0])
    assert data["steps"] == [] and data["done"] is True
