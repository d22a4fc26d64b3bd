"""The export command: files where they were wanted, one line for a mistake, nothing half done."""

import argparse
import io
import json
from dataclasses import asdict
from xml.etree import ElementTree

import networkx as nx
import pytest

from explorer import __main__ as command_line
from explorer.cli import export
from explorer.errors import SettingError
from explorer.export.svg import step_svg
from explorer.trace import read_trace, write_trace
from explorer.views.theme import DARK, LIGHT
from tests.support.traces import make_trace


@pytest.fixture
def trace_file(tmp_path):
    write_trace(make_trace("eagle2", 8, 20), tmp_path / "run.json.gz")
    return tmp_path / "run.json.gz"


def run(file, to, out, **options):
    options = {"step": None, "scheme": "light", "ghosts": False} | options
    return export.run(argparse.Namespace(file=file, to=to, out=out, **options))


def longest(trace):
    return max(trace.steps, key=lambda step: step.num_accepted).index


def test_several_formats_fill_a_folder(trace_file, tmp_path, capsys):
    folder = tmp_path / "new" / "out"
    assert run(trace_file, "html, perfetto,stats,svg,graphml,svg", folder) == 0
    step = longest(read_trace(trace_file)) + 1
    names = ["run.html", "run.perfetto.json", "run.stats.json", f"run-step{step}.svg", f"run-step{step}.graphml"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(" (")[0] for line in printed] == [f"wrote {folder / name}" for name in names]
    assert json.loads((folder / "run.stats.json").read_text())["schema"] == "draft-tree-stats"
    assert json.loads((folder / "run.perfetto.json").read_text())["traceEvents"]
    graph = nx.read_graphml(io.BytesIO((folder / names[4]).read_bytes()))
    assert graph.graph["step"] == step
    assert (folder / "run.html").read_text().startswith("<!doctype html>")


def test_one_format_goes_into_the_file_named(trace_file, tmp_path):
    out = tmp_path / "deep" / "figure.svg"
    run(trace_file, "svg", out)
    trace = read_trace(trace_file)
    assert out.read_text() == step_svg(trace, longest(trace), asdict(LIGHT))


def test_the_step_and_the_look_asked_for(trace_file, tmp_path):
    run(trace_file, "svg", tmp_path / "a.svg", step=3, scheme="dark", ghosts=True)
    expected = step_svg(read_trace(trace_file), 2, asdict(DARK), has_ghosts=True)
    assert (tmp_path / "a.svg").read_text() == expected
    run(trace_file, "html", tmp_path / "a.html", step=3)
    assert '"start":2}</script>' in (tmp_path / "a.html").read_text()
    run(trace_file, "graphml,svg", tmp_path / "both", step=3)
    assert {path.name for path in (tmp_path / "both").iterdir()} == {"run-step3.graphml", "run-step3.svg"}


def test_png_is_drawn_from_the_same_svg(trace_file, tmp_path, monkeypatch):
    monkeypatch.setattr("explorer.export.png.svg_png", lambda svg: b"pixels of " + svg)
    run(trace_file, "png", tmp_path / "a.png", step=2)
    picture = (tmp_path / "a.png").read_bytes().removeprefix(b"pixels of ")
    assert "step 2" in "".join(ElementTree.fromstring(picture).itertext())


@pytest.mark.parametrize(
    ("to", "says"), [("", "no format named"), (",", "no format named"), ("svg,gif", "unknown gif"), ("SVG", "graphml")]
)
def test_formats_are_named(trace_file, tmp_path, to, says):
    with pytest.raises(SettingError, match=says):
        run(trace_file, to, tmp_path / "x")


def test_a_file_is_no_folder_and_a_folder_no_file(trace_file, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingError, match="is a file"):
        run(trace_file, "svg,html", tmp_path / "file")
    with pytest.raises(SettingError, match="is a folder"):
        run(trace_file, "svg", tmp_path)
    assert (tmp_path / "file").read_text() == ""


def test_the_trace_is_never_overwritten(trace_file, tmp_path):
    before = trace_file.read_bytes()
    (tmp_path / "link").symlink_to(trace_file)
    for out in (trace_file, tmp_path / "link"):
        with pytest.raises(SettingError, match="the trace itself"):
            run(trace_file, "stats", out)
    assert trace_file.read_bytes() == before


def test_a_step_that_is_not_there_is_refused_for_every_format(trace_file, tmp_path):
    for to in ("svg", "html", "stats"):
        with pytest.raises(SettingError, match="1 to 8"):
            run(trace_file, to, tmp_path / "x", step=9)
    assert not (tmp_path / "x").exists()


def test_one_format_that_fails_leaves_no_files(trace_file, tmp_path, monkeypatch):
    def refuse(_):
        raise SettingError("png needs a Chromium")

    monkeypatch.setattr("explorer.export.png.svg_png", refuse)
    with pytest.raises(SettingError, match="Chromium"):
        run(trace_file, "html,png", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_without_steps_has_no_picture_but_a_page(tmp_path):
    write_trace(make_trace(steps=0), tmp_path / "t.json")
    for to in ("svg", "graphml", "png"):
        with pytest.raises(SettingError, match="ended with its first token"):
            run(tmp_path / "t.json", to, tmp_path / "x")
    assert run(tmp_path / "t.json", "html,stats,perfetto", tmp_path / "out") == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["FILE", "--to", "svg"], "--out"),
        (["FILE", "--out", "x"], "--to"),
        (["FILE", "--to", "svg", "--out", "/proc/nowhere/x.svg"], "cannot write"),
        (["FILE", "--to", "svg", "--out", "x", "--scheme", "sepia"], "sepia"),
        (["FILE", "--to", "svg", "--out", "x", "--step", "two"], "two"),
        (["/nowhere.json", "--to", "svg", "--out", "x"], "No such file"),
    ],
)
def test_a_mistake_is_one_line(trace_file, capsys, arguments, says):
    line = ["export", *(str(trace_file) if argument == "FILE" else argument for argument in arguments)]
    try:
        code = command_line.main(line)
    except SystemExit as end:
        code = end.code
    error = capsys.readouterr().err
    assert code == 2 and error.count("\n") == 1 and says in error
