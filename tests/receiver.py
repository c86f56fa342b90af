"""A receiver of requests on loopback: it keeps what it gets, and answers as it is told."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import NamedTuple


class Got(NamedTuple):
    path: str
    headers: dict[str, str]
    """Names in small letters."""
    body: bytes


class Reaction(NamedTuple):
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""


class Receiver:
    """What came so far; `answer` says what each request gets."""

    def __init__(self, answer: Callable[[Got], Reaction]) -> None:
        self.got: list[Got] = []
        self.answer = answer
        self.changed = threading.Condition()
        self.url = ""

    def wait_for(self, count: int, timeout_s: float = 60) -> list[Got]:
        """Waits until so many requests came; the limit means that something hangs."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.got) >= count, timeout_s), f"only {len(self.got)} came"
            return list(self.got)


@contextmanager
def receiving(answer: Callable[[Got], Reaction] = lambda _: Reaction(), port: int = 0) -> Iterator[Receiver]:
    receiver = Receiver(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            got = Got(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            reaction = receiver.answer(got)
            with receiver.changed:
                receiver.got.append(got)
                receiver.changed.notify_all()
            self.send_response(reaction.status)
            for name, value in reaction.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reaction.body)))
            self.end_headers()
            self.wfile.write(reaction.body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
