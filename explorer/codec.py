"""Frozen dataclasses to plain JSON values and back, with errors that name the field. Standard library only."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from functools import cache
from typing import Any, TypeVar

from explorer.errors import TraceError

T = TypeVar("T")

MAX_DEPTH = 32  # of free JSON values (settings, extra)
MAX_FREE_VALUES = 10_000  # in one object of them; Medusa's lists of ten are some hundreds
MAX_INTEGER = 2**63 - 1


def encode(value: Any) -> Any:
    """Dataclasses become dicts, tuples lists, NaN and infinities None; everything else stays."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def decode(cls: type[T], raw: Any, where: str) -> T:
    """Build ``cls`` from a plain dict; unknown keys are ignored, missing or mistyped ones raise TraceError."""
    if not isinstance(raw, dict):
        raise TraceError(f"{where}: expected an object, found {_kind(raw)}")
    hints = _hints(typing.cast(type, cls))
    values = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.name in raw:
            values[field.name] = _value(hints[field.name], raw[field.name], f"{where}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise TraceError(f"{where}.{field.name}: missing")
    return cls(**values)


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _value(hint: Any, raw: Any, where: str) -> Any:
    """``raw`` checked against one type hint: a dataclass, list, tuple, dict, union with None, or a plain type."""
    if hint is Any:
        return _plain(raw, where, MAX_DEPTH)
    if dataclasses.is_dataclass(hint):
        return decode(typing.cast(type, hint), raw, where)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return None if raw is None else _value(next(a for a in arguments if a is not type(None)), raw, where)
    if origin in (list, tuple, dict):
        return _container(origin, arguments, raw, where)
    return _scalar(hint, raw, where)


def _container(origin: type, arguments: tuple[Any, ...], raw: Any, where: str) -> Any:
    if origin is dict:
        if not isinstance(raw, dict):
            raise TraceError(f"{where}: expected an object, found {_kind(raw)}")
        if arguments[1] is Any and (count := _count(raw)) > MAX_FREE_VALUES:
            raise TraceError(f"{where}: at most {MAX_FREE_VALUES} values are read, found {count}")
        return {_writable(key, where): _value(arguments[1], item, f"{where}.{key}") for key, item in raw.items()}
    if not isinstance(raw, list):
        raise TraceError(f"{where}: expected a list, found {_kind(raw)}")
    if origin is list:
        if _is_plain(arguments[0], raw):
            return list(raw)
        return [_value(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(raw)]
    if len(raw) != len(arguments):
        raise TraceError(f"{where}: expected {len(arguments)} items, found {len(raw)}")
    return tuple(_value(hint, item, f"{where}[{i}]") for i, (hint, item) in enumerate(zip(arguments, raw, strict=True)))


def _is_plain(hint: Any, raw: list[Any]) -> bool:
    """Whether a list holds only numbers as they should be: most of a trace does, and needs no words for each."""
    if hint is int:
        return all(type(item) is int and -MAX_INTEGER <= item <= MAX_INTEGER for item in raw)
    return hint is float and all(type(item) is float and math.isfinite(item) for item in raw)


def _scalar(hint: type, raw: Any, where: str) -> Any:
    if hint is float and isinstance(raw, int) and not isinstance(raw, bool):
        raw = float(raw) if abs(raw) <= MAX_INTEGER else math.inf
    if not isinstance(raw, hint) or (isinstance(raw, bool) and hint is not bool):
        raise TraceError(f"{where}: expected {hint.__name__}, found {_kind(raw)}")
    return _writable(raw, where)


def _writable(raw: Any, where: str) -> Any:
    """A scalar that can be written again: JSON readers let 1e999, endless integers and half surrogates through."""
    is_number = isinstance(raw, int | float)
    if is_number and not (math.isfinite(raw) if isinstance(raw, float) else abs(raw) <= MAX_INTEGER):
        raise TraceError(f"{where}: the number is too large")
    if isinstance(raw, str) and any("\ud800" <= char <= "\udfff" for char in raw):
        raise TraceError(f"{where}: the text holds half a surrogate pair")
    return raw


def _plain(raw: Any, where: str, depth: int) -> Any:
    """A free JSON value: bounded in depth, so that writing it again cannot overflow the stack."""
    if depth == 0:
        raise TraceError(f"{where}: nested deeper than {MAX_DEPTH} levels")
    if isinstance(raw, dict):
        return {_writable(key, where): _plain(item, f"{where}.{key}", depth - 1) for key, item in raw.items()}
    if isinstance(raw, list):
        return [_plain(item, f"{where}[{i}]", depth - 1) for i, item in enumerate(raw)]
    return _writable(raw, where)


def _count(raw: Any) -> int:
    """Values inside a free JSON value, itself included."""
    count, waiting = 0, [raw]
    while waiting:
        item = waiting.pop()
        count += 1
        if isinstance(item, dict | list):
            waiting += item.values() if isinstance(item, dict) else item
    return count


def _kind(raw: Any) -> str:
    return "null" if raw is None else type(raw).__name__
