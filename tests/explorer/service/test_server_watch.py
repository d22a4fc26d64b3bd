"""Another server is read when somebody looks, rarely, and beside what ran here."""

from __future__ import annotations

import pytest

from explorer.errors import SettingError
from explorer.server_figures import BETWEEN, SINCE_START
from explorer.service.server_watch import PAUSE_SECONDS, ServerWatch
from tests.support import server_pages

OWN = b'draft_tree_spec_decode_num_drafts_total{method="eagle2"} 4\n'


class Remote:
    """A server with a clock."""

    def __init__(self) -> None:
        self.now, self.num_reads, self.page = 0.0, 0, server_pages.VLLM

    def fetch(self, url: str) -> str:
        assert url == "http://u/metrics"
        self.num_reads += 1
        if not self.page:
            raise SettingError(f"{url} cannot be read: refused")
        return self.page


def watch(remote: Remote, own: bytes | None = None) -> ServerWatch:
    return ServerWatch("http://u/metrics", None if own is None else lambda: own, remote.fetch, lambda: remote.now)


def test_however_many_look_it_is_read_rarely() -> None:
    remote = Remote()
    looked = watch(remote)
    assert remote.num_reads == 0, "nobody looked yet"
    for _ in range(5):
        assert [table.title for table in looked.tables()] == [SINCE_START]
    assert remote.num_reads == 1
    remote.now += PAUSE_SECONDS
    assert [table.title for table in looked.tables()] == [BETWEEN, SINCE_START]
    assert remote.num_reads == 2


def test_an_error_is_told_and_forgotten_when_it_is_over() -> None:
    remote = Remote()
    looked = watch(remote)
    remote.page = ""
    for _ in range(2):
        with pytest.raises(SettingError, match="refused"):
            looked.tables()
    assert remote.num_reads == 1
    remote.page, remote.now = server_pages.SGLANG, PAUSE_SECONDS
    assert looked.tables()[0].rows[0][0] == "SGLang"


def test_runs_of_this_app_stand_beside_it() -> None:
    rows = watch(Remote(), OWN).tables()[0].rows
    assert [row[:3] for row in rows if row[0] == "this app"] == [["this app", "eagle2", "4"]]
    assert {row[0] for row in watch(Remote(), b"# nothing\n").tables()[0].rows} == {"vLLM"}
