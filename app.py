"""The page as a program: ``python app.py`` takes the arguments of ``python -m explorer serve``."""

from __future__ import annotations

import sys

from explorer.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["serve", *sys.argv[1:]]))
