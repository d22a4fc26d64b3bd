"""Addresses of other servers that an operator names, and one bounded reading of a page there."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import Future, TimeoutError
from urllib.parse import urlsplit

import httpx

from explorer.errors import SettingError

MAX_PAGE_BYTES = 16 * 2**20
PAGE_SECONDS = 10.0
MAX_SHOWN = 120  # characters of what a server says in a message of ours
GRACE_SECONDS = 0.5  # after which a page that is late is not waited for, whatever its connection does
AS_IT_IS = {"Accept-Encoding": "identity"}  # packed, a small answer may unpack to more than the memory holds
_SECRET = re.compile(r"[^/]*@|[?#].*")


def check_url(option: str, text: str) -> str:
    """The address without a final slash; SettingError unless it is http or https, with a host and no password."""
    try:
        parts = urlsplit(text.strip())
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        httpx.URL(text.strip()).host.encode("idna")  # as connecting does: labels too long, or of no language
    except (ValueError, httpx.InvalidURL):
        is_good = False
    if not is_good or not text.isprintable() or any(char.isspace() for char in text.strip()):
        shown = _SECRET.sub("...", text)
        raise SettingError(f"{option} {shown!r}: give http:// or https:// and a host, as in http://127.0.0.1:8000")
    if parts.username is not None or parts.password is not None:
        raise SettingError(f"{option}: leave name and password out of the address, it is shown and written down")
    if parts.query or parts.fragment:
        raise SettingError(f"{option}: leave what follows ? or # out of the address")
    return text.strip().rstrip("/")


def metrics_address(option: str, text: str) -> str:
    """The address of a server's metrics: ``/metrics`` where only the server, or its API's ``/v1``, is named."""
    url = check_url(option, text).removesuffix("/v1")
    return url if urlsplit(url).path.strip("/") else f"{url}/metrics"


def fetch_page(url: str, seconds: float = PAGE_SECONDS, max_bytes: int = MAX_PAGE_BYTES) -> str:
    """A page's text within limits of time, for all of it, and size; redirects are not followed.

    Raises SettingError, a line that says what went wrong.
    """
    found: Future[str] = Future()

    def read() -> None:
        try:
            found.set_result(_read_page(url, seconds, max_bytes))
        except (SettingError, OSError, ValueError) as error:  # raised where it is waited for
            found.set_exception(error)

    # In a thread, for a server that sends its headers byte by byte never runs into a limit of time of httpx.
    threading.Thread(target=read, daemon=True).start()
    try:
        return found.result(seconds + GRACE_SECONDS)
    except TimeoutError as error:
        raise SettingError(f"{url} cannot be read: it does not answer in time") from error


def _read_page(url: str, seconds: float, max_bytes: int) -> str:
    until = time.monotonic() + seconds
    data = b""
    try:
        with (
            httpx.Client(timeout=seconds, follow_redirects=False) as client,
            client.stream("GET", url, headers=AS_IT_IS) as answer,
        ):
            if answer.status_code != httpx.codes.OK:
                raise SettingError(f"{url} answers {status(answer)}: name a /metrics page")
            check_plain(answer, url)
            for piece in answer.iter_raw():
                data += piece
                if len(data) > max_bytes:
                    raise SettingError(f"{url} is larger than {max_bytes // 2**20} MiB: that is no metrics page")
                if time.monotonic() > until:
                    raise SettingError(f"{url} is still sending after {seconds:g} s: no metrics page takes so long")
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
        raise SettingError(f"{url} cannot be read: {reason(error)}") from error
    return data.decode("utf-8", errors="replace")


def status(answer: httpx.Response) -> str:
    """The status of an answer, its words cut to what is shown."""
    return f"{answer.status_code} {answer.reason_phrase[:MAX_SHOWN]}".rstrip()


def check_plain(answer: httpx.Response, url: str) -> None:
    """Refuse an answer that is packed though it was asked for as it is."""
    if (packed := answer.headers.get("Content-Encoding", "identity")) != "identity":
        raise SettingError(f"{url} sends its answer packed ({packed[:MAX_SHOWN]}), which was not asked for")


def reason(error: Exception) -> str:
    """What an HTTP error says, in one short line; its class where it says nothing."""
    if isinstance(error, httpx.TimeoutException):
        return "it does not answer in time"
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
