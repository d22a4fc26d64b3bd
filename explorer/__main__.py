"""The command line: ``python -m explorer COMMAND``. Exit 0; 2 with one line on stderr for a user's mistake."""

from __future__ import annotations

import argparse
import os
import re
import sys
from importlib import import_module
from typing import NoReturn

from explorer.config import prepare_environment
from explorer.errors import ExplorerError
from explorer.insight import visible

# modules of explorer.cli, an underscore for a hyphen
COMMANDS = (
    "fetch",
    "trace",
    "show",
    "export",
    "record",
    "bench",
    "client-bench",
    "diagnose",
    "cost",
    "lab",
    "train",
    "convert",
    "deploy",
    "watch",
    "responses",
    "serve",
)

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
MISTAKE, INTERRUPTED, BROKEN_PIPE = 2, 130, 1  # the last as rich and the Python manual have it


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage block."""

    def error(self, message: str) -> NoReturn:
        """Say what was wrong and where help is, then exit with 2."""
        self.exit(MISTAKE, f"{one_line(message)} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The whole command line; commands import torch only when they run."""
    parser = OneLineParser(
        prog="python -m explorer",
        description="Draft Tree Explorer: runs, records and draws real speculative decoding.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = import_module(f"explorer.cli.{name.replace('-', '_')}")
        command = commands.add_parser(name, help=module.HELP, description=module.HELP, allow_abbrev=False)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    prepare_environment()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a narrow terminal encoding must not end a run
    try:
        args = build_parser().parse_args(arguments)
        code: int = args.run(args)
        if sys.stdout is not None:  # closed by whoever started us
            sys.stdout.flush()
        return code
    except ExplorerError as error:
        print(one_line(str(error)), file=sys.stderr)
        return MISTAKE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has enough; the interpreter must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:  # the terminal or the file behind it; every other file's errors are told by its reader
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        print(f"the output cannot be written: {error.strerror or error}", file=sys.stderr)
        return MISTAKE


def one_line(text: str) -> str:
    """A message on one line; what files and servers say in it reaches no terminal as a control character."""
    return _CONTROLS.sub(lambda match: visible(match[0]), " ".join(text.split()))


if __name__ == "__main__":
    sys.exit(main())
