"""Reads compressed transcripts. A truncated or damaged file is refused, never read in part."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from wakelog.errors import InvalidInputError

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
CHUNK = 256 << 10


def decompress(file: IO[bytes], path: Path) -> IO[bytes]:
    """The decompress content of an open file. Returns the file itself if it is not compressed."""
    magic = file.read(4)
    file.seek(0)
    if magic.startswith(GZIP):
        return cast(IO[bytes], io.BufferedReader(_ChunkReader(file, _gzip_chunks(file), path)))
    if magic == ZSTD:
        return cast(IO[bytes], io.BufferedReader(_ChunkReader(file, _zstd_chunks(file), path)))
    return file


class _ChunkReader(io.RawIOBase):
    """A readable file over chunks that are decompressed on demand."""

    def __init__(self, file: IO[bytes], chunks: Iterator[bytes], path: Path) -> None:
        self._file = file
        self._chunks = chunks
        self._path = path
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, into: bytearray | memoryview) -> int:  # type: ignore[override]  # a buffer, as it is called
        try:
            while not self._left:
                chunk = next(self._chunks, None)
                if chunk is None:
                    return 0
                self._left = memoryview(chunk)
        except (EOFError, OSError, zlib.error, ValueError) as exc:
            raise InvalidInputError(
                f"{self._path} cannot be decompressed: {exc}", kind="bad-transcript", hint="is the file complete?"
            ) from exc
        count = min(len(into), len(self._left))
        into[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def _gzip_chunks(file: IO[bytes]) -> Iterator[bytes]:
    unpacked = gzip.GzipFile(fileobj=file)
    while chunk := unpacked.read(CHUNK):
        yield chunk


def _zstd_chunks(file: IO[bytes]) -> Iterator[bytes]:
    import zstandard

    frame = zstandard.ZstdDecompressor().decompressobj()
    is_inside = False
    try:
        while data := file.read(CHUNK):
            while data:
                yield frame.decompress(data)
                is_inside = not frame.eof
                data = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame = zstandard.ZstdDecompressor().decompressobj()
    except zstandard.ZstdError as exc:
        raise ValueError(str(exc)) from exc
    if is_inside:
        raise EOFError("it ends before its last frame does")
