"""Addresses from the command line are checked, and a page is read within its limits."""

from __future__ import annotations

import pytest

from explorer.endpoints import check_url, fetch_page, metrics_address
from explorer.errors import SettingError
from tests.support.chat_server import Behaviour, chat_server


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/metrics"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/metrics"),
        ("https://host/v1", "https://host/metrics"),
        ("https://host/api/v1/metrics", "https://host/api/v1/metrics"),
        (" http://[::1]:8000/metrics ", "http://[::1]:8000/metrics"),
    ],
)
def test_addresses(text: str, url: str) -> None:
    assert metrics_address("--url", text) == url


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "give http"),
        ("127.0.0.1:8000", "give http"),
        ("file:///etc/passwd", "give http"),
        ("ftp://host", "give http"),
        ("http://", "give http"),
        ("http://host:99999", "give http"),
        ("http://ho st", "give http"),
        ("http://host/\x00", "give http"),
        ("http://me:secret@host", "leave name and password out"),
        ("http://host/metrics?x=1", "leave what follows"),
    ],
)
def test_what_is_no_address_is_refused(text: str, says: str) -> None:
    with pytest.raises(SettingError, match=says) as caught:
        check_url("--url", text)
    assert "secret" not in str(caught.value)


def test_pages_are_read_within_limits() -> None:
    with chat_server(Behaviour(pages={"/metrics": "x 1\n", "/large": "x" * 5000})) as url:
        assert fetch_page(f"{url}/metrics") == "x 1\n"
        with pytest.raises(SettingError, match="answers 404"):
            fetch_page(f"{url}/none")
        with pytest.raises(SettingError, match="larger than"):
            fetch_page(f"{url}/large", max_bytes=4000)
    with pytest.raises(SettingError, match="cannot be read") as caught:
        fetch_page(f"{url}/metrics", seconds=2)
    assert "\n" not in str(caught.value)
