"""Figures of the lessons that the laboratory measured: a placeholder's name -> its experiment, what the record says.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable

from explorer.insight import percent
from explorer.lab_findings import batch_speedups, needed_tokens, paying_clause, plain_trial, speedup_of
from explorer.lab_records import LabRecord, Trial
from explorer.theory import pass_work

METHOD = "eagle2"  # the one that the lesson speaks of


def _pass_mb(record: LabRecord) -> str | None:
    """What a pass of one row reads, in megabytes."""
    return None if record.shape is None else f"{pass_work(record.shape, 1, 0).num_bytes / 1e6:.0f}"


def _cost(num_rows: int) -> Callable[[LabRecord], str | None]:
    """A pass over so many rows, in passes of one row."""

    def figure(record: LabRecord) -> str | None:
        needed = needed_tokens(record, 1, num_rows)
        return None if needed is None else f"{needed:.1f}"

    return figure


def _by_rows(record: LabRecord) -> list[Trial]:
    return [trial for trial in record.trials if (trial.method, trial.sweep) == (METHOD, "total_tokens")]


def _tree(choose: Callable[[list[Trial]], Trial], show: Callable[[Trial, Trial], str]) -> Callable[..., str | None]:
    """Something of one tree of the sweep over rows, beside plain decoding."""

    def figure(record: LabRecord) -> str | None:
        plain, trials = plain_trial(record), _by_rows(record)
        return show(choose(trials), plain) if plain and trials else None

    return figure


def _fastest(trials: list[Trial]) -> Trial:
    return max(trials, key=lambda trial: trial.tau / trial.step_ms)


def _largest(trials: list[Trial]) -> Trial:
    return max(trials, key=lambda trial: trial.num_rows)


def _rows(trial: Trial, _plain: Trial) -> str:
    return str(trial.num_rows)


def _tau(trial: Trial, _plain: Trial) -> str:
    return f"{trial.tau:.2f}"


def _speedup(trial: Trial, plain: Trial) -> str:
    return f"{speedup_of(trial, plain):.2f}"


def _own(record: LabRecord) -> list[Trial]:
    return [trial for trial in record.trials if trial.method == METHOD]


def _batch(show: Callable[[LabRecord, Trial, list[int]], str | None]) -> Callable[[LabRecord], str | None]:
    """Something of the method's tree in batches of the measured sizes, the smallest first."""

    def figure(record: LabRecord) -> str | None:
        trials, sizes = _own(record), sorted({item.num_sequences for item in record.passes})
        return show(record, trials[0], sizes) if trials and sizes else None

    return figure


def _needed(place: int) -> Callable[[LabRecord, Trial, list[int]], str | None]:
    def show(record: LabRecord, trial: Trial, sizes: list[int]) -> str | None:
        needed = needed_tokens(record, sizes[place], trial.num_rows)
        return None if needed is None else f"{needed:.1f}"

    return show


def _temperature(show: Callable[[list[Trial]], str]) -> Callable[[LabRecord], str | None]:
    """Something of the method's trials, the coldest first."""

    def figure(record: LabRecord) -> str | None:
        trials = sorted(_own(record), key=lambda trial: trial.value)
        return show(trials) if trials else None

    return figure


def _agreement(record: LabRecord) -> str | None:
    """How often the target that was changed most chooses the token it chose before."""
    return percent(min(item.agreement for item in record.changed)) if record.changed else None


def _kept(record: LabRecord) -> str | None:
    """Of what drafts gained, the share that the most noise left."""
    trials = sorted(_own(record), key=lambda trial: trial.value)
    if not trials or trials[0].tau <= 1:
        return None
    return percent((trials[-1].tau - 1) / (trials[0].tau - 1))


LAB_FIGURES: dict[str, tuple[str, Callable[[LabRecord], str | None]]] = {
    "lab_pass_mb": ("tree", _pass_mb),
    "lab_cost_8": ("tree", _cost(8)),
    "lab_cost_64": ("tree", _cost(64)),
    "lab_best_rows": ("tree", _tree(_fastest, _rows)),
    "lab_best_tau": ("tree", _tree(_fastest, _tau)),
    "lab_best_speedup": ("tree", _tree(_fastest, _speedup)),
    "lab_many_rows": ("tree", _tree(_largest, _rows)),
    "lab_many_tau": ("tree", _tree(_largest, _tau)),
    "lab_many_speedup": ("tree", _tree(_largest, _speedup)),
    "lab_batch_rows": ("batch", _batch(lambda _record, trial, _sizes: str(trial.num_rows))),
    "lab_batch_tau": ("batch", _batch(lambda _record, trial, _sizes: f"{trial.tau:.2f}")),
    "lab_batch_most": ("batch", _batch(lambda _record, _trial, sizes: str(sizes[-1]))),
    "lab_needed_alone": ("batch", _batch(_needed(0))),
    "lab_needed_crowd": ("batch", _batch(_needed(-1))),
    "lab_batch_verdict": ("batch", _batch(lambda record, trial, _sizes: paying_clause(batch_speedups(record, trial)))),
    "lab_hot": ("temperature", _temperature(lambda trials: f"{trials[-1].value:g}")),
    "lab_hot_tau": ("temperature", _temperature(lambda trials: f"{trials[-1].tau:.2f}")),
    "lab_cold_tau": ("temperature", _temperature(lambda trials: f"{trials[0].tau:.2f}")),
    "lab_agreement": ("desync", _agreement),
    "lab_kept": ("desync", _kept),
}
