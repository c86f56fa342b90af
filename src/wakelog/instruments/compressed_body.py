"""Undoes the compression of a request or an answer, so that its messages can be recorded. What is sent on stays as it
came.

Brotli has no decoder in the standard library: it is read if the package `brotli` or `brotlicffi` is installed.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import zstandard

from wakelog.errors import UnsupportedError


def decoded_body(body: bytes, encodings: str, limit: int) -> bytes:
    """The body without the encodings of its Content-Encoding header. Raises UnsupportedError for one that nobody here
    can undo, and ValueError for a body that is damaged or decodes to more than `limit` bytes."""
    for name in reversed(_names(encodings)):
        decode = _DECODERS.get(name)
        if decode is None:
            raise UnsupportedError(f"a body in the encoding {name!r}")
        try:
            body = decode(body, limit)
        except (zlib.error, zstandard.ZstdError) as exc:
            raise ValueError(f"it is not {name}: {exc}") from exc
    return body


def stream_decoder(encodings: str, limit: int) -> Callable[[bytes], bytes]:
    """Decodes a stream piece by piece. Raises UnsupportedError for other encodings than gzip and deflate. The decoder
    raises ValueError for a piece that is damaged or decodes to more than `limit` bytes."""
    names = _names(encodings)
    if not names:
        return bytes
    if len(names) > 1 or names[0] not in ("gzip", "deflate"):
        raise UnsupportedError(f"a stream in the encoding {encodings!r}")
    decoder = zlib.decompressobj(_GZIP_OR_ZLIB)

    def decode(piece: bytes) -> bytes:
        try:
            out = decoder.decompress(piece, limit)
        except zlib.error as exc:
            raise ValueError(f"it is not {names[0]}: {exc}") from exc
        return _all(out, limit, not decoder.unconsumed_tail)

    return decode


def _names(encodings: str) -> list[str]:
    names = [name.strip().lower().removeprefix("x-") for name in encodings.split(",")]
    return [name for name in names if name not in ("", "identity")]


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
    member = zlib.decompressobj(bits)
    for piece in _pieces(body, _PIECE):  # each member copies what follows it, which must not be the whole rest
        while piece:
            if member.eof:  # a gzip file may have several members
                member = zlib.decompressobj(bits)
            out += _all(member.decompress(piece, limit - len(out) + 1), limit - len(out))
            piece = member.unused_data
    return _all(bytes(out), limit, member.eof or not body)


def _unzstd(body: bytes, limit: int) -> bytes:
    reader = zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True)
    return _all(reader.read(limit + 1), limit)


def _unbrotli(body: bytes, limit: int) -> bytes:
    brotli: Any = _first_of("brotli", "brotlicffi")
    out = bytearray()
    decoder = brotli.Decompressor()
    for piece in _pieces(body, _BROTLI_PIECE):
        try:
            out += _all(decoder.process(piece), limit - len(out))
        except brotli.error as exc:
            raise ValueError(f"it is not br: {exc}") from exc
    return _all(bytes(out), limit, decoder.is_finished())


def _pieces(body: bytes, size: int) -> Iterator[bytes]:
    return (body[start : start + size] for start in range(0, len(body), size))


def _first_of(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise UnsupportedError(f"a body in Brotli, which needs the package {names[0]}")


def _all(decoded: bytes, limit: int, is_whole: bool = True) -> bytes:
    if len(decoded) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    if not is_whole:
        raise ValueError("it ends too early")
    return decoded


_PIECE = 1 << 12
_BROTLI_PIECE = 16
"""Not all versions can bound what they decode at once, and some bytes can stand for 16 MB."""
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gunzip,
    "deflate": _deflate,
    "zstd": _unzstd,
    "br": _unbrotli,
}
