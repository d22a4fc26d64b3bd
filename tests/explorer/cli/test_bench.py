"""``bench`` from end to end on golden models: resumed, reported, refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.__main__ import main
from explorer.measurement import ResultsFile
from tests.support.goldens import FOLDER
from tests.support.medusa2_files import write_medusa2


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "q.txt"
    path.write_text("Count to ten.\nTell me about cats.\n", encoding="utf-8")
    return path


def bench(questions: Path, out: Path, *more: str) -> int:
    models = ["--target", str(FOLDER / "base_a"), "--drafter", str(FOLDER / "eagle_bias")]
    return main(["bench", "--questions", str(questions), "--out", str(out), "--max-new-tokens", "16", *models, *more])


def test_every_lane_is_measured_on_every_question_and_equals_plain_decoding(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lanes = ["autoregressive", "eagle1", "eagle2"]
    assert bench(questions, tmp_path / "out", "--methods", ",".join(lanes), "--peers") == 0
    lanes += ["generate", "generate_lookup"]  # no draft model is known for this target
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert sorted(report["methods"]) == sorted(lanes)
    for row in report["methods"].values():
        assert (row["num_prompts"], row["num_equal"], row["divergences"]) == (2, 2, [])
    assert report["methods"]["eagle2"]["tau"] > 1
    assert "load average" in capsys.readouterr().err
    assert "| eagle2 |" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")


def test_a_second_run_measures_only_what_is_missing(questions: Path, tmp_path: Path) -> None:
    assert bench(questions, tmp_path / "out", "--methods", "eagle2") == 0
    path = tmp_path / "out" / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]), encoding="utf-8")
    assert bench(questions, tmp_path / "out", "--methods", "eagle2") == 0
    after = path.read_text(encoding="utf-8").splitlines(keepends=True)
    assert after[:-1] == lines[:-1]
    assert len(ResultsFile(path, json.loads(after[0])["bench"]).measurements) == 4


def test_sampled_lanes_are_measured_and_not_compared(questions: Path, tmp_path: Path) -> None:
    options = ["--methods", "generate,eagle2", "--temperature", "0.8", "--seed", "3"]
    assert bench(questions, tmp_path / "out", *options) == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["bench"]["sampling"]["eagle2"] == "rejection, temperature 0.8, seed 3"
    for row in report["methods"].values():
        assert (row["num_prompts"], row["num_equal"], row["divergences"]) == (2, None, [])
    markdown = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "| sampled |" in markdown
    assert markdown.endswith("not compared: sampled\n")
    lines = (tmp_path / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    outputs = [tuple(json.loads(line)["output"]) for line in lines]
    assert len(set(outputs)) > 2, "the lanes draw different continuations"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--methods", "magic"], "unknown magic"),
        (["--methods", "eagle2", "--set", "eagle2:flat.depth=1"], "--set eagle2:flat.depth: no method has it"),
        (["--every", "0"], "--every must be at least 1"),
        (["--limit", "-1"], "--limit must be 0"),
        (["--categories", "poetry"], "there are: all"),
        (["--set", "magic=1"], "no method has it"),
        (["--methods", "eagle2", "--max-new-tokens", "0"], "max_new_tokens must be at least 1"),
        (["--methods", "eagle2", "--set", "eagle2.depth=x"], "depth must be a whole number"),
        (["--methods", "eagle2", "--temperature", "-1"], "temperature must be"),
        (["--methods", "eagle2", "--temperature", "0.7", "--acceptance", "typical"], "has typical acceptance"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_one_line(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], says: str
) -> None:
    assert bench(questions, tmp_path / "out", *more) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_every_method_may_bring_its_own_drafter(questions: Path, tmp_path: Path) -> None:
    heads = ["--drafter", f"medusa={FOLDER / 'medusa_a'}"]
    assert bench(questions, tmp_path / "out", "--methods", "medusa,eagle2,jacobi", *heads) == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    names = {method: (row.get("drafter") or {}).get("name") for method, row in report["methods"].items()}
    assert names == {"autoregressive": None, "medusa": "medusa_a", "eagle2": "eagle_bias", "jacobi": None}
    assert report["bench"]["drafter"] == f"{FOLDER / 'eagle_bias'}, medusa={FOLDER / 'medusa_a'}"


def test_the_offline_page_and_the_memory_of_the_drafter_are_reported(questions: Path, tmp_path: Path) -> None:
    assert bench(questions, tmp_path / "out", "--methods", "eagle2") == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    drafter = report["methods"]["eagle2"]["drafter"]
    assert drafter["share_of_target"] == pytest.approx(drafter["num_bytes"] / report["target_bytes"])
    assert len(report["bench"]["questions_sha256"]) == 64
    assert [row["question_id"] for row in report["methods"]["eagle2"]["by_prompt"]] == ["1", "2"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and f"{drafter['num_bytes']:,}" in page


def test_adaptive_lanes_rest_where_they_can_and_say_so(questions: Path, tmp_path: Path) -> None:
    assert bench(questions, tmp_path / "out", "--methods", "eagle2", "--adaptive") == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["bench"]["adaptive"] == ["eagle2"]
    rests = {name: row["num_rests"] for name, row in report["methods"].items()}
    assert rests["eagle2"] >= 2, "plain passes are measured first"
    assert rests["autoregressive"] == 0
    assert report["methods"]["eagle2"]["num_equal"] == 2
    assert "passes that rested" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")


def test_two_settings_of_a_method_are_two_lanes_of_one_run(questions: Path, tmp_path: Path) -> None:
    options = ["--methods", "eagle2,eagle2:flat", "--set", "total_tokens=6", "--set", "eagle2:flat.depth=1"]
    assert bench(questions, tmp_path / "out", *options) == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert list(report["methods"]) == ["autoregressive", "eagle2", "eagle2:flat"]
    rows = report["methods"]
    assert [rows[lane]["settings"]["total_tokens"] for lane in ("eagle2", "eagle2:flat")] == [6, 6]
    assert [rows[lane]["settings"]["depth"] for lane in ("eagle2", "eagle2:flat")] == [5, 1]
    most = {lane: len(row["acceptance_histogram"]) - 1 for lane, row in rows.items()}
    assert most["eagle2:flat"] <= 2 < most["eagle2"], "one level more than its depth at most"
    assert rows["eagle2:flat"]["num_equal"] == 2
    assert "| eagle2:flat |" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")


def test_shards_measure_their_share_and_merge_to_the_report_of_one_run(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    lanes = ["--methods", "autoregressive,eagle2"]
    assert bench(questions, whole, *lanes) == 0
    assert bench(questions, shared, *lanes, "--shard", "2/2") == 0
    assert "1 of 2 questions are left to other shards" in capsys.readouterr().out
    assert not (shared / "report.json").exists()
    assert bench(questions, shared, *lanes, "--merge") == 2
    assert "lacks measurements of 1 question, the first one 1" in capsys.readouterr().err
    assert bench(questions, shared, *lanes, "--shard", "1/2") == 0
    assert "all shards are done" in capsys.readouterr().out
    for name in ("results-1-of-2.jsonl", "results-2-of-2.jsonl"):  # the same measurements, to the millisecond
        path = shared / name
        lines = path.read_text(encoding="utf-8").splitlines()
        kept = (whole / "results.jsonl").read_text(encoding="utf-8").splitlines()[1:]
        share = {json.loads(line)["question_id"] for line in lines[1:]}
        lines[1:] = [line for line in kept if json.loads(line)["question_id"] in share]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert bench(questions, shared, *lanes, "--merge") == 0
    ours, theirs = (json.loads((folder / "report.json").read_text(encoding="utf-8")) for folder in (shared, whole))
    theirs["bench"].pop("load_average")  # of the moment
    assert ours == theirs
    assert bench(questions, shared, *lanes) == 0
    assert not (shared / "results.jsonl").exists(), "nothing was left to measure"


@pytest.mark.parametrize(("more", "says"), [(["--shard", "3/2"], "give K/N"), (["--merge"], "lacks measurements")])
def test_mistakes_with_shards_are_one_line(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], says: str
) -> None:
    assert bench(questions, tmp_path / "out", *more) == 2
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1


def test_with_a_drafter_that_adapts_its_target_every_lane_has_the_adapted_one(questions: Path, tmp_path: Path) -> None:
    """transformers' own lane too: all outputs are equal, and the report says of which target."""
    lanes, reports = ["--methods", "generate,medusa"], []
    for out, drafter in (("plain", str(FOLDER / "medusa_b")), ("adapted", str(write_medusa2(tmp_path)))):
        options = ["--target", str(FOLDER / "base_b"), "--drafter", drafter, "--max-new-tokens", "16", *lanes]
        assert main(["bench", "--questions", str(questions), "--out", str(tmp_path / out), *options]) == 0
        reports.append(json.loads((tmp_path / out / "report.json").read_text(encoding="utf-8")))
        assert [row["num_equal"] for row in reports[-1]["methods"].values()] == [2, 2, 2]
    assert "adapted_target" not in reports[0]["bench"]
    assert reports[1]["bench"]["adapted_target"].startswith("lossless with respect to the adapted target")
    assert "not base_b itself" in (tmp_path / "adapted" / "report.md").read_text(encoding="utf-8")
    outputs = [(tmp_path / out / "results.jsonl").read_text(encoding="utf-8") for out in ("plain", "adapted")]
    written = [[json.loads(line)["output"] for line in text.splitlines()[1:]] for text in outputs]
    assert written[0] != written[1]
    pair = [str(tmp_path / out / "report.json") for out in ("plain", "adapted")]
    assert main(["bench", "compare", *pair]) == 2
