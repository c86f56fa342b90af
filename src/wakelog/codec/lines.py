"""A stream of bytes cut into lines, and into server-sent events, wherever its pieces end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

LINE_MAX = 64 << 20
"""A line or an event longer than this is passed on but not read."""
TOO_LONG = f"a message of more than {LINE_MAX:,} bytes"


class Lines:
    """Cuts a stream of bytes into lines, wherever the pieces end. `too_long` is called for each that is not read."""

    def __init__(self, too_long: Callable[[], None]) -> None:
        self._rest = bytearray()
        self._is_skipping = False
        self._too_long = too_long

    def feed(self, piece: bytes) -> Iterator[bytes]:
        *whole, rest = piece.split(b"\n")
        for line in whole:
            self._take(line)
            if not self._is_skipping:
                yield bytes(self._rest)
            self._rest.clear()
            self._is_skipping = False
        self._take(rest)

    def _take(self, part: bytes) -> None:
        if self._is_skipping:
            return
        if len(self._rest) + len(part) > LINE_MAX:
            self._is_skipping = True
            self._rest.clear()
            self._too_long()
        else:
            self._rest += part


class ServerSentEvents:
    """The data of server-sent events in a stream of bytes. `too_long` is called for each that is not read: no part
    of it is handed on, since a part of a message is another message."""

    def __init__(self, too_long: Callable[[], None]) -> None:
        self._lines = Lines(self._skip)
        self._data: list[bytes] = []
        self._size = 0
        self._is_skipping = False
        self._too_long = too_long

    def feed(self, piece: bytes) -> Iterator[bytes]:
        for line in self._lines.feed(piece):
            line = line.rstrip(b"\r")
            if not line:
                if self._data:
                    yield b"\n".join(self._data)
                self._data, self._size, self._is_skipping = [], 0, False
            elif line.startswith(b"data:") and not self._is_skipping:
                self._data.append(line[5:].removeprefix(b" "))
                self._size += len(line)
                if self._size > LINE_MAX:
                    self._skip()

    def _skip(self) -> None:
        if not self._is_skipping:
            self._is_skipping = True
            self._data = []
            self._too_long()
