"""The messages that store commits, in one batch, or a single one if that is enough.

For each session: the opening, ids that callers chose, snapshots, parts of big commits, and last the commits. The first
message of commits expects the tail that they were judged by. The opening of a root expects the fence of the shard
(layout.py), and that of a fork expects that its parent was not deleted. An id expects to be unused.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from wakelog.engines.nats import messages
from wakelog.engines.nats.messages import StoredCommit
from wakelog.engines.nats.stream_message import NewMessage
from wakelog.engines.nats.subjects import Subjects, digest_token
from wakelog.engines.nats.tails import SessionTail
from wakelog.errors import UnsupportedError
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit, ForkPoint

BATCH_MAX = 1000
"""How many messages a server stores together."""
_HEADERS = 4096
"""Space for a message's headers, which count too."""
IDS_MAX = 100
"""Up to this many chosen ids get a message each; more are stored as lists."""


def limit_of(max_bytes: int) -> int:
    """The size limit of our messages. A server disconnects a client that sends more than it accepts, with headers."""
    return max(16_384, min(512 * 1024, max_bytes // 2))


def lists_ids(tail: SessionTail | None, commits: Sequence[Commit]) -> bool:
    """Whether the session has lists of chosen ids after these commits."""
    return (tail is not None and tail.has_lists) or sum(bool(c.fingerprint) for c in commits) > IDS_MAX


def commit_messages(
    subjects: Subjects,
    shard: int,
    commits: Sequence[Commit],
    tails: dict[SessionId, SessionTail | None],
    fence: int,
    max_bytes: int,
) -> list[NewMessage]:
    """The messages of each session, with the last commit's session last."""
    limit = limit_of(max_bytes)
    last = commits[-1].session if commits else SessionId("")
    ordered = sorted(commits, key=lambda c: (c.session == last, c.session))
    found: list[NewMessage] = []
    for session, own in groupby(ordered, key=lambda c: c.session):
        found += _session_messages(subjects, shard, session, list(own), tails[session], fence, limit)
    if len(found) > BATCH_MAX:
        raise UnsupportedError(
            f"{len(commits)} commits take {len(found)} messages, and {BATCH_MAX} can be stored together",
            kind="too-big",
            hint="store big payloads apart (the setting `blobs`), or submit fewer commits at once",
        )
    if (most := max((len(m.data) for m in found), default=0)) > max_bytes - _HEADERS:
        raise UnsupportedError(
            f"a commit takes {most} bytes without its records, and a message of this cluster holds {max_bytes}",
            kind="too-big",
            hint="append fewer events at once",
        )
    return found


def plain_messages(
    subjects: Subjects, commit: Commit, tail: SessionTail, max_bytes: int
) -> tuple[NewMessage, ...] | None:
    """The messages of a commit that continues a session, as `commit_messages` would make them, if it consists of one
    and perhaps a snapshot before it; else None."""
    if commit.fingerprint:
        return None
    limit = limit_of(max_bytes)
    stored = messages.to_stored(commit, tail.head.fork, has_lists=tail.has_lists)
    if messages.size_of(stored) > limit:
        return None
    subject, message_id = subjects.of(tail.shard, "c", commit.session), _message_id(subjects, commit)
    only = NewMessage(subject, messages.encode_commits([stored]), tail.seq, message_id=message_id)
    return (*_snapshot_messages(subjects, tail.shard, commit, limit), only) if commit.snapshot is not None else (only,)


def _snapshot_messages(subjects: Subjects, shard: int, commit: Commit, limit: int) -> list[NewMessage]:
    if commit.snapshot is None:
        return []
    subject = subjects.of(shard, "s", commit.session, commit.last)
    return [NewMessage(subject, part) for part in messages.split_parts(commit.snapshot, limit)]


def _message_id(subjects: Subjects, commit: Commit) -> str:
    return f"{subjects.ns}:{commit.session}:{commit.hash.hex()}"


def _session_messages(
    subjects: Subjects,
    shard: int,
    session: SessionId,
    commits: list[Commit],
    tail: SessionTail | None,
    fence: int,
    limit: int,
) -> list[NewMessage]:
    found: list[NewMessage] = []
    fork = tail.head.fork if tail is not None else commits[0].fork
    if tail is None:
        found.append(_opening(subjects, shard, session, fork, fence))
    has_lists = lists_ids(tail, commits)
    chosen = [c for c in commits if c.fingerprint]
    if len(chosen) > IDS_MAX:
        subject = subjects.of(shard, "j", session)
        for page in range(0, len(chosen), 1000):
            ids = [messages.chosen_id(c) for c in chosen[page : page + 1000]]
            found.append(NewMessage(subject, messages.encode(ids)))
    else:
        for commit in chosen:
            subject = subjects.of(shard, "i", session, digest_token(commit.commit_id))
            found.append(NewMessage(subject, messages.encode(messages.chosen_id(commit)), 0))
    for commit in commits:
        found += _snapshot_messages(subjects, shard, commit, limit)
    slim: list[StoredCommit] = []
    for commit in commits:
        stored, parts = messages.split_commit(messages.to_stored(commit, fork, has_lists=has_lists), limit)
        subject = subjects.of(shard, "p", session, commit.first)
        found += [NewMessage(subject, part) for part in parts]
        slim.append(stored)
    expected: int | None = tail.seq if tail is not None else 0
    message_id = _message_id(subjects, commits[-1]) if not found else ""
    for pack in group_by_size(slim, limit):
        data = messages.encode_commits(pack)
        found.append(NewMessage(subjects.of(shard, "c", session), data, expected, message_id=message_id))
        expected, message_id = None, ""  # the others follow it in the same batch
    return found


def _opening(subjects: Subjects, shard: int, session: SessionId, fork: ForkPoint | None, fence: int) -> NewMessage:
    if fork is None:
        return NewMessage(subjects.opening(shard, session, None), b"", fence, subjects.fence(shard))
    opened = subjects.opening(shard, session, fork.parent)
    return NewMessage(opened, b"", 0, subjects.of(shard, "x", fork.parent))


def group_by_size(commits: Sequence[StoredCommit], limit: int) -> list[list[StoredCommit]]:
    """Groups commits, in order, so that each group fits into a message."""
    found: list[list[StoredCommit]] = []
    size = 0
    for commit in commits:
        more = messages.size_of(commit)
        if not found or size + more > limit:
            found.append([])
            size = 0
        found[-1].append(commit)
        size += more
    return found
