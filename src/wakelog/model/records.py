"""What is stored: the header and body of an event, the commit that holds them, and the session's head.

An event becomes a *record*: a header, which is chained by hash and never changes, and a body, which can be erased.
Records appended together are a *commit*: the unit of storage and of atomicity. docs/reference/format.md gives the
bytes; codec/ makes them.
"""

from __future__ import annotations

import msgspec

from wakelog.model.events import Event, Trust
from wakelog.model.ids import Seq, SessionId

# These values are made for every event and never form cycles, so the garbage collector need not track them (gc=False).
# Tracking cost a quarter of the time to seal a commit.

FORMAT_VERSION = 1
GENESIS = bytes(32)
"""The hash before the first event of a root session."""


class Header(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Structure only: no person or model wrote any of it, so it can stay when content is erased.

    Default values are left out of the stored bytes. The bytes, once made, are never re-encoded.
    """

    seq: Seq
    kind: str
    at: int
    """Microseconds since the epoch, stamped by the log, never decreasing within a session."""
    body_hash: str
    turn: int = 0
    """The open turn, or 0 between turns."""
    attempt: int = 1
    actor: str = "agent"
    cause: Seq = 0
    derived_from: tuple[tuple[Seq, Seq], ...] = ()
    """Inclusive ranges of seqs whose content flowed into this event."""
    source: str = ""
    trust: Trust = "trusted"
    codec: str = ""
    """Reserved: how the body is encrypted."""
    key_id: str = ""
    """Reserved: which key encrypts it."""
    v: int = 1
    """The format version. It is left out for version 1; later versions write theirs."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One stored event. An intact body has its salt.

    `body` without `salt` is the replacement of an erased body, confirmed by an erase event. Without both, the body was
    pruned.
    """

    header: bytes
    salt: bytes
    body: bytes


class EventDraft(msgspec.Struct, frozen=True, gc=False):
    """An event to append, with the header fields that the log does not set itself."""

    event: Event
    actor: str = "agent"
    cause: Seq = 0
    derived_from: tuple[tuple[Seq, Seq], ...] = ()
    source: str = ""
    trust: Trust = "trusted"
    within: tuple[int, int] | None = None
    """The turn and attempt it belongs to. It is refused if another one was started since. Not stored."""


class ForkPoint(msgspec.Struct, frozen=True, gc=False):
    """Where a fork leaves its parent."""

    parent: SessionId
    at: Seq
    hash: bytes


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Events stored together: what an engine stores and returns.

    It contains everything that must be atomic. `prev` is the hash of the head that it was sealed on, and `guard` the
    epoch that its writer believes to hold (None: no lease). `fingerprint` is set if the caller chose the commit id; it
    distinguishes a repeated append from a different one with the same id. The fields from `epoch` to `paths` answer
    cheap queries without decoding the records.
    """

    session: SessionId
    commit_id: str
    first: Seq
    last: Seq
    prev: bytes
    hash: bytes
    at: int
    epoch: int
    status: str
    turn: int
    turns: tuple[int, int]
    kinds: tuple[str, ...]
    paths: tuple[str, ...]
    records: tuple[Record, ...]
    payloads: tuple[tuple[bytes, bytes], ...] = ()
    """(SHA-256, content) of the payloads stored with this commit."""
    snapshot: bytes | None = None
    fingerprint: bytes = b""
    guard: int | None = None
    late: bool = False
    """Whether all its events are accepted after the session was closed."""
    fork: ForkPoint | None = None
    """Set on the first commit of a fork."""


class Head(msgspec.Struct, frozen=True, gc=False):
    """A session's position and status after a commit."""

    session: SessionId
    seq: Seq
    hash: bytes
    at: int
    epoch: int
    status: str
    turn: int
    commit_id: str
    fork: ForkPoint | None = None
    name: str = ""

    def __str__(self) -> str:
        """Returns the session's name, or its id if it has none."""
        return self.name or self.session


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """A saved fold: the packed state after `seq`. It is a cache: without it reading is slower, never different."""

    seq: Seq
    data: bytes


class Heartbeat(msgspec.Struct, frozen=True, gc=False):
    """The last heartbeat of a lease holder, and until when it is valid. After that a takeover is permitted; safety
    never depends on it."""

    epoch: int
    holder: str
    until: int


class Anchor(msgspec.Struct, frozen=True):
    """A head that is kept elsewhere, to check a session against later."""

    session: SessionId
    seq: Seq
    hash: str
    at: int
