"""Other packages' decoding of one target: ``python worker.py job.json``, a prompt a line on stdin, answers on stdout.

Runs in the environment that tests/peers/measure.py makes and imports nothing of this project. The job holds ``target``
(a folder), ``heads`` (Medusa's published layout), ``tree`` (paths of ranks), ``stops``, ``max_new_tokens``,
``threads`` and ``lanes`` (name -> settings). A prompt is ``{"ids": [...], "lanes": [...]}``; each lane answers with one
line as soon as it is done. As a user gets them: float32, greedy, every other option the package's own default.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

NUM_WARM_UP = 4  # tokens
Decode = Callable[[list[int], int], dict[str, Any]]  # prompt and number of tokens -> output, and what it counts


def main() -> int:
    """Load everything, say so, then answer until stdin ends."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a package prints is no answer
    warnings.simplefilter("ignore", FutureWarning)  # once a layer and pass
    lanes = build(job)
    print(json.dumps({"ready": list(lanes)}), file=answers, flush=True)
    serve(lanes, job["max_new_tokens"], sys.stdin, answers)
    return 0


def serve(lanes: Mapping[str, Decode], max_new_tokens: int, prompts: Iterable[str], answers: TextIO) -> None:
    """Each lane warmed up; the prompt pass is what one token takes, ``total_ms`` includes it."""
    for line in prompts:
        prompt = json.loads(line)
        for name in prompt["lanes"]:
            lanes[name](prompt["ids"], NUM_WARM_UP)
            prefill_ms, _ = _timed(lanes[name], prompt["ids"], 1)
            total_ms, found = _timed(lanes[name], prompt["ids"], max_new_tokens)
            answer = {"lane": name, "prefill_ms": prefill_ms, "total_ms": total_ms} | found
            print(json.dumps(answer), file=answers, flush=True)


def _timed(decode: Decode, ids: list[int], num_tokens: int) -> tuple[float, dict[str, Any]]:
    started = time.perf_counter()
    found = decode(ids, num_tokens)
    return (time.perf_counter() - started) * 1e3, found


def build(job: Mapping[str, Any]) -> dict[str, Decode]:
    """The job's lanes over one model; a lane is MAKER or MAKER:LABEL."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(job["threads"])
    model = AutoModelForCausalLM.from_pretrained(job["target"], dtype=torch.float32).eval().requires_grad_(False)
    makers = {
        "generate": _generate,
        "economize": _economize,
        "economize_lookup": _economize_lookup,
        "economize_medusa": _economize_medusa,
        "flashspec_ngram": _flashspec_ngram,
    }
    return {name: makers[name.partition(":")[0]](model, job, own) for name, own in job["lanes"].items()}


def _generate(model: Any, job: Mapping[str, Any], _settings: Mapping[str, Any]) -> Decode:
    import torch

    def decode(ids: list[int], num_tokens: int) -> dict[str, Any]:
        inputs = torch.tensor([ids])
        options = {"do_sample": False, "max_new_tokens": num_tokens, "eos_token_id": job["stops"]}
        written = model.generate(inputs, attention_mask=torch.ones_like(inputs), **options)
        return _counted(written[0, len(ids) :].tolist())

    return decode


def _economize(model: Any, job: Mapping[str, Any], _settings: Mapping[str, Any]) -> Decode:
    import economize

    return _economized(economize.apply(model), job)


def _economize_lookup(model: Any, job: Mapping[str, Any], settings: Mapping[str, Any]) -> Decode:
    import economize
    from economize.techniques.lookup import LookupConfig

    cycle = economize.DecodeConfig(cycle_length=settings["gamma"] + 1)
    return _economized(economize.apply(model, LookupConfig(max_ngram=settings["ngram"]), decoding=cycle), job)


def _economize_medusa(model: Any, job: Mapping[str, Any], _settings: Mapping[str, Any]) -> Decode:
    import dataclasses

    import economize
    from economize.core.serialization import attach, read_checkpoint

    found = read_checkpoint(job["heads"])
    (config,) = found.configs  # it is read as a chain of the heads' first guesses
    tree = tuple(map(tuple, job["tree"]))
    cycle = economize.DecodeConfig(cycle_length=max(map(len, tree)) + 1)
    found = dataclasses.replace(found, configs=[dataclasses.replace(config, tree=tree)])
    return _economized(attach(model, found, cycle), job)


def _economized(model: Any, job: Mapping[str, Any]) -> Decode:
    import torch
    from economize.decoding import CostKind

    def decode(ids: list[int], num_tokens: int) -> dict[str, Any]:
        result = model.decode(torch.tensor(ids), num_tokens, stop=job["stops"])
        num_passes = sum(event.kind == CostKind.EXACT for event in result.cost.events)
        drafted, accepted = (sum(column) for column in zip((0, 0), *result.acceptance, strict=True))
        return _counted(result.tokens.tolist(), num_passes - 1, drafted, accepted)

    return decode


def _flashspec_ngram(model: Any, job: Mapping[str, Any], settings: Mapping[str, Any]) -> Decode:
    import torch
    from flashspec import BanditConfig, FlashSpecConfig, SamplingConfig, SpeculativeEngine
    from flashspec.engine.ngram import NgramDrafter
    from flashspec.engine.verifier import TargetModel

    config = FlashSpecConfig(
        device="cpu",
        dtype="float32",
        bandit=BanditConfig(n_arms=1),
        sampling=SamplingConfig(gamma=settings["gamma"], temperature=0.0),
    )
    target = TargetModel(job["target"], torch.device("cpu"), torch.float32, model=model)
    engine = SpeculativeEngine(config, [NgramDrafter(max_ngram=settings["ngram"])], target)

    def decode(ids: list[int], num_tokens: int) -> dict[str, Any]:
        result = engine.generate(torch.tensor([ids]), max_new_tokens=num_tokens, eos_token_ids=job["stops"])
        output = [token for token in result.output_ids[0].tolist() if token >= 0]  # the rest of a row is -1
        steps = result.arm_steps  # the first one comes after a prompt pass without its last token
        return _counted(output, len(steps), sum(s.proposed for s in steps), sum(s.accepted for s in steps))

    return decode


def _counted(output: list[int], num_steps: int | None = None, drafted: int = 0, accepted: int = 0) -> dict[str, Any]:
    """num_steps: passes of the target after the prompt's; None for one a token."""
    steps = len(output) - 1 if num_steps is None else num_steps
    counts = {"num_steps": steps, "num_draft_tokens": drafted, "num_accepted_draft_tokens": accepted}
    return {"output": output} | counts


if __name__ == "__main__":
    sys.exit(main())
