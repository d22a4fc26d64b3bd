"""Other packages beside ours, on the benchmark's protocol: ``python -m tests.peers.measure --work DIR --questions F``.

economize and flashspec decode the default target's own files in an environment that this makes in DIR (``pip install``,
pinned, with our torch and transformers); nothing requires them. Prompt by prompt our lanes run first, then theirs, in
two processes that wait for each other. Speeds are counted as in ``bench``; ``generate`` runs in both, so that its two
lanes say whether one process is slower by itself. Their Medusa has our heads and tree, without the token map, which
their layout lacks. A run that was stopped goes on with the same command.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from explorer.bench_markdown import to_markdown
from explorer.bench_report import GENERATE, GENERATE_ASSISTED, build_report
from explorer.cli.bench import add_question_arguments, choose_questions
from explorer.config import DEFAULT_TARGET, prepare_environment
from explorer.measurement import Measurement, ResultsFile, read_machine
from explorer.questions import Question
from explorer.runner_events import RunRequest
from explorer.shards import merge
from explorer.target_presets import drafter_path, find_target, load_targets

PACKAGES = ("economize==0.3.2", "flashspec==0.3.1")  # the second needs Python 3.11
TRANSFORMERS = (GENERATE, GENERATE_ASSISTED)
OURS: dict[str, dict[str, Any]] = {
    "autoregressive": {},
    "prompt_lookup": {},
    "medusa": {},
    "eagle2": {"total_tokens": "auto"},
}


def main() -> int:
    """Prepare the environment, the heads and the prompts; measure what is not measured yet; report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, metavar="DIR", help="environment, heads and results")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default DIR/peers.json")
    parser.add_argument("--max-new-tokens", type=int, default=128, metavar="N")
    add_question_arguments(parser)
    args = parser.parse_args()
    prepare_environment()
    import torch
    import transformers

    from explorer.devices import device_name

    pins = [*PACKAGES, f"torch=={torch.__version__.partition('+')[0]}", f"transformers=={transformers.__version__}"]
    questions = choose_questions(args)
    args.work.mkdir(parents=True, exist_ok=True)
    python = make_environment(args.work / "venv", pins)
    job, prompts = prepare(args.work, questions, args.max_new_tokens)
    head = {
        "target": DEFAULT_TARGET,
        "questions": args.questions.name,
        "question_ids": [question.id for question in questions],
        "max_new_tokens": args.max_new_tokens,
        "lanes": [*TRANSFORMERS, *OURS, *job["lanes"]],
        "environment": pins,
    }
    made_on = {"machine": device_name(torch.device("cpu")), "threads": job["threads"]}
    results = ResultsFile(args.work / "results.jsonl", head, made_on=made_on)
    with Worker([python, str(Path(__file__).with_name("worker.py"))], args.work, job) as worker:
        measure(worker, questions, prompts, results)
    made_on = read_machine(args.work / "results.jsonl") | {"load_average": round(os.getloadavg()[0], 2)}
    report = build_report(head | made_on, merge(results.measurements, head["question_ids"], head["lanes"]))
    out = args.out or args.work / "peers.json"
    out.write_text(json.dumps(report, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    print(to_markdown(report))
    return 0


def make_environment(folder: Path, pins: list[str]) -> str:
    """The environment's Python; made anew unless it was made with these packages."""
    python, marker = str(folder / "bin" / "python"), folder / "installed.json"
    if not marker.is_file() or json.loads(marker.read_text(encoding="utf-8")) != pins:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-compile", *pins], check=True)
        marker.write_text(json.dumps(pins), encoding="utf-8")
    return python


def prepare(work: Path, questions: Sequence[Question], max_new_tokens: int) -> tuple[dict[str, Any], list[list[int]]]:
    """What the worker reads, and every question as the ids that all lanes continue."""
    import torch

    from explorer.__main__ import main as explorer
    from explorer.checkpoints.target import find_folder, load_target
    from explorer.presets import load_tree
    from explorer.static_tree import StaticTree
    from explorer.text import render_prompt

    preset = find_target(DEFAULT_TARGET, load_targets())
    heads = work / "heads"
    if not (heads / "config.json").is_file():  # written after the weights
        shutil.rmtree(heads, ignore_errors=True)
        if explorer(["convert", drafter_path(preset.drafters["medusa"]), "--to", "medusa-a", "--out", str(heads)]):
            sys.exit("the Medusa heads could not be written")
    num_heads = json.loads((heads / "config.json").read_text(encoding="utf-8"))["medusa_num_heads"]
    lookup, medusa = (preset.method_settings(name, "cpu") for name in ("prompt_lookup", "medusa"))
    loaded = load_target(preset.source, device="cpu", dtype="float32")
    job = {
        "target": str(find_folder(preset.source)[0]),
        "heads": str(heads),
        "tree": StaticTree.build(load_tree(medusa["tree"]), num_heads, medusa["total_tokens"]).choices,
        "stops": sorted(loaded.stop_ids),
        "max_new_tokens": max_new_tokens,
        "threads": torch.get_num_threads(),
        "lanes": {
            "generate:theirs": {},
            "economize": {},
            "economize_lookup": lookup | {"gamma": 3},  # the package's own length
            "economize_medusa": medusa,
            "flashspec_ngram": lookup | {"gamma": 4},  # the package's own length
        },
    }
    return job, [render_prompt(loaded.tokenizer, question.text).token_ids for question in questions]


class Worker:
    """The other environment's process; it waits while ours measures."""

    def __init__(self, command: Sequence[str], work: Path, job: Mapping[str, Any]) -> None:
        """Start it and wait until it has loaded everything. job: written to ``work``, beside the log."""
        self.job, self._log = job, work / "worker.log"
        (work / "job.json").write_text(json.dumps(job), encoding="utf-8")
        with self._log.open("w", encoding="utf-8") as log:
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log, "text": True}
            environment = os.environ | {"HF_HUB_OFFLINE": "1"}
            self._process = subprocess.Popen([*command, str(work / "job.json")], env=environment, **pipes)
        self._read()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the end of its prompts is its end

    def add_missing(self, question: Question, ids: Sequence[int], turn: int, results: ResultsFile) -> None:
        """One question by those of the lanes that have no result yet; ``turn`` says which goes first."""
        names = list(self.job["lanes"])
        first = turn % len(names)
        lanes = [lane for lane in names[first:] + names[:first] if (question.id, lane) not in results]
        print(json.dumps({"ids": list(ids), "lanes": lanes}), file=self._process.stdin, flush=True)
        for _ in lanes:
            results.add(self._measurement(self._read(), question, len(ids)))

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"the other environment's process ended: its last words are in {self._log}")
        return json.loads(line)

    def _measurement(self, answer: dict[str, Any], question: Question, num_prompt_tokens: int) -> Measurement:
        """A lane's answer as ``bench`` keeps it."""
        lane, total_ms = answer.pop("lane"), answer.pop("total_ms")
        return Measurement(
            question_id=question.id,
            category=question.category,
            method=lane,
            stop="eos" if answer["output"][-1] in self.job["stops"] else "max_new_tokens",
            num_prompt_tokens=num_prompt_tokens,
            settings=dict(self.job["lanes"][lane]),
            decode_ms=max(total_ms - answer["prefill_ms"], 0.0),
            **answer,
        )


def measure(worker: Worker, questions: list[Question], prompts: Sequence[Sequence[int]], results: ResultsFile) -> None:
    """Every question by our lanes and transformers', then by theirs; what is known is left out."""
    from explorer.bench import run_bench

    num_tokens = worker.job["max_new_tokens"]
    placed = {"max_new_tokens": num_tokens, "baseline": False, "device": "cpu", "dtype": "float32"}
    requests = {lane: RunRequest(lane, "?", settings=settings, **placed) for lane, settings in OURS.items()}
    for progress in run_bench(requests, questions, results, TRANSFORMERS):
        number, rest = divmod(progress.num_done, len(requests) + len(TRANSFORMERS))
        if rest == 0:
            worker.add_missing(questions[number - 1], prompts[number - 1], number - 1, results)
            print(f"{number} of {len(questions)} questions", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
