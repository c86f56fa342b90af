"""Undoes the compression of a request, so that its messages can be recorded. What is sent on stays as it came.

Brotli has no decoder in the standard library: it is read if the package `brotli` or `brotlicffi` is installed.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any

import zstandard

from wakelog.errors import UnsupportedError


def decoded_body(body: bytes, encodings: str, limit: int) -> bytes:
    """The body without the encodings of its Content-Encoding header. Raises UnsupportedError for one that nobody here
    can undo, and ValueError for a body that is damaged or decodes to more than `limit` bytes."""
    names = [name.strip().lower() for name in encodings.split(",")]
    for name in reversed([name for name in names if name not in ("", "identity")]):
        decode = _DECODERS.get(name.removeprefix("x-"))
        if decode is None:
            raise UnsupportedError(f"a request in the encoding {name!r}")
        try:
            body = decode(body, limit)
        except (zlib.error, zstandard.ZstdError) as exc:
            raise ValueError(f"it is not {name}: {exc}") from exc
    return body


def _gunzip(body: bytes, limit: int) -> bytes:
    return _inflate(body, limit, 16 + zlib.MAX_WBITS)


def _deflate(body: bytes, limit: int) -> bytes:
    # Some programs leave out the header that the standard asks for.
    try:
        return _inflate(body, limit, zlib.MAX_WBITS)
    except zlib.error:
        return _inflate(body, limit, -zlib.MAX_WBITS)


def _inflate(body: bytes, limit: int, bits: int) -> bytes:
    out = bytearray()
    while body:  # a gzip file may have several members
        member = zlib.decompressobj(bits)
        out += _all(member.decompress(body, limit - len(out) + 1), limit - len(out), member.eof)
        body = member.unused_data
    return bytes(out)


def _unzstd(body: bytes, limit: int) -> bytes:
    reader = zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True)
    return _all(reader.read(limit + 1), limit)


def _unbrotli(body: bytes, limit: int) -> bytes:
    brotli: Any = _first_of("brotli", "brotlicffi")
    out = bytearray()
    decoder = brotli.Decompressor()
    for start in range(0, len(body), _PIECE):
        try:
            out += _all(decoder.process(body[start : start + _PIECE]), limit - len(out))
        except brotli.error as exc:
            raise ValueError(f"it is not br: {exc}") from exc
    return _all(bytes(out), limit, decoder.is_finished())


def _first_of(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise UnsupportedError(f"a request in Brotli, which needs the package {names[0]}")


def _all(decoded: bytes, limit: int, is_whole: bool = True) -> bytes:
    if len(decoded) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    if not is_whole:
        raise ValueError("it ends too early")
    return decoded


_PIECE = 1 << 16
_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gunzip,
    "deflate": _deflate,
    "zstd": _unzstd,
    "br": _unbrotli,
}
