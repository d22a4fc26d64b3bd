"""A server that sends what it is told to, bytes and pauses: for answers that no HTTP library would write."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Answer = Callable[[socket.socket], None]
EVENT_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@contextmanager
def raw_server(answer: Answer) -> Iterator[str]:
    """Its address while it runs; every connection is read once, answered, and closed."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()
    served: list[tuple[socket.socket, threading.Thread]] = []

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):  # a client that has enough closes first
            _read_request(connection)
            answer(connection)

    def accept() -> None:
        while not over.is_set():
            connection, _ = listener.accept()
            served.append((connection, threading.Thread(target=serve, args=(connection,), daemon=True)))
            served[-1][1].start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        with suppress(OSError):
            socket.create_connection(listener.getsockname()).close()  # wakes it up
        thread.join()
        listener.close()
        for connection, serving in served:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # ends what still sends or waits
            serving.join()


def _read_request(connection: socket.socket) -> None:
    """All of it: a connection closed over what was not read is reset, and takes the answer with it."""
    with connection.makefile("rb") as file:
        length = 0
        while (line := file.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        file.read(length)


def sends(*pieces: bytes) -> Answer:
    """An answer of these bytes."""
    return lambda connection: [connection.sendall(piece) for piece in pieces] and None
