"""Tables in the terminal hold text: no markup of theirs, no control characters."""

from __future__ import annotations

import io

from rich.console import Console

from explorer.cli.tables import print_table
from explorer.tables import Table


def test_cells_are_text() -> None:
    out = io.StringIO()
    table = Table("A [red]title", ["[bold]name", "x"], [["\x1b[31mred\x1b[0m", "[/b]"]], "A note")
    print_table(Console(file=out, width=80), table)
    text = out.getvalue()
    assert "\x1b" not in text
    assert "A [red]title" in text and "[bold]name" in text and "[/b]" in text and "A note" in text
    bare = io.StringIO()
    print_table(Console(file=bare, width=80), table, has_note=False)
    assert "A note" not in bare.getvalue()
