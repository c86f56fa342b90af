"""A stream of bytes cut into lines, and into server-sent events, wherever its pieces end."""

from __future__ import annotations

from collections.abc import Iterator

LINE_MAX = 64 << 20
"""A line longer than this is left out."""


class Lines:
    """Cuts a stream of bytes into lines, wherever the pieces end."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._is_skipping = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        *whole, rest = piece.split(b"\n")
        for line in whole:
            if not self._is_skipping:
                self._rest += line
                yield bytes(self._rest)
            self._rest.clear()
            self._is_skipping = False
        if len(self._rest) + len(rest) > LINE_MAX:
            self._is_skipping = True
            self._rest.clear()
        if not self._is_skipping:
            self._rest += rest


class ServerSentEvents:
    """The data of server-sent events in a stream of bytes."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        for line in self._lines.feed(piece):
            line = line.rstrip(b"\r")
            if not line:
                if self._data:
                    yield b"\n".join(self._data)
                self._data = []
            elif line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
