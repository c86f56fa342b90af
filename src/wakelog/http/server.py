"""Starting and stopping a server.

uvicorn listens and speaks HTTP; the application does everything else. Stopping is graceful: no new connections are
accepted, tails and long waits end at once, running requests finish, then the stores are closed.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import uvicorn

from wakelog.errors import UnavailableError
from wakelog.http.app import App
from wakelog.http.protocol import Protocol
from wakelog.http.state import Server, Settings

PORT = 8425
GRACE_S = 30
IDLE_S = 75
_log = logging.getLogger("wakelog.http")
_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Uvicorn(uvicorn.Server):
    """uvicorn, with a word to those who wait before it waits for them."""

    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._server = server

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._server.stop()
        await super().shutdown(sockets)
        _log.info("stopped")  # here, because uvicorn then raises the signal again that it was stopped by


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(1024)
    except OSError as exc:
        sock.close()
        raise UnavailableError(
            f"cannot listen on {host} port {port}: {exc.strerror}", kind="port-taken", hint="choose another --port"
        ) from exc
    return sock


def listen_near(host: str, port: int) -> socket.socket:
    """The same, at any free port when this one is taken."""
    try:
        return listen(host, port)
    except UnavailableError:
        return listen(host, 0)


def run(server: Server, sock: socket.socket, *, tls: tuple[str, str] | None = None) -> None:
    """Serves until it is told to stop by SIGTERM or SIGINT. `tls` are the files of a certificate and its key."""
    _log.info("started", extra={"port": sock.getsockname()[1]})
    _uvicorn(server, tls).run([sock])


def _uvicorn(server: Server, tls: tuple[str, str] | None = None) -> _Uvicorn:
    config = uvicorn_config(
        App(server),
        http=Protocol,
        timeout_keep_alive=IDLE_S,
        ssl_certfile=tls[0] if tls else None,
        ssl_keyfile=(tls[1] or None) if tls else None,
    )
    return _Uvicorn(config, server)


def uvicorn_config(app: Any, **own: Any) -> uvicorn.Config:
    """What our servers have in common: log lines of our own, and no header that tells about this machine."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=GRACE_S,
        **own,
    )


@contextlib.contextmanager
def in_a_thread(server: uvicorn.Server, sock: socket.socket, name: str) -> Iterator[None]:
    """Serves from a thread of this process until the end of the block, and closes the socket then."""
    thread = threading.Thread(target=server.run, args=([sock],), name=name, daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise UnavailableError(f"{name} did not start", kind="server-failed")
            thread.join(0.005)
        yield
    finally:
        server.should_exit = True
        thread.join(GRACE_S)
        sock.close()


@contextlib.contextmanager
def serving(settings: Settings, *, host: str = "127.0.0.1", port: int = 0, **options: Any) -> Iterator[RunningServer]:
    """A server in a thread of this process, for notebooks and tests."""
    server = Server(settings, **options)
    sock = listen(host, port)
    with in_a_thread(_uvicorn(server), sock, "wakelog serve"):
        yield RunningServer(server, f"http://{host}:{sock.getsockname()[1]}")


class RunningServer(msgspec.Struct, frozen=True):
    """A server that answers at `url`; `key` may do everything."""

    server: Server
    url: str

    @property
    def key(self) -> str:
        return self.server.launch_token


class JsonLines(logging.Formatter):
    """A log record as one line of JSON; what was passed as `extra` are fields of it."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "at": int(record.created * 1e6),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _RECORD}
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields, enc_hook=str).decode()


class PlainLines(logging.Formatter):
    """The same for people."""

    def format(self, record: logging.LogRecord) -> str:
        extra = {name: value for name, value in vars(record).items() if name not in _RECORD}
        line = f"{self.formatTime(record, '%H:%M:%S')} {record.getMessage()}"
        if record.levelno > logging.INFO:
            line = f"{line} [{record.levelname.lower()}]"
        line += "".join(f" {name}={value}" for name, value in extra.items())
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def log_to_stderr(*, as_json: bool, verbose: bool = True) -> None:
    """Sends what the server has to say to stderr, a line each."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else PlainLines())
    for name, level in (("wakelog.http", logging.INFO if verbose else logging.WARNING), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level)
