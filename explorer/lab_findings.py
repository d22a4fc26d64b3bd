"""What each experiment of the laboratory found, in sentences that follow its numbers. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from explorer.insight import percent
from explorer.lab_records import LabRecord, Trial
from explorer.theory import expected_speedup, kv_bytes

SAME = 0.03  # a relative change below this is called none: runs this short do not tell
PLAIN_SWEEP = "plain"
KEPT_MOST, KEPT_SOME = 0.8, 0.3  # of what drafts gained


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def temperature_findings(record: LabRecord) -> list[str]:
    """From the lowest to the highest temperature of each lane, and typical acceptance beside rejection."""
    found = []
    for lane, trials in _sorted_lanes(record).items():
        first, last = trials[0], trials[-1]
        rest = f", {last.tau:.2f} at {last.value:g}, {change(first.tau, last.tau)}" if last is not first else ""
        found.append(f"{lane}: {first.tau:.2f} tokens per pass at temperature {first.value:g}{rest}.")
    for typical in [trial for trial in record.trials if trial.lane.endswith(", typical")]:
        lane = typical.lane.removesuffix(", typical")
        same = [trial for trial in record.trials if (trial.lane, trial.value) == (lane, typical.value)]
        if same and typical.value == max(trial.value for trial in record.trials):
            more = "more" if typical.tau > same[0].tau else "no more"
            found.append(
                f"At {typical.value:g} typical acceptance takes {more} than rejection ({typical.tau:.2f} against "
                f"{same[0].tau:.2f} for {lane}), but its output no longer follows the target's distribution."
            )
    return found


def tree_findings(record: LabRecord) -> list[str]:
    """The fastest shape, whether it pays, how the formula judges it, what passes cost and what trees hold."""
    plain = plain_trial(record)
    trials = [trial for trial in record.trials if trial.sweep != PLAIN_SWEEP]
    found = []
    if plain and trials:
        best = max(trials, key=lambda trial: trial.tau / trial.step_ms)
        speedup = speedup_of(best, plain)
        verdict = "faster than" if speedup > 1 + SAME else "slower than" if speedup < 1 - SAME else "as fast as"
        ratio = f"{speedup:.2f} × its speed"
        promised = expected_speedup(best.tau, best.draft_ms, plain.step_ms)
        found.append(
            f"The fastest is {best.lane} with {best.num_rows} rows ({_named(best)}): {best.tau:.2f} tokens per pass, "
            f"{verdict} plain decoding ({ratio})."
        )
        found.append(
            f"tau / (1 + c_draft / c_target) promises {promised:.2f} × there: it takes a pass over {best.num_rows} "
            f"rows to cost what a pass over one does; here it takes {best.verify_ms / plain.verify_ms:.1f} × as long."
        )
    for lane, shapes in _by_rows(trials).items():
        few, many = shapes[0], shapes[-1]
        if many.num_rows > few.num_rows:
            found.append(
                f"{lane}: from {few.num_rows} to {many.num_rows} rows tau goes from {few.tau:.2f} to {many.tau:.2f}, "
                f"a step from {few.step_ms:.0f} to {many.step_ms:.0f} ms."
            )
    return [*found, *_memory(record, trials)]


def desync_findings(record: LabRecord) -> list[str]:
    """What the noise does to the target, and what is left of the drafters' gain."""
    found = []
    changed = sorted(record.changed, key=lambda item: item.noise)
    if len(changed) > 1:
        first, last = changed[0], changed[-1]
        found.append(
            f"Noise of {last.noise:g} lets the target choose the same token in {percent(last.agreement)} of the places "
            f"of its own text; the text's perplexity goes from {first.perplexity:.3g} to {last.perplexity:.3g}."
        )
    for lane, trials in _sorted_lanes(record).items():
        first_tau, last_tau = trials[0].tau, trials[-1].tau
        if first_tau <= 1:
            found.append(f"{lane}: no draft was accepted even without noise.")
            continue
        left = (last_tau - 1) / (first_tau - 1)
        word = "most of" if left >= KEPT_MOST else "a part of" if left >= KEPT_SOME else "little of"
        found.append(
            f"{lane}: {first_tau:.2f} tokens per pass without noise, {last_tau:.2f} with {trials[-1].value:g}: "
            f"{word} what drafts added is left ({percent(max(left, 0.0))})."
        )
    found.append("The output stays the changed target's own in every case: drafts cost time, never correctness.")
    return found


def batch_findings(record: LabRecord) -> list[str]:
    """Up to how many sequences each method pays, and what a pass costs in the largest batch."""
    found = []
    for trial in record.trials:
        speedups = batch_speedups(record, trial)
        if speedups:
            head = f"{trial.lane} ({trial.num_rows} rows, {trial.tau:.2f} tokens per pass)"
            found.append(f"{head} {paying_clause(speedups)}.")
    sizes = sorted({item.num_sequences for item in record.passes})
    if len(sizes) > 1 and record.trials:
        rows = record.trials[-1].num_rows
        few, many = (needed_tokens(record, size, rows) for size in (sizes[0], sizes[-1]))
        if few and many:
            found.append(
                f"{rows} rows of each sequence cost {few:.1f} × one row of each with {_sequences(sizes[0])}, "
                f"{many:.1f} × with {_sequences(sizes[-1])}: so many tokens per pass break even, before any drafting."
            )
    found.append("Drafting is counted as measured for one sequence, so the true limit comes no later than this.")
    return found


def paying_clause(speedups: dict[int, float]) -> str:
    """Which batches a method pays in; sequences -> speed against plain decoding."""
    paying = [size for size, speedup in speedups.items() if speedup >= 1]
    losing = [size for size in speedups if size not in paying]
    if not paying:
        return f"pays in no batch here, not even with {_sequences(min(speedups))} ({speedups[min(speedups)]:.2f} ×)"
    if not losing:
        return f"still pays with {_sequences(max(paying))} ({speedups[max(paying)]:.2f} ×)"
    if min(losing) < max(paying):
        return f"pays with {listed(list(map(str, paying)))} sequences, not with {listed(list(map(str, losing)))}"
    return (
        f"pays with up to {_sequences(max(paying))} ({speedups[max(paying)]:.2f} ×) and no longer with "
        f"{min(losing)} ({speedups[min(losing)]:.2f} ×)"
    )


def _sequences(count: int) -> str:
    return f"{count} sequence{'' if count == 1 else 's'}"


def template_findings(record: LabRecord) -> list[str]:
    """Each lane's loss against the target's own template."""
    found = []
    for lane, trials in _sorted_lanes(record).items():
        right, others = trials[0], trials[1:]
        told = [f"{trial.tau:.2f} with {_template(trial.word)} ({change(right.tau, trial.tau)})" for trial in others]
        found.append(f"{lane}: {right.tau:.2f} tokens per pass with the target's own template, {listed(told)}.")
    most = max(len(trial.taus) for trial in record.trials)
    for word in dict.fromkeys(trial.word for trial in record.trials if len(trial.taus) < most):
        fewest = min(len(trial.taus) for trial in record.trials if trial.word == word)
        found.append(f"With {_template(word)} only {fewest} of {most} prompts got more than a word of an answer.")
    if len({trial.word for trial in record.trials}) > 1:
        found.append("The answers differ too, so this compares whole situations, not the same text.")
    return found


def context_findings(record: LabRecord) -> list[str]:
    """tau up to what the drafters were trained on, and beyond."""
    found = []
    for lane, trials in _sorted_lanes(record).items():
        first, last, limit = trials[0], trials[-1], record.trained_length
        within = [trial for trial in trials if limit is None or trial.value <= limit]
        beyond = [trial for trial in trials if trial not in within]
        if limit is not None and within and beyond:
            low, high = _pooled_tau(within), _pooled_tau(beyond)
            found.append(
                f"{lane}: {low:.2f} tokens per pass behind prompts of up to {limit} tokens, as long as the drafters' "
                f"training text, {high:.2f} behind longer ones, {change(low, high)}."
            )
        else:
            found.append(
                f"{lane}: {first.tau:.2f} tokens per pass behind {first.value:.0f} tokens, {last.tau:.2f} behind "
                f"{last.value:.0f}, {change(first.tau, last.tau)}."
            )
    return found


def plain_trial(record: LabRecord) -> Trial | None:
    """Plain decoding under the same conditions, where an experiment measured it."""
    return next((trial for trial in record.trials if trial.sweep == PLAIN_SWEEP), None)


def speedup_of(trial: Trial, plain: Trial) -> float:
    """Measured: tokens a millisecond of a trial against those of plain decoding."""
    return trial.tau / trial.step_ms * plain.step_ms / plain.tau


def needed_tokens(record: LabRecord, num_sequences: int, num_rows: int) -> float | None:
    """Tokens per pass from which a pass over so many rows of each sequence pays, drafting left out."""
    plain, tree = record.pass_ms(num_sequences, 1), record.pass_ms(num_sequences, num_rows)
    return tree / plain if plain and tree else None


def batch_speedups(record: LabRecord, trial: Trial) -> dict[int, float]:
    """Sequences -> speed against plain decoding of the same batch, from measured passes, tau and drafting."""
    found = {}
    for size in sorted({item.num_sequences for item in record.passes}):
        plain, tree = record.pass_ms(size, 1), record.pass_ms(size, trial.num_rows)
        if plain and tree:
            found[size] = trial.tau * plain / (tree + trial.draft_ms)
    return found


def change(before: float, after: float) -> str:
    """A change in words."""
    share = after / before - 1
    if abs(share) < SAME:
        return "about the same"
    return f"{percent(abs(share))} {'more' if share > 0 else 'less'}"


def _memory(record: LabRecord, trials: list[Trial]) -> list[str]:
    if record.shape is None or not trials:
        return []
    rows, lanes = max(trial.num_rows for trial in trials), {trial.method: trial.lane for trial in trials}
    held = kv_bytes(record.shape, rows) / 1e6
    told = [f"a tree of {rows} rows holds {held:.3g} MB of keys and values until its commit"]
    for method, drafter in record.drafters.items():
        share = f" ({percent(drafter.num_bytes / record.target_bytes)} of the target)" if record.target_bytes else ""
        told.append(f"the drafter of {lanes.get(method, method)} takes {drafter.num_bytes / 1e6:.1f} MB{share}")
    return [f"Memory: {listed(told)}."]


def _by_rows(trials: list[Trial]) -> dict[str, list[Trial]]:
    """Lane -> its sweep over total_tokens, fewest rows first."""
    swept = [trial for trial in trials if trial.sweep == "total_tokens"]
    ordered = sorted(swept, key=lambda trial: (trial.lane, trial.num_rows))
    return {lane: list(group) for lane, group in groupby(ordered, key=lambda trial: trial.lane)}


def _sorted_lanes(record: LabRecord) -> dict[str, list[Trial]]:
    return {lane: sorted(trials, key=lambda trial: trial.value) for lane, trials in record.lanes().items()}


def _pooled_tau(trials: list[Trial]) -> float:
    return 1 + sum(t.num_accepted_draft_tokens for t in trials) / sum(t.num_steps for t in trials)


def _named(trial: Trial) -> str:
    return f"{trial.sweep.replace('_', ' ')} {trial.value:g}"


def _template(word: str) -> str:
    return "none" if word == "none" else f"{word}" if word.endswith("'s") else f"that of {word}"
