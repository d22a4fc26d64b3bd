"""Tables in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from explorer.insight import visible
from explorer.tables import Table


def print_table(console: Console, table: Table, *, has_note: bool = True) -> None:
    """A table as text: nothing in it is markup, and no control character reaches the terminal."""
    shown = RichTable(title=Text(visible(table.title)), title_justify="left", show_edge=False)
    for name in table.head:
        shown.add_column(Text(visible(name)), overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(visible(cell)) for cell in row))
    console.print(shown)
    if has_note and table.note:
        console.print(Text(table.note), style="dim")
