"""Insight JSON: what the viewer asks for beside the steps of view JSON, each part only when somebody looks at it.

Every answer is a dataclass of a module below, by its field names, numbers rounded to five significant digits, and
``vocab`` with the labels of its tokens ({id: [label, kind]}, as in view JSON; token ids stand in fields whose names end
in token, tokens or tops). Nodes are numbered as in view JSON: rows, ghosts, the target's own token.

``step_insight``  {"step", "micro": [MicroStep], "quiz": Quiz | null, "panel": a panel with its "kind" | null,
                  "cuts": StepCuts}
``run_insight``   {"speed": sentence, "misses": Misses, "budgets": Budgets, "calibration": [Calibration]}
``race_insight``  Race                          runs of one prompt
``diff_insight``  TraceDiff, "shared": [[step, step]], pairs that begin at the same place of the same text, and "texts":
                 both runs' {"tokens", "passes": how many passes had been made when each was there}
``compare_insight``  Comparison and "other": the second run's step as in view JSON, which the viewer does not have
``replay_payload``  view JSON of a whole run and "insights": {"steps": [of each step], "run", "race"}, all without
                    vocabularies of their own: their labels are in that of the view
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from explorer.calibration import calibrations
from explorer.codec import encode
from explorer.compare import compare_at, shared_steps
from explorer.counterfactual import budget_curves, step_cuts
from explorer.errors import TraceError
from explorer.microsteps import micro_steps
from explorer.misses import misses
from explorer.panels.registry import panel_of
from explorer.quiz import quiz_of
from explorer.race import race, speed_sentence
from explorer.timeline import num_passes
from explorer.trace import Trace
from explorer.trace_check import used_ids
from explorer.trace_diff import diff_traces
from explorer.views.viewer import labels, view_payload, view_step

SIGNIFICANT_DIGITS = 5
TOKEN_ENDINGS = ("token", "tokens", "tops")


def step_insight(trace: Trace, index: int) -> dict[str, Any]:
    """One step: its moments, its quiz, its method's panel, its cuts. Raises TraceError for a step that is not there."""
    if not 0 <= index < len(trace.steps):
        raise TraceError(f"there is no step {index}: this run has {len(trace.steps)}")
    step = trace.steps[index]
    panel = panel_of(trace, step)
    parts = {
        "step": index,
        "micro": micro_steps(trace, step),
        "quiz": quiz_of(trace, step),
        "panel": None if panel is None else {"kind": panel.kind} | encode(panel),
        "cuts": step_cuts(trace, step),
    }
    return _answer(parts, [trace])


def run_insight(trace: Trace) -> dict[str, Any]:
    """One run: how its steps ended, what smaller trees would have given, how its drafter is calibrated."""
    parts = {
        "speed": speed_sentence(trace),
        "misses": misses(trace),
        "budgets": budget_curves(trace),
        "calibration": calibrations(trace),
    }
    return _answer(parts, [trace])


def race_insight(traces: Sequence[Trace]) -> dict[str, Any]:
    """Runs of one prompt as a race; TraceError where they are not."""
    return _answer(encode(race(traces)), traces)


def diff_insight(first: Trace, second: Trace) -> dict[str, Any]:
    """Two runs aligned; TraceError where they cannot be."""
    texts = [{"tokens": trace.output.token_ids, "passes": num_passes(trace)} for trace in (first, second)]
    parts = encode(diff_traces(first, second)) | {"shared": shared_steps(first, second), "texts": texts}
    return _answer(parts, [first, second])


def compare_insight(first: Trace, step: int, second: Trace) -> dict[str, Any]:
    """What two runs drafted at the first one's step; TraceError where that cannot be said."""
    found = compare_at(first, step, second)
    other = second.steps[found.sides[1].step]
    return _answer(encode(found) | {"other": view_step(second, other)}, [first, second], used_ids(other))


def replay_payload(trace: Trace) -> dict[str, Any]:
    """All that the viewer can ask about one run, for a page that answers from what lies in it."""
    view = view_payload(trace)
    steps = [step_insight(trace, step.index) for step in trace.steps]
    run, duel = run_insight(trace), race_insight([trace])
    for answer in (*steps, run, duel):
        view["vocab"] |= answer.pop("vocab")
    return view | {"insights": {"steps": steps, "run": run, "race": duel}}


def _answer(parts: dict[str, Any], traces: Sequence[Trace], more_ids: Iterable[int] = ()) -> dict[str, Any]:
    plain = _rounded(encode(parts))
    known = {token: label for trace in traces for token, label in trace.vocab.items()}
    return plain | {"vocab": labels(known, sorted({*_tokens(plain, False), *more_ids}))}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if isinstance(value, float) else value


def _tokens(value: Any, is_token: bool) -> Iterator[int]:
    """Whole numbers in fields of tokens; in a pair with a probability the number comes first."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _tokens(item, name.endswith(TOKEN_ENDINGS))
    elif isinstance(value, list):
        for item in value:
            yield from _tokens(item, is_token)
    elif is_token and type(value) is int:
        yield value
