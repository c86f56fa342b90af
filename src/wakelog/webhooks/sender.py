"""Sends the messages of each hook: in order for each session, with retries, at least once.

Each hook has its own thread, so that a slow receiver delays no other. If a receiver is unreachable, slow or busy, the
sender retries the same message with exponential backoff (1, 2, 4 … seconds, up to an hour). A message that is refused
(any other 4xx) blocks only its session, until it is accepted or a person skips it. After a 410, the receiver gets
nothing more until the next start.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec
import urllib3

from wakelog.engine import end_of
from wakelog.errors import CorruptLogError, NotFoundError, UnavailableError, WakelogError
from wakelog.model.ids import Seq, SessionId
from wakelog.store import Store
from wakelog.webhooks.hooks_file import Webhook
from wakelog.webhooks.messages import WebhookMessage, message_of
from wakelog.webhooks.positions import Positions, RefusedMessage
from wakelog.webhooks.signature import secret_of, sign

TIMEOUT_S = 10.0
WAIT_MAX_S = 3600.0
PAGE = 1000
NEWS_S = 0.5
GONE = 410
_RETRY_STATUSES = (408, 425, 429)


class WebhookSent(msgspec.Struct, frozen=True):
    """The result of one attempt."""

    hook: str
    id: str
    type: str
    session: str
    event: int
    ok: bool
    problem: str = ""


Report = Callable[[WebhookSent], None]


class Refusal(msgspec.Struct, frozen=True):
    """Why a message was not accepted."""

    problem: str
    is_session: bool
    """True if the problem is this message, not the receiver."""
    is_gone: bool = False


class WebhookPost:
    """Posts to one receiver."""

    def __init__(self, hook: Webhook) -> None:
        self._hook, self._secret = hook, secret_of(hook.secret)
        self._pool = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(connect=5.0, read=TIMEOUT_S))

    def send(self, message: WebhookMessage, at_s: int) -> Refusal | None:
        """Makes one attempt. None if the receiver accepted the message."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "wakelog",
            **sign(self._secret, message.id, at_s, message.body),
        }
        try:
            response = self._pool.request(
                "POST", self._hook.url, body=message.body, headers=headers, redirect=False, preload_content=False
            )
            status = response.status
            response.close()
        except (urllib3.exceptions.HTTPError, OSError) as exc:
            # Not the error's own text: it has the address, which may contain a token.
            return Refusal(f"{self._hook.host} gave no answer ({type(exc).__name__})", is_session=False)
        if 200 <= status < 300:
            return None
        is_session = 400 <= status < 500 and status not in (*_RETRY_STATUSES, GONE)
        return Refusal(f"{self._hook.host} answered {status}", is_session, is_gone=status == GONE)


class WebhookSender:
    """Sends the messages of one hook."""

    def __init__(
        self,
        store: Store,
        hook: Webhook,
        positions: Positions,
        *,
        report: Report = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._hook, self._positions, self._report, self._clock = store, hook, positions, report, clock
        self._post = WebhookPost(hook)
        self._cursor = ""
        self._marks: dict[SessionId, Seq] = {}
        self._due: dict[SessionId, float] = {}
        self._tries: dict[SessionId, int] = {}
        self._receiver_tries = 0
        self._wait_until = 0.0
        self.is_gone = False
        self._start()

    def _start(self) -> None:
        # Read the end of the feed first: then what happens in between is seen twice, but never missed.
        self._cursor = end_of(self._store.engine)
        heads = {head.session: head.seq for head in self._store.sessions()}
        if not self._positions.is_known(self._hook.name):
            self._positions.begin(self._hook.name, heads)
        self._marks = self._positions.all(self._hook.name)
        self._due = {session: 0.0 for session, seq in heads.items() if seq > self._marks.get(session, 0)}

    @property
    def waiting(self) -> int:
        """How many sessions have unsent messages."""
        return len(self._due)

    def step(self) -> None:
        """Sends the messages that are due."""
        while changes := self._store.engine.changes(self._cursor, PAGE):
            self._cursor = changes[-1].cursor
            for change in changes:
                self._due.setdefault(change.session, 0.0)
        for session, when in list(self._due.items()):
            now = self._clock()
            if self.is_gone or now < self._wait_until:
                return
            if now >= when:
                self._send_session(session)

    def wait_s(self) -> float:
        """How long to wait for news before the next step."""
        if not self._due:
            return NEWS_S
        first = max(self._wait_until, min(self._due.values()))
        return min(NEWS_S, max(0.0, first - self._clock()))

    def _send_session(self, id: SessionId) -> None:
        try:
            session = self._store.resume(id)
            fork = session.head.fork
            if id in self._tries and (skipped := self._positions.position(self._hook.name, id)) is not None:
                self._marks[id] = max(self._marks.get(id, 0), skipped)  # a person may have skipped a message
            after = self._marks.get(id, fork.at if fork else 0)
            seq = after
            for entry in session.log.entries(after=after):
                message = message_of(self._hook, session, entry)
                if message is not None:
                    if seq > self._marks.get(id, 0):
                        self._advance(id, seq)
                    if not self._send(id, entry.seq, message):
                        return
                seq = entry.seq
            if seq > self._marks.get(id, 0):
                self._advance(id, seq)
        except NotFoundError:
            pass  # the session was deleted
        except (UnavailableError, CorruptLogError) as exc:
            self._positions.note_failure(self._hook.name, exc.message, self._now_us())
            self._due[id] = self._clock() + self._backoff(id)
            return
        self._due.pop(id, None)

    def _send(self, id: SessionId, seq: Seq, message: WebhookMessage) -> bool:
        refusal = self._post.send(message, int(self._clock()))
        problem = refusal.problem if refusal is not None else ""
        self._report(WebhookSent(self._hook.name, message.id, message.type, id, seq, refusal is None, problem))
        if refusal is None:
            self._advance(id, seq, sent=True)
            self._tries.pop(id, None)
            self._receiver_tries = 0
            return True
        self._positions.note_failure(self._hook.name, problem, self._now_us())
        self.is_gone = refusal.is_gone
        if refusal.is_session:
            refused = RefusedMessage(id, seq, message.type, problem, self._now_us())
            self._positions.note_refusal(self._hook.name, refused)
            self._due[id] = self._clock() + self._backoff(id)
        else:
            self._wait_until = self._clock() + min(WAIT_MAX_S, 2.0**self._receiver_tries)
            self._receiver_tries += 1
        return False

    def _backoff(self, id: SessionId) -> float:
        tries = self._tries[id] = self._tries.get(id, 0) + 1
        return float(min(WAIT_MAX_S, 2.0 ** (tries - 1)))

    def _advance(self, id: SessionId, seq: Seq, *, sent: bool = False) -> None:
        self._positions.advance(self._hook.name, id, seq, sent_at=self._now_us() if sent else 0)
        self._marks[id] = seq

    def _now_us(self) -> int:
        return int(self._clock() * 1e6)


class WebhookSenders:
    """Runs all hooks of a store, one thread each, until they are stopped."""

    def __init__(self, senders: list[WebhookSender], store: Store, trouble: Callable[[str], None]) -> None:
        self._senders, self._store, self._trouble = senders, store, trouble
        self._stop = threading.Event()

    def run(self) -> None:
        threads = [threading.Thread(target=self._loop, args=(s,), daemon=True) for s in self._senders]
        for thread in threads:
            thread.start()
        try:
            while not self._stop.wait(NEWS_S) and any(thread.is_alive() for thread in threads):
                pass
        finally:
            self.stop()
            for thread in threads:
                thread.join(2 * TIMEOUT_S)

    def stop(self) -> None:
        self._stop.set()

    def _loop(self, sender: WebhookSender) -> None:
        while not self._stop.is_set() and not sender.is_gone:
            try:
                sender.step()
                self._store.engine.wait(None, after=0, timeout_s=max(0.02, sender.wait_s()))
            except WakelogError as exc:
                self._trouble(exc.message)
                self._stop.wait(5.0)
