"""What is stored: header and body of an event, the commit that holds them, the head they lead to.

An event becomes a *record*: a header, which is chained by hash and never changes, and a body, which can be erased.
Records appended together are a *commit*: the unit of storage and of atomicity. docs/reference/format.md gives the
bytes; codec/ makes them.
"""

from __future__ import annotations

import msgspec

from wakelog.model.events import Event, Trust
from wakelog.model.ids import Seq, SessionId

# These values are made for every event and never form cycles, so the garbage collector need not track them (gc=False):
# tracking cost a quarter of the time to seal a commit.

FORMAT_VERSION = 1
GENESIS = bytes(32)
"""The hash before the first event of a root session."""


class Header(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Structure only: nothing here was written by a person or a model, so that it can stay when content must go.

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
    """The format version. Left out, it is 1 and stays 1: later versions write theirs."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One stored event. An intact body has its salt; an erased or pruned one has none.

    `body` without `salt` is a replacement that an erase event vouches for; neither means the body was pruned.
    """

    header: bytes
    salt: bytes
    body: bytes


class EventDraft(msgspec.Struct, frozen=True, gc=False):
    """An event about to be appended, with what its header should say beyond what the log stamps itself."""

    event: Event
    actor: str = "agent"
    cause: Seq = 0
    derived_from: tuple[tuple[Seq, Seq], ...] = ()
    source: str = ""
    trust: Trust = "trusted"
    within: tuple[int, int] | None = None
    """The turn and attempt this was meant for: refused when another one was begun since. Not stored."""


class ForkPoint(msgspec.Struct, frozen=True, gc=False):
    """Where a fork leaves its parent."""

    parent: SessionId
    at: Seq
    hash: bytes


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Events stored together: what an engine is given, and what it gives back.

    Everything that must be atomic is in here. `prev` names the head this commit was sealed on and `guard` the epoch its
    writer believes to hold (None: it holds no lease). `fingerprint` is set when the caller chose the commit id; it
    tells a repeated append from another one under the same id. The fields from `epoch` to `paths` answer the cheap
    questions without opening the records.
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
    """(SHA-256, content) of the payloads this commit brings."""
    snapshot: bytes | None = None
    fingerprint: bytes = b""
    guard: int | None = None
    late: bool = False
    """All its events may arrive after the session was closed."""
    fork: ForkPoint | None = None
    """Set on the first commit of a fork."""


class Head(msgspec.Struct, frozen=True, gc=False):
    """Where a session stands after a commit."""

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
        """The session's name, or its id where it has none."""
        return self.name or self.session


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """A saved fold: the state after `seq`, packed. A cache; dropping it may change speed, never an answer."""

    seq: Seq
    data: bytes


class Heartbeat(msgspec.Struct, frozen=True, gc=False):
    """The last sign of life of a lease holder, and until when it counts. It permits a takeover; safety never rests
    on it."""

    epoch: int
    holder: str
    until: int


class Anchor(msgspec.Struct, frozen=True):
    """A head kept elsewhere: what a later verification is held against."""

    session: SessionId
    seq: Seq
    hash: str
    at: int
