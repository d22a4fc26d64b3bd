"""What every handler is given: the runner, the traces, the operator's limits and the shape of the form."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from explorer.checkpoints.target_adapter import has_adapter
from explorer.config import Sampling, resolve
from explorer.errors import PromptError, SettingError
from explorer.prediction import CostReport
from explorer.runner_events import Event, RunRequest, Status
from explorer.target_presets import TargetPreset, drafter_path
from explorer.ui.controls import COMMON, SAMPLING, Field, MethodForm, Pace, fields, offered_methods, setting_text
from explorer.ui.options import AppOptions
from explorer.ui.store import TraceStore
from explorer.ui.visitors import Visitors

MAX_SETTING_CHARS = 200
# So many runs wait inside the runner, which tells each its place in the line; Gradio's own queue holds the rest.
MAX_IN_LINE = 8
RUNS = "runs"  # the line of the page's and the scripts' runs together
DEFAULT_METHOD = "eagle2"
DEFAULT_MAX_NEW_TOKENS = 128


class RunsRequests(Protocol):
    """What the page needs of explorer.runner.Runner."""

    def run(self, request: RunRequest) -> Generator[Event, None, None]:
        """Events of one run; closing the iterator frees the device within a step."""

    def measure(self, request: RunRequest, methods: Sequence[str]) -> Generator[Status, None, CostReport]:
        """What passes cost here for the request's target, and what trees of these methods gain."""


@dataclass(frozen=True)
class Choices:
    """What a visitor asked for, checked against what the operator allows. ``settings`` are --set strings.

    drafter: its directory or hub id, None for methods without one. adapter: as of RunRequest.
    """

    prompt: str
    system: str | None
    method: MethodForm
    target: TargetPreset
    drafter: str | None
    max_new_tokens: int
    sampling: Sampling
    settings: dict[str, str]
    is_adaptive: bool = False
    adapter: str | None = None

    def request(self) -> RunRequest:
        """What the runner is asked for."""
        return RunRequest(
            method=self.method.name,
            prompt=self.prompt,
            system=self.system,
            max_new_tokens=self.max_new_tokens,
            sampling=self.sampling,
            settings=self.settings,
            target=self.target.source,
            drafter=self.drafter,
            is_adaptive=self.is_adaptive,
            adapter=self.adapter,
        )


@dataclass(frozen=True)
class Context:
    """One app. Visitors share the runner and the store; everything else of a run is its own."""

    options: AppOptions
    runner: RunsRequests
    store: TraceStore
    forms: tuple[MethodForm, ...]
    visitors: Visitors = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "visitors", Visitors(self.options.max_per_visitor))

    @property
    def fields(self) -> tuple[Field, ...]:
        """The generated controls in the order of the form."""
        return tuple(fields(self.forms))

    def form(self, name: object) -> MethodForm:
        """The method of that name; raises SettingError for any other."""
        for form in self.forms:
            if form.name == name:
                return form
        raise SettingError(f"unknown method {str(name)[:80]!r}; allowed: {', '.join(form.name for form in self.forms)}")

    def offered(self, target: TargetPreset, name: object) -> MethodForm:
        """The method of that name, if it can run on the target; raises SettingError for any other."""
        method = self.form(name)
        if method.name not in [offered for _, offered in offered_methods(self.forms, target)]:
            raise SettingError(f"{target.label} has no {method.label} drafter here; choose another method or target")
        return method

    def first_method(self, target: TargetPreset) -> str:
        """The method that is picked where nobody chose one."""
        names = [name for _, name in offered_methods(self.forms, target)]
        return DEFAULT_METHOD if DEFAULT_METHOD in names else names[-1]

    @property
    def first_count(self) -> int:
        """How many new tokens where nobody chose."""
        return min(DEFAULT_MAX_NEW_TOKENS, self.options.max_new_tokens)

    def choices(self, values: tuple[Any, ...]) -> Choices:
        """The form's values, in the form's order, as checked choices; raises as ``checked`` does.

        A method that cannot rest ignores the tick, which stays for the next one.
        """
        common, rest = values[: len(COMMON)], values[len(COMMON) :]
        how, rest = rest[: len(SAMPLING)], rest[len(SAMPLING) :]
        form = dict(zip(COMMON, common, strict=True))
        if form["adaptive"] is True and not any(one.can_rest for one in self.forms if one.name == form["method"]):
            form["adaptive"] = False
        generated = {
            item.setting.name: value
            for item, value in zip(self.fields, rest, strict=True)
            if item.method == form["method"]
        }
        sampling = {item.name: value for item, value in zip(SAMPLING, how, strict=True)}
        return self.checked(form, sampling, generated)

    def checked(
        self, form: Mapping[str, object], sampling: Mapping[str, object], settings: Mapping[str, object]
    ) -> Choices:
        """Values by the names of COMMON, SAMPLING and the method's settings as checked choices; None is "not said".

        Raises SettingError or PromptError: a browser or script may send anything, whatever it was offered.
        """
        target = self.options.target(form["target"])
        method = self.offered(target, form["method"])
        drafter = self.options.drafter(target, method.name, form["drafter"])
        how, _ = resolve(Sampling, _setting_texts(sampling))
        pace, _ = resolve(Pace, {} if form["adaptive"] is None else {"adaptive": form["adaptive"]})
        return Choices(
            prompt=self._prompt(form["prompt"]),
            system=self._text(form["system"], "system prompt").strip() or None,
            method=method,
            target=target,
            drafter=drafter.source if drafter else None,
            max_new_tokens=self._count(form["max_new_tokens"]),
            sampling=how,
            settings=_setting_texts(settings),
            is_adaptive=pace.adaptive,
        )

    def _prompt(self, value: object) -> str:
        text = self._text(value, "prompt")
        if not text.strip():
            raise PromptError("The prompt is empty: write one, or pick an example.")
        return text

    def _text(self, value: object, what: str) -> str:
        text = "" if value is None else value
        if not isinstance(text, str):
            raise PromptError(f"The {what} must be text.")
        limit = self.options.max_prompt_chars
        if len(text) > limit:
            raise PromptError(f"The {what} has {len(text):,} characters; this server takes at most {limit:,}.")
        return text

    def _count(self, value: object) -> int:
        limit = self.options.max_new_tokens
        if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= limit:
            raise SettingError(f"Max new tokens must be a whole number from 1 to {limit}, not {str(value)[:40]}.")
        return int(value)


def _setting_texts(values: Mapping[str, object]) -> dict[str, str]:
    texts = {}
    for name, value in values.items():
        text = setting_text(value)
        if text is not None:
            texts[name] = text[:MAX_SETTING_CHARS]
    return texts


def on_one_target(asked: Sequence[Choices]) -> list[Choices]:
    """Runs that are compared, all on the target that one of their drafters adapts, if one does."""
    adapters = [drafter_path(each.drafter) for each in asked if each.drafter is not None]
    adapter = next((source for source in adapters if has_adapter(source)), None)
    return [replace(each, adapter=adapter) for each in asked]


def bind(handler: Callable[..., Any], context: Context) -> Callable[..., Any]:
    """The handler with its context filled in, under its own name (Gradio reads the name)."""
    bound = partial(handler, context)
    bound.__name__ = handler.__name__  # type: ignore[attr-defined]
    return bound
