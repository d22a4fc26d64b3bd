"""``python -m explorer train``: the recipes that made the shipped drafters."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from explorer.config import DEFAULT_TARGET, parse_assignments
from explorer.errors import SettingError

if TYPE_CHECKING:
    from explorer.checkpoints.target import LoadedTarget
    from explorer.training.plan import Plan

Options = TypeVar("Options")

HELP = "make drafters for a target: its own text, Medusa heads, EAGLE layers, a draft model, their acceptance"
STAGES = ("generate", "gather", "features", "medusa", "medusa2", "eagle", "eagle3", "draft", "profile", "ablate", "all")
INTERRUPTED = 130
# Heads are shallow and start near the identity, so they bear twice the step (axolotl's Medusa recipe: 2e-3); trained on
# together with the target they get less (its self-distillation: 1e-4 for the adapter, four times that for the heads).
LEARNING_RATES = {"medusa": 2e-3, "medusa2": 4e-4, "eagle": 1e-3, "eagle3": 1e-3}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Stages, folders and sizes; a stage that is run again goes on where it stopped."""
    parser.description = f"{HELP}. Every stage resumes where it stopped when the same command is run again."
    parser.add_argument("stage", choices=STAGES, help="what to make; the drafters compute missing features first")
    parser.add_argument("--work", type=Path, required=True, help="folder for text, features and checkpoints")
    parser.add_argument("--out", type=Path, help="folder of the drafters' folders (default: --work/drafters)")
    parser.add_argument("--target", default=DEFAULT_TARGET, help="smollm2, a directory or a hub id")
    parser.add_argument("--dtype", default="auto", help="of the target and of training: auto, float32 or bfloat16")
    parser.add_argument("--text", type=Path, action="append", default=[], help="text .npz or folder (repeatable)")
    parser.add_argument("--text-note", help="a sentence for the card on where that text comes from")
    parser.add_argument("--trees", type=Path, help="preset file to put the grown Medusa trees into")
    parser.add_argument("--num-tokens", type=int, default=1_000_000, help="generate: answer tokens to write")
    parser.add_argument("--openings", type=Path, help="generate: file with first words of user turns, a line each")
    parser.add_argument("--max-tokens", type=int, help="train on about this many tokens (default: all)")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument(
        "--learning-rate",
        type=float,
        help="default: 0.002 for medusa, 0.0004 for medusa2, 0.001 for eagle and eagle3",
    )
    parser.add_argument("--start-from", type=Path, help="a drafter folder to go on training; medusa2: finished heads")
    parser.add_argument("--draft-vocab", type=int, default=8192, help="eagle, eagle3: tokens the drafter may propose")
    parser.add_argument(
        "--feature-layers",
        metavar="A,B,C",
        help="features, eagle3: decoder layers whose inputs EAGLE-3 reads (default of N layers: 2, N/2 and N-3)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of a drafter's recipe",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="processor threads (default: torch's choice)")


def run(args: argparse.Namespace) -> int:
    """Run the stages asked for; an interrupt leaves only whole files behind."""
    _check(args)
    import torch

    from explorer.checkpoints.target import load_target

    if args.threads:
        torch.set_num_threads(args.threads)
    target = load_target(args.target, dtype=args.dtype)
    stages = ("generate", "medusa", "eagle", "draft", "profile") if args.stage == "all" else (args.stage,)
    try:
        for stage in stages:
            print(f"{stage}: {_run_stage(stage, args, target)}")
    except KeyboardInterrupt:
        print("interrupted: run the same command again to go on from the last checkpoint", file=sys.stderr)
        return INTERRUPTED
    return 0


def _check(args: argparse.Namespace) -> None:
    for name in ("num_tokens", "max_tokens", "epochs", "draft_vocab", "threads"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise SettingError(f"--{name.replace('_', '-')} is {value}; give a whole number of at least 1")
    if args.learning_rate is not None and not 0 < args.learning_rate < 1:
        raise SettingError(f"--learning-rate is {args.learning_rate}; give a number between 0 and 1, such as 0.001")
    _layers(args.feature_layers)
    missing = [str(path) for path in args.text if not path.exists()]
    if missing:
        raise SettingError(f"no such text: {', '.join(missing)}; give .npz files or folders of them")


def _run_stage(stage: str, args: argparse.Namespace, target: LoadedTarget) -> Path:
    from explorer.training.gather import gather
    from explorer.training.plan import feature_layers, prepare
    from explorer.training.run import decoding_target, profile_drafters

    plan = _plan(stage, args)
    if stage == "generate":
        from explorer.training.generate import GenerateOptions, generate
        from explorer.training.openings import read_openings

        openings = read_openings(args.openings) if args.openings else ()
        options = GenerateOptions(num_tokens=args.num_tokens, seed=args.seed, openings=openings)
        return generate(target, args.work / "text", options)
    if stage == "gather":
        return gather(plan.text_paths, plan.work / "corpus", args.seed)
    if stage == "features":
        prepare(plan, target, feature_layers(plan, target))
        return plan.work / "features"
    if stage == "profile":
        return profile_drafters(plan, decoding_target(args.target))
    if stage == "ablate":
        from explorer.training.ablation import ablate

        return ablate(plan, target, decoding_target(args.target))
    return _train(stage, plan, args, target)


def _train(stage: str, plan: Plan, args: argparse.Namespace, target: LoadedTarget) -> Path:
    """Run one drafter's recipe."""
    from explorer.training import run as recipes
    from explorer.training.draft_model import DraftModelOptions
    from explorer.training.eagle import EagleOptions
    from explorer.training.eagle3 import Eagle3Options
    from explorer.training.medusa import MedusaOptions
    from explorer.training.medusa2 import Medusa2Options

    if stage == "medusa":
        return recipes.train_medusa(plan, target, options_of(MedusaOptions, args.set), args.trees)
    if stage == "medusa2":
        return recipes.train_medusa2(plan, target, options_of(Medusa2Options, args.set))
    if stage == "draft":
        return recipes.train_draft_model(plan, target, options_of(DraftModelOptions, args.set))
    if stage == "eagle3":
        return recipes.train_eagle3(plan, target, options_of(Eagle3Options, args.set))
    return recipes.train_eagle(plan, target, options_of(EagleOptions, args.set))


def _plan(stage: str, args: argparse.Namespace) -> Plan:
    from explorer.training.loop import LoopOptions
    from explorer.training.plan import Plan

    rate = args.learning_rate or LEARNING_RATES.get(stage, LoopOptions.learning_rate)
    return Plan(
        work=args.work,
        out=args.out or args.work / "drafters",
        text=tuple(args.text),
        text_note=args.text_note or Plan.text_note,
        command="python -m explorer " + shlex.join(["train", stage, *_shown(args)]),
        max_tokens=args.max_tokens,
        draft_vocab_size=args.draft_vocab,
        start_from=args.start_from,
        feature_layers=_layers(args.feature_layers),
        loop=LoopOptions(args.epochs, learning_rate=rate, seed=args.seed, is_bfloat16=args.dtype == "bfloat16"),
    )


def _layers(text: str | None) -> tuple[int, ...]:
    """``--feature-layers 2,15,27``; SettingError for anything but whole numbers."""
    words = text.split(",") if text else []
    if not all(word.strip().isdecimal() for word in words):
        raise SettingError(f"--feature-layers is {text!r}; give whole numbers with commas between, such as 2,15,27")
    return tuple(map(int, words))


def options_of(kind: type[Options], pairs: list[str]) -> Options:
    """A recipe's options with those of ``--set`` changed; SettingError where one is unknown or unreadable."""
    known: dict[str, Any] = {item.name: item.default for item in fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for name, text in parse_assignments(pairs).items():
        if name not in known:
            raise SettingError(f"--set {name}: unknown; this recipe has {', '.join(known)}")
        try:
            values[name] = type(known[name])(text)
        except ValueError as error:
            raise SettingError(f"--set {name}={text}: give a number like {known[name]}") from error
    return kind(**values)


def _shown(args: argparse.Namespace) -> list[str]:
    """The options that shape the result, without this machine's paths: what a card repeats."""
    shown = ["--work", "WORK"]
    for name in ("target", "dtype", "epochs", "seed", "learning_rate", "max_tokens", "draft_vocab", "feature_layers"):
        value = getattr(args, name)
        if name == "target" and Path(value).expanduser().is_dir():
            value = Path(value).resolve().name
        shown += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []
    if args.start_from is not None:
        shown += ["--start-from", args.start_from.name]
    for pair in args.set:
        shown += ["--set", pair]
    for path in args.text:
        shown += ["--text", path.name]
    return shown
