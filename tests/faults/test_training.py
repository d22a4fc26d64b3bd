"""Training that is killed, again and again: what it ends with is what an undisturbed run ends with."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import load_file

from tests.structure.source import ROOT
from tests.support.training import tiny_corpus, write_corpus

# The recipe of `train medusa` on a tiny target: features, heads, tree, card. Every step is a checkpoint.
TRAIN = """
import sys
from pathlib import Path
import torch
from explorer.training.loop import LoopOptions
from explorer.training.medusa import MedusaOptions
from explorer.training.run import Plan, train_medusa
from tests.support.training import tiny_loaded_target
torch.set_num_threads(1)
work = Path(sys.argv[1])
loop = LoopOptions(epochs=8, batch_tokens=64, warmup_steps=2, save_every=1)
plan = Plan(work, work / "drafters", command="train x", draft_vocab_size=40, loop=loop)
print("begins", flush=True)
options = MedusaOptions(num_heads=2, num_frequent=20, num_sampled=20)
print(train_medusa(plan, tiny_loaded_target(), options, work / "trees.json"), flush=True)
"""


def begin(work: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", TRAIN, str(work)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "begins\n"
    return child


def test_a_killed_training_loses_nothing_but_the_batch_under_way(tmp_path: Path) -> None:
    ends: list[Path] = []
    num_killed = 0
    for name, delays in (("whole", []), ("killed", [0.1, 0.6])):
        work = tmp_path / name
        write_corpus(work / "text" / "a.npz", tiny_corpus())
        for delay in delays:
            child = begin(work)
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
            num_killed += child.wait() == -signal.SIGKILL
        child = begin(work)
        answer, _ = child.communicate(timeout=240)
        assert child.returncode == 0
        ends.append(Path(answer.strip().splitlines()[-1]))
    assert num_killed == 2, "the machine was too fast for this test: make the training longer"
    weights = [load_file(next(folder.glob("*.safetensors"))) for folder in ends]
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
