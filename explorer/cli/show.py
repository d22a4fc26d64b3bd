"""``python -m explorer show``: a trace in the terminal. Works without torch."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from explorer.adapter_words import adapter_sentence
from explorer.insight import own_token_sentence, percent, step_sentence, visible
from explorer.rules import RULE_SENTENCES, draw_text, sampling_text, settings_texts
from explorer.takeaway import pick_step
from explorer.trace import Step, Trace, read_trace

HELP = "draw a trace in the terminal: tree, states, numbers"

# state -> glyph and style; the glyph says it without colour
STATES = {
    "root": ("●", "bold"),
    "accepted": ("✓", "bold bright_blue"),
    "rejected": ("✗", "dark_orange"),
    "untried": ("○", "dim"),
    "unreachable": ("·", "dim"),
    "window": ("▫", "dim"),
}
STAR = "★"
OUTPUT_CHARS = 2000
ISOLATES = {0x2068: None, 0x2069: None}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, and which step's tree to draw."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a trace, .json or .json.gz")
    parser.add_argument(
        "--step", type=int, metavar="N", help="draw this step's tree, counted from 1 (default: the longest path's)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the run, its steps and one tree; TraceError and SettingError are the caller's to print."""
    trace = read_trace(args.file)
    index = pick_step(trace, args.step)
    console = Console(highlight=False, soft_wrap=False)
    if args.step is None:
        console.print(run_panel(trace), steps_table(trace))
    if index is not None:
        console.print(step_view(trace, trace.steps[index]))
    return 0


def run_panel(trace: Trace) -> Panel:
    """What ran, how it went, and what was written."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for name, value in _facts(trace):
        grid.add_row(name, plain(value))
    text = trace.output.text
    shown = text if len(text) <= OUTPUT_CHARS else text[:OUTPUT_CHARS] + " …"
    grid.add_row("output", plain(shown, keep_lines=True))
    return Panel(grid, title=plain(f"{trace.method} on {trace.target.name}"), title_align="left")


def _facts(trace: Trace) -> list[tuple[str, str]]:
    target, stats = trace.target, trace.stats
    settings = ", ".join(settings_texts(trace))
    facts = [
        ("prompt", trace.prompt.text),
        ("target", f"{target.name}, {target.num_parameters / 1e6:.3g} M, {target.dtype} on {target.device_name}"),
    ]
    if trace.drafter:
        facts.append(("drafter", f"{trace.drafter.name}, {trace.drafter.num_parameters / 1e6:.3g} M"))
    if target.adapter:
        facts.append(("adapter", adapter_sentence(target.adapter, trace.sampling.acceptance != "typical")))
    facts += [("settings", settings)] if settings else []
    facts.append(("sampling", sampling_text(trace.sampling)))
    if trace.stats.num_draft_tokens:
        facts.append(("rule", RULE_SENTENCES[trace.sampling.acceptance]))
    facts.append(("tokens", f"{len(trace.output.token_ids)} in {len(trace.steps)} steps, stop: {trace.stop}"))
    if stats.mean_acceptance_length is not None:
        tau = stats.mean_acceptance_length
        facts.append(("per pass", f"{tau:.2f} tokens ({tau - 1:.2f} without the target's own)"))
    if stats.draft_acceptance_rate is not None:
        rate = percent(stats.draft_acceptance_rate)
        facts.append(("accepted", f"{stats.num_accepted_draft_tokens} of {stats.num_draft_tokens} drafted ({rate})"))
    if stats.tokens_per_second is not None:
        facts.append(("speed", f"{stats.tokens_per_second:.1f} tokens/s{_speedup(trace)}"))
    return facts


def _speedup(trace: Trace) -> str:
    baseline = trace.baseline
    if baseline is None or baseline.tokens_per_second is None or trace.stats.speedup is None:
        return ""
    text = f", plain decoding {baseline.tokens_per_second:.1f}: {trace.stats.speedup:.2f} times, one paired run"
    if baseline.first_divergence:
        return f"{text}; output differs from token {baseline.first_divergence.index} on"
    return f"{text}; output equal" if baseline.output_equal else text


def steps_table(trace: Trace) -> Table:
    """One line a step."""
    table = Table(box=None, header_style="dim", padding=(0, 1))
    for name, justify in (
        ("step", "right"),
        ("rows", "right"),
        ("accepted", "right"),
        ("ms", "right"),
        ("emitted", "left"),
    ):
        table.add_column(name, justify=justify, no_wrap=name != "emitted")  # type: ignore[arg-type]
    for step in trace.steps:
        cells = (str(step.index + 1), str(len(step.tree)), str(step.num_accepted), f"{step.ms.total:.0f}")
        table.add_row(*cells, emitted_text(trace, step))
    return table


def emitted_text(trace: Trace, step: Step) -> Text:
    """The tokens a step added, the target's own with its star."""
    text = Text()
    for i, token in enumerate(step.emitted):
        is_own = i == len(step.path) - 1
        text.append(STAR if is_own else "", style="bold")
        text.append(label(trace, token), style="bold" if is_own else STATES["accepted"][1])
        text.append(" ")
    return text


def step_view(trace: Trace, step: Step) -> Group:
    """A step's caption, its tree with states and numbers, and the legend."""
    title = Text(f"step {step.index + 1} of {len(trace.steps)}", style="bold")
    title.append(f"  {step.prefix_len} tokens in the cache, {step.ms.total:.1f} ms", style="dim")
    if step.num_pruned:
        title.append(f", {step.num_pruned} drafted nodes pruned", style="dim")
    return Group("", title, Text(sentence(step_sentence(step, trace.vocab))), tree_view(trace, step), _legend(trace))


def tree_view(trace: Trace, step: Step) -> Tree:
    """The draft tree; every row says what drafter and target thought of its token."""
    branches: dict[int, Tree] = {}
    tests = {draw.row: text for draw in step.draws if (text := draw_text(draw))}
    for row, parent in enumerate(step.tree.parent):
        line = row_text(trace, step, row, tests.get(row))
        branches[row] = branches[parent].add(line) if row else Tree(line, guide_style="dim")
    own = Text(f"{STAR} ", style="bold")
    own.append(label(trace, step.next_token), style="bold reverse")
    own.append(f"  target {percent(step.next_prob)}, {step.next_kind}", style="dim")
    own.append(f"\n{sentence(own_token_sentence(step, trace.vocab))}", style="dim italic")
    branches[step.path[-1]].add(own)
    return branches[0]


def row_text(trace: Trace, step: Step, row: int, test: str | None = None) -> Text:
    """Glyph, token and probabilities of one row; ``test`` is how it was decided, where that took a number."""
    tree = step.tree
    glyph, style = STATES[tree.state[row]]
    text = Text(f"{glyph} ", style=style)
    text.append(label(trace, tree.token[row]), style=style)
    numbers = [] if tree.draft_prob[row] is None else [f"draft {percent(tree.draft_prob[row])}"]
    if tree.target_prob[row] is not None:
        rank = tree.target_rank[row]
        numbers.append(f"target {percent(tree.target_prob[row])}" + ("" if rank is None else f" #{rank + 1}"))
    numbers += [test] if test else []
    text.append(f"  {', '.join(numbers)}" if numbers else "", style="dim")
    return text


def _legend(trace: Trace) -> Text:
    shown = {state for step in trace.steps for state in step.tree.state}
    text = Text()
    for state, (glyph, style) in STATES.items():
        if state in shown:
            text.append(f"{glyph} {state}  ", style=style)
    return text.append(f"{STAR} the target's own token  (#1: the target's first choice)", style="dim")


def label(trace: Trace, token: int) -> str:
    """How a token is drawn; labels come from a file, so nothing in them may steer the terminal."""
    found = trace.vocab.get(str(token))
    return visible(found.label) if found else f"#{token}"


def sentence(text: str) -> str:
    """A sentence of explorer.insight, whose labels are safe already; terminals print its isolates as boxes."""
    return text.translate(ISOLATES)


def plain(text: str, *, keep_lines: bool = False) -> Text:
    """Text of unknown origin: no markup, no control characters but, if wanted, line ends."""
    lines = text.split("\n") if keep_lines else [text]
    return Text("\n".join(visible(line) for line in lines))
