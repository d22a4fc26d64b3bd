"""The README says what is there: front matter, commands, tables, module map and links are compared with the project."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from typing import Any

import pytest
import yaml

from explorer.trace import read_trace
from tests.structure.source import ROOT, modules
from tests.structure.test_repository import pins, version

README = (ROOT / "README.md").read_text(encoding="utf-8")
START = "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt && .venv/bin/python app.py"
CHECK = "python3 tests/run.py"
# What a Space reads; an unknown key is silently ignored there, so a misspelt one must fail here.
SPACE_KEYS = {
    "title", "emoji", "colorFrom", "colorTo", "sdk", "sdk_version", "python_version", "app_file", "short_description",
    "suggested_hardware", "models", "datasets", "tags", "license", "startup_duration_timeout", "header", "fullWidth",
    "preload_from_hub", "thumbnail", "pinned",
}  # fmt: skip
SPACE_COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}


def section(title: str) -> str:
    """The text of one ``##`` section."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)
    assert found, f"README has no section {title!r}"
    return found[1]


def table(title: str) -> list[list[str]]:
    """The cells of a section's table, without its heading."""
    rows = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def names(cell: str) -> list[str]:
    """What stands in backquotes."""
    return re.findall(r"`([^`]+)`", cell)


@cache
def help_of(*command: str) -> str:
    """What ``python -m explorer [command] --help`` prints."""
    line = [sys.executable, "-m", "explorer", *command, "--help"]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture(scope="module")
def front_matter() -> dict[str, Any]:
    assert README.startswith("---\n")
    return dict(yaml.safe_load(README.split("---\n")[1]))


def test_front_matter_is_what_a_space_reads(front_matter: dict[str, Any]) -> None:
    assert front_matter.keys() <= SPACE_KEYS
    assert front_matter["sdk"] == "gradio"
    assert (ROOT / front_matter["app_file"]).is_file()
    assert {front_matter["colorFrom"], front_matter["colorTo"]} <= SPACE_COLOURS
    assert len(front_matter["short_description"]) <= 60
    assert front_matter["license"] == "apache-2.0"
    assert front_matter["header"] in ("mini", "default")


def test_space_runs_the_pinned_gradio_on_a_supported_python(front_matter: dict[str, Any]) -> None:
    lowest = version(pins("requirements.txt")["gradio"][0])
    assert version(front_matter["sdk_version"])[: len(lowest)] == lowest
    assert set(version(front_matter["sdk_version"])[len(lowest) :]) <= {0}
    assert (3, 10) <= version(front_matter["python_version"]) <= (3, 12)


def test_the_two_commands_stand_on_the_first_screen() -> None:
    first_screen = README.split("---\n", 2)[2].splitlines()[:30]
    assert START in first_screen
    assert CHECK in first_screen
    assert any(line.startswith("![") for line in first_screen)


def test_methods_table() -> None:
    from explorer.config import describe
    from explorer.methods.registry import METHODS

    written = {names(row[0])[0]: names(row[-1]) for row in table("Methods")}
    real = {name: [setting.name for setting in describe(method.Settings)] for name, method in METHODS.items()}
    assert written == real


def test_methods_table_says_which_rules_keep_the_distribution() -> None:
    from explorer.methods.registry import METHODS

    for row in table("Methods"):
        method = METHODS[names(row[0])[0]]
        keeping, _, changing = row[4].partition("; not ")
        assert {*names(keeping), *names(changing)} == set(method.acceptances), method.name
        assert names(changing) == [rule for rule in method.acceptances if rule == "typical"], method.name
        assert (row[3] == "no") is not method.needs_drafter, method.name


def test_command_table() -> None:
    from explorer.__main__ import COMMANDS

    assert [names(row[0])[0] for row in table("Command line")] == list(COMMANDS)


def test_measured_figures_are_those_of_the_recordings() -> None:
    traces = ROOT / "assets" / "traces"
    expected = []
    for entry in json.loads((traces / "manifest.json").read_text(encoding="utf-8")):
        trace = read_trace(traces / entry["file"])
        assert trace.baseline is not None
        assert trace.baseline.output_equal is (True if trace.sampling.acceptance == "greedy" else None)
        numbers = (trace.stats.mean_acceptance_length, trace.stats.speedup)
        speeds = (trace.stats.tokens_per_second, trace.baseline.tokens_per_second)
        expected.append(
            [entry["title"].split(" · ")[0], f"`{trace.method}`", trace.sampling.acceptance]
            + [str(max(len(step.tree) for step in trace.steps))]
            + [f"{value:.2f}" for value in numbers]
            + [f"{value:.1f}" for value in speeds]
        )
    section = README.split("## What was measured")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    assert rows[1:] == expected


def bench_rows() -> dict[str, dict[str, Any]]:
    """Lane -> its figures in the committed reports of the benchmark; the first report that has it counts."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((ROOT / "assets" / "bench").glob("*.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        assert report["num_questions"] == 40
        assert all(row["num_prompts"] == 40 for row in report["methods"].values()), path.name
        assert all(parting["is_near_tie"] for row in report["methods"].values() for parting in row["divergences"])
        found = report["methods"] | found
    return found


def test_benchmark_figures_are_those_of_the_reports() -> None:
    rows = bench_rows()
    written = [row for row in table("Measured over prompts") if names(row[0])]
    assert sorted(names(row[0])[0] for row in written) == sorted(rows)
    for row in written:
        real = rows[names(row[0])[0]]
        speeds = [real[name] and real[name]["median"] for name in ("tokens_per_second", "speedup")]
        figures = [None if real["tau"] is None or real["num_steps"] == 0 else real["tau"], *speeds]
        assert row[2] == ("–" if figures[0] is None else f"{figures[0]:.2f}"), row
        assert row[3:5] == [f"{speeds[0]:.1f}", f"{speeds[1]:.2f}"], row
        assert row[-1] == f"{real['num_equal']} of {real['num_prompts']}", row


def test_other_packages_figures_are_those_of_the_report() -> None:
    report = json.loads((ROOT / "assets" / "bench" / "others" / "spec-bench.json").read_text(encoding="utf-8"))
    written = {names(row[0])[0]: row for row in table("Beside other packages")}
    assert sorted(written) == sorted(report["methods"])
    parted = [lane for lane, real in report["methods"].items() if real["divergences"]]
    assert not parted, "the README says that all outputs are equal"
    for lane, real in report["methods"].items():
        assert real["num_prompts"] == report["num_questions"] == 40
        speed, ratio = real["tokens_per_second"]["median"], real["speedup_over_generate"]["median"]
        tau = "–" if real["tau"] is None else f"{real['tau']:.2f}"
        figures = [tau, f"{speed:.1f}", f"{ratio:.2f}", f"{real['num_equal']} of {real['num_prompts']}"]
        assert written[lane][1:] == figures, lane


def test_methods_table_has_the_benchmarks_figures() -> None:
    from explorer.config import METHOD_NAMES
    from explorer.target_presets import load_targets

    rows, shipped = bench_rows(), load_targets()["smollm2"].drafters
    without = [name for name in METHOD_NAMES if name not in rows]
    assert without == ["eagle3"] and "eagle3" not in shipped, "only a method without a shipped drafter has no figures"
    for row in table("Methods"):
        if (name := names(row[0])[0]) in without:
            assert row[5:7] == ["–", "–"], row
            continue
        real = rows[name]
        assert row[5:7] == [f"{real['tau']:.2f}", f"{real['speedup']['median']:.2f}"], row


def test_example_commands_use_real_options() -> None:
    examples = re.findall(r"-m explorer ([\w-]+) (.*)", "\n".join(re.findall(r"```bash\n(.*?)```", README, re.DOTALL)))
    assert examples
    for command, rest in examples:
        for option in re.findall(r"(?<!\S)--[a-z-]+", rest):
            assert option in help_of(command), f"{command} {option}"


def test_module_map() -> None:
    written = re.findall(r"^((?:app|explorer/|kernels/)\S*\.py) +\S", section("Module map"), re.MULTILINE)
    real = [path.relative_to(ROOT).as_posix() for path in modules().values() if path.name != "__init__.py"]
    missing, gone = sorted(set(real) - set(written)), sorted(set(written) - set(real))
    assert not missing, f"give each a line: {missing}"
    assert not gone, f"strike: {gone}"
    assert len(written) == len(set(written))


def test_links_lead_to_files() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    local = [target for target in targets if not target.startswith("https://")]
    assert [target for target in local if not (ROOT / target).exists()] == []


def test_words_are_explained() -> None:
    from explorer.trace import NEXT_KINDS, STATES

    explained = " ".join(row[0] for row in table("Words"))
    words = {*STATES, *NEXT_KINDS, "target", "drafter", "tau", "total_tokens"} - {"window"}
    assert sorted(word for word in words if word not in explained) == []


def test_operators_table() -> None:
    from explorer.cli.serve import LIMITS
    from explorer.ui.options import AppOptions

    options = {name for row in table("Operate") for name in names(row[0])}
    assert options == {f"--{name.replace('_', '-')}" for name in LIMITS}
    defaults = AppOptions(())
    for row in table("Operate"):
        fields = [name.strip("-").replace("-", "_") for name in names(row[0])]
        known = [getattr(defaults, name) for name in fields]
        told = "what the target reads" if known == [None] else ", ".join(f"{value:g}" for value in known)
        assert row[2] == told, fields
