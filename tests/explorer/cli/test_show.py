"""The show command: the tree in the terminal, and nothing in a file that could steer it."""

import argparse
import io

import pytest
from rich.console import Console

from explorer.cli import show
from explorer.errors import SettingError, TraceError
from explorer.trace import write_trace
from tests.support.traces import make_trace


def draw(trace, tmp_path, capsys, step=None):
    path = tmp_path / "t.json"
    write_trace(trace, path)
    assert show.run(argparse.Namespace(file=path, step=step)) == 0
    return capsys.readouterr().out


def test_without_a_step_the_run_its_steps_and_the_longest_path(tmp_path, capsys):
    trace = make_trace(steps=8, rows=16)
    out = draw(trace, tmp_path, capsys)
    assert "eagle2 on SmolLM2" in out and "per pass" in out and "one paired run" in out
    longest = max(trace.steps, key=lambda step: step.num_accepted)
    assert f"step {longest.index + 1} of 8" in out and "the target's own token" in out
    table = out.split(" emitted ")[1].split(f"step {longest.index + 1} of")[0]
    rows = [line[:5].strip() for line in table.splitlines() if line[:5].strip().isdigit()]
    assert rows == [str(i) for i in range(1, 9)]


def test_one_step_draws_every_row_with_its_state(tmp_path, capsys):
    trace = make_trace(steps=3, rows=20, acceptance="rejection")
    step = trace.steps[1]
    out = draw(trace, tmp_path, capsys, step=2)
    tree = out.split("●", 1)[1].rsplit("●", 1)[0]
    for state, (glyph, _) in show.STATES.items():
        if state != "root":
            assert tree.count(f"{glyph} ") == step.tree.state.count(state)
    assert tree.count(show.STAR) == 1 and "target" in tree


@pytest.mark.parametrize("method", ["autoregressive", "medusa", "lookahead"])
def test_every_kind_of_trace(tmp_path, capsys, method):
    assert f"{method} on" in draw(make_trace(method, steps=6), tmp_path, capsys)


def test_a_run_without_steps(tmp_path, capsys):
    out = draw(make_trace(steps=0), tmp_path, capsys)
    assert "1 in 0 steps" in out
    with pytest.raises(SettingError, match="first token"):
        draw(make_trace(steps=0), tmp_path, capsys, step=1)


def test_a_step_that_is_not_there(tmp_path, capsys):
    for step in (-1, 0, 4, 10**30):
        with pytest.raises(SettingError, match="1 to 3"):
            draw(make_trace(steps=3), tmp_path, capsys, step=step)


def test_a_broken_file_is_the_callers_to_print(tmp_path):
    with pytest.raises(TraceError):
        show.run(argparse.Namespace(file=tmp_path / "none.json", step=None))


def test_hostile_labels_and_texts_do_not_steer_the_terminal(tmp_path, capsys):
    trace = make_trace(steps=6, hostile=True)
    for i, text in enumerate(("\x1b[2J\x1b]0;x\x07", "[bold red]markup[/]", "\u202eevil", "a\rb")):
        trace.vocab[str(i)] = type(trace.vocab["0"])(text, "text")
    object.__setattr__(trace.output, "text", "\x1b[31mred\n\u202eback [link=http://x]y[/link]")
    object.__setattr__(trace.prompt, "text", "\x1b[8m")
    out = draw(trace, tmp_path, capsys)
    assert not any(char in out for char in "\x1b\x07\r\u202e\x00")
    assert "[link=http://x]" in out and "⟨U+001B⟩" in out


def test_colours_agree_with_states():
    trace = make_trace(steps=2)
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=200)
    console.print(show.tree_view(trace, trace.steps[0]))
    assert "\x1b[1;94m✓" in console.file.getvalue()


def test_sampled_runs_show_each_draw_and_their_rule(tmp_path, capsys):
    trace = make_trace(steps=3, rows=20, acceptance="rejection")
    assert "sampling  rejection, temperature 0.7, seed 0" in draw(trace, tmp_path, capsys)
    out = draw(trace, tmp_path, capsys, step=2)
    draws = trace.steps[1].draws
    assert out.count("draw 0.") == len(draws)
    assert out.count("residual ") == sum(not test.accepted for test in draws)


def test_typical_acceptance_is_labelled(tmp_path, capsys):
    out = draw(make_trace("medusa", steps=3, rows=20, acceptance="typical"), tmp_path, capsys)
    assert "typical (not distribution-preserving)" in out and "threshold 0." in out
    assert "not distribution" not in draw(make_trace(steps=3), tmp_path, capsys)
