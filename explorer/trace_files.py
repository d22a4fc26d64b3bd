"""Trace files as bytes: written atomically, unpacked within a bound. Standard library only."""

from __future__ import annotations

import os
import tempfile
import zlib
from pathlib import Path
from typing import Any

from explorer.errors import TraceError

MAX_TRACE_BYTES = 256 * 1024 * 1024  # unpacked; a larger file is refused, not swallowed
A_TRACE = "a trace is the file that ‘Trace file’ on the page or the command trace writes"
OTHER_FILES = {
    "draft-tree-stats": "a run's figures",
    "draft-tree-bench": "a benchmark's report",
    "draft-tree-diagnosis": "a diagnosis",
}
MAX_FOUND = 40  # characters of a foreign file's own words in a message


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` beside ``path`` and rename it into place; raises TraceError where the folder refuses."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise TraceError(f"cannot write {path}: {error.strerror or error}") from error


def read_bytes(path: Path) -> bytes:
    """The file as it is, at most one byte beyond the bound; raises TraceError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_TRACE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise TraceError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def unpack(data: bytes, max_bytes: int | None = None) -> str:
    """Trace bytes, gzipped or plain, as text; never inflates more than ``max_bytes`` (None: MAX_TRACE_BYTES)."""
    max_bytes = MAX_TRACE_BYTES if max_bytes is None else max_bytes
    if data[:2] == b"\x1f\x8b":
        data = _inflate(data, max_bytes)
    if len(data) > max_bytes:
        raise TraceError(f"the trace is larger than {max_bytes // 2**20} MiB")
    try:
        return data.decode("utf-8-sig")  # some editors put a mark before the text
    except UnicodeDecodeError as error:
        raise TraceError("not a trace: the file is not UTF-8 text") from error


def _inflate(data: bytes, max_bytes: int) -> bytes:
    """One gzip member: a file of a hundred thousand empty ones would take half a minute to say nothing."""
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        unpacked = stream.decompress(data, max_bytes + 1)
    except zlib.error as error:
        raise TraceError(f"not a trace: the gzip data is broken ({error})") from error
    if len(unpacked) <= max_bytes and not stream.eof:
        raise TraceError("not a trace: the gzip data is broken (it ends too early)")
    if stream.unused_data:
        raise TraceError("not a trace: the gzip file goes on after its end")
    return unpacked


def what_it_is(raw: dict[str, Any]) -> str:
    """What a JSON object is that is no trace, as far as it can be told."""
    schema = raw.get("schema")
    if isinstance(schema, str) and schema in OTHER_FILES:
        return OTHER_FILES[schema]
    if "traceEvents" in raw:
        return "a timeline"
    return "some other JSON" if schema is None else f"a file of schema {str(schema)[:MAX_FOUND]!r}"
