"""Settings and sampling: what may be asked for, and what holds when nobody says. Standard library only.

A method describes itself with a frozen dataclass whose fields are made by ``setting``; the page's controls and the
command line's ``--set NAME=VALUE`` are generated from that description and read through ``resolve``.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from explorer.errors import SettingError

METHOD_NAMES = (
    *("autoregressive", "prompt_lookup", "jacobi", "lookahead"),
    *("draft_model", "medusa", "eagle1", "eagle2", "eagle3"),
)
RERANKED = ("eagle2", "eagle3")  # grow a tree by confidence and cut it to the best nodes
CHAINS = ("draft_model", "jacobi", "prompt_lookup")  # one candidate a level
ACCEPTANCES = ("greedy", "rejection", "typical")
DTYPES = ("auto", "float32", "bfloat16", "float16")
BACKENDS = ("auto", "naive", "triton")
NUMERICS = ("fast", "bitwise")  # bitwise: no row of a verify pass depends on the others, to the last bit
EXECUTIONS = ("auto", "eager", "graphed")  # graphed: a GPU launches a whole verify pass at once
CACHES = ("rows", "slots")  # what a commit does: move the accepted rows, or take over their slots
DEFAULT_TARGET = "smollm2"
PUBLISHED = "paper"  # the preset every target has: a method's own defaults are the published values
AUTO = "auto"
MAX_SEED = 2**63 - 1

KINDS = ("int", "float", "bool", "choice")
_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_SAYS = {"int": "a whole number", "float": "a number", "bool": "true or false"}

S = TypeVar("S")


@dataclass(frozen=True)
class Setting:
    """One setting of a method; ``min`` and ``max`` are inclusive, ``choices`` are the words of kind choice."""

    name: str
    kind: str
    default: Any
    min: float | None = None
    max: float | None = None
    step: float | None = None
    choices: tuple[str, ...] = ()
    allow_auto: bool = False
    help: str = ""


def setting(
    default: Any,
    *,
    kind: str,
    choices: tuple[str, ...] | Callable[[], tuple[str, ...]] = (),
    allow_auto: bool = False,
    help: str = "",
    **bounds: float | None,
) -> Any:
    """A dataclass field that carries its Setting; bounds are ``min``, ``max`` and ``step``.

    ``choices`` may be a function, called when the setting is described: choices read from a file cost no import.
    """
    if kind not in KINDS or not set(bounds) <= {"min", "max", "step"}:
        raise ValueError(f"setting: kind {kind!r} with bounds {sorted(bounds)} is not known")
    known = Setting("", kind, default, allow_auto=allow_auto, help=help, **bounds)  # type: ignore[arg-type]
    return field(default=default, metadata={"setting": known, "choices": choices})


def describe(settings_cls: type) -> tuple[Setting, ...]:
    """The settings of a method in the order they are declared."""
    found = []
    for item in dataclasses.fields(settings_cls):
        if "setting" in item.metadata:
            choices = item.metadata["choices"]
            words = tuple(choices() if callable(choices) else choices)
            found.append(dataclasses.replace(item.metadata["setting"], name=item.name, choices=words))
    return tuple(found)


def resolve(settings_cls: type[S], values: Mapping[str, object]) -> tuple[S, list[str]]:
    """Build ``settings_cls`` from plain values or strings; returns it with one sentence per value that was clamped.

    Raises SettingError for an unknown name, an unreadable value or a word outside the choices.
    """
    known = {item.name: item for item in describe(settings_cls)}
    resolved: dict[str, Any] = {}
    notices: list[str] = []
    for name, value in values.items():
        if name not in known:
            allowed = ", ".join(known) or "none, this method has no settings"
            raise SettingError(f"unknown setting {name!r}; allowed: {allowed}")
        parsed = _parse(known[name], value)
        resolved[name], notice = _clamp(known[name], parsed)
        notices += [notice] if notice else []
    return settings_cls(**resolved), notices


def parse_assignments(pairs: list[str]) -> dict[str, str]:
    """``["depth=3", "preset=paper"]`` as a dict; raises SettingError for anything that is not NAME=VALUE."""
    values = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name.strip() or not value.strip():
            raise SettingError(f"--set {pair!r} is not NAME=VALUE; write for instance --set total_tokens=32")
        values[name.strip()] = value.strip()
    return values


def _parse(known: Setting, value: object) -> Any:
    text = value.strip() if isinstance(value, str) else value
    if known.allow_auto and text == AUTO:
        return AUTO
    if known.kind == "choice":
        if text not in known.choices:
            raise SettingError(f"{known.name} must be one of {', '.join(known.choices)}, not {_show(value)}")
        return text
    readers: dict[str, Callable[[object], Any]] = {"int": _read_int, "float": _read_float, "bool": _read_bool}
    parsed = readers[known.kind](text)
    if parsed is None:
        auto = f" or {AUTO}" if known.allow_auto else ""
        raise SettingError(f"{known.name} must be {_SAYS[known.kind]}{auto}, not {_show(value)}")
    return parsed


def _read_int(value: object) -> int | None:
    if isinstance(value, str):
        match = re.fullmatch(r"([+-]?)0*([0-9]+)", value)
        # Python refuses to convert thousands of digits; twenty already exceed every bound.
        return int(match[1] + match[2][:20]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if math.isfinite(value) and int(value) == value else None


def _read_float(value: object) -> float | None:
    if isinstance(value, str) and not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", value):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _read_bool(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    return _WORDS.get(value.lower()) if isinstance(value, str) else None


def _clamp(known: Setting, value: Any) -> tuple[Any, str | None]:
    if known.kind not in ("int", "float") or value == AUTO:
        return value, None
    for bound, is_out, side in ((known.min, _below, "at least"), (known.max, _above, "at most")):
        if bound is not None and is_out(value, bound):
            used = type(value)(bound)
            return used, f"{known.name} must be {side} {used}, not {_show(value)}: {used} is used"
    return value, None


def _below(value: float, bound: float) -> bool:
    return value < bound


def _above(value: float, bound: float) -> bool:
    return value > bound


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:36] + "..."


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen; ``acceptance`` None means greedy at temperature 0, else rejection.

    The settings' bounds are those of the page's sliders; more is allowed here.

    ``top_p`` 1 and ``top_k`` 0 switch those filters off. Raises SettingError outside the allowed ranges and for rules
    that make no sense at the temperature (rejection at temperature 0 does: it gives the greedy output).
    """

    temperature: float = setting(0.0, kind="float", min=0, max=2, step=0.05, help="0 is greedy")
    top_p: float = setting(1.0, kind="float", min=0.05, max=1, step=0.05, help="1 is off")
    top_k: int = setting(0, kind="int", min=0, help="0 is off")
    seed: int = setting(0, kind="int", min=0, help="the same seed gives the same run")
    acceptance: str | None = setting(None, kind="choice", choices=ACCEPTANCES, help="of the drafts")

    def __post_init__(self) -> None:
        for name, value, allowed, low, high in (
            ("temperature", self.temperature, "a number from 0 to 100", 0, 100),
            ("top_p", self.top_p, "a number above 0 and at most 1", 0, 1),
            ("top_k", self.top_k, "a whole number, 0 for off", 0, math.inf),
            ("seed", self.seed, f"a whole number from 0 to {MAX_SEED}", 0, MAX_SEED),
        ):
            read = _read_float if isinstance(getattr(Sampling, name), float) else _read_int
            number = None if isinstance(value, str) else read(value)
            if number is None or not low <= number <= high or (name == "top_p" and number == 0):
                raise SettingError(f"{name} must be {allowed}, not {_show(value)}")
        if self.acceptance is not None and self.acceptance not in ACCEPTANCES:
            raise SettingError(f"acceptance must be one of {', '.join(ACCEPTANCES)}, not {_show(self.acceptance)}")
        if self.acceptance == "greedy" and not self.is_greedy:
            raise SettingError("greedy acceptance takes the argmax: set temperature 0, or choose rejection")
        if self.acceptance == "typical" and self.is_greedy:
            raise SettingError("typical acceptance needs a temperature above 0, 0.7 for instance; at 0 choose greedy")

    @property
    def is_greedy(self) -> bool:
        """True where every token is the argmax; the threshold is that of the published implementations."""
        return self.temperature <= 1e-5

    @property
    def rule(self) -> str:
        """The acceptance rule that verifies the drafts: greedy, rejection or typical."""
        return self.acceptance or ("greedy" if self.is_greedy else "rejection")


def repo_path(*parts: str) -> Path:
    """A path inside the repository."""
    return Path(__file__).resolve().parent.parent.joinpath(*parts)


def cache_dir() -> Path:
    """Where the converted default target lives: DRAFT_TREE_CACHE, else ~/.cache/draft-tree-explorer."""
    return Path(os.environ.get("DRAFT_TREE_CACHE") or "~/.cache/draft-tree-explorer").expanduser()


def prepare_environment() -> None:
    """What must be set before torch or Gradio is imported; a value that the user has set stays."""
    if "OMP_WAIT_POLICY" not in os.environ:
        # OpenMP's threads spin between the products of a pass, under a millisecond: asleep they would have to be woken
        # hundreds of times a pass (a third of its time on two cores), spinning on they would starve the server.
        os.environ.setdefault("GOMP_SPINCOUNT", "50000")
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    os.environ.setdefault("GRADIO_RUN_HISTORY", "False")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
