"""The engine protocol: where bytes live.

An engine keeps one append-only run of commits per session. It knows bytes and order, never meaning: fork, rewind, diff
and replay are built above it. An engine object sees one namespace; what else shares its database is invisible to it.

The promises, each with a test in wakelog.testing.contract:

- an append is whole or absent, and durable once its answer is returned;
- seqs run 1, 2, 3 … without gaps, and every commit names the hash of the one before it;
- an append on a stale head raises ConflictError and writes nothing;
- repeating an append whose answer was lost gives the same answer and no second copy;
- a read sees a prefix, never a hole;
- a deleted session never comes back.

Appending has two steps, so that a session's commits can be in flight together: `submit` fixes their order and
returns at once, `Pending.result` waits until they are durable. What is submitted together is stored together or not
at all.

`Engine` has nine methods of its own, and four small protocols beside them: `Names`, `Leases`, `Feed` and `Removal`.
What only some engines can do is declared in `engine.abilities`; a caller looks there and never at the engine's class.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, NotFoundError, UnsupportedError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Head, Heartbeat, Snapshot
from wakelog.model.shards import IndexDatabase, ShardChange, ShardPlacement

T = TypeVar("T")


class Pending(Protocol):
    """An append under way."""

    def result(self) -> Head:
        """Waits until the commits are durable and returns the last one's head, or raises why nothing was written.

        UnavailableError means that the answer is unknown: submit the same commits again.
        """
        ...


class FeedChange(msgspec.Struct, frozen=True):
    """A session that has something new; `cursor` continues after it."""

    session: SessionId
    seq: Seq
    cursor: str


class Surgery(msgspec.Struct, frozen=True):
    """What erasing or pruning does to the stored bytes, atomically with the commits that say so.

    `rewritten` replaces stored commits of any session of one fork tree, found by session and last seq; with their
    payloads, which replace the stored ones. Snapshots at or after `stale_from[session]` are dropped, and those before
    `pruned_to[session]` too.
    """

    commits: tuple[Commit, ...]
    rewritten: tuple[Commit, ...]
    stale_from: dict[SessionId, Seq]
    pruned_to: dict[SessionId, Seq] = {}


class Known(msgspec.Struct, frozen=True):
    """What an engine already holds under a commit's id."""

    head: Head
    fingerprint: bytes


class Names(Protocol):
    """Names that lead to sessions."""

    def claim(self, name: str, session: SessionId) -> SessionId:
        """Binds a name to an id if it is free; returns the id it is bound to, whoever bound it."""
        ...

    def find(self, name: str) -> SessionId | None:
        """The id bound to a name."""
        ...


class Leases(Protocol):
    """Signs of life of those who write. Not part of the log; they may be lost."""

    def beat(self, session: SessionId, beat: Heartbeat) -> None:
        """Keeps a lease holder's sign of life."""
        ...

    def last_beat(self, session: SessionId) -> Heartbeat | None:
        """The sign of life that was kept last, or None. None is always correct: it only permits a takeover."""
        ...


class Feed(Protocol):
    """What is new in the store."""

    def changes(self, cursor: str = "", limit: int = 100) -> Sequence[FeedChange]:
        """Sessions with commits since `cursor`, at least once each, in the order they were stored."""
        ...

    def wait(self, session: SessionId | None, *, after: Seq, timeout_s: float) -> bool:
        """Blocks until the session has events after `after`, from any process; False when the time ran out.

        With no session: until anything at all was stored since the call began. Then there is no place to wait after,
        so `after` is 0; anything else is refused (`bad-point`). Whoever must miss nothing asks `changes` again.
        """
        ...


class Removal(Protocol):
    """What takes stored bytes away."""

    def operate(self, surgery: Surgery) -> Head:
        """Rewrites stored bytes as erasing and pruning need, and leaves nothing of the old ones in the files. An engine
        with the ability `rewrite` leaves them until it is asked to rewrite."""
        ...

    def delete(self, commit: Commit) -> Head:
        """Appends the deleting commit and drops the session's content, leaving a tombstone and freeing its name.

        While forks still read through the session its content is hidden, not dropped; it goes with the last of them.
        """
        ...

    def drop_snapshots(self, session: SessionId) -> None:
        """Forgets all snapshots of a session. They are a cache."""
        ...


class Engine(Names, Leases, Feed, Removal, Protocol):
    """One append-only run of commits per session."""

    durability: str
    """What an answered append has survived: "synced", "written" (lost on power cut) or "memory"."""

    @property
    def abilities(self) -> Abilities:
        """What this engine can do beyond the protocol."""
        ...

    def submit(self, *commits: Commit) -> Pending:
        """Puts commits in line, in order, all or nothing."""
        ...

    def read(
        self, session: SessionId, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False
    ) -> Iterator[Commit]:
        """The commits holding events `after` < seq ≤ `upto`, in order; the outer ones may reach beyond.

        Payload bytes are left out unless asked for. An unknown session is NotFoundError, raised at the call.
        """
        ...

    def head(self, session: SessionId) -> Head:
        """Where the session stands, deleted or not; NotFoundError when it never was."""
        ...

    def known(self, session: SessionId, commit_id: str) -> Known | None:
        """The answer once given under an id that its caller chose."""
        ...

    def sessions(self, *, after: str = "", limit: int = 100) -> Sequence[Head]:
        """Heads in order of id, after the given one; a page shorter than `limit` is the last. Deleted ones are left
        out."""
        ...

    def children(self, session: SessionId, *, deleted: bool = False) -> Sequence[Head]:
        """The session's direct forks; those that are deleted only when asked for."""
        ...

    def payload(self, session: SessionId, seq: Seq, digest: bytes) -> bytes:
        """The payload brought by the commit that holds event `seq`; NotFoundError when it was erased or pruned."""
        ...

    def snapshot(self, session: SessionId, *, upto: Seq) -> Snapshot | None:
        """The newest snapshot at or before `upto`, or None. None is always correct, only slower."""
        ...

    def close(self) -> None:
        """Lets go of everything. What was answered is kept; any later call raises UnavailableError."""
        ...


class MigrationStep(msgspec.Struct, frozen=True):
    """One step of a store's schema, forward. Each of its statements may be run twice, and disturbs neither readers nor
    writers of the version before; a step that must disturb them `breaks`, and from then on they are refused."""

    version: int
    what: str
    statements: tuple[str, ...]
    breaks: bool = False


class Migrations(Protocol):
    """Upgrades tables of an older version in place."""

    def version(self) -> int:
        """The version that the store's tables have."""
        ...

    def waiting(self) -> Sequence[MigrationStep]:
        """The steps that the store lacks, in order. It can be used without them."""
        ...

    def migrate(self) -> Iterator[MigrationStep]:
        """Takes those steps, each told when it is done. Cut off anywhere, or done by several at once, it goes on."""
        ...


class Marks(Protocol):
    """Keeps short notes about the maintenance of a store, such as the progress of a scrub."""

    def mark(self, name: str) -> str | None:
        """The note of that name, or None."""
        ...

    def set_mark(self, name: str, value: str) -> None:
        """Keeps a note. UnsupportedError where the store has no place for it yet."""
        ...


class TableRewrite(Protocol):
    """Clears removed bytes from the engine's files by rewriting its tables."""

    def __call__(self, *, most: int | None = None) -> bool:
        """Writes the tables anew if something was removed since that was last done; whether it was. It locks them.

        UnavailableError (`scrub-pending`) when it has to wait: somebody still sees the old bytes, or the tables hold
        more than `most` bytes.
        """
        ...


class Sizes(Protocol):
    """Measures tables where they are kept."""

    def table_bytes(self) -> dict[str, int]:
        """Bytes by table, with their indexes, of all namespaces together; empty where the server does not tell."""
        ...

    def session_bytes(self) -> dict[SessionId, int]:
        """The stored bytes of each session of this namespace, told without fetching them."""
        ...


class StoreFinding(msgspec.Struct, frozen=True):
    """Something in a store that is not as it should be."""

    what: str
    session: str = ""
    seq: Seq = 0
    is_damage: bool = True
    """Whether something was lost or altered; else it is only left over."""
    fix: str = ""
    can_tidy: bool = False
    """Whether `tidy` mends it: it is derived, or nobody needs it."""


class Inspection(Protocol):
    """Finds damage that readers cannot see, because they would only find less."""

    def inspect(self) -> Iterator[StoreFinding]:
        """Looks through everything that is kept beside the commits, and at what belongs to nobody."""
        ...

    def tidy(self) -> int:
        """Mends what can be mended without loss; how many things that were."""
        ...


class DamageReport(Protocol):
    """Reports details of damaged sessions."""

    def session_ids(self) -> Sequence[SessionId]:
        """The ids of all sessions that something is stored of, in order; deleted and damaged ones too."""
        ...

    def last_sound(self, session: SessionId) -> Head | None:
        """The newest head that can still be told of a session whose head is damaged. It is for reading what is left:
        appending on it would write history anew."""
        ...

    def faults(self, session: SessionId) -> Sequence[str]:
        """What is wrong with what is kept beside a session's commits: its name, the commit ids that callers chose, the
        list of its forks. Readers would only find less."""
        ...


class ReplicaComparison(msgspec.Struct, frozen=True):
    """What came of comparing the replicas of all shards."""

    copies: int
    """How many replicas were read, of all shards together."""
    messages: int
    findings: tuple[StoreFinding, ...]


class Shards(Protocol):
    """Spreads a store over several logs."""

    def placement(self) -> Sequence[ShardPlacement]:
        """Where each shard is kept, and how far its replicas have got."""
        ...

    def add_shards(self, count: int) -> None:
        """Lets sessions that are opened from now on use so many shards. No session moves."""
        ...

    def compare_replicas(self) -> ReplicaComparison:
        """Reads what every server has of every shard, and compares it."""
        ...


class ShardFeeds(Protocol):
    """The feed of each shard by itself. A fork tree is in one shard, so each can be followed by somebody else."""

    def ends(self) -> Sequence[int]:
        """A place after everything that is stored now, for each shard."""
        ...

    def shard_changes(self, shard: int, after: int, limit: int = 100) -> Sequence[ShardChange]:
        """Sessions of a shard with commits since a place, in the order they were stored."""
        ...

    def cursor_at(self, places: dict[int, int]) -> str:
        """The cursor of the whole feed for a place in each shard."""
        ...


class Encryption(msgspec.Struct, frozen=True):
    """That the store is encrypted (encryption/engine.py)."""

    below: Engine
    """The engine with the encrypted bytes as they are stored: for copies that need no key."""
    ring: str
    """The id of the key ring that has its keys."""
    has_key: bool
    """Whether it was opened with the key."""


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine can do beyond the protocol, and how it differs from others. What it cannot do is None."""

    feed_end: Callable[[], str] | None = None
    """Returns a cursor after everything stored so far, without reading the feed."""
    heard: Callable[[int], Collection[SessionId]] | None = None
    """Tells in one go which sessions have a sign of life that holds until a time, or longer."""
    take_bundle: Callable[[bytes], SessionId] | None = None
    """Imports a bundle (log/bundle.py) completely, because the side that stores the bytes verifies them."""
    migrations: Migrations | None = None
    marks: Marks | None = None
    rewrite: TableRewrite | None = None
    sizes: Sizes | None = None
    inspection: Inspection | None = None
    damage: DamageReport | None = None
    shards: Shards | None = None
    workers: Callable[[], dict[str, int]] | None = None
    """Tells on which servers a sharded database keeps the log, and how many parts of it each has."""
    shard_feeds: ShardFeeds | None = None
    encryption: Encryption | None = None
    path: Path | None = None
    """The database file, for an engine that keeps its store in one."""
    identity: str = ""
    """Identifies a store without a path, so that files about it can be kept on this machine."""
    place: str = ""
    """Where the store is, for people; without secrets."""
    payloads_apart: bool = False
    """Payloads are kept elsewhere, so reading them with their commits would fetch more than needed."""
    is_far: bool = False
    """Reading takes round trips: it pays to read ahead."""
    keeps_index: bool = False
    """The index is kept in this engine's database too."""
    index: IndexDatabase | None = None
    """The index is kept in another database."""


def require(ability: T | None, otherwise: UnsupportedError) -> T:
    """An ability that a caller cannot do without; raises `otherwise` where it is missing. Asked before work starts."""
    if ability is None:
        raise otherwise
    return ability


def refuse_place_in_no_session(session: SessionId | None, after: Seq) -> None:
    """A seq is a place in a session: waiting for anything at all has none."""
    if session is None and after:
        raise InvalidInputError(
            "`after` needs a session: a wait for any session starts now",
            kind="bad-point",
            hint="name the session, or leave `after` at 0",
        )


def end_of(engine: Engine, cursor: str = "") -> str:
    """A cursor after everything stored so far, at or after the given one."""
    if (feed_end := engine.abilities.feed_end) is not None:
        return feed_end()
    while page := engine.changes(cursor, 10_000):
        cursor = page[-1].cursor
    return cursor


def judge(commit: Commit, head: Head | None, known: Known | None) -> Head | None:
    """The checks on append, in their order. Returns the original answer for a repeated commit, None to go ahead.

    (1) the id is known with the same content: the original answer, even if head, epoch or status moved on;
    (2) known with other content: invalid; (3) deleted or closed; (4) fenced by a newer epoch; (5) the head moved.
    """
    if known is not None:
        same = known.fingerprint == commit.fingerprint if commit.fingerprint else known.head.hash == commit.hash
        if same:
            return known.head
        if commit.fingerprint:
            raise InvalidInputError(
                f"commit id {commit.commit_id!r} of session {commit.session} was used before for other content",
                kind="commit-id-reused",
                hint="use a new commit id for new content",
            )
    if head is None:
        if commit.fork is None and commit.first != 1:
            raise NotFoundError(f"there is no session {commit.session}", kind="session-not-found")
        return None
    if head.status == "deleted":
        raise NotAllowedError(
            f"session {commit.session} was deleted permanently",
            kind="append-to-deleted",
            hint="open a new session",
        )
    if head.status in ("closed", "archived") and not commit.late:
        raise NotAllowedError(
            f"session {commit.session} is {head.status}",
            kind="session-closed",
            hint="reopen it first",
            legal=("session.reopened",),
        )
    if commit.guard is not None and commit.guard != head.epoch:
        raise ConflictError(
            f"session {commit.session} was taken over: its lease is at epoch {head.epoch}, this writer holds"
            f" {commit.guard}. It can still report outcomes as evidence.",
            kind="fenced",
            head_seq=head.seq,
        )
    if head.seq + 1 != commit.first or head.hash != commit.prev:
        raise ConflictError(
            f"session {commit.session} is at event {head.seq}, but this append expected {commit.first - 1}:"
            f" another writer came first. Read the events after {commit.first - 1} and try again, or fork there.",
            kind="head-moved",
            head_seq=head.seq,
        )
    return None


def payload_of(engine: Engine, session: SessionId, seq: Seq, digest: bytes) -> bytes:
    """`Engine.payload` for an engine that keeps payloads with their commits."""
    for commit in engine.read(session, after=seq - 1, upto=seq, payloads=True):
        for known, content in commit.payloads:
            if known == digest:
                return content
    raise NotFoundError(f"event {seq} of {session} holds no payload {digest.hex()[:12]}", kind="payload-gone")


def all_heads(engine: Engine) -> Iterator[Head]:
    """The heads of all sessions that are not deleted, oldest first, each followed by its forks."""
    after = ""
    while page := engine.sessions(after=after, limit=1000):
        yield from page
        after = page[-1].session


def head_or_none(engine: Engine, session: SessionId) -> Head | None:
    """The head of a session, or None where the engine has no such session."""
    try:
        return engine.head(session)
    except NotFoundError:
        return None


def head_after(commit: Commit, before: Head | None = None) -> Head:
    """The head that a stored commit leads to. A session keeps its name and fork point: they are those of the head
    `before`, or else the engine's to fill in."""
    fork, name = (commit.fork, "") if before is None else (before.fork, before.name)
    seq, at, epoch, status = commit.last, commit.at, commit.epoch, commit.status
    return Head(commit.session, seq, commit.hash, at, epoch, status, commit.turn, commit.commit_id, fork, name)
