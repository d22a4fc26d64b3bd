"""The trace file: a round trip changes nothing, and nothing that is read gives anything but a trace or TraceError."""

import contextlib
import copy
import gzip
import json
import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer import trace as record
from explorer import trace_files
from explorer.errors import TraceError
from explorer.trace import from_json, read_trace, to_json, write_trace
from tests.support.traces import make_trace

METHODS = ("autoregressive", "medusa", "eagle2", "lookahead", "draft_model")
VALID = json.loads(to_json(make_trace(steps=4, rows=12)))


@given(
    method=st.sampled_from(METHODS),
    steps=st.integers(0, 8),
    rows=st.integers(2, 30),
    seed=st.integers(0, 10_000),
    hostile=st.booleans(),
)
def test_round_trip(method, steps, rows, seed, hostile):
    trace = make_trace(method, steps, rows, seed=seed, hostile=hostile)
    text = to_json(trace)
    assert from_json(text) == trace
    assert to_json(from_json(text)) == text


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_files(tmp_path, name):
    trace = make_trace()
    write_trace(trace, tmp_path / "new" / name)
    assert read_trace(tmp_path / "new" / name) == trace
    assert [p.name for p in (tmp_path / "new").iterdir()] == [name]


def test_a_nan_is_null_in_the_file():
    trace = make_trace(steps=1)
    step = replace(trace.steps[0], next_prob=math.nan)
    assert json.loads(to_json(replace(trace, steps=[step])))["steps"][0]["next_prob"] is None


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "t.json"
    write_trace(make_trace(steps=1), path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trace_files.os, "replace", fail)
    with pytest.raises(TraceError, match="No space left"):
        write_trace(make_trace(steps=3), path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "strict JSON"),
        (b"[]", "object"),
        (b"{}", "schema"),
        (b"\xff\xfe", "UTF-8"),
        (b"\x1f\x8b broken", "gzip"),
        (gzip.compress(b"{}", mtime=0)[:-4], "gzip"),
        (b"[" * 100_000, "strict JSON"),
        (b'{"schema": NaN}', "NaN"),
        (json.dumps(VALID | {"schema_version": 2}).encode(), "schema_version"),
        (json.dumps(VALID | {"steps": {}}).encode(), r"trace\.steps: expected a list"),
    ],
)
def test_broken_files_are_named(tmp_path, content, says):
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=says) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{path}: "), "one of several files"


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "nul\0"):
        with pytest.raises(TraceError, match="cannot read"):
            read_trace(path)


@pytest.mark.parametrize("is_packed", [False, True])
def test_an_oversized_file_is_refused(tmp_path, monkeypatch, is_packed):
    monkeypatch.setattr(trace_files, "MAX_TRACE_BYTES", 1000)
    data = b" " * 5000
    path = tmp_path / "t.json"
    path.write_bytes(gzip.compress(data) if is_packed else data)
    with pytest.raises(TraceError, match="larger than"):
        read_trace(path)


def test_unknown_keys_are_ignored():
    assert from_json(json.dumps(VALID | {"future": [1, {"x": None}]})) == from_json(json.dumps(VALID))


def test_missing_defaults_are_filled():
    raw = copy.deepcopy(VALID)
    for step in raw["steps"]:
        del step["extra"], step["plain_reason"]
    del raw["target"]["numerics"]
    assert from_json(json.dumps(raw)) == from_json(json.dumps(VALID))


_JUNK = [None, True, -1, 0, 1, 2.5, 10**30, 10**400, "", "draft", "\ud800", [], [[]], {}, {"a": 1}, [-1], [1e308]]


def _places(value, path=()):
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from _places(child, (*path, key))


_PLACES = [path for path in _places(VALID) if path]


@given(seed=st.integers(0, 2**32))
def test_mutations_give_a_trace_or_a_trace_error(seed):
    rng = random.Random(seed)
    for _ in range(8):
        raw = copy.deepcopy(VALID)
        for _ in range(rng.choice((1, 1, 2, 3))):
            _mutate(raw, rng)
        text = json.dumps(raw)
        try:
            trace = from_json(text)
        except TraceError:
            continue
        assert from_json(to_json(trace)) == trace
        to_json(trace).encode()


def _mutate(raw, rng):
    *path, last = rng.choice(_PLACES)
    try:
        for key in path:
            raw = raw[key]
        kind = rng.randrange(4)
        if kind == 0:
            del raw[last]
        elif kind == 1:
            raw[last] = rng.choice(_JUNK)
        elif kind == 2 and isinstance(raw, list):
            raw.insert(last, rng.choice([*_JUNK, raw[last]]))
        else:
            raw[last] = raw[rng.choice(list(raw) if isinstance(raw, dict) else range(len(raw)))]
    except (KeyError, IndexError, TypeError):
        pass  # an earlier mutation removed the place


@given(seed=st.integers(0, 2**32))
def test_damaged_bytes_give_a_trace_or_a_trace_error(seed):
    rng = random.Random(seed)
    data = bytearray(to_json(make_trace(steps=2, rows=6)).encode())
    if rng.random() < 0.5:
        data = bytearray(gzip.compress(bytes(data)))
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.2:
        del data[rng.randrange(len(data)) :]
    with contextlib.suppress(TraceError):
        from_json(trace_files.unpack(bytes(data)))


@pytest.mark.parametrize("value", ["1e999", "-1e999", "1" * 400, "1" * 5000])
@pytest.mark.parametrize("field", ["next_prob", "prefix_len", "extra"])
def test_endless_numbers_are_refused(value, field):
    raw = copy.deepcopy(VALID)
    raw["steps"][0][field] = {"x": "@"} if field == "extra" else "@"
    with pytest.raises(TraceError):
        from_json(json.dumps(raw).replace('"@"', value))


def test_free_values_are_bounded_in_depth():
    raw = copy.deepcopy(VALID)
    raw["settings"] = {"x": json.loads("[" * 40 + "]" * 40)}
    with pytest.raises(TraceError, match="nested"):
        from_json(json.dumps(raw))


def test_the_known_words_are_the_records():
    assert record.STATES[:3] == ("root", "accepted", "rejected") and "cancelled" in record.STOPS
