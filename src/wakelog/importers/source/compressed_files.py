"""Reads compressed transcripts and entries of zip files. What is cut off or damaged is refused, never read in part."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from wakelog.errors import InvalidInputError

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
CHUNK = 256 << 10
ZIP_ZSTD = 93
ZIP_HEADER = 30
"""Size of what stands before an entry; its last four bytes say how long the name and the extra field after it are."""


def decompress(file: IO[bytes], path: Path) -> IO[bytes]:
    """The decompressed content of an open file. Returns the file itself if it is not compressed."""
    magic = file.read(4)
    file.seek(0)
    if magic.startswith(GZIP):
        return cast(IO[bytes], io.BufferedReader(_ChunkReader(file, _gzip_chunks(file), path)))
    if magic == ZSTD:
        return cast(IO[bytes], io.BufferedReader(_ChunkReader(file, _zstd_chunks(file), path)))
    return file


def read_zip_entry(file: zipfile.ZipFile, name: str) -> bytes:
    """The content of an entry. Python reads entries in Zstandard only since 3.14."""
    info = file.getinfo(name)
    if info.compress_type != ZIP_ZSTD:
        return file.read(info)
    assert file.fp is not None  # it is open
    file.fp.seek(info.header_offset)
    header = file.fp.read(ZIP_HEADER)
    if len(header) < ZIP_HEADER:
        raise EOFError(f"{name} is not in the file")
    file.fp.seek(sum(struct.unpack("<HH", header[-4:])), io.SEEK_CUR)
    content = bytearray()
    for chunk in _zstd_chunks(io.BytesIO(file.fp.read(info.compress_size))):
        content += chunk
        if len(content) > info.file_size:
            raise ValueError(f"{name} is larger than it says")
    if zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {name!r}")
    return bytes(content)


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
