"""Every contradiction inside a trace is refused with the field and index that show it."""

import copy
import json

import pytest

from explorer.errors import TraceError
from explorer.trace import from_json, to_json
from explorer.trace_check import MAX_ROWS, used_ids
from tests.support.traces import make_trace

_TRACE = next(
    t
    for t in (make_trace(steps=5, rows=14, seed=s, acceptance="rejection") for s in range(99))
    if len(t.steps[1].path) > 1
)
VALID = json.loads(to_json(_TRACE))
PATH_ROW = VALID["steps"][1]["path"][1]
OFF_PATH = next(r for r in range(1, 14) if r not in VALID["steps"][1]["path"])


def _set(*path, to):
    def mutate(raw):
        *parents, last = path
        for key in parents:
            raw = raw[key]
        raw[last] = to(raw[last]) if callable(to) else to

    return mutate


CASES = {
    "stop": (_set("stop", to="bored"), r"trace\.stop: 'bored'"),
    "cache": (_set("target", "cache", to="pages"), r"trace\.target\.cache: 'pages'"),
    "index": (_set("steps", 1, "index", to=5), r"steps\[1\]\.index: expected 1"),
    "prefix_len": (_set("steps", 1, "prefix_len", to=3), r"steps\[1\]\.prefix_len"),
    "first_prefix_len": (_set("prompt", "token_ids", to=[1]), r"steps\[0\]\.prefix_len"),
    "root": (_set("steps", 1, "tree", "token", 0, to=lambda t: t + 1), r"steps\[1\]\.tree\.token\[0\]"),
    "column": (_set("steps", 1, "tree", "score", to=[0.0]), r"steps\[1\]\.tree\.score: expected 14"),
    "empty_tree": (_set("steps", 1, "tree", "token", to=[]), r"tree\.token"),
    "root_parent": (_set("steps", 1, "tree", "parent", 0, to=0), r"parent\[0\]"),
    "parent": (_set("steps", 1, "tree", "parent", 4, to=4), r"parent\[4\]"),
    "negative_parent": (_set("steps", 1, "tree", "parent", 4, to=-1), r"parent\[4\]"),
    "role": (_set("steps", 1, "tree", "role", 2, to="leaf"), r"role\[2\]"),
    "state": (_set("steps", 1, "tree", "state", 2, to="lost"), r"state\[2\]"),
    "accepted_off_path": (_set("steps", 1, "tree", "state", OFF_PATH, to="accepted"), rf"state\[{OFF_PATH}\]"),
    "rejected_on_path": (_set("steps", 1, "tree", "state", PATH_ROW, to="rejected"), rf"state\[{PATH_ROW}\]"),
    "two_roots": (_set("steps", 1, "tree", "role", 3, to="root"), r"state\[3\]"),
    "window_state": (_set("steps", 1, "tree", "role", 3, to="window"), r"state\[3\]"),
    "probability": (_set("steps", 1, "tree", "target_prob", 2, to=1.5), r"target_prob\[2\]"),
    "rank": (_set("steps", 1, "tree", "target_rank", 2, to=-1), r"target_rank\[2\]"),
    "top": (_set("steps", 1, "tree", "target_top", 0, to=[[1, 2.0]]), r"target_top\[0\]\[0\]\[1\]"),
    "path_start": (_set("steps", 1, "path", 0, to=1), r"path\[0\]"),
    "empty_path": (_set("steps", 1, "path", to=[]), r"path\[0\]"),
    "path_jump": (_set("steps", 1, "path", 1, to=99), r"path\[1\]"),
    "emitted": (_set("steps", 1, "emitted", 0, to=lambda t: t + 1), r"steps\[1\]\.emitted"),
    "nothing_emitted": (_set("steps", 1, "emitted", to=[]), r"steps\[1\]\.emitted"),
    "early_cut": (_set("steps", 1, "emitted", to=lambda e: e[:-1]), r"only the last step"),
    "ghost_column": (_set("steps", 1, "ghosts", "score", to=[]), r"ghosts\.score"),
    "ghost_parent": (_set("steps", 1, "ghosts", "parent", 0, to=14), r"ghosts\.parent\[0\]"),
    "ghost_count": (_set("steps", 1, "num_pruned", to=0), r"num_pruned"),
    "draw_row": (_set("steps", 1, "draws", 0, "row", to=14), r"draws\[0\]\.row"),
    "draw_prob": (_set("steps", 1, "draws", 0, "uniform", to=7), r"draws\[0\]\.uniform"),
    "draw_outcome": (_set("steps", 1, "draws", 0, "accepted", to=lambda a: not a), r"draws\[0\]\.accepted.*state"),
    "draw_chance": (
        _set("steps", 1, "draws", 0, "uniform", to=1.0 if VALID["steps"][1]["draws"][0]["accepted"] else 0.0),
        r"draws\[0\]\.accepted.*contradicts the probability",
    ),
    "draw_threshold": (
        _set("steps", 1, "draws", 0, to=lambda d: d | {"uniform": None, "threshold": 1.0 if d["accepted"] else 0.0}),
        r"draws\[0\]\.accepted.*contradicts the probability",
    ),
    "draw_twice": (_set("steps", 1, "draws", to=lambda d: [*d, d[0]]), r"draws\[\d+\]\.row: row \d+ is tested twice"),
    "acceptance": (_set("sampling", "acceptance", to="hopeful"), r"sampling\.acceptance"),
    "next_kind": (_set("steps", 1, "next_kind", to="gift"), r"next_kind"),
    "plain_reason": (_set("steps", 1, "plain_reason", to="lazy"), r"plain_reason"),
    "next_rank": (_set("steps", 1, "next_draft_rank", to=-2), r"next_draft_rank"),
    "ms": (_set("steps", 1, "ms", "draft", 2, to=-1), r"ms\.draft\[2\]"),
    "output": (_set("output", "token_ids", to=lambda ids: ids[:-1]), r"output\.token_ids"),
    "negative_id": (_set("first_token", to=-4), r"first_token"),
    "vocab_key": (_set("vocab", to=lambda v: v | {"x1": {"label": "a", "kind": "text"}}), r"vocab"),
    "vocab_kind": (_set("vocab", "3", "kind", to="emoji"), r"vocab\.3\.kind"),
    "vocab_hex": (_set("vocab", "3", "hex", to="0x41"), r"vocab\.3\.hex: bytes are pairs"),
    "vocab_gap": (_set("vocab", to={}), r"trace\.vocab: token \d+ of first_token"),
    "stats": (_set("stats", "num_steps", to=77), r"stats\.num_steps"),
    "cut_steps": (_set("stats", "num_cut_steps", to=2), r"stats\.num_cut_steps"),
    "rate": (_set("stats", "draft_acceptance_rate", to=2), r"stats\.draft_acceptance_rate"),
    "baseline": (_set("baseline", "ms_per_token", 3, to=-1), r"baseline\.ms_per_token\[3\]"),
    "divergence": (
        _set("baseline", "first_divergence", to={"index": 2, "token": 999_999, "baseline_token": None, "gap": 0.1}),
        r"token 999999 of baseline",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_contradictions_are_named(name):
    mutate, says = CASES[name]
    raw = copy.deepcopy(VALID)
    mutate(raw)
    with pytest.raises(TraceError, match=says):
        from_json(json.dumps(raw))


def test_rounding_above_one_is_forgiven():
    raw = copy.deepcopy(VALID)
    raw["steps"][1]["tree"]["target_prob"][2] = 1.0000002
    assert from_json(json.dumps(raw)).steps[1].tree.target_prob[2] == pytest.approx(1.0)


def test_used_ids_cover_every_column():
    step = _TRACE.steps[1]
    shown = used_ids(step)
    assert {step.next_token, *step.tree.token, *step.ghosts.token} <= shown
    assert {t for top in step.tree.target_top if top for t, _ in top} <= shown
    assert {t for draw in step.draws for t, _ in draw.residual_top} <= shown


def test_trees_far_beyond_any_setting_are_refused() -> None:
    trace = make_trace("eagle2", steps=2)
    raw = json.loads(to_json(trace))
    tree = raw["steps"][0]["tree"]
    for column in tree.values():
        column += [column[-1]] * MAX_ROWS
    with pytest.raises(TraceError, match=rf"steps\[0\]\.tree: at most {MAX_ROWS} rows"):
        from_json(json.dumps(raw))


def test_typical_tests_may_lie_off_the_path() -> None:
    raw = json.loads(to_json(make_trace(steps=5, rows=20, acceptance="typical")))
    from_json(json.dumps(raw))
    for step in raw["steps"]:
        for row, state in enumerate(step["tree"]["state"]):
            if state == "unreachable":
                test = {"row": row, "uniform": None, "prob": 0.5, "threshold": 0.1, "accepted": True}
                step["draws"].append(test | {"residual_mass": None, "residual_top": []})
    from_json(json.dumps(raw))
    raw["steps"][0]["draws"][-1]["threshold"] = None
    with pytest.raises(TraceError, match=r"contradicts the row's state 'unreachable'"):
        from_json(json.dumps(raw))
