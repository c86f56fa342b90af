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
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Uvicorn(uvicorn.Server):
    """uvicorn, which ends tails and waits before it waits for running requests."""

    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._server = server

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._server.stop()
        await super().shutdown(sockets)
        _log.info("stopped")  # logged here, because uvicorn next re-raises the signal that stopped it


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Port 0 means any free port."""
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


def url_of(host: str, sock: socket.socket, scheme: str = "http") -> str:
    """The URL of a listening socket."""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{sock.getsockname()[1]}"


def listen_near(host: str, port: int) -> socket.socket:
    """Like `listen`, but at any free port if this one is taken."""
    try:
        return listen(host, port)
    except UnavailableError:
        return listen(host, 0)


def run(server: Server, sock: socket.socket, *, tls: tuple[str, str] | None = None) -> None:
    """Serves until SIGTERM or SIGINT. `tls` are the files of a certificate and its key."""
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
    """The settings that our servers share: our own log lines, and no headers that reveal the machine."""
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
def run_in_thread(server: uvicorn.Server, sock: socket.socket, name: str) -> Iterator[None]:
    """Serves from a thread until the block ends, then closes the socket."""
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
    with run_in_thread(_uvicorn(server), sock, "wakelog serve"):
        yield RunningServer(server, url_of(host, sock))


class RunningServer(msgspec.Struct, frozen=True):
    """A server at `url`; `key` has every right."""

    server: Server
    url: str

    @property
    def key(self) -> str:
        return self.server.launch_token


class JsonLines(logging.Formatter):
    """A log record as one line of JSON, with `extra` as further fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "at": int(record.created * 1e6),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields, enc_hook=str).decode()


class PlainLines(logging.Formatter):
    """A log record as one line of text."""

    def format(self, record: logging.LogRecord) -> str:
        extra = {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
        line = f"{self.formatTime(record, '%H:%M:%S')} {record.getMessage()}"
        if record.levelno > logging.INFO:
            line = f"{line} [{record.levelname.lower()}]"
        line += "".join(f" {name}={value}" for name, value in extra.items())
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def log_to_stderr(*, as_json: bool, verbose: bool = True) -> None:
    """Sends the server's log to stderr, one line per record."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else PlainLines())
    for name, level in (("wakelog.http", logging.INFO if verbose else logging.WARNING), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level)
