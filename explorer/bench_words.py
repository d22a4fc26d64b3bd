"""A benchmark's report as tables of words, the same for Markdown and the offline page. Standard library only.

Reports of earlier versions lack some figures: those show a dash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from explorer.insight import percent, plural
from explorer.tables import NOTHING, Table, number, told

SHOWN_HEADS = ("question_ids",)  # told by their number: a benchmark may have hundreds
HOW = (
    "tau is pooled over steps: tokens a pass, the target's own token counted and not counted. Speeds are medians over "
    "prompts with quartiles; a speedup is the median of the ratios within each prompt, so it need not be the ratio of "
    "two medians. The prompt pass is apart: no speed counts it."
)
BY_DEPTH = "Of the passes that had drafts below an accepted row at the depth before, the share that accepted one."
BY_HEAD = (
    "Of the passes after which the output has a token at the head's depth: the share in which it was the head's first "
    "guess, and in brackets the share in which it was in the head's recorded list, whatever the tree took of it."
)
HISTOGRAM = "Passes by the number of drafted tokens they accepted."
CLIENT = (
    "Of all requests together: what the endpoint gave while at least one was under way, and how its stream reached the "
    "client, network included. A piece of the stream holds several tokens where drafts were accepted."
)
MEMORY = "The drafter's own weights, what it shares with the target not counted; percent of the target's weights."


Show = Callable[[Mapping[str, Any]], str]


def facts(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was measured, and where, as names and words."""
    found = []
    for name, value in report["bench"].items():
        is_counted = name in SHOWN_HEADS and isinstance(value, list)
        text = plural(len(value), "question") if is_counted else told(value)
        found.append((str(name), text))
    return found


def overall(report: Mapping[str, Any]) -> list[Table]:
    """The tables over all prompts."""
    methods: Mapping[str, Any] = report["methods"]
    memory = [[name, *_memory(row)] for name, row in methods.items() if row.get("drafter")]
    clients = {name: row["client"] for name, row in methods.items() if row.get("client")}
    columns = COLUMNS if not any(row.get("num_rests") for row in methods.values()) else [*COLUMNS, RESTING]
    columns = OVER_NETWORK if clients else columns
    found = [
        Table("All prompts", ["method", *(name for name, _ in columns)], _rows(columns, methods), HOW),
        Table("The endpoint", ["method", *(name for name, _ in ENDPOINT)], _rows(ENDPOINT, clients), CLIENT),
        *details(methods),
        _tau_by_category(methods),
        Table("Memory of the drafters", ["method", "drafter", "bytes", "of the target"], memory, MEMORY),
        Table(
            "Share of decoding time, recording apart",
            ["method", *(name for name, _ in SHARES)],
            _rows(SHARES, {} if clients else methods),
        ),
    ]
    return [table for table in found if table.rows]


def _tau_by_category(methods: Mapping[str, Any]) -> Table:
    """Empty where all prompts are of one category."""
    names = _categories(methods)
    cells = [
        [method, *(number(row["by_category"].get(name, {}).get("tau"), 2) for name in names)]
        for method, row in methods.items()
    ]
    return Table("tau by category", ["method", *names], cells if len(names) > 1 else [])


def _categories(methods: Mapping[str, Any]) -> list[str]:
    return sorted({name for row in methods.values() for name in row["by_category"]})


def by_category(report: Mapping[str, Any]) -> dict[str, list[Table]]:
    """Category -> its tables; empty where all prompts are of one."""
    methods: Mapping[str, Any] = report["methods"]
    names = _categories(methods)
    found = {}
    for name in names if len(names) > 1 else []:
        own = {method: row["by_category"][name] for method, row in methods.items() if name in row["by_category"]}
        columns = [SHORT[0], *OVER_NETWORK] if any(row.get("client") for row in own.values()) else SHORT
        main = Table("", ["method", *(head for head, _ in columns)], _rows(columns, own))
        found[name] = [main, *details(own)]
    return found


def details(methods: Mapping[str, Any]) -> list[Table]:
    """Acceptance by depth and by head, and the histogram; those that hold something."""
    depths = {name: [_share(value) for value in row.get("acceptance_by_depth", [])] for name, row in methods.items()}
    heads = {name: [_head(value) for value in row.get("acceptance_by_head", [])] for name, row in methods.items()}
    passes = {name: list(map(str, row.get("acceptance_histogram", []))) for name, row in methods.items()}
    passes = {name: counts for name, counts in passes.items() if len(counts) > 1}
    found = [
        _columns("Acceptance by depth", "depth", depths, 1, BY_DEPTH),
        _columns("Acceptance by head", "head", heads, 1, BY_HEAD),
        _columns("Accepted drafts of a pass", "", passes, 0, HISTOGRAM),
    ]
    return [table for table in found if table.rows]


def divergences(report: Mapping[str, Any]) -> list[str]:
    """A line for each output that left plain decoding, or what there is to say instead."""
    found = [
        f"{name}, question {item['question_id']}: {_told(item)}"
        for name, row in report["methods"].items()
        for item in row["divergences"]
    ]
    if any(row.get("client") for row in report["methods"].values()):
        return ["not compared: there is nothing to compare an endpoint's output with"]
    return found or ["not compared: sampled" if "sampling" in report["bench"] else "none"]


def spread_text(value: Mapping[str, float] | None, digits: int) -> str:
    """Median and quartiles."""
    if value is None:
        return NOTHING
    return f"{value['median']:.{digits}f} ({value['low_quartile']:.{digits}f} to {value['high_quartile']:.{digits}f})"


def tail_text(value: Mapping[str, float] | None, digits: int) -> str:
    """Median, quartiles and the 99th percentile."""
    return spread_text(value, digits) + (f", p99 {value['p99']:.{digits}f}" if value else "")


def bytes_text(num_bytes: int) -> str:
    """Bytes, and the same in megabytes."""
    return f"{num_bytes:,} ({num_bytes / 1e6:.1f} MB)"


def _columns(title: str, word: str, cells: dict[str, list[str]], first: int, note: str) -> Table:
    """A table whose columns are numbered from ``first``; methods without a cell are left out."""
    rows = {name: values for name, values in cells.items() if values}
    width = max(map(len, rows.values()), default=0)
    head = ["method", *(f"{word} {number}".strip() for number in range(first, width + first))]
    return Table(title, head, [[name, *v, *[NOTHING] * (width - len(v))] for name, v in rows.items()], note)


def _rows(columns: list[tuple[str, Show]], methods: Mapping[str, Any]) -> list[list[str]]:
    return [[name, *(show(row) for _, show in columns)] for name, row in methods.items()]


def _memory(row: Mapping[str, Any]) -> list[str]:
    drafter = row["drafter"]
    return [str(drafter["name"]), bytes_text(drafter["num_bytes"]), percent(drafter["share_of_target"])]


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f} %"


def _head(value: Mapping[str, Any]) -> str:
    return f"{_share(value['first'])} ({_share(value['listed'])})"


def _equality(row: Mapping[str, Any]) -> str:
    return "sampled" if row["num_equal"] is None else f"{row['num_equal']} of {row['num_prompts']}"


def _told(divergence: Mapping[str, Any]) -> str:
    gap = divergence["gap"]
    why = "gap unknown" if gap is None else f"top-2 logit gap {gap:.2g}"
    return f"token {divergence['index']}, {why}{', a near-tie' if divergence['is_near_tie'] else ''}"


def _time_share(name: str) -> Show:
    return lambda row: _share(row["time_share"][name])


def _settings(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.get("settings", {}).items()) or NOTHING


_TAU: list[tuple[str, Show]] = [
    ("tau", lambda row: number(row["tau"], 2)),
    ("tau without the target's own token", lambda row: number(row["tau"] and row["tau"] - 1, 2)),
]
_SPEED: list[tuple[str, Show]] = [
    ("tokens/s", lambda row: spread_text(row["tokens_per_second"], 1)),
    ("speedup over autoregressive", lambda row: spread_text(row["speedup"], 2)),
    ("over transformers generate", lambda row: spread_text(row.get("speedup_over_generate"), 2)),
    ("prompt pass ms", lambda row: spread_text(row.get("prefill_ms"), 0)),
]
COLUMNS: list[tuple[str, Show]] = [
    ("settings", _settings),
    *_TAU,
    ("drafts accepted", lambda row: _share(row.get("draft_acceptance_rate"))),
    *_SPEED,
    ("equal outputs", _equality),
]
RESTING: tuple[str, Show] = (
    "passes that rested",
    lambda row: _share(row["num_rests"] / row["num_steps"] if row.get("num_rests") else None),
)
OVER_NETWORK: list[tuple[str, Show]] = [
    *_TAU,
    ("drafts accepted", lambda row: _share(row.get("draft_acceptance_rate"))),
    ("tokens/s of a request", lambda row: spread_text(row["tokens_per_second"], 1)),
    ("first token ms", lambda row: tail_text(row["client"]["first_token_ms"], 0)),
    ("ms a token", lambda row: tail_text(row["client"]["token_ms"], 1)),
]
ENDPOINT: list[tuple[str, Show]] = [
    ("requests/s", lambda row: number(row["requests_per_second"], 2)),
    ("tokens/s", lambda row: number(row["tokens_per_second"], 1)),
    ("ms between pieces", lambda row: tail_text(row["piece_ms"], 1)),
    (
        "tokens a piece",
        lambda row: "not told by the server" if row["is_counted_by_pieces"] else number(row["tokens_per_piece"], 2),
    ),
]
SHORT: list[tuple[str, Show]] = [("prompts", lambda row: str(row["num_prompts"])), *_TAU, *_SPEED]
SHARES = [(name, _time_share(name)) for name in ("draft", "verify", "commit", "other", "record")]
