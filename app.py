"""The page as a program: ``python app.py``; ``python -m explorer serve`` does the same."""

from __future__ import annotations

import argparse
import sys

from explorer.cli import serve
from explorer.config import prepare_environment
from explorer.errors import ExplorerError


def main() -> int:
    """Parse arguments, serve; 2 with one line on stderr for a user's mistake."""
    parser = argparse.ArgumentParser(prog="app.py", description="Draft Tree Explorer: draws real speculative decoding.")
    serve.add_arguments(parser)
    args = parser.parse_args()
    prepare_environment()
    try:
        return serve.run(args)
    except ExplorerError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
