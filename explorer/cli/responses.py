"""``python -m explorer responses``: drafts by request, from the answers of vLLM or SGLang. Works without torch."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console

from explorer.cli.tables import print_table
from explorer.codec import encode
from explorer.errors import SettingError
from explorer.insight import plural
from explorer.served_stats import answers_table, read_answers

HELP = "show how drafts went in each answer of a vLLM or SGLang server"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The answers."""
    parser.add_argument("file", type=Path, metavar="FILE", help="JSON lines: a server's answers, one a line")
    parser.add_argument("--json", action="store_true", help="a JSON line an answer, for scripts")


def run(args: argparse.Namespace) -> int:
    """Print what the answers say; SettingError where none says anything."""
    found, silent = read_answers(args.file)
    if not found:
        raise SettingError(
            f"{args.file} holds no answer with statistics: start vLLM with --per-request-spec-decode-metrics summary, "
            "or ask SGLang's /generate, or its chat with return_spec_tokens_details"
        )
    if args.json:
        for item in found:
            figures = {"tau": item.tau, "acceptance_rate": item.acceptance_rate}
            print(json.dumps(encode(item) | figures, allow_nan=False))
    else:
        print_table(Console(), answers_table(found))
        if silent:
            print(f"{plural(silent, 'answer')} without statistics left out")
    return 0
