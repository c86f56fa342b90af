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
returns at once, `Pending.result` waits until they are durable. Commits that are submitted together are stored together
or not at all.

`Engine` has nine methods of its own, and four small protocols beside them: `Names`, `Leases`, `Feed` and `Removal`.
What only some engines can do is declared in `engine.abilities`. Callers check there, never the engine's class.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, NotFoundError, UnsupportedError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.pending import AwaitedAppend
from wakelog.model.pending import Pending as Pending  # where most look for it
from wakelog.model.records import Commit, Head, Heartbeat, Snapshot
from wakelog.model.shards import IndexDatabase, ShardChange, ShardPlacement

T = TypeVar("T")


class FeedChange(msgspec.Struct, frozen=True):
    """A session that has new events; `cursor` continues after it."""

    session: SessionId
    seq: Seq
    cursor: str


class Surgery(msgspec.Struct, frozen=True):
    """What erasing or pruning does to the stored bytes, atomically with the commits that record it.

    `rewritten` replaces stored commits, with their payloads, of any session of one fork tree, found by session and last
    seq. Snapshots at or after `stale_from[session]` and before `pruned_to[session]` are dropped.
    """

    commits: tuple[Commit, ...]
    rewritten: tuple[Commit, ...]
    stale_from: dict[SessionId, Seq]
    pruned_to: dict[SessionId, Seq] = {}


class Known(msgspec.Struct, frozen=True):
    """What an engine has already stored under a commit's id."""

    head: Head
    fingerprint: bytes


class Names(Protocol):
    """Names of sessions."""

    def claim(self, name: str, session: SessionId) -> SessionId:
        """Binds a name to an id if the name is free. Returns the id that the name is bound to."""
        ...

    def find(self, name: str) -> SessionId | None:
        """The id bound to a name."""
        ...


class Leases(Protocol):
    """Heartbeats of writers. They are not part of the log and may be lost."""

    def beat(self, session: SessionId, beat: Heartbeat) -> None:
        """Stores a lease holder's heartbeat."""
        ...

    def last_beat(self, session: SessionId) -> Heartbeat | None:
        """The last heartbeat, or None. None is always correct: it only permits a takeover."""
        ...


class Feed(Protocol):
    """What is new in the store."""

    def changes(self, cursor: str = "", limit: int = 100) -> Sequence[FeedChange]:
        """Sessions with commits since `cursor`, at least once each, in the order they were stored."""
        ...

    def wait(self, session: SessionId | None, *, after: Seq, timeout_s: float) -> bool:
        """Blocks until the session has events after `after`, from any process; False if the time ran out.

        Without a session: until anything is stored after the call began. `after` must be 0 then; anything else is
        refused (`bad-point`). A caller that must miss nothing asks `changes` again.
        """
        ...


class Removal(Protocol):
    """Removes stored bytes."""

    def operate(self, surgery: Surgery) -> Head:
        """Rewrites stored bytes for erasing and pruning. Nothing of the old bytes stays in the files, except in an
        engine with the ability `rewrite`, which keeps them until `rewrite` is called."""
        ...

    def delete(self, commit: Commit) -> Head:
        """Appends the deleting commit and drops the session's content, leaving a tombstone and freeing its name.

        While forks still read through the session, its content is hidden, not dropped. It is dropped with the last
        fork.
        """
        ...

    def drop_snapshots(self, session: SessionId) -> None:
        """Deletes all snapshots of a session. They are a cache."""
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
        """Queues commits to be stored, in order, all or nothing."""
        ...

    def read(
        self, session: SessionId, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False
    ) -> Iterator[Commit]:
        """The commits with events `after` < seq ≤ `upto`, in order. The first and last may hold events beyond these.

        Payload bytes are left out unless asked for. NotFoundError for an unknown session is raised at the call.
        """
        ...

    def head(self, session: SessionId) -> Head:
        """The session's head, also of a deleted one; NotFoundError if the session never existed."""
        ...

    def known(self, session: SessionId, commit_id: str) -> Known | None:
        """The answer that was given to a commit id chosen by its caller."""
        ...

    def sessions(self, *, after: str = "", limit: int = 100) -> Sequence[Head]:
        """Heads in order of id, after the given one. A page shorter than `limit` is the last. Deleted sessions are left
        out."""
        ...

    def children(self, session: SessionId, *, deleted: bool = False) -> Sequence[Head]:
        """The session's direct forks; deleted ones only if asked for."""
        ...

    def payload(self, session: SessionId, seq: Seq, digest: bytes) -> bytes:
        """The payload stored with the commit of event `seq`; NotFoundError if it was erased or pruned."""
        ...

    def snapshot(self, session: SessionId, *, upto: Seq) -> Snapshot | None:
        """The newest snapshot at or before `upto`, or None. None is always correct, only slower."""
        ...

    def close(self) -> None:
        """Releases everything. Answered appends are stored; any later call raises UnavailableError."""
        ...


class MigrationStep(msgspec.Struct, frozen=True):
    """One forward step of a store's schema. Each statement may run twice, and does not disturb readers and writers of
    the previous version. A step that must disturb them has `breaks` set, and older versions are refused from then
    on."""

    version: int
    what: str
    statements: tuple[str, ...]
    breaks: bool = False


class Migrations(Protocol):
    """Upgrades tables of an older version in place."""

    def version(self) -> int:
        """The version of the store's tables."""
        ...

    def waiting(self) -> Sequence[MigrationStep]:
        """The steps that were not taken yet, in order. The store can be used without them."""
        ...

    def migrate(self) -> Iterator[MigrationStep]:
        """Takes those steps and yields each when it is done. It can be interrupted anywhere, and run by several
        processes at once."""
        ...


class Marks(Protocol):
    """Stores short notes about a store's maintenance, such as the progress of a scrub."""

    def mark(self, name: str) -> str | None:
        """The note of that name, or None."""
        ...

    def set_mark(self, name: str, value: str) -> None:
        """Stores a note. UnsupportedError if the store has no table for it yet."""
        ...


class TableRewrite(Protocol):
    """Clears removed bytes from the files by rewriting tables."""

    def __call__(self, *, most: int | None = None) -> bool:
        """Rewrites the tables if something was removed since the last time, and returns whether it did. Locks them.

        UnavailableError (`scrub-pending`) if it must wait: a transaction still sees the old bytes, or the tables hold
        more than `most` bytes.
        """
        ...


class Sizes(Protocol):
    """Measures tables on the server."""

    def table_bytes(self) -> dict[str, int]:
        """Bytes by table, with indexes, of all namespaces together; empty if the server does not report them."""
        ...

    def session_bytes(self) -> dict[SessionId, int]:
        """The stored bytes of each session of this namespace, without fetching the content."""
        ...


class StoreFinding(msgspec.Struct, frozen=True):
    """Something wrong in a store."""

    what: str
    session: str = ""
    seq: Seq = 0
    is_damage: bool = True
    """Whether something was lost or altered; otherwise it is only a leftover."""
    fix: str = ""
    can_tidy: bool = False
    """Whether `tidy` repairs it: it is derived data, or an orphan."""


class Inspection(Protocol):
    """Finds damage that readers cannot notice, because they would only find less."""

    def inspect(self) -> Iterator[StoreFinding]:
        """Checks everything that is stored beside the commits, and finds orphans."""
        ...

    def tidy(self) -> int:
        """Repairs what can be repaired without loss, and returns how many things were."""
        ...


class DamageReport(Protocol):
    """Reports details of damaged sessions."""

    def session_ids(self) -> Sequence[SessionId]:
        """The ids of all sessions with stored data, in order, including deleted and damaged ones."""
        ...

    def last_sound(self, session: SessionId) -> Head | None:
        """The newest intact head of a session whose head is damaged. Only for reading what is left: appending to it
        would rewrite history."""
        ...

    def faults(self, session: SessionId) -> Sequence[str]:
        """What is wrong with the data beside a session's commits: its name, the commit ids that callers chose, the list
        of its forks. Readers would only find less."""
        ...


class ReplicaComparison(msgspec.Struct, frozen=True):
    """The result of comparing the replicas of all shards."""

    copies: int
    """How many replicas were read, over all shards."""
    messages: int
    findings: tuple[StoreFinding, ...]
    unread: int = 0
    """How many replicas could not be read, because their server did not answer."""


class Shards(Protocol):
    """A store that is spread over several shards."""

    def placement(self) -> Sequence[ShardPlacement]:
        """Where each shard is stored, and how far its replicas are."""
        ...

    def add_shards(self, count: int) -> None:
        """Sets how many shards new sessions use. No existing session moves."""
        ...

    def compare_replicas(self) -> ReplicaComparison:
        """Reads every server's copy of every shard, and compares them."""
        ...


class ShardFeeds(Protocol):
    """A feed for each shard. A fork tree is in one shard, so each shard can be followed by another process."""

    def ends(self) -> Sequence[int]:
        """For each shard, the position after everything stored now."""
        ...

    def shard_changes(self, shard: int, after: int, limit: int = 100) -> Sequence[ShardChange]:
        """Sessions of a shard with commits since a position, in the order they were stored."""
        ...

    def cursor_at(self, places: dict[int, int]) -> str:
        """The cursor of the whole feed for a position in each shard."""
        ...


class Encryption(msgspec.Struct, frozen=True):
    """How the store is encrypted (encryption/engine.py)."""

    below: Engine
    """The engine with the encrypted bytes as stored. For copies that need no key."""
    ring: str
    """The id of its key ring."""
    has_key: bool
    """Whether it was opened with the key."""


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine can do beyond the protocol, and how it differs from others. A missing ability is None."""

    submit_soon: Callable[[Commit], AwaitedAppend] | None = None
    """Submits a commit from a task of an event loop, without a wait. A loop must not run what asks or writes."""
    feed_end: Callable[[], str] | None = None
    """Returns a cursor after everything stored so far, without reading the feed."""
    live_sessions: Callable[[int], Collection[SessionId]] | None = None
    """Returns all sessions whose heartbeat is valid until a time or longer, in one query."""
    take_bundle: Callable[[bytes], SessionId] | None = None
    """Imports a bundle (log/bundle.py) on the server, which verifies it."""
    migrations: Migrations | None = None
    marks: Marks | None = None
    rewrite: TableRewrite | None = None
    sizes: Sizes | None = None
    inspection: Inspection | None = None
    damage: DamageReport | None = None
    shards: Shards | None = None
    workers: Callable[[], dict[str, int]] | None = None
    """Returns the servers of a sharded database, and how many parts of the log each has."""
    shard_feeds: ShardFeeds | None = None
    encryption: Encryption | None = None
    path: Path | None = None
    """The database file, if the store is a file."""
    identity: str = ""
    """Identifies a store without a path, so that this machine can store files about it."""
    place: str = ""
    """Where the store is, for people; without secrets."""
    payloads_apart: bool = False
    """Payloads are stored elsewhere, so reading them with their commits would fetch more than needed."""
    is_far: bool = False
    """Reads take network round trips, so reading ahead pays off."""
    keeps_index: bool = False
    """The index is in this engine's database too."""
    index: IndexDatabase | None = None
    """The index is in another database."""


def require(ability: T | None, otherwise: UnsupportedError) -> T:
    """The ability, or `otherwise` is raised if it is missing. Call it before any work starts."""
    if ability is None:
        raise otherwise
    return ability


def refuse_place_in_no_session(session: SessionId | None, after: Seq) -> None:
    """A seq is a position in one session, so a wait for any session has none."""
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

    (1) the id is known with the same content: the original answer, even if head, epoch or status changed since;
    (2) known with other content: invalid; (3) deleted or closed; (4) fenced by a newer epoch; (5) the head moved.
    """
    if known is not None:
        same = known.fingerprint == commit.fingerprint if commit.fingerprint else known.head.hash == commit.hash
        if same:
            return known.head
        if commit.fingerprint:
            raise commit_id_reused(commit.session, commit.commit_id)
    if head is None:
        if commit.fork is None and commit.first != 1:
            raise NotFoundError(f"there is no session {commit.session}", kind="session-not-found")
        return None
    if head.status == "deleted":
        raise NotAllowedError(
            f"session {commit.session} was deleted permanently", kind="append-to-deleted", hint="open a new session"
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
        raise head_moved(commit.session, head.seq, commit.first - 1)
    return None


def head_moved(session: SessionId, head_seq: Seq, expected: Seq) -> ConflictError:
    what = f"session {session} is at event {head_seq}, but this append expected {expected}: another writer came first"
    message = f"{what}. Read the events after {expected} and try again, or fork at {expected}."
    return ConflictError(message, kind="head-moved", head_seq=head_seq)


def commit_id_reused(session: SessionId, commit_id: str) -> InvalidInputError:
    return InvalidInputError(
        f"commit id {commit_id!r} of session {session} was used before for other content",
        kind="commit-id-reused",
        hint="use a new commit id for new content",
    )


def payload_of(engine: Engine, session: SessionId, seq: Seq, digest: bytes) -> bytes:
    """`Engine.payload` for an engine that stores payloads with their commits."""
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
    """The head of a session, or None if there is no such session."""
    try:
        return engine.head(session)
    except NotFoundError:
        return None


def find_live_sessions(engine: Engine, since: int) -> list[SessionId]:
    """What the ability `live_sessions` returns, for engines without it: asks for the heartbeat of each session."""
    beats = ((head.session, engine.last_beat(head.session)) for head in all_heads(engine))
    return [session for session, beat in beats if beat is not None and beat.until >= since]


def head_after(commit: Commit, before: Head | None = None) -> Head:
    """The head after a stored commit. A session's name and fork point do not change: they are taken from the head
    `before`; without it, the engine fills them in."""
    fork, name = (commit.fork, "") if before is None else (before.fork, before.name)
    seq, at, epoch, status = commit.last, commit.at, commit.epoch, commit.status
    return Head(commit.session, seq, commit.hash, at, epoch, status, commit.turn, commit.commit_id, fork, name)
