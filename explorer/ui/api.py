"""Named functions for scripts: what the page does, over Gradio's API (README: "For scripts").

They pass the same checks, limits and queue as the page. A mistake is a gr.Error with our own sentence.
"""
# No deferred annotations here: Gradio reads the types of these functions as they stand.

import functools
import inspect
import json
import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from typing import Any, ParamSpec, TypeVar

import gradio as gr

from explorer.errors import ExplorerError, SettingError, TraceError
from explorer.runner_events import Finished
from explorer.takeaway import Job, run_name
from explorer.trace import Trace, from_json, to_json
from explorer.ui.context import MAX_IN_LINE, RUNS, Context
from explorer.ui.controls import COMMON, SAMPLING, MethodForm, offered_methods
from explorer.ui.opening import shortened
from explorer.ui.takeaway import FILES, make_file

P = ParamSpec("P")
R = TypeVar("R")

MAX_SETTINGS_CHARS = 4000
# Of trace, in their order: name -> (type, default).
TRACE_PARAMETERS: dict[str, tuple[Any, Any]] = {
    "prompt": (str, inspect.Parameter.empty),
    "method": (str | None, None),
    "settings": (dict[str, Any] | str | None, None),
    "max_new_tokens": (int | None, None),
    "temperature": (float, 0.0),
    "seed": (int, 0),
    "target": (str | None, None),
    "drafter": (str | None, None),
    "system": (str | None, None),
    "top_p": (float, 1.0),
    "top_k": (int, 0),
    "acceptance": (str | None, None),
    "adaptive": (bool, False),
}
UNEXPECTED = "The server could not do this: its log says why."
LOG = logging.getLogger(__name__)


def build_api(context: Context) -> None:
    """The functions, as endpoints of the Blocks context that this is called in."""

    def trace(*values: Any) -> dict[str, Any]:
        """Decodes one prompt and returns the trace file's JSON; settings by their names, as a dict or as JSON text."""
        *chosen, request = values
        given = dict(zip(TRACE_PARAMETERS, chosen, strict=True))
        target = context.options.target(context.options.targets[0].name if given["target"] is None else given["target"])
        given["target"] = target.name
        given["method"] = context.first_method(target) if given["method"] is None else given["method"]
        given["max_new_tokens"] = context.first_count if given["max_new_tokens"] is None else given["max_new_tokens"]
        sampling = {item.name: given[item.name] for item in SAMPLING}
        with context.visitors.admit(request.session_hash):
            return run(context, {name: given[name] for name in COMMON}, sampling, read_settings(given["settings"]))

    @in_words
    def methods() -> list[dict[str, Any]]:
        """Lists the methods: their settings with bounds and defaults, and the targets that each can run on."""
        return [described(context, form) for form in context.forms]

    @in_words
    def recorded() -> list[dict[str, str]]:
        """Lists the recorded runs: name, title, method, target, device, date, prompt."""
        names = ("name", "title", "method", "target", "device", "date", "prompt")
        return [{name: getattr(item, name) for name in names} for item in context.store.library]

    @in_words
    def recorded_trace(name: str) -> dict[str, Any]:
        """Returns a recorded run as the trace file's JSON."""
        return as_json(recording(context, name))

    @in_words
    def export(
        run: dict[str, Any] | str,
        kind: str,
        step: int | None = None,
        scheme: str = "light",
        ghosts: bool = False,
    ) -> dict[str, str]:
        """Makes a file of a run (a recorded one's name, or a trace): kind is html, perfetto, stats, svg or graphml."""
        if kind not in FILES or scheme not in ("light", "dark"):
            raise SettingError(f"kind is one of {', '.join(FILES)}; scheme is light or dark")
        if step is not None and (isinstance(step, bool) or not isinstance(step, int)):
            raise SettingError("step is a whole number, counted from 1")
        shown = recording(context, run) if run in context.store.library else read_run(context, run)
        stem = run if isinstance(run, str) and run in context.store.library else run_name(shown)
        name, text = make_file(FILES[kind], stem, Job(shown, step, scheme, ghosts is True))
        return {"name": name, "type": FILES[kind].media_type, "text": text}

    trace = in_words(typed(trace, TRACE_PARAMETERS, dict[str, Any]))
    gr.api(trace, api_name="trace", concurrency_limit=MAX_IN_LINE, concurrency_id=RUNS)
    for function in (methods, recorded, recorded_trace, export):
        gr.api(function, api_name=function.__name__)


def typed(function: Callable[..., R], parameters: dict[str, tuple[Any, Any]], returns: Any) -> Callable[..., R]:
    """The function with these parameters, and the request, as its signature: all that Gradio and clients read of it."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    listed = [
        inspect.Parameter(name, kind, default=default, annotation=hint) for name, (hint, default) in parameters.items()
    ]
    listed.append(inspect.Parameter("request", kind, default=None, annotation=gr.Request))  # filled in by Gradio
    function.__signature__ = inspect.Signature(listed, return_annotation=returns)  # type: ignore[attr-defined]
    function.__annotations__ = {name: hint for name, (hint, _) in parameters.items()} | {
        "request": gr.Request,
        "return": returns,
    }
    return function


def in_words(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, its mistakes as gr.Error: the one kind of error whose sentence reaches a script."""

    @functools.wraps(function)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except ExplorerError as error:
            raise gr.Error(shortened(str(error)), print_exception=False) from error
        except Exception as error:  # the last boundary: the log gets the bug, the script a sentence
            LOG.exception("the endpoint %s failed", function.__name__)
            raise gr.Error(UNEXPECTED, print_exception=False) from error

    return told


def run(
    context: Context, form: dict[str, object], sampling: dict[str, object], settings: dict[str, object]
) -> dict[str, Any]:
    """One run to its end, checked and in line as the page's own are."""
    choices = context.checked(form, sampling, settings)
    with closing(context.runner.run(choices.request())) as events:
        for event in events:
            if isinstance(event, Finished):
                return as_json(event.trace)
    raise TraceError("the run ended without a trace")


def read_settings(settings: object) -> dict[str, object]:
    """Settings by name, given as such or as JSON text; raises SettingError for anything else."""
    if isinstance(settings, str) and settings.strip():
        if len(settings) > MAX_SETTINGS_CHARS:
            raise SettingError(f"settings have at most {MAX_SETTINGS_CHARS} characters")
        try:
            settings = json.loads(settings)
        except (ValueError, RecursionError) as error:
            raise SettingError('settings are JSON text such as {"total_tokens": 12}') from error
    if not settings and settings != 0:
        return {}
    if not isinstance(settings, dict) or any(isinstance(value, dict | list) for value in settings.values()):
        raise SettingError('settings are values by name, such as {"total_tokens": 12}')
    return {str(name): value for name, value in settings.items()}


def recording(context: Context, name: object) -> Trace:
    """A recorded trace; raises TraceError for any other name."""
    if name not in context.store.library:
        raise TraceError(f"There is no recorded trace {str(name)[:80]!r}; recorded lists them.")
    return context.store.library.trace(str(name))


def read_run(context: Context, run: object) -> Trace:
    """A trace that a script sent, as a dict or as JSON text: as large as an uploaded file may be, and checked so."""
    if isinstance(run, str) and not run.lstrip().startswith("{"):
        return recording(context, run)
    limit = context.options.max_upload_unpacked_mb * 2**20
    try:
        text = run if isinstance(run, str) else json.dumps(run, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise TraceError("run is a recorded run's name, or a trace file's JSON") from error
    if len(text) > limit:
        raise TraceError(f"the trace is larger than {limit // 2**20} MiB")
    return from_json(text)


def as_json(trace: Trace) -> dict[str, Any]:
    """The trace file's JSON as plain values."""
    found: dict[str, Any] = json.loads(to_json(trace))
    return found


def described(context: Context, form: MethodForm) -> dict[str, Any]:
    """One method for a script."""
    targets = [target.name for target in context.options.targets]
    offered = [
        name
        for name in targets
        if form.name in [method for _, method in offered_methods(context.forms, context.options.target(name))]
    ]
    settings = [asdict(setting) for setting in form.settings]
    return {"name": form.name, "label": form.label, "targets": offered, "settings": settings}
