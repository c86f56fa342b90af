"""One connection to a cluster, with retries.

Every request is idempotent: reads change nothing, and a message is stored only after the one it names. So if a server
is lost, or a stream has no leader, requests are retried for `patience_s`. After that the error is raised.

What must be current is asked of a stream's leader (`last`, `next`, `subjects`). Long runs of messages come from any
replica (`run`), which may be slightly behind; a caller that needs the end of a run asks the leader (`page`).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import random
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import nats.errors

from wakelog.engines.nats.client import Answer, RequestClient
from wakelog.engines.nats.errors import (
    JetStreamRefusal,
    forbidden,
    forbidden_subject,
    is_login_refusal,
    is_temporary,
    translate_error,
)
from wakelog.engines.nats.stream_message import (
    NewMessage,
    StreamMessage,
    decode_answer,
    decode_stored,
    delivered,
    header_line,
)
from wakelog.errors import UnavailableError, WakelogError

PATIENCE_S = 20.0
TRY_S = 2.5
"""How long to wait for one answer."""
AGAIN_S = 0.25
"""How long to wait before a read is sent again. A stream without a leader does not answer reads at all, and the next
leader is elected after four to nine seconds: a client that only waited would notice it late."""
MOVE_S = 5.0
"""After this long without reaching a leader, another server is tried. Longer than most elections."""
RUN_MAX = 256
RUN_BYTES = 4 << 20
BATCHES_MAX = 12
"""How many batches this process opens in one stream at a time. The server allows 50 in total."""
_PAUSE_S, _PAUSE_MAX_S = 0.02, 0.5
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
T = TypeVar("T")


class NatsConnection:
    """Sends requests to a cluster. Runs on the loop."""

    def __init__(self, servers: Sequence[str], options: dict[str, Any], patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s
        self.on_return: Callable[[], None] = lambda: None
        """Called when a lost connection is restored."""
        self.retries = 0
        self._failing_since: float | None = None
        """Since when no leader was reached."""
        self._unstored_since: float | None = None
        """Since when no message to store was answered. A leader that is cut off from the other servers goes on
        answering reads for some seconds, and stores nothing."""
        self._servers, self._options = list(servers), options
        self._client = RequestClient()
        self._batches: dict[str, asyncio.Semaphore] = {}
        self._last_error: Exception | None = None
        self._forbidden: set[str] = set()
        """Subjects, in small letters, that the servers do not let this user use."""
        self._insecure = 0
        """How often a secure connection failed. The driver tries each server in turn."""
        self._is_closed = False

    async def open(self) -> None:
        connecting = asyncio.ensure_future(self._connect())
        refused = asyncio.ensure_future(self._wait_for_refusal())
        try:
            await asyncio.wait({connecting, refused}, timeout=self.patience_s, return_when=asyncio.FIRST_COMPLETED)
            if not connecting.done():
                raise translate_error(self._last_error or TimeoutError("no server answered"))
            await connecting
        except WakelogError:
            raise
        except Exception as exc:
            raise translate_error(exc) from exc
        finally:
            for task in (connecting, refused):
                task.cancel()
            await asyncio.wait({connecting, refused})
        await self._client.open_inbox()

    async def _connect(self) -> None:
        await self._client.connect(
            servers=self._servers,
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnect,
            reconnected_cb=self._on_reconnect,
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.1,  # type: ignore[arg-type]  # any number of seconds works
            connect_timeout=2,
            ping_interval=5,
            max_outstanding_pings=2,
            **self._options,
        )

    async def _wait_for_refusal(self) -> None:
        """Ends when a server refuses the login, or none gives a secure connection, so that it is not retried."""
        while self._insecure < len(self._servers) and not (self._last_error and is_login_refusal(self._last_error)):
            await asyncio.sleep(0.05)

    async def _on_error(self, exc: Exception) -> None:
        self._last_error = exc
        if (subject := forbidden_subject(exc)) is not None:
            self._forbidden.add(subject)
        self._insecure += isinstance(exc, ssl.SSLError)

    async def _on_disconnect(self) -> None:
        self._client.fail_all(nats.errors.StaleConnectionError())

    async def _on_reconnect(self) -> None:
        self._forbidden.clear()
        self.on_return()

    async def close(self) -> None:
        self._is_closed = True
        await self._client.end()

    @property
    def server_info(self) -> dict[str, Any]:
        """What the connected server reported about itself."""
        return dict(self._client._server_info)

    @property
    def servers(self) -> list[str]:
        """The addresses of all known servers, host:port."""
        return sorted({url.netloc.rpartition("@")[2] for url in self._client.servers})

    @property
    def server_count(self) -> int:
        """How many servers are named or announced. A server with several addresses counts more than once."""
        return max(len(self._servers), len(self._client._server_info.get("connect_urls") or ()))

    @property
    def max_bytes(self) -> int:
        return self._client.max_payload

    async def subscribe(self, subject: str, on_subject: Callable[[str], None]) -> None:
        async def receive(message: Any) -> None:
            on_subject(message.subject)

        await self._client.subscribe(subject, cb=receive)
        await self._client.flush(timeout=10)

    # Asking

    async def retry(self, work: Callable[[], Awaitable[T]], *, patience_s: float | None = None) -> T:
        """Runs `work`, which must be idempotent, and retries it if that may help."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + (self.patience_s if patience_s is None else patience_s)
        pause = _PAUSE_S
        while True:
            try:
                return await work()
            except WakelogError:
                raise
            except Exception as exc:
                left = deadline - clock()
                if self._is_closed or not is_temporary(exc):
                    raise
                if left <= 0:
                    await self.change_server()
                    raise
            pause = await self.pause(pause, left)

    async def pause(self, pause: float, left: float) -> float:
        """Waits before a retry, and returns how long the next pause may be."""
        self.retries += 1
        await self.change_server()
        await asyncio.sleep(min(left, random.uniform(pause / 2, pause)))
        return min(2 * pause, _PAUSE_MAX_S)

    async def change_server(self) -> None:
        """Connects to another server if no leader was reached through this one for some time, or nothing was stored: it
        may be cut off from the others, but not from us."""
        now = asyncio.get_running_loop().time()
        since = min((each for each in (self._failing_since, self._unstored_since) if each is not None), default=now)
        if self._failing_since is None:
            self._failing_since = now
        if now > since + MOVE_S and self._client.is_connected and len(self.servers) > 1:
            self._failing_since = self._unstored_since = None
            await self._client.force_reconnect()

    async def api(self, name: str, body: Any = None, *, patience_s: float | None = None) -> dict[str, Any]:
        """Sends a request to JetStream's API, which leaders answer."""
        data = _encode(body) if body is not None else b""
        return await self.retry(lambda: self._api(name, data), patience_s=patience_s)

    async def _api(self, name: str, data: bytes) -> dict[str, Any]:
        place, future = self._expect(TRY_S)
        sending: asyncio.TimerHandle | None = None
        # Not what may take a server long, such as a list of subjects: repeating that would make it take longer.
        is_short_read = name.startswith("STREAM.MSG.GET.") or (name.startswith("STREAM.INFO.") and not data)

        def send() -> None:
            nonlocal sending
            if is_short_read:
                sending = asyncio.get_running_loop().call_later(AGAIN_S, send_again)
            self._send(f"$JS.API.{name}", data, place)

        def send_again() -> None:
            with contextlib.suppress(Exception):  # whoever waits is told by the client, or after TRY_S
                send()

        try:
            with self._asking(f"$JS.API.{name}"):
                send()
                answer = decode_answer(await future)
        finally:
            self._client.drop(place)
            if sending is not None:
                sending.cancel()
        self._failing_since = None
        return answer

    async def _ask(self, subject: str, data: bytes, lines: str) -> Answer:
        place, future = self._expect(TRY_S)
        try:
            with self._asking(subject):
                self._send(subject, data, place, lines)
                return await future
        finally:
            self._client.drop(place)

    def _expect(self, within_s: float) -> tuple[str, asyncio.Future[Answer]]:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def settle(answer: Answer | Exception) -> None:
            if future.done():
                return
            try:
                future.set_result(delivered(answer))
            except Exception as exc:
                future.set_exception(exc)

        return self._client.expect(settle, within_s), future

    @contextlib.contextmanager
    def _asking(self, subject: str) -> Iterator[None]:
        """A server does not answer what a user may not ask. It reports that apart."""
        try:
            yield
        except TimeoutError as exc:
            if f"{self._client.inbox}.*".lower() in self._forbidden:
                raise forbidden("subscribe to _INBOX.>") from exc
            if subject.lower() in self._forbidden:
                raise forbidden(f"publish to {subject}") from exc
            raise

    def _send(self, subject: str, data: bytes, reply: str, lines: str = "") -> None:
        if self._is_closed:
            raise UnavailableError("the store was closed", kind="store-closed", hint="open it again")
        self._client.send(subject, data, reply, lines)

    # Reading

    async def last(self, stream: str, subject: str) -> StreamMessage | None:
        """The newest message of a subject, from the leader."""
        return await self._get(stream, {"last_by_subj": subject})

    async def next(self, stream: str, subject: str, seq: int) -> StreamMessage | None:
        """The first message of a subject at or after a seq, from the leader."""
        return await self._get(stream, {"seq": max(1, seq), "next_by_subj": subject})

    async def _get(self, stream: str, what: dict[str, Any]) -> StreamMessage | None:
        try:
            found = (await self.api(f"STREAM.MSG.GET.{stream}", what))["message"]
        except JetStreamRefusal as exc:
            if exc.is_missing:
                return None
            raise
        return StreamMessage(found["seq"], found["subject"], base64.b64decode(found.get("data", "")))

    async def all(self, stream: str, subject: str) -> list[StreamMessage]:
        """All messages of a subject that has few, from the leader."""
        found: list[StreamMessage] = []
        while (message := await self.next(stream, subject, found[-1].seq + 1 if found else 1)) is not None:
            found.append(message)
        return found

    async def run(self, stream: str, subject: str, seq: int, count: int = RUN_MAX) -> list[StreamMessage]:
        """Messages of a subject from a seq on, from any replica: without gaps, but the newest may be missing."""
        body = {"batch": count, "max_bytes": RUN_BYTES, "seq": max(1, seq), "next_by_subj": subject}
        return await self.retry(lambda: self._run(stream, _encode(body)))

    async def page(self, stream: str, subject: str, seq: int, count: int = RUN_MAX) -> list[StreamMessage]:
        """Messages of a subject from a seq on; none only if the leader has none."""
        first = await self.next(stream, subject, seq)
        if first is None:
            return []
        return [first, *(await self.run(stream, subject, first.seq + 1, min(RUN_MAX, count - 1)) if count > 1 else ())]

    async def run_traced(
        self, stream: str, body: dict[str, Any], within_s: float
    ) -> tuple[list[StreamMessage], list[dict[str, Any]]]:
        """Like `run`, without a retry; and the traces of the request from each server that it passed, the connected one
        first."""
        traces: list[dict[str, Any]] = []
        has_first = asyncio.Event()

        def take(answer: Answer | Exception) -> None:
            if isinstance(answer, Answer) and answer.data:
                trace = _decode(answer.data)
                is_first = trace["server"]["name"] == self.server_info.get("server_name")
                traces.insert(0 if is_first else len(traces), trace)
                if is_first:
                    has_first.set()

        to = self._client.expect(take, within_s)
        try:
            found = await self._run(stream, _encode(body), header_line("Nats-Trace-Dest", to))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(has_first.wait(), within_s)
        finally:
            self._client.drop(to)
        return found, traces

    async def _run(self, stream: str, body: bytes, lines: str = "") -> list[StreamMessage]:
        found: list[StreamMessage] = []
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def take(answer: Answer | Exception) -> None:
            if done.done():
                return
            if isinstance(answer, Exception):
                done.set_exception(answer)
            elif not (status := answer.status):
                place, subject = int(answer.header("Nats-Sequence")), answer.header("Nats-Subject")
                found.append(StreamMessage(place, subject, answer.data))
            elif status == "503":
                done.set_exception(nats.errors.NoRespondersError())
            elif status in ("204", "404"):
                done.set_result(None)
            else:
                done.set_exception(JetStreamRefusal(int(status), 0, f"a read was refused with status {status}"))

        reply = self._client.expect(take, 4 * TRY_S)
        try:
            with self._asking(f"$JS.API.DIRECT.GET.{stream}"):
                self._send(f"$JS.API.DIRECT.GET.{stream}", body, reply, lines)
                await done
        except TimeoutError:
            if not found:
                raise  # otherwise return what arrived; the caller asks for more
        finally:
            self._client.drop(reply)
        return found

    async def subjects(self, stream: str, pattern: str) -> dict[str, int]:
        """The subjects with messages, and how many each has, from the leader."""
        found: dict[str, int] = {}
        while True:
            page = await self.api(f"STREAM.INFO.{stream}", {"subjects_filter": pattern, "offset": len(found)})
            more = page["state"].get("subjects") or {}
            found |= more
            if not more or len(found) >= page.get("total", 0):
                return found

    # Writing

    async def put(self, stream: str, messages: Sequence[NewMessage]) -> int:
        """Stores messages together or not at all, and returns the seq of the last. There is no retry: only the caller
        knows what a missing answer means. JetStreamRefusal if an expectation is not met."""
        try:
            if len(messages) == 1:
                [only] = messages
                return self._stored_at(await self._ask(only.subject, only.data, only.lines))
            async with self._batches.setdefault(stream, asyncio.Semaphore(BATCHES_MAX)):
                return await self._put_batch(messages)
        except TimeoutError as exc:
            self._note_silence(exc)
            raise

    def _note_silence(self, exc: Exception) -> None:
        if isinstance(exc, TimeoutError) and self._unstored_since is None:
            self._unstored_since = asyncio.get_running_loop().time() - TRY_S

    def put_soon(self, messages: Sequence[NewMessage], on_stored: Callable[[int | Exception], None]) -> None:
        """Like `put`, without a task that waits: `on_stored` is called once, later, with the seq of the last message
        or with what `put` would have raised."""

        def settle(answer: Answer | Exception) -> None:
            if isinstance(answer, Answer) and not answer.data and not answer.head:
                return  # a batch has begun
            self._client.drop(place)
            try:
                seq = self._stored_at(delivered(answer))
            except Exception as exc:
                self._note_silence(exc)
                on_stored(exc)
            else:
                on_stored(seq)

        place = self._client.expect(settle, TRY_S + _sending_s(messages))
        try:
            self._send_together(messages, place, place)
        except Exception as exc:
            self._client.drop(place)
            asyncio.get_running_loop().call_soon(on_stored, exc)

    def _stored_at(self, answer: Answer) -> int:
        stored = decode_stored(answer)
        self._failing_since = self._unstored_since = None
        if stored.duplicate:
            raise JetStreamRefusal(400, 10201, "this message was sent before")
        return stored.seq

    async def _put_batch(self, messages: Sequence[NewMessage]) -> int:
        limit_s = TRY_S + len(messages) * 0.02 + _sending_s(messages)
        reply, future = self._expect(limit_s)

        def first_answered(answer: Answer | Exception) -> None:
            """If a batch cannot begin, the server says so at once, and does not answer its end."""
            if isinstance(answer, Answer) and answer.data and not future.done():
                future.set_result(answer)

        first = self._client.expect(first_answered, limit_s)
        try:
            with self._asking(messages[0].subject):
                self._send_together(messages, first, reply)
                return self._stored_at(await future)
        finally:
            self._client.drop(reply)
            self._client.drop(first)

    def _send_together(self, messages: Sequence[NewMessage], first: str, last: str) -> None:
        """Sends one message, or a batch. `first` is told that a batch has begun, or why it cannot; `last` gets the
        answer."""
        if len(messages) == 1:
            self._send(messages[0].subject, messages[0].data, last, messages[0].lines)
            return
        batch = last.removeprefix("_INBOX.").replace(".", "-")
        for number, message in enumerate(messages, 1):
            lines = f"{message.lines}Nats-Batch-Id: {batch}\r\nNats-Batch-Sequence: {number}\r\n"
            if number == len(messages):
                lines += "Nats-Batch-Commit: 1\r\n"
            to = last if number == len(messages) else first if number == 1 else ""
            self._send(message.subject, message.data, to, lines)

    async def put_with_retry(self, stream: str, message: NewMessage) -> int:
        """Stores one message, with retries."""
        return await self.retry(lambda: self.put(stream, [message]))

    async def erase(self, stream: str, seq: int) -> None:
        """Overwrites a message with noise on every replica, and removes it. A missing message is no error."""
        try:
            await self.api(f"STREAM.MSG.DELETE.{stream}", {"seq": seq, "no_erase": False})
        except JetStreamRefusal as exc:
            if not exc.is_missing:
                raise


def _sending_s(messages: Sequence[NewMessage]) -> float:
    return sum(len(message.data) for message in messages) / 2e6
