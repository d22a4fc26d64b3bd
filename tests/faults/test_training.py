"""Training that is killed, again and again: what it ends with is what an undisturbed run ends with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.structure.source import ROOT
from tests.support.training import tiny_corpus, write_corpus

ENDED = "ended with "
# The recipes of `train medusa` and `train medusa2` on a tiny target: features, weights, card; a checkpoint every step.
# Each line read is a recipe and a folder to train in, in a process of its own that has its libraries from the fork:
# importing them takes longest.
TRAIN = f"""
import os, sys
from pathlib import Path
import torch
from explorer.training.loop import LoopOptions
from explorer.training.medusa import MedusaOptions
from explorer.training.medusa2 import Medusa2Options
from explorer.training.plan import Plan
from explorer.training.run import train_medusa, train_medusa2
from tests.support.training import tiny_loaded_target
torch.set_num_threads(1)
def train(recipe, work):
    loop = LoopOptions(epochs=20, batch_tokens=64, warmup_steps=2, save_every=1)
    plan = Plan(work, work / "drafters", command="train x", draft_vocab_size=40, loop=loop)
    options = dict(num_heads=2, num_frequent=20, num_sampled=20)
    if recipe == "medusa":
        print(train_medusa(plan, tiny_loaded_target(), MedusaOptions(**options), work / "trees.json"), flush=True)
    else:
        joint = Medusa2Options(**options, rank=2, head_weight=0.5)
        print(train_medusa2(plan, tiny_loaded_target(), joint), flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        print(os.getpid(), flush=True)
        recipe, work = line.split()
        train(recipe, Path(work))
        os._exit(0)
    print("{ENDED}", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Trainer:
    """The process that runs TRAIN."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", TRAIN], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def begin(self, recipe: str, work: Path) -> int:
        """Start a training; returns its process id."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{recipe} {work}\n")
        self.process.stdin.flush()
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def end(self) -> tuple[str, int]:
        """Wait for the training; (the last line that it wrote, its exit code: minus the signal that killed it)."""
        assert self.process.stdout is not None
        last = ""
        for line in self.process.stdout:
            if line.startswith(ENDED):
                return last, int(line.removeprefix(ENDED))
            last = line.strip()
        raise EOFError("the process around the trainings is gone")


@pytest.fixture
def trainer() -> Iterator[Trainer]:
    made = Trainer()
    with made.process:
        yield made
        assert made.process.stdin is not None
        made.process.stdin.close()


@pytest.mark.parametrize("recipe", ["medusa", "medusa2"])
def test_a_killed_training_loses_nothing_but_the_batch_under_way(tmp_path: Path, trainer: Trainer, recipe: str) -> None:
    ends: list[Path] = []
    for name, delays in (("whole", []), ("killed", [0.1, 0.6])):
        work = tmp_path / name
        write_corpus(work / "text" / "a.npz", tiny_corpus())
        if recipe == "medusa2":  # begins with finished heads
            trainer.begin("medusa", work)
            assert trainer.end()[1] == 0
        for delay in delays:
            child = trainer.begin(recipe, work)
            time.sleep(delay)
            os.kill(child, signal.SIGKILL)
            _, code = trainer.end()
            assert code == -signal.SIGKILL, "the machine was too fast for this test: make the training longer"
        trainer.begin(recipe, work)
        folder, code = trainer.end()
        assert code == 0
        ends.append(Path(folder))
    names = sorted(path.name for path in ends[0].glob("*.safetensors"))
    assert len(names) == (2 if recipe == "medusa" else 3)
    for name in names:
        whole, killed = (load_file(folder / name) for folder in ends)
        assert whole.keys() == killed.keys()
        assert all(torch.equal(whole[key], killed[key]) for key in whole)
