"""The trace command: options become a request, mistakes are one line, nothing half-written."""

import argparse
import json
from dataclasses import replace

import pytest

from explorer import runner
from explorer.__main__ import main
from explorer.cli import trace as command
from explorer.errors import PromptError, SettingError, TraceError
from explorer.runner_events import Finished, Notice, RunRequest, Started, Stepped
from explorer.trace import Divergence, read_trace
from tests.support.goldens import FOLDER, golden
from tests.support.traces import make_trace


def parse(*options):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(["--method", "eagle2", "--out", "t.json", *options])


def test_defaults():
    assert command.to_request(parse("--prompt", "Hi")) == RunRequest("eagle2", prompt="Hi")


def test_every_option_reaches_the_request(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(json.dumps([{"role": "user", "content": "é"}]), encoding="utf-8")
    text = (
        "--system s --target T --drafter D --max-new-tokens 7 --temperature 0.5 --top-p 0.9 --top-k 3 --seed 4 "
        "--acceptance typical --set depth=2 --set preset=paper --dtype float32 --device cpu --backend naive "
        "--cache slots --no-chat-template --ignore-stop --no-baseline --adaptive"
    )
    request = command.to_request(parse("--messages", str(path), *text.split()))
    assert request.messages == ({"role": "user", "content": "é"},) and request.prompt is None
    assert (request.system, request.target, request.drafter, request.max_new_tokens) == ("s", "T", "D", 7)
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.seed) == (0.5, 0.9, 3, 4)
    assert sampling.acceptance == "typical" and request.settings == {"depth": "2", "preset": "paper"}
    assert (request.dtype, request.device, request.backend) == ("float32", "cpu", "naive")
    assert request.cache == "slots"
    assert (request.use_chat_template, request.ignore_stop, request.baseline) == (False, True, False)
    assert request.is_adaptive


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--prompt", "a", "--prompt-ids", "1"],
        ["--prompt", "a", "--max-new-tokens", "many"],
        ["--prompt", "a", "--method", "magic"],
        ["--prompt", "a", "--acceptance", "magic"],
    ],
)
def test_the_parser_refuses(options, capsys):
    with pytest.raises(SystemExit) as error:
        parse(*options)
    assert error.value.code == 2 and "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        (["--prompt-ids", "1,x"], PromptError, "'x'"),
        (["--prompt-ids", "1,,2"], PromptError, "whole numbers"),
        (["--prompt-ids=-1"], PromptError, "'-1'"),
        (["--prompt-ids", "9" * 5000], PromptError, "whole numbers"),
        (["--prompt", "a", "--set", "depth"], SettingError, "NAME=VALUE"),
        (["--prompt", "a", "--temperature", "nan"], SettingError, "temperature"),
        (["--prompt", "a", "--seed", "-1"], SettingError, "seed"),
        (["--messages", "/nowhere.json"], PromptError, "No such file"),
    ],
)
def test_values_are_refused_in_a_sentence(options, error, says):
    with pytest.raises(error, match=says):
        command.to_request(parse(*options))


def test_prompt_ids_are_read():
    assert command.to_request(parse("--prompt-ids", "1, 2,30")).prompt_ids == (1, 2, 30)


@pytest.mark.parametrize("content", ["{", "{}", "3", "[" * 100_000, b"\xff"])
def test_broken_messages_files(tmp_path, content):
    path = tmp_path / "m.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(PromptError, match="--messages"):
        command.read_messages(path)


def test_an_output_file_is_checked_before_the_run(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.json").mkdir()
    for name, says in (("t.txt", "must end in"), ("folder.json", "directory"), ("file/t.json", "cannot be written")):
        with pytest.raises(SettingError, match=says):
            command.check_writable(tmp_path / name)
    command.check_writable(tmp_path / "new" / "folder" / "t.json.gz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.json"]


class FakeRunner:
    """Plays a synthetic trace; ``error`` is raised after its first step."""

    trace = make_trace(steps=3)
    error: BaseException | None = None

    def run(self, request):
        yield Notice("depth must be at most 32, not 99: 32 is used")
        yield Started(replace(self.trace, steps=[]))
        for step in self.trace.steps:
            yield Stepped(step, {})
            if self.error is not None:
                raise self.error
        yield Finished(self.trace)


def test_a_run_writes_its_trace_and_says_what_came_of_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "Runner", FakeRunner)
    out = tmp_path / "new" / "t.json.gz"
    assert command.run(parse("--prompt", "Hi", "--out", str(out))) == 0
    assert read_trace(out) == FakeRunner.trace
    said = capsys.readouterr()
    assert said.err == "note: depth must be at most 32, not 99: 32 is used\n"
    assert "tokens per pass" in said.out and "without the target's own" in said.out and "one run" in said.out


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TraceError("broken")])
def test_a_run_that_does_not_end_writes_nothing(tmp_path, monkeypatch, error):
    monkeypatch.setattr(runner, "Runner", FakeRunner)
    monkeypatch.setattr(FakeRunner, "error", error)
    with pytest.raises(type(error)):
        command.run(parse("--prompt", "Hi", "--out", str(tmp_path / "t.json")))
    assert list(tmp_path.iterdir()) == []


def test_the_summary_names_a_divergence(tmp_path):
    trace = make_trace()
    baseline = replace(trace.baseline, output_equal=False, first_divergence=Divergence(7, 1, 2, 0.00012))
    text = command.summary(replace(trace, baseline=baseline), tmp_path)
    assert "differs from plain decoding from token 7 on" in text and "0.00012" in text


@pytest.mark.parametrize(
    ("method", "base", "drafter", "figures", "settings"),
    [
        ("eagle2", "base_a", "eagle_bias", "eagle2__eagle_bias", (10, 3, 4)),
        ("eagle2", "base_b", "eagle_nobias", "eagle2__eagle_nobias", (60, 5, 10)),
        ("medusa", "base_a", "medusa_a", "medusa__medusa_a", None),
        ("medusa", "medusa_c", "medusa_c", "medusa__medusa_c", None),
    ],
    ids=["eagle2-bias", "eagle2-nobias", "medusa-a", "medusa-c"],
)
def test_published_layouts_give_the_originals_output(tmp_path, method, base, drafter, figures, settings):
    found = golden(figures)
    values = dict(zip(("total_tokens", "depth", "top_k"), settings or (), strict=False))
    runs = [
        run
        for run in found["runs"]
        if tuple(run.get("setting", settings or ())) == (settings or ()) and run.get("temperature", 0) == 0
    ]
    for run in runs[:2]:
        path = tmp_path / f"{run['prompt']}-{run['mode']}.json"
        ids = ",".join(map(str, found["prompts"][run["prompt"]]["ids"]))
        arguments = ["trace", "--method", method, "--prompt-ids", ids, "--max-new-tokens", "200", "--out", str(path)]
        arguments += ["--target", str(FOLDER / base), "--drafter", str(FOLDER / drafter), "--no-baseline"]
        arguments += [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
        assert main(arguments + (["--ignore-stop"] if run["mode"] == "noeos" else [])) == 0
        assert read_trace(path).output.token_ids == run["output"]
