"""An engine that stores its bytes on a server.

Every method is one question (wire.py) to `/v1/engine/…`. All of them are idempotent. So a question without an answer is
retried, on a new connection, for `patience_s`. An append that still has no answer is *unknown*, and the log asks again
with the same commit.

Commits are sealed on this side, so the server need not be trusted: readers check what it returns against the hashes, as
with a disk. The server in turn seals every commit again before it stores it (log/foreign_commits.py).
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

import msgspec

from wakelog.engine import (
    Abilities,
    FeedChange,
    Known,
    Surgery,
    find_live_sessions,
    refuse_place_in_no_session,
)
from wakelog.engines.remote import wire
from wakelog.engines.remote.append_queue import QueuedAppend, SendQueue
from wakelog.engines.remote.connection import Connections, NoReplyError, Reply, UnreachableError
from wakelog.errors import NotAllowedError, NotFoundError, UnavailableError, UnsupportedError
from wakelog.model.described import described
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Head, Heartbeat, Snapshot

T = TypeVar("T")

PAGE_MAX = 1000
POLL_S = 20.0
"""How long one request may wait for news. A longer wait takes several requests."""
_PAUSE_S, _PAUSE_MAX_S = 0.02, 1.0
_TYPES = {"Content-Type": wire.MSGPACK, "Accept": wire.MSGPACK}
_encode = msgspec.msgpack.Encoder().encode


class RemoteEngine:
    """All sessions of one namespace of one server."""

    is_remote = True
    """Lets callers detect a remote engine without importing this module."""

    def __init__(
        self, url: str, key: str = "", *, create: bool = True, patience_s: float = 15.0, timeout_s: float = 30.0
    ) -> None:
        """`key` is an API key of the server. Questions without an answer are retried for `patience_s`."""
        self.url = url
        self._timeout_s = timeout_s
        self._patience_s = 0.0  # do not retry the first question: a missing server is reported at once
        if not (key.isascii() and key.isprintable()):
            raise NotAllowedError(
                "the key contains characters that no key has",
                kind="key-refused",
                hint="look for a line break at its end",
            )
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._connections = Connections(url, headers)
        self._closed = False
        self._begin()
        try:
            self.info = self._connect(create)
        except BaseException:
            self.close()
            raise
        self._patience_s = patience_s
        self.durability = self.info.durability

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            live_sessions=self.live_sessions,
            take_bundle=self.take_bundle,
            marks=self,
            rewrite=self.rewrite,
            place=self.url,
        )

    def _connect(self, create: bool) -> wire.Info:
        """Asks for the server's version and rights. With `create`, and a key that may write, also makes the
        namespace."""
        if create:
            with contextlib.suppress(NotAllowedError):
                return self.ask("/v1/namespace", wire.Acknowledged(), wire.Info)
        return self._get("/v1/info", wire.Info)

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._queue = SendQueue(self._send, self._check_open)

    # Appending

    def submit(self, *commits: Commit) -> QueuedAppend:
        assert commits, "nothing was submitted"
        self._check_open()
        if self._pid != os.getpid():
            self._begin()  # a forked child must not send its parent's appends
        return self._queue.submit(commits)

    def _send(self, groups: Sequence[tuple[Commit, ...]]) -> Sequence[wire.SubmitAnswer]:
        return self._ask("submit", wire.Submit(tuple(groups)), wire.Answers).answers

    # Reading

    def read(
        self, session: SessionId, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False
    ) -> Iterator[Commit]:
        first = self._ask("read", wire.Read(session, after, upto, payloads), wire.Commits)
        return self._pages(first, session, upto, payloads)

    def _pages(self, page: wire.Commits, session: SessionId, upto: Seq | None, payloads: bool) -> Iterator[Commit]:
        yield from page.commits
        while page.more:
            after = page.commits[-1].last
            page = self._ask("read", wire.Read(session, after, upto, payloads), wire.Commits)
            if page.commits and page.commits[0].first != after + 1:
                raise NotFoundError(f"session {session} was deleted while it was read", kind="session-deleted")
            yield from page.commits

    def head(self, session: SessionId) -> Head:
        return self._ask("head", wire.OfSession(session), Head)

    def known(self, session: SessionId, commit_id: str) -> Known | None:
        return self._ask("known", wire.FindCommit(session, commit_id), wire.FoundCommit).known

    def sessions(self, *, after: str = "", limit: int = 100) -> Sequence[Head]:
        def ask(last: Head | None, size: int) -> Sequence[Head]:
            return self._ask("sessions", wire.ListSessions(last.session if last else after, size), wire.Heads).heads

        return _read_pages(ask, limit)

    def children(self, session: SessionId, *, deleted: bool = False) -> Sequence[Head]:
        return self._ask("children", wire.Children(session, deleted), wire.Heads).heads

    def changes(self, cursor: str = "", limit: int = 100) -> Sequence[FeedChange]:
        def ask(last: FeedChange | None, size: int) -> Sequence[FeedChange]:
            return self._ask("changes", wire.ListChanges(last.cursor if last else cursor, size), wire.Changes).changes

        return _read_pages(ask, limit)

    def payload(self, session: SessionId, seq: Seq, digest: bytes) -> bytes:
        return self._ask("payload", wire.FindPayload(session, seq, digest), wire.Content).content

    def snapshot(self, session: SessionId, *, upto: Seq) -> Snapshot | None:
        # A position beyond every log must fit into the wire's integers.
        return self._ask("snapshot", wire.FindSnapshot(session, min(upto, 1 << 62)), wire.FoundSnapshot).snapshot

    def drop_snapshots(self, session: SessionId) -> None:
        self._ask("drop-snapshots", wire.OfSession(session), wire.Acknowledged)

    # Names, leases

    def claim(self, name: str, session: SessionId) -> SessionId:
        winner = self._ask("claim", wire.Claim(name, session), wire.Named).session
        assert winner is not None
        return winner

    def find(self, name: str) -> SessionId | None:
        return self._ask("find", wire.FindName(name), wire.Named).session

    def beat(self, session: SessionId, beat: Heartbeat) -> None:
        self._ask("beat", wire.Beat(session, beat), wire.Acknowledged)

    def last_beat(self, session: SessionId) -> Heartbeat | None:
        return self._ask("last-beat", wire.OfSession(session), wire.LastBeat).beat

    def live_sessions(self, since: int) -> Collection[SessionId]:
        try:
            return self._ask("heard", wire.HeardSince(since), wire.SessionIds).sessions
        except NotFoundError as exc:
            if exc.kind != "no-such-route":
                raise
            return find_live_sessions(self, since)  # an older server

    # Removing, importing

    def operate(self, surgery: Surgery) -> Head:
        return self._ask("operate", wire.Operate(surgery), Head)

    def delete(self, commit: Commit) -> Head:
        return self._ask("delete", wire.Delete(commit), Head)

    def take_bundle(self, bundle: bytes) -> SessionId:
        """Imports a bundle on the server, which verifies it (log/bundle.py)."""
        reply = self._request("POST", "/v1/bundles", bundle, {"Content-Type": "application/x-ndjson"})
        return self._decode(reply, wire.Imported).session

    # Maintenance

    def mark(self, name: str) -> str | None:
        try:
            return self._ask("mark", wire.FindMark(name), wire.MarkValue).value
        except (NotFoundError, UnsupportedError) as exc:
            if exc.kind not in ("no-such-route", "no-marks"):
                raise
            return None  # an older server

    def set_mark(self, name: str, value: str) -> None:
        self._ask_if_supported("set-mark", wire.SetMark(name, value), wire.Acknowledged)

    def rewrite(self, *, most: int | None = None) -> bool:
        return self._ask_if_supported("rewrite", wire.Rewrite(most), wire.Rewritten).was_due

    def _ask_if_supported(self, operation: str, question: wire.Question, answer: type[T]) -> T:
        try:
            return self._ask(operation, question, answer)
        except NotFoundError as exc:
            if exc.kind != "no-such-route":
                raise
            raise UnsupportedError(
                f"the server at {self.url} is too old for this", kind="no-marks", hint="upgrade the server"
            ) from exc

    # News

    def wait(self, session: SessionId | None, *, after: Seq, timeout_s: float) -> bool:
        refuse_place_in_no_session(session, after)
        deadline = time.monotonic() + timeout_s
        cursor = ""
        while True:
            left = deadline - time.monotonic()
            question = wire.WaitRequest(session, after, cursor, max(0.0, min(left, POLL_S)))
            news = self._ask("wait", question, wire.NewsAnswer)
            cursor = news.cursor
            if news.came or time.monotonic() >= deadline:
                return news.came

    def close(self) -> None:
        self._closed = True
        self._connections.close()

    # Asking

    def ask(self, path: str, question: msgspec.Struct, answer: type[T]) -> T:
        """Asks any route of the server that takes and returns a struct; `path` begins with /v1."""
        return self._decode(self._request("POST", path, _encode(question), _TYPES), answer)

    def _ask(self, operation: str, question: wire.Question, answer: type[T]) -> T:
        return self.ask(f"/v1/engine/{operation}", question, answer)

    def _get(self, path: str, answer: type[T]) -> T:
        return self._decode(self._request("GET", path, b"", _TYPES), answer)

    def _request(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Reply:
        deadline = time.monotonic() + self._patience_s
        pause, was_sent = _PAUSE_S, False
        while True:
            self._check_open()
            try:
                reply = self._connections.ask(method, path, body, self._timeout_s, headers)
                wait_s = _retry_after(reply)
                if wait_s is None:
                    return reply
                error: NoReplyError | None = None
            except NoReplyError as exc:
                was_sent = was_sent or not isinstance(exc, UnreachableError)
                error, wait_s = exc, random.uniform(0, pause)
                pause = min(2 * pause, _PAUSE_MAX_S)
            left = deadline - time.monotonic()
            if left <= 0:
                if error is None:
                    return reply
                raise self._unreachable(error, was_sent) from error
            time.sleep(min(wait_s, left))

    def _unreachable(self, exc: NoReplyError, was_sent: bool) -> UnavailableError:
        if was_sent:
            return UnavailableError(f"no answer from {self.url}: {exc}", kind="answer-unknown")
        return UnavailableError(
            f"there is no server at {self.url}: {exc}", kind="server-unreachable", hint="wakelog serve starts one"
        )

    def _decode(self, reply: Reply, answer: type[T]) -> T:
        media = reply.headers.get("content-type", "").partition(";")[0]
        try:
            if media == wire.PROBLEM:
                raise wire.error_of(msgspec.json.decode(reply.content, type=described(wire.Problem)))
            if reply.status in (200, 201) and media == wire.MSGPACK:
                return msgspec.msgpack.decode(reply.content, type=described(answer))
            if reply.status in (200, 201) and media == wire.JSON:
                return msgspec.json.decode(reply.content, type=described(answer))
        except msgspec.DecodeError as exc:
            raise _bad_reply(self.url, reply) from exc
        raise _bad_reply(self.url, reply)

    def _check_open(self) -> None:
        if self._closed:
            raise UnavailableError(f"the store at {self.url} was closed", kind="store-closed")


def _read_pages(ask: Callable[[T | None, int], Sequence[T]], limit: int) -> list[T]:
    """Up to `limit` items, asked page by page after the last one."""
    results: list[T] = []
    while (size := min(PAGE_MAX, limit - len(results))) > 0:
        page = ask(results[-1] if results else None, size)
        results += page
        if len(page) < size:
            break
    return results


def _retry_after(reply: Reply) -> float | None:
    """How long to wait before retrying; None if this is the answer. 502 and 504 come from a proxy, so the outcome is
    unknown."""
    retry_after = reply.headers.get("retry-after", "")
    if reply.status not in (429, 502, 504) and not (reply.status == 503 and retry_after):
        return None
    return float(retry_after) if retry_after.isdigit() else 0.2


def _bad_reply(url: str, reply: Reply) -> UnavailableError:
    if reply.status >= 500:
        return UnavailableError(f"no answer from {url}: HTTP status {reply.status}", kind="answer-unknown")
    return UnavailableError(
        f"what answers at {url} is not a wakelog server: HTTP status {reply.status}",
        kind="not-a-server",
        hint="check the address, and any proxy or firewall in between",
    )
