"""The messages between a remote engine and its server: one struct for each question and each answer.

Both sides use these types. They are sent as MessagePack, where bytes are bytes, or as JSON, where bytes are base64; the
Content-Type and Accept headers say which. docs/reference/http.md lists them for authors of clients.

An error is a *problem* (RFC 9457). `kind` is the stable word for what happened. `group` is the class of the error, so
that the client raises what the server raised.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from wakelog import errors
from wakelog.engine import FeedChange, Known, Surgery
from wakelog.errors import ConflictError, CorruptLogError, NotAllowedError, UnavailableError, WakelogError
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit, Head, Heartbeat, Snapshot

JSON = "application/json"
MSGPACK = "application/msgpack"
PROBLEM = "application/problem+json"

GROUPS: dict[str, type[WakelogError]] = {
    cls.kind: cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, WakelogError)
}
"""Error classes by group."""

Whole = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
"""An integer that every database can store."""
Page = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request. Unknown fields are refused, not ignored."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error: what happened, to what, and what to do."""

    type: str
    title: str
    status: int
    detail: str
    kind: str
    group: str
    hint: str = ""
    retryable: bool = False
    """Whether the same request may succeed later."""
    head_seq: int = 0
    """For a conflict: where the session is now."""
    legal: tuple[str, ...] = ()
    """For an event that is not allowed: the kinds that are."""
    seq: int = 0
    """For a damaged log: the first bad event."""


class Submit(Question, frozen=True):
    """Commits to store: each group completely or not at all, in this order."""

    groups: tuple[tuple[Commit, ...], ...]


class SubmitAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one group: its new head, or why nothing was written."""

    head: Head | None = None
    problem: Problem | None = None


class Answers(msgspec.Struct, frozen=True):
    answers: tuple[SubmitAnswer, ...]


class OfSession(Question, frozen=True):
    session: SessionId


class Read(Question, frozen=True):
    """The commits with events `after` < seq ≤ `upto`."""

    session: SessionId
    after: Whole = 0
    upto: Whole | None = None
    payloads: bool = False


class Commits(msgspec.Struct, frozen=True):
    """Some commits; with `more`, ask again after the last one's last event."""

    commits: tuple[Commit, ...]
    more: bool


class FindCommit(Question, frozen=True):
    session: SessionId
    commit_id: str


class FoundCommit(msgspec.Struct, frozen=True):
    known: Known | None


class ListSessions(Question, frozen=True):
    after: str = ""
    limit: Page = 100


class Children(Question, frozen=True):
    session: SessionId
    deleted: bool = False


class Heads(msgspec.Struct, frozen=True):
    heads: tuple[Head, ...]


class ListChanges(Question, frozen=True):
    cursor: str = ""
    limit: Page = 100


class Changes(msgspec.Struct, frozen=True):
    changes: tuple[FeedChange, ...]


class FindPayload(Question, frozen=True):
    session: SessionId
    seq: Whole
    digest: bytes


class Content(msgspec.Struct, frozen=True):
    content: bytes


class FindSnapshot(Question, frozen=True):
    session: SessionId
    upto: Whole


class FoundSnapshot(msgspec.Struct, frozen=True):
    snapshot: Snapshot | None


class Claim(Question, frozen=True):
    name: str
    session: SessionId


class FindName(Question, frozen=True):
    name: str


class Named(msgspec.Struct, frozen=True):
    session: SessionId | None


class Beat(Question, frozen=True):
    session: SessionId
    beat: Heartbeat


class LastBeat(msgspec.Struct, frozen=True):
    beat: Heartbeat | None


class HeardSince(Question, frozen=True):
    """The sessions whose heartbeat is valid until `since` or longer."""

    since: Whole


class SessionIds(msgspec.Struct, frozen=True):
    sessions: tuple[SessionId, ...]


class Operate(Question, frozen=True):
    surgery: Surgery


class Delete(Question, frozen=True):
    commit: Commit


class FindMark(Question, frozen=True):
    name: str


class SetMark(Question, frozen=True):
    """A short note about the store's maintenance; an empty value removes it."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    value: Annotated[str, msgspec.Meta(max_length=10_000)]


class MarkValue(msgspec.Struct, frozen=True):
    value: str | None


class Rewrite(Question, frozen=True):
    """Asks to rewrite tables, unless they hold more than `most` bytes."""

    most: Whole | None = None


class Rewritten(msgspec.Struct, frozen=True):
    was_due: bool


class WaitRequest(Question, frozen=True):
    """Waits for events after `after` of one session; or for anything stored after `cursor`, by default after now."""

    session: SessionId | None = None
    after: Whole = 0
    cursor: str = ""
    timeout_s: float = 0.0


class NewsAnswer(msgspec.Struct, frozen=True):
    """Whether something new was stored in time, and the cursor for the next wait."""

    came: bool
    cursor: str = ""


class Acknowledged(msgspec.Struct, frozen=True):
    """The request was carried out."""


class Imported(msgspec.Struct, frozen=True):
    """The session that a bundle was imported to, and its head."""

    session: SessionId
    name: str
    head: Head


class Info(msgspec.Struct, frozen=True):
    """About the server: its version, and how durable an acknowledged append is."""

    version: str
    durability: str
    namespace: str
    scopes: tuple[str, ...]
    redacts: bool
    """Whether this server removes secrets from appended events, and refuses commits that contain any."""


def problem_of(error: WakelogError, status: int) -> Problem:
    """The error in its wire form."""
    kind = error.kind
    return Problem(
        type=f"urn:wakelog:error:{kind}",
        title=kind.replace("-", " "),
        status=status,
        detail=error.message,
        kind=kind,
        group=type(error).kind if type(error).kind in GROUPS else WakelogError.kind,
        hint=error.hint,
        retryable=isinstance(error, ConflictError | UnavailableError),
        head_seq=getattr(error, "head_seq", 0),
        legal=getattr(error, "legal", ()),
        seq=getattr(error, "seq", 0),
    )


def error_of(problem: Problem) -> WakelogError:
    """The error that a problem describes."""
    cls = GROUPS.get(problem.group, WakelogError)
    fields = {"kind": problem.kind, "hint": problem.hint}
    if cls is ConflictError:
        return ConflictError(problem.detail, head_seq=problem.head_seq, **fields)
    if cls is NotAllowedError:
        return NotAllowedError(problem.detail, legal=problem.legal, **fields)
    if cls is CorruptLogError:
        return CorruptLogError(problem.detail, kind=problem.kind, hint=problem.hint, seq=problem.seq)
    return cls(problem.detail, **fields)
