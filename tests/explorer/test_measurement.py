"""Results survive a kill at any byte and are never mixed with those of another benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.errors import SettingError
from explorer.measurement import Measurement, ResultsFile, read_machine, read_measurements

HEAD = {"target": "t", "methods": ["a"]}


def measured(question: str, method: str = "a") -> Measurement:
    return Measurement(
        question, "all", method, [1, 2, 3], "eos", 5, 10.0, 4.0, {"verify": 3.0}, 2, 4, 1, [1, 1], [2], [1]
    )


def test_speed_leaves_the_first_token_out() -> None:
    assert measured("1").tokens_per_second == pytest.approx(2 / 0.004)


def test_reopening_continues(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "r.jsonl", HEAD)
    results.add(measured("1"))
    results.add(measured("2"))
    again = ResultsFile(tmp_path / "r.jsonl", HEAD)
    assert again.measurements == [measured("1"), measured("2")]
    assert ("1", "a") in again
    assert ("1", "b") not in again


def test_a_kill_at_any_byte_costs_at_most_one_measurement(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    results = ResultsFile(path, HEAD)
    results.add(measured("1"))
    results.add(measured("2"))
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        again = ResultsFile(path, HEAD)
        assert len(again.measurements) == max(sum(end <= size for end in ends) - 1, 0)
        assert path.read_bytes() == whole[: max((end for end in ends if end <= size), default=0)]
        again.add(measured("9"))
        assert ResultsFile(path, HEAD).measurements[-1] == measured("9")


def test_results_of_another_benchmark_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    ResultsFile(path, HEAD).add(measured("1"))
    before = path.read_bytes()
    with pytest.raises(SettingError, match="choose another --out"):
        ResultsFile(path, HEAD | {"target": "other"})
    assert path.read_bytes() == before


def test_nothing_is_written_before_something_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "new" / "r.jsonl"
    ResultsFile(path, HEAD)
    assert not path.parent.exists()


@pytest.mark.parametrize(
    "text", ["hello\n", "[]\n", "[" * 100_000 + "\n", '{"bench": {"target": "t", "methods": ["a"]}}\n{}\n']
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingError, match="choose another --out"):
        ResultsFile(path, HEAD)


def test_what_lies_beside_is_known_and_not_written_again(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "r.jsonl", HEAD, [measured("1")])
    assert ("1", "a") in results and ("2", "a") not in results
    results.add(measured("2"))
    assert read_measurements(tmp_path / "r.jsonl", HEAD) == [measured("2")] == results.measurements


def test_reading_leaves_a_line_that_another_process_is_writing(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    ResultsFile(path, HEAD, made_on={"machine": "m"}).add(measured("1"))
    with path.open("ab") as file:
        file.write(b'{"question_id": "2", ')
    before = path.read_bytes()
    assert read_measurements(path, HEAD) == [measured("1")]
    assert read_machine(path) == {"machine": "m"}
    assert path.read_bytes() == before
