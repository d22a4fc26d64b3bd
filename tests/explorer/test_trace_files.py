"""Trace files as bytes: all or nothing on the way out, bounded on the way in."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from explorer.errors import TraceError
from explorer.trace_files import read_bytes, unpack, write_atomically


def test_writing_makes_folders_and_leaves_one_readable_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "t.json"
    write_atomically(path, b"first")
    write_atomically(path, b"second")
    assert read_bytes(path) == b"second"
    assert os.listdir(path.parent) == ["t.json"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_an_interrupted_write_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    write_atomically(path, b"old")

    def interrupt(*_args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["t.json"]


def test_a_folder_in_the_way_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "t.json").mkdir()
    with pytest.raises(TraceError, match="cannot write .*t.json"):
        write_atomically(tmp_path / "t.json", b"x")
    with pytest.raises(TraceError, match="cannot read"):
        read_bytes(tmp_path / "absent.json")


def test_packed_and_plain_bytes_give_the_same_text() -> None:
    assert unpack("␣näh".encode()) == unpack(gzip.compress("␣näh".encode())) == "␣näh"


def test_a_bomb_is_not_inflated() -> None:
    bomb = gzip.compress(bytes(4 * 2**20))
    with pytest.raises(TraceError, match="larger than 1 MiB"):
        unpack(bomb, max_bytes=2**20)


@pytest.mark.parametrize("data", [gzip.compress(b"{}", mtime=0)[:-9], b"\x1f\x8b rest", b"\xff\xfe{}"])
def test_broken_bytes_are_not_a_trace(data: bytes) -> None:
    with pytest.raises(TraceError, match="not a trace"):
        unpack(data)
