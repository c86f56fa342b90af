"""A TCP proxy that cuts a connection at a chosen statement: before the server gets it, or after it was carried out."""

from __future__ import annotations

import contextlib
import socket
import threading


class CuttingProxy:
    """Forwards to a port of this machine, until a client sends `marker`."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._marker, self._is_delivered, self._left = b"", False, 0
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_at(self, marker: str, *, delivered: bool, times: int = 1) -> None:
        """From now on, a client that sends `marker` loses its connection: before the server gets it, or, if
        `delivered`, instead of the answer."""
        self._marker, self._is_delivered, self._left = marker.encode(), delivered, times

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                cut = threading.Event()
                threading.Thread(target=self._forth, args=(client, server, cut), daemon=True).start()
                threading.Thread(target=self._back, args=(client, server, cut), daemon=True).start()

    def _forth(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 20):
                if self._left and self._marker in data:
                    self._left -= 1
                    self.cuts += 1
                    cut.set()
                    if not self._is_delivered:
                        break
                server.sendall(data)
                if cut.is_set():
                    return  # the answer ends it
        _end(client, server)

    def _back(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 20):
                if cut.is_set():
                    break
                client.sendall(data)
        _end(client, server)


def _end(*sockets: socket.socket) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
