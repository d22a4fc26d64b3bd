"""The page's outputs as one value."""

from __future__ import annotations

import json

from explorer.ui.screen import KEEP, Screen, busy, figure_update, idle


def test_nothing_changes_unless_it_is_named() -> None:
    assert set(map(id, Screen())) == {id(KEEP)}


def test_busy_and_idle_are_opposites() -> None:
    for screen, is_busy in ((busy("decoding", 0.5), True), (idle("done", "done"), False)):
        assert screen.run_button["interactive"] is not is_busy
        assert screen.stop_button["interactive"] is is_busy
        assert screen.picker["interactive"] is not is_busy
    assert json.loads(busy("decoding", 0.5).status) == {"kind": "busy", "text": "decoding", "fraction": 0.5}


def test_every_figure_update_is_a_new_one() -> None:
    assert figure_update("figure") == figure_update("figure")
    assert figure_update("figure") is not figure_update("figure")
