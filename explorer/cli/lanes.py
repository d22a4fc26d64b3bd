"""The lanes of a command that runs several methods: each one's settings, sampling and leave to rest.

A lane is a method, or ``METHOD:LABEL`` where one benchmark holds several settings of the same method.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from explorer.bench_report import AUTOREGRESSIVE, PEERS
from explorer.config import METHOD_NAMES, Sampling, describe
from explorer.errors import SettingError

_LABEL = re.compile(r"[A-Za-z0-9_-]{1,24}")


def method_of(lane: str) -> str:
    """The method that a lane runs."""
    return lane.partition(":")[0]


def read_lanes(text: str, assigned: Mapping[str, str]) -> list[str]:
    """``--methods`` as lanes, plain decoding among them; SettingError for a name or label that cannot be.

    assigned: ``--set``; a labelled lane without a setting of its own would measure its method twice.
    """
    lanes = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    known = (*METHOD_NAMES, *PEERS)
    if unknown := [lane for lane in lanes if method_of(lane) not in known]:
        raise SettingError(f"--methods: unknown {', '.join(unknown)}; allowed: {', '.join(known)}")
    for lane in lanes:
        method, colon, label = lane.partition(":")
        if not colon:
            continue
        if method in (AUTOREGRESSIVE, *PEERS):
            raise SettingError(f"--methods {lane}: {method} has no settings, so it makes one lane only")
        if not _LABEL.fullmatch(label):
            raise SettingError(f"--methods {lane}: a label is 1 to 24 letters, digits, - or _, as in {method}:paper")
        if not any(name.startswith(f"{lane}.") for name in assigned):
            raise SettingError(f"--methods {lane} has no setting of its own: add --set {lane}.NAME=VALUE")
    if AUTOREGRESSIVE not in lanes:
        lanes.insert(0, AUTOREGRESSIVE)  # every speedup and every equality is against it
    return lanes


def settings_of(lane: str, assigned: Mapping[str, str], lanes: Sequence[str] = ()) -> dict[str, str]:
    """Those of ``--set`` that are for this lane: NAME for every lane that has it, LANE.NAME for one, which goes first.

    lanes: all of the command, where labels are allowed. SettingError for a name that no method or lane has.
    """
    from explorer.methods.registry import METHODS

    own = {name: [item.name for item in describe(kind.Settings)] for name, kind in METHODS.items()}
    owners = {*own, *lanes}
    general, chosen = {}, {}
    for name, value in assigned.items():
        owner, dot, setting = name.rpartition(".")
        if dot and owner in owners and setting in ("preset", *own.get(method_of(owner), ())):
            if owner == lane:
                chosen[setting] = value
        elif name == "preset" or any(name in names for names in own.values()):
            if name in ("preset", *own[method_of(lane)]):
                general[name] = value
        else:
            allowed = ", ".join(f"{owner}.{setting}" for owner, names in own.items() for setting in names)
            raise SettingError(f"--set {name}: no method has it; allowed: preset, {allowed}")
    return general | chosen


def drafters_of(lanes: Sequence[str], specs: Sequence[str]) -> dict[str, str]:
    """``--drafter [METHOD=]DIR_OR_ID`` as lane -> source: METHOD's own goes first, the other is for all that need one.

    SettingError for a method that has no lane or needs no drafter, and for two sources of one.
    """
    from explorer.methods.registry import METHODS

    drafting = [lane for lane in lanes if METHODS[method_of(lane)].needs_drafter]
    named: dict[str, str] = {}
    for spec in specs:
        method, sign, source = spec.partition("=")
        if not sign or method not in METHODS:  # a directory's name may hold the sign
            method, source = "", spec
        if method and method not in map(method_of, drafting):
            allowed = ", ".join(dict.fromkeys(map(method_of, drafting))) or "none of these methods"
            raise SettingError(f"--drafter {spec}: {method} takes no drafter here; allowed: {allowed}")
        if method in named:
            raise SettingError(
                f"--drafter: two are given for {method or 'all methods'}; METHOD=DIR_OR_ID tells them apart"
            )
        named[method] = source
    if named and not drafting:
        raise SettingError(f"--drafter: none of {', '.join(lanes)} uses one: leave it out")
    found = {lane: named.get(method_of(lane), named.get("")) for lane in drafting}
    return {lane: source for lane, source in found.items() if source is not None}


def samplings_of(lanes: Sequence[str], sampling: Sampling) -> dict[str, Sampling]:
    """Lane -> its sampling: an acceptance rule is for the methods that have it, the others keep their own."""
    from explorer.methods.registry import METHODS

    has_rule = {lane: sampling.rule in METHODS[method_of(lane)].acceptances for lane in lanes}
    if not any(has_rule.values()):
        raise SettingError(f"none of {', '.join(lanes)} has {sampling.rule} acceptance: leave --acceptance out")
    return {lane: sampling if has_rule[lane] else replace(sampling, acceptance=None) for lane in lanes}


def resting_lanes(lanes: Sequence[str]) -> list[str]:
    """Those that can rest while drafts cost time; SettingError where none can."""
    from explorer.methods.registry import METHODS

    resting = [lane for lane in lanes if METHODS[method_of(lane)].can_rest]
    if not resting:
        able = ", ".join(name for name, kind in METHODS.items() if kind.can_rest)
        raise SettingError(f"--adaptive: none of {', '.join(lanes)} can rest; it is for {able}")
    return resting
