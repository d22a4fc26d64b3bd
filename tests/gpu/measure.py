"""Everything that needs a GPU in one command, a few minutes: ``python -m tests.gpu.measure --out gpu.json``.

Kernels against the reference in float64, kernel times against the memory's and the matrix units' floors and against
PyTorch's attentions, commits of both caches, whole runs, and passes in Vicuna-7B's shape, eager and as graphs
(``--only`` leaves parts out). Needs torch and triton; runs and passes also transformers, the runs the default target.
Writes JSON after every part and prints it as tables for the READMEs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton

PARTS = ("check", "attention", "commit", "runs", "vicuna")


def main() -> int:
    """Run the parts that are asked for; 1 where a kernel or a run differs from the reference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("gpu.json"), metavar="FILE")
    parser.add_argument("--only", default=",".join(PARTS), metavar="A,B", help=f"of {', '.join(PARTS)}")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("no GPU on this machine: nothing to measure", file=sys.stderr)
        return 2
    report: dict[str, Any] = {"machine": machine()}
    print(json.dumps(report["machine"]), flush=True)
    work: dict[str, Callable[[], Any]] = {
        "check": check,
        "attention": attention,
        "commit": commit,
        "runs": runs,
        "vicuna": vicuna,
    }
    for part in arguments.only.split(","):
        started = time.perf_counter()
        report[part] = work[part]()
        report[f"{part}_seconds"] = round(time.perf_counter() - started, 1)
        arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"\n## {part} ({report[f'{part}_seconds']} s)\n{table(report[part])}", flush=True)
    wrong = [row for part in ("check", "runs") for row in report.get(part, []) if not row["equal"]]
    print(f"\n{len(wrong)} differ from the reference: {wrong}" if wrong else "\nall equal to the reference")
    return int(bool(wrong))


def machine() -> dict[str, Any]:
    """What was measured, when, with what; copy bandwidth counts bytes read and written."""
    from tests.gpu.timing import copy_bandwidth, matrix_rate

    properties = torch.cuda.get_device_properties(0)
    return {
        "device": properties.name,
        "capability": list(torch.cuda.get_device_capability()),
        "date": time.strftime("%Y-%m-%d"),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "copy_tb_per_s": round(copy_bandwidth() / 1e12, 3),
        "bf16_tflop_per_s": round(matrix_rate() / 1e12, 1),
    }


def check() -> list[dict[str, Any]]:
    """The largest difference from the reference in float64 over every case."""
    from kernels.tree_attention.triton import tree_attention
    from tests.gpu.cases import CASES
    from tests.support.attention import TOLERANCE, make_inputs

    rows = []
    for case in CASES:
        inputs = make_inputs(case)
        try:
            got = tree_attention(inputs.query, inputs.key, inputs.value, inputs.mask, 0.1, inputs.layout)
            expected = inputs.reference(0.1)
            worst = float((got.double() - expected).abs().max())
            allowed = TOLERANCE[case.dtype] * (1 + float(expected.abs().max()))
            rows.append({"case": str(case), "difference": worst, "equal": worst <= allowed})
        except (RuntimeError, triton.TritonError) as error:  # one that fails must not hide the others
            rows.append({"case": str(case), "difference": repr(error)[:200], "equal": False})
    return rows


def attention() -> list[dict[str, Any]]:
    """Microseconds of a pass at several prefixes, from memory (not from L2), launches taken out by a graph."""
    from tests.gpu.timing import attention_times

    shapes = ((1024, 1), (1024, 64), (8192, 1), (8192, 16), (8192, 64), (32768, 64))
    return [attention_times(prefix, num_rows) for prefix, num_rows in shapes]


def commit() -> list[dict[str, Any]]:
    """Both commits, Vicuna-7B's shape, a path of five in a tree of 60."""
    from tests.gpu.timing import vicuna_commits

    return vicuna_commits()


def runs() -> list[dict[str, Any]]:
    """Methods on the default target; float32 must equal plain decoding on the reference, bfloat16 may part at ties."""
    from tests.gpu.runs import PROMPTS, WAYS, decode, load

    rows = []
    for dtype, num_tokens in (("float32", 64), ("bfloat16", 128)):
        for prompt in PROMPTS[: 1 if dtype == "float32" else None]:
            expected = decode(load("naive", dtype), "autoregressive", "rows", prompt, num_tokens).output
            for backend, cache, execution in WAYS:
                for name in ("autoregressive", "medusa", "eagle2"):
                    found = decode(load(backend, dtype, execution), name, cache, prompt, num_tokens)
                    figures = {key: round(value, 3) for key, value in vars(found).items() if key != "output"}
                    same = sum(1 for a, b in zip(found.output, expected, strict=True) if a == b)
                    rows.append(
                        {"method": name, "dtype": dtype, "backend": backend, "cache": cache, "execution": execution}
                        | figures
                        | {"same_tokens": same, "equal": found.output == expected or dtype != "float32"}
                    )
    return rows


def vicuna() -> list[dict[str, Any]]:
    """Verify passes and EAGLE-2 drafts in Vicuna-7B's shape, random weights, eager and as graphs."""
    from tests.gpu.vicuna import pass_times

    return pass_times()


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown."""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([_cell(row.get(name)) for name in names] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
