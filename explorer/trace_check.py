"""What must agree inside a trace: called for every file that is read, so that views may trust their columns.

Each check raises TraceError with the field and its index. The known words of the record live here, beside their
check; explorer.trace hands them on. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from explorer.config import ACCEPTANCES, CACHES
from explorer.errors import TraceError

if TYPE_CHECKING:
    from explorer.trace import DrawRecord, GhostColumns, Step, Trace, TreeColumns

ROLES = ("root", "draft", "window")
STATES = ("root", "accepted", "rejected", "untried", "unreachable", "window")
NEXT_KINDS = ("bonus", "recovered")
PLAIN_REASONS = ("fallback", "context_limit", "no_draft")
STOPS = ("eos", "max_new_tokens", "context_limit", "cancelled", "non_finite", "error")
LABEL_KINDS = ("text", "space", "special", "bytes")
_HEX = re.compile("(?:[0-9a-f]{2})*")

MAX_ROWS = 4096  # of a tree and of its ghosts; the settings of our own methods end far below
MAX_TOKENS, MAX_PROMPT = 2**16, 2**20  # of a baseline, of a prompt
MAX_NAME_CHARS, MAX_SETTINGS = 200, 100  # names of methods, targets, devices, ... stand in titles and sentences
MEASURABLE = 1e-9, 1e12  # milliseconds, tokens a second and ratios: sums and quotients of them stay finite
ROUNDING = 1e-5  # float32 softmax values may exceed 1 by rounding


def check_trace(trace: Trace) -> None:
    """Raise TraceError for the first field that contradicts another."""
    _words(trace.stop, STOPS, "stop")
    _words(trace.sampling.acceptance, ACCEPTANCES, "sampling.acceptance")
    _words(trace.target.cache, CACHES, "target.cache")
    _check_names(trace)
    _check_vocab(trace)
    _at_most(len(trace.prompt.token_ids), MAX_PROMPT, "tokens", "prompt.token_ids")
    _ids(trace.prompt.token_ids, "prompt.token_ids")
    _check_prefill(trace)
    output = [trace.first_token]
    prefix_len = len(trace.prompt.token_ids)
    for number, step in enumerate(trace.steps):
        where = f"steps[{number}]"
        if step.index != number:
            _fail(f"{where}.index", f"expected {number}, found {step.index}")
        if step.prefix_len != prefix_len:
            _fail(f"{where}.prefix_len", f"expected {prefix_len} tokens in the cache, found {step.prefix_len}")
        _check_step(step, output[-1], where)
        if step.is_cut and number < len(trace.steps) - 1:
            _fail(f"{where}.emitted", "only the last step can be cut")
        output += step.emitted
        prefix_len += len(step.emitted)
    if trace.output.token_ids != output:
        _fail("output.token_ids", "must be the first token and everything emitted")
    _check_used_ids(trace)
    _check_summary(trace)


def used_ids(step: Step) -> set[int]:
    """Every token id that one step shows, ``extra`` apart."""
    found = {step.next_token, *step.tree.token, *step.ghosts.token, *step.emitted}
    for top in step.tree.target_top:
        found.update(token for token, _ in top or ())
    for draw in step.draws:
        found.update(token for token, _ in draw.residual_top)
    return found


def _check_step(step: Step, root: int, where: str) -> None:
    tree, num_rows = step.tree, len(step.tree)
    for name, count in (("tree", num_rows), ("ghosts", len(step.ghosts)), ("draws", len(step.draws))):
        _at_most(count, MAX_ROWS, "rows", f"{where}.{name}")
    _check_tree(tree, f"{where}.tree")
    if tree.token[0] != root:
        _fail(f"{where}.tree.token[0]", f"the root must be the last output token, {root}, found {tree.token[0]}")
    _check_path(step, where)
    _check_ghosts(step.ghosts, num_rows, f"{where}.ghosts")
    if step.num_pruned < len(step.ghosts):
        _fail(f"{where}.num_pruned", f"{len(step.ghosts)} ghosts are listed, found {step.num_pruned}")
    _words(step.next_kind, NEXT_KINDS, f"{where}.next_kind")
    _words(step.plain_reason, (None, *PLAIN_REASONS), f"{where}.plain_reason")
    _probabilities(step.next_prob, f"{where}.next_prob")
    _at_least_zero(step.next_draft_rank, f"{where}.next_draft_rank")
    _check_draws(step, where)
    for name, value in vars(step.ms).items():
        _measured(value, f"{where}.ms.{name}")


def _check_tree(tree: TreeColumns, where: str) -> None:
    num_rows = len(tree)
    if not num_rows:
        _fail(f"{where}.token", "a tree has at least its root")
    _same_length(tree, num_rows, where)
    _ids(tree.token, f"{where}.token")
    if tree.parent[0] != -1:
        _fail(f"{where}.parent[0]", f"the root's parent is -1, found {tree.parent[0]}")
    for row in range(1, num_rows):
        if not 0 <= tree.parent[row] < row:
            _fail(f"{where}.parent[{row}]", f"must be a row above {row}, found {tree.parent[row]}")
    _words(tree.role, ROLES, f"{where}.role")
    _words(tree.state, STATES, f"{where}.state")
    for name in ("draft_prob", "target_prob", "accept_prob"):
        _probabilities(getattr(tree, name), f"{where}.{name}")
    _at_least_zero(tree.target_rank, f"{where}.target_rank")
    for row, top in enumerate(tree.target_top):
        _check_top(top or (), f"{where}.target_top[{row}]")


def _check_path(step: Step, where: str) -> None:
    """The path walks down from the root, and each row's state says where it stands to that path."""
    tree, path = step.tree, step.path
    if not path or path[0] != 0:
        _fail(f"{where}.path[0]", "a path starts at row 0")
    for i in range(1, len(path)):
        if not 0 <= path[i] < len(tree) or tree.parent[path[i]] != path[i - 1]:
            _fail(f"{where}.path[{i}]", f"row {path[i]} is no child of row {path[i - 1]}")
    on_path = set(path)
    for row, (role, state, parent) in enumerate(zip(tree.role, tree.state, tree.parent, strict=True)):
        if row == 0 or role in ("root", "window"):
            allowed: tuple[str, ...] = ("root",) if row == 0 else ("window",) if role == "window" else ()
            is_right = state in allowed and (role == "root") == (row == 0)
        elif row in on_path:
            is_right = state == "accepted"
        else:
            is_right = state in ("rejected", "untried") if parent in on_path else state == "unreachable"
        if not is_right:
            _fail(f"{where}.tree.state[{row}]", f"{state!r} with role {role!r} contradicts the path {path}")
    decided = [*(tree.token[row] for row in path[1:]), step.next_token]
    if not step.emitted or step.emitted != decided[: len(step.emitted)]:
        _fail(f"{where}.emitted", "must be the accepted tokens and the next token, or their beginning where cut")


def _check_ghosts(ghosts: GhostColumns, num_rows: int, where: str) -> None:
    _same_length(ghosts, len(ghosts), where)
    _ids(ghosts.token, f"{where}.token")
    for i, parent in enumerate(ghosts.parent):
        if not 0 <= parent < num_rows + i:
            _fail(
                f"{where}.parent[{i}]", f"must be a tree row or an earlier ghost, below {num_rows + i}, found {parent}"
            )
    _probabilities(ghosts.draft_prob, f"{where}.draft_prob")
    _probabilities(ghosts.target_prob, f"{where}.target_prob")


def _check_draws(step: Step, where: str) -> None:
    tested = set[int]()
    for i, draw in enumerate(step.draws):
        here = f"{where}.draws[{i}]"
        if not 0 < draw.row < len(step.tree):
            _fail(f"{here}.row", f"must be a drafted row below {len(step.tree)}, found {draw.row}")
        for name in ("uniform", "prob", "threshold", "residual_mass"):
            _probabilities(getattr(draw, name), f"{here}.{name}")
        _check_top(draw.residual_top, f"{here}.residual_top")
        _check_outcome(draw, step.tree.state[draw.row], here)
        if draw.row in tested:
            _fail(f"{here}.row", f"row {draw.row} is tested twice")
        tested.add(draw.row)


def _check_outcome(draw: DrawRecord, state: str, where: str) -> None:
    """A test ends as its numbers say, and the row's state says how it ended."""
    verdict = "accepted" if draw.accepted else "rejected"
    off_path = ("untried", "unreachable") if draw.accepted else ("unreachable",)  # typical tests more than one path
    if state not in (verdict, *(off_path if draw.threshold is not None else ())):
        _fail(f"{where}.accepted", f"{str(draw.accepted).lower()} contradicts the row's state {state!r}")
    if draw.prob is not None and draw.uniform is not None:
        distance = draw.prob - draw.uniform  # above 0 where the draw accepts
    elif draw.prob is not None and draw.threshold is not None:
        distance = draw.prob - draw.threshold
    else:
        return
    if (-distance if draw.accepted else distance) > ROUNDING:
        _fail(f"{where}.accepted", f"{str(draw.accepted).lower()} contradicts the probability {draw.prob}")


def _check_top(top: Iterable[tuple[int, float]], where: str) -> None:
    for i, (token, prob) in enumerate(top):
        _ids(token, f"{where}[{i}][0]")
        _probabilities(prob, f"{where}[{i}][1]")


def _check_names(trace: Trace) -> None:
    _name(trace.method, "method")
    for where, record in (("target", trace.target), ("drafter", trace.drafter)):
        for name, value in vars(record).items() if record else ():
            _name(value, f"{where}.{name}")
    _at_most(len(trace.settings), MAX_SETTINGS, "settings", "settings")
    for name, value in trace.settings.items():
        _name(name, "settings")
        _name(value, f"settings.{name}")


def _check_vocab(trace: Trace) -> None:
    for key, label in trace.vocab.items():
        if not (key.isascii() and key.isdigit()):
            _fail("vocab", f"keys are token ids, found {key[:20]!r}")
        _words(label.kind, LABEL_KINDS, f"vocab.{key}.kind")
        if label.hex is not None and not _HEX.fullmatch(label.hex):
            _fail(f"vocab.{key}.hex", f"bytes are pairs of hexadecimal digits, found {label.hex[:20]!r}")


def _check_used_ids(trace: Trace) -> None:
    places = [("first_token", {trace.first_token})]
    places += [(f"steps[{step.index}]", used_ids(step)) for step in trace.steps]
    divergence = trace.baseline.first_divergence if trace.baseline else None
    if divergence:
        shown = {divergence.token, divergence.baseline_token} - {None}
        places.append(("baseline.first_divergence", shown))  # type: ignore[arg-type]
    for where, ids in places:
        missing = sorted(token for token in ids if str(token) not in trace.vocab)
        if missing:
            _fail("vocab", f"token {missing[0]} of {where} has no label")


def _check_prefill(trace: Trace) -> None:
    _ids(trace.first_token, "first_token")
    _measured(trace.prefill_ms.target, "prefill_ms.target")
    _measured(trace.prefill_ms.drafter, "prefill_ms.drafter")


def _check_summary(trace: Trace) -> None:
    stats, num_cut = trace.stats, sum(step.is_cut for step in trace.steps)
    for name, expected in (("num_steps", len(trace.steps) - num_cut), ("num_cut_steps", num_cut)):
        if getattr(stats, name) != expected:
            _fail(f"stats.{name}", f"the steps say {expected}, found {getattr(stats, name)}")
    _probabilities(stats.draft_acceptance_rate, "stats.draft_acceptance_rate")
    _probabilities(stats.acceptance_by_depth, "stats.acceptance_by_depth")
    _at_least_zero(stats.acceptance_histogram, "stats.acceptance_histogram")
    _at_most(len(stats.acceptance_by_depth), MAX_ROWS, "depths", "stats.acceptance_by_depth")
    _at_most(len(stats.acceptance_histogram), MAX_ROWS + 1, "lengths", "stats.acceptance_histogram")
    for name in ("mean_acceptance_length", "tokens_per_second", "speedup"):
        _measured(getattr(stats, name), f"stats.{name}")
    if trace.baseline:
        _at_most(len(trace.baseline.ms_per_token), MAX_TOKENS, "tokens", "baseline.ms_per_token")
        _measured(trace.baseline.ms_per_token, "baseline.ms_per_token")
        _measured(trace.baseline.tokens_per_second, "baseline.tokens_per_second")
        if trace.baseline.first_divergence:
            _at_least_zero(trace.baseline.first_divergence.index, "baseline.first_divergence.index")


def _same_length(columns: TreeColumns | GhostColumns, length: int, where: str) -> None:
    for name, column in vars(columns).items():
        if len(column) != length:
            _fail(f"{where}.{name}", f"expected {length} entries like token, found {len(column)}")


def _words(values: str | list[str] | None, known: Sequence[str | None], where: str) -> None:
    for place, value in _each(values, where):
        if value not in known:
            _fail(place, f"{value!r} is not one of {', '.join(str(word) for word in known)}")


def _ids(values: int | list[int], where: str) -> None:
    for place, value in _each(values, where):
        if value < 0:
            _fail(place, f"a token id is not negative, found {value}")


def _probabilities(values: float | Sequence[float | None] | None, where: str) -> None:
    for place, value in _each(values, where):
        if value is not None and not -ROUNDING <= value <= 1 + ROUNDING:
            _fail(place, f"a probability lies between 0 and 1, found {value}")


def _name(value: Any, where: str) -> None:
    if isinstance(value, str) and len(value) > MAX_NAME_CHARS:
        _fail(where, f"a name has at most {MAX_NAME_CHARS} characters, found {len(value)}")


def _at_most(count: int, most: int, things: str, where: str) -> None:
    if count > most:
        _fail(where, f"at most {most} {things} are read, found {count}")


def _measured(values: float | Sequence[float | None] | None, where: str) -> None:
    for place, value in _each(values, where):
        if value and not MEASURABLE[0] <= value <= MEASURABLE[1]:
            _fail(place, f"a measurement is 0 or from {MEASURABLE[0]:g} to {MEASURABLE[1]:g}, found {value}")


def _at_least_zero(values: float | Sequence[float | None] | None, where: str) -> None:
    for place, value in _each(values, where):
        if value is not None and value < 0:
            _fail(place, f"must not be negative, found {value}")


def _each(values: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The entries of a list with their places, or a single value with its own."""
    if isinstance(values, list):
        yield from ((f"{where}[{i}]", value) for i, value in enumerate(values))
    else:
        yield where, values


def _fail(where: str, message: str) -> NoReturn:
    raise TraceError(f"trace.{where}: {message}")
