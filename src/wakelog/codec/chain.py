"""Sealing as a function over bytes: from encoded events to chained records, one call a commit.

    body      = the event's JSON object, with the delta as its last member
    body_hash = SHA-256(salt ‖ body)                   in the header, as hex
    hash(n)   = SHA-256(hash(n-1) ‖ header bytes of n)  hash(0) is 32 zero bytes

The header's bytes are kept as they were first written and are what is hashed, so verifying needs no canonical form.
The salt is 16 random bytes per record: when body and salt are erased together, a short body cannot be guessed from
its hash.

`seal_in_python` is the specification. The native core makes the same bytes. What it refuses is sealed here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import starmap

import msgspec

from wakelog.model.events import Trust
from wakelog.model.ids import Seq
from wakelog.model.records import Header, Record
from wakelog.native import core

SALT_SIZE = 16

SealItem = tuple[str, int, int, str, Seq, tuple[tuple[Seq, Seq], ...], str, Trust, bytes, bytes]
"""kind, turn, attempt, actor, cause, derived_from, source and trust of a header; the event and its delta as JSON."""

_sha256 = hashlib.sha256
_encode = msgspec.json.Encoder().encode


def seal_in_python(
    prev: bytes, first: Seq, at: int, salts: bytes, items: Sequence[SealItem]
) -> tuple[tuple[Record, ...], bytes, int]:
    """The records of a commit whose first event is `first`, the chain's hash after them, and the size of their headers
    and bodies."""
    records, chain, size, place = [], prev, 0, 0
    for seq, (kind, turn, attempt, actor, cause, derived_from, source, trust, event, delta) in enumerate(items, first):
        salt = salts[place : place + SALT_SIZE]
        place += SALT_SIZE
        body = join_body(event, delta)
        digest = _sha256(salt + body).hexdigest()
        header = _encode(Header(seq, kind, at, digest, turn, attempt, actor, cause, derived_from, source, trust))
        chain = _sha256(chain + header).digest()
        size += len(header) + len(body)
        records.append(Record(header, salt, body))
    return tuple(records), chain, size


def hash_in_python(prev: bytes, records: Sequence[Record]) -> list[tuple[str, bytes]]:
    """For each record the hash of its body, which is empty where the salt is gone, and the chain's hash after it."""
    results, chain = [], prev
    for record in records:
        chain = link(chain, record.header)
        results.append((hash_body(record.salt, record.body) if record.salt else "", chain))
    return results


def _seal_natively(
    prev: bytes, first: Seq, at: int, salts: bytes, items: Sequence[SealItem]
) -> tuple[tuple[Record, ...], bytes, int]:
    try:
        records, chain, size = core.seal_records(prev, first, at, salts, items)
        return tuple(starmap(Record, records)), chain, size
    except Exception:  # whatever it is, the specification has the last word
        return seal_in_python(prev, first, at, salts, items)


def _hash_natively(prev: bytes, records: Sequence[Record]) -> list[tuple[str, bytes]]:
    try:
        return core.hash_records(prev, records)  # type: ignore[no-any-return]
    except Exception:  # whatever it is, the specification has the last word
        return hash_in_python(prev, records)


def _check_natively(prev: bytes, first: Seq, records: Sequence[Record]) -> list[bytes] | None:
    try:
        return core.check_records(prev, first, records)  # type: ignore[no-any-return]
    except Exception:  # as above
        return None


check_records: Callable[[bytes, Seq, Sequence[Record]], list[bytes] | None] | None
"""The chain's hash after each record of a commit, where every header is of the usual form and agrees with its body;
else None, and the headers must be decoded to know what is wrong or unusual."""
check_records = None if core is None else _check_natively
seal_records, hash_records = (seal_in_python, hash_in_python) if core is None else (_seal_natively, _hash_natively)


def join_body(event: bytes, delta: bytes) -> bytes:
    """The whole body: the authored part with the delta as its last member."""
    if not delta:
        return event
    return b'{"delta":%b}' % delta if event == b"{}" else b'%b,"delta":%b}' % (event[:-1], delta)


def link(prev: bytes, header: bytes) -> bytes:
    """The chain's hash after `header`."""
    return _sha256(prev + header).digest()


def hash_body(salt: bytes, body: bytes) -> str:
    return _sha256(salt + body).hexdigest()
