"""How engines keep a commit's bytes: MessagePack arrays in a zstd frame with a checksum.

    records   [[header, salt, body], …]        payloads   [[sha256, content], …]

Packing is storage, not format: the chain covers the header bytes inside, and a bundle carries them unpacked. The first
byte names the packing, so that a better one can be added. The frame's checksum detects an accidental flip on every
read; the hashes detect a deliberate one.

Half of a record is hashes in hex. Those shrink only at a level that counts how often each character occurs: a fifth
less for 8 microseconds a commit. Payloads and snapshots would gain half of that, so they are packed at a faster level.
Small inputs are packed with a small hash table, which stays in the processor's first cache: after a wait for the disk
the usual one takes twice as long, for a result that is 1 % smaller.

`pack_in_python` and `unpack_in_python` are the specification. The native core gives the same bytes and values. What it
refuses, above all damaged bytes, is handled here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any

import msgspec
import zstandard

from wakelog.errors import CorruptLogError
from wakelog.model.records import Record
from wakelog.native import core

PayloadPair = tuple[bytes, bytes]
"""SHA-256 and content."""

_PLAIN, _ZSTD = b"\x00", b"\x01"
_RECORDS_LEVEL, _LEVEL = 1, -1
_SMALL = 16 * 1024
_SMALL_HASH_LOG = 12
"""For small inputs: a table of 2^12 places, 16 KB."""
_MAX_UNPACKED = 1 << 31

_encode = msgspec.msgpack.Encoder().encode
_decode_pairs = msgspec.msgpack.Decoder(tuple[tuple[bytes, bytes], ...]).decode
_decode_records = msgspec.msgpack.Decoder(tuple[tuple[bytes, bytes, bytes], ...]).decode
_decode_snapshot = msgspec.msgpack.Decoder(tuple[bytes, bytes]).decode
_local = threading.local()


def pack_in_python(records: Sequence[Record], payloads: Sequence[PayloadPair]) -> tuple[bytes, bytes]:
    """A commit's records and its payloads, each as it is stored. No payloads are no bytes."""
    packed = _pack([(r.header, r.salt, r.body) for r in records], _RECORDS_LEVEL)
    return packed, _pack(payloads) if payloads else b""


def unpack_in_python(records: bytes, payloads: bytes = b"") -> tuple[tuple[Record, ...], tuple[PayloadPair, ...]]:
    """The packed values; CorruptLogError when the bytes are damaged."""
    triples = _unpack(records, _decode_records)
    return tuple(starmap(Record, triples)), _unpack(payloads, _decode_pairs) if payloads else ()


def _pack_natively(records: Sequence[Record], payloads: Sequence[PayloadPair]) -> tuple[bytes, bytes]:
    try:
        return core.pack(records, payloads)  # type: ignore[no-any-return]
    except Exception:  # whatever it is, the specification has the last word
        return pack_in_python(records, payloads)


def _unpack_natively(records: bytes, payloads: bytes = b"") -> tuple[tuple[Record, ...], tuple[PayloadPair, ...]]:
    try:
        triples, pairs = core.unpack(records, payloads)
        return tuple(starmap(Record, triples)), pairs
    except Exception:  # whatever it is, the specification has the last word
        return unpack_in_python(records, payloads)


pack, unpack = (pack_in_python, unpack_in_python) if core is None else (_pack_natively, _unpack_natively)


def pack_snapshot(state: bytes) -> bytes:
    return _pack((state, b""))  # the second place was the state's sum once


def unpack_snapshot(data: bytes) -> bytes:
    return _unpack(data, _decode_snapshot)[0]  # type: ignore[no-any-return]


def _pack(value: Any, level: int = _LEVEL) -> bytes:
    data = _encode(value)
    return bytes(_ZSTD + _compressor(level, is_small=len(data) <= _SMALL)(data))


def _compressor(level: int, *, is_small: bool) -> Callable[[bytes], bytes]:
    """One for each thread: a zstd context is not safe to share, and costs more to make than to use."""
    try:
        return _local.compressors[level, is_small]  # type: ignore[no-any-return]
    except AttributeError:
        _local.compressors = {}
    except KeyError:
        how = zstandard.ZstdCompressionParameters(
            compression_level=level, hash_log=_SMALL_HASH_LOG if is_small else 0, write_checksum=True
        )
        _local.compressors[level, is_small] = zstandard.ZstdCompressor(compression_params=how).compress
    return _compressor(level, is_small=is_small)


def _unpack(data: bytes, decode: Any) -> Any:
    try:
        if data[:1] == _ZSTD:
            try:
                decompress = _local.decompress
            except AttributeError:
                decompress = _local.decompress = zstandard.ZstdDecompressor().decompress
            return decode(decompress(data[1:], max_output_size=_MAX_UNPACKED))
        if data[:1] == _PLAIN:
            return decode(data[1:])
    except (zstandard.ZstdError, msgspec.DecodeError, MemoryError) as exc:
        raise CorruptLogError(f"stored bytes cannot be unpacked: {exc}") from exc
    raise CorruptLogError(f"stored bytes have an unknown packing {data[:1]!r}")
