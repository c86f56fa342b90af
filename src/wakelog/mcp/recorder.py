"""Records the traffic of the proxies: each tool call with input, outcome, duration and trust, as actions of a session.

Frames are passed to a separate thread that writes them, so the traffic never waits for the store. When the store fails,
the traffic continues, and the gap is recorded as soon as the store works again.

A server's answer is the outcome of a call, even if the client did not get it. If an answer could not be delivered, the
record says so. When a client disconnects, its last answers are named, because it is unknown whether it read them.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from wakelog.codec.canonical import hash_value
from wakelog.errors import WakelogError
from wakelog.mcp.frames import Frame
from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.model.ids import Seq
from wakelog.model.json_fields import as_dict
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.values import plain, summarise
from wakelog.session import Session

Side = Literal["client", "server"]
Job = Callable[[], None]
QUEUE_MAX = 10_000
UNREAD_MAX = 50
"""How many answers are remembered until the client sends something."""
_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
_CONNECTION_ENDED = "the connection ended before the answer came"
_NOT_DELIVERED = "never got this answer: it had left"


class OpenCall(msgspec.Struct):
    """A tool call without a recorded answer."""

    action: str
    tool: str
    effect: ev.Effect
    since_ns: int
    is_answered: bool = False
    """True if the answer arrived but is not stored yet."""


class ProxyClient(msgspec.Struct):
    """A client, and the answers it got since it last sent something."""

    name: str = ""
    version: str = ""
    is_introduced: bool = False
    has_left: bool = False
    unread: list[tuple[str, str, Seq]] = []
    """The request, action and event of each answer."""

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}".rstrip() or "the client"


class TrafficRecorder:
    """Writes a server's tool calls into a session."""

    def __init__(
        self,
        open_session: Callable[[], Session[Any]],
        *,
        name: str,
        trust: Trust = "unverified",
        closes: bool = False,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        """`open_session` is called for the first write, and again if it failed. With `closes`, the session ends
        together with the recorder."""
        self._open_session = open_session
        self._session: Session[Any] | None = None
        self._source = f"mcp:{name}"
        self._trust: Trust = trust
        self._closes = closes
        self._warn = warn or _to_stderr
        self._queue: queue.Queue[tuple[Job, threading.Event | None] | None] = queue.Queue(QUEUE_MAX)
        self._open: dict[tuple[str, str], OpenCall] = {}
        self._lists: set[tuple[str, str]] = set()
        self._reads: dict[tuple[str, str], str] = {}
        self._effects: dict[str, ev.Effect] = {}
        self._clients: dict[str, ProxyClient] = {}
        self._number = 0
        self._missed = 0
        self._is_failing = False
        self._thread = threading.Thread(target=self._work, name="wakelog recorder", daemon=True)
        self._thread.start()

    def add_frame(
        self, side: Side, frame: Frame, *, scope: str = "", wait_s: float = 0.0, is_delivered: bool = True
    ) -> None:
        """Queues a frame to be recorded. Waits up to `wait_s` until it is stored. `scope` is the conversation, if one
        proxy serves several: request ids are unique only within it. `is_delivered` is False if the receiver had
        left."""
        at_ns = time.monotonic_ns()
        done = threading.Event() if wait_s else None
        if side == "client" and "method" in frame:
            is_queued = self._enqueue(lambda: self._record_request(scope, frame, at_ns), done)
        elif side == "server" and "method" not in frame and "id" in frame:
            is_queued = self._enqueue(lambda: self._record_answer(scope, frame, at_ns, is_delivered), done)
        else:
            return
        if not is_queued:
            self._missed += 1
        elif done is not None:
            done.wait(wait_s)

    def end_conversation(self, scope: str) -> None:
        """No more answers will come: open calls have an unknown outcome."""
        self._enqueue(lambda: self._forget_conversation(scope))

    def note_departure(self, *, lost: tuple[Any, ...] = ()) -> None:
        """The client disconnected. `lost` are the requests whose answers could not be delivered."""
        self._enqueue(lambda: self._record_departure("", lost))

    def rename_conversation(self, scope: str, name: str) -> None:
        """The server has named a conversation. Its client stays the same."""
        self._enqueue(lambda: self._clients.update({name: self._client(scope)}))

    def _enqueue(self, job: Job, done: threading.Event | None = None) -> bool:
        try:
            self._queue.put_nowait((job, done))
        except queue.Full:
            return False
        return True

    def note_skipped(self, what: str) -> None:
        """Something was forwarded that is too large to record. Its call will have no outcome."""
        self._missed += 1
        self._warn(f"{what} was passed on but not recorded")

    def close(self, timeout_s: float = 30.0) -> None:
        """Writes what is queued, and records unanswered calls as uncertain. Waits for a slow store, but gives up if it
        stores nothing for `timeout_s`."""
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=timeout_s)
        left = -1
        while self._thread.is_alive() and left != (left := self._queue.qsize()):
            self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._warn(
                f"the last {max(1, left)} messages were passed on but may not be recorded: the store is too slow"
            )

    # In the writing thread

    def _work(self) -> None:
        while (queued := self._queue.get()) is not None:
            job, done = queued
            self._guarded(job)
            if done is not None:
                done.set()
        self._guarded(self._end)

    def _guarded(self, write: Job) -> None:
        try:
            self._note_gap()
            write()
            if self._is_failing:
                self._is_failing = False
                self._warn("the store is back; what was missed is noted as a gap")
        except Exception as exc:  # no failure here may affect the traffic
            self._missed += 1
            if not self._is_failing:
                self._is_failing = True
                message = exc.message if isinstance(exc, WakelogError) else repr(exc)
                self._warn(f"calls are passed on but not recorded: {message}")

    def _note_gap(self) -> None:
        if self._missed:
            missed = f"{self._missed} messages passed without being recorded"
            self._append(EventDraft(ev.GapNoted(missed=missed, source=self._source), actor="runtime"))
            self._missed = 0

    def _append(self, *drafts: EventDraft) -> Seq:
        if self._session is None:
            self._session = self._open_session()
        return self._session.append(*drafts).seq

    def _forget_conversation(self, scope: str) -> None:
        self._settle_open(scope)
        self._clients.pop(scope, None)

    def _record_request(self, scope: str, frame: Frame, at_ns: int) -> None:
        params = as_dict(frame.get("params"))
        self._note_client(scope, frame, params)
        if "id" not in frame:
            return
        key = (scope, repr(frame["id"]))
        method = frame["method"]
        if method == "tools/list":
            self._lists.add(key)
        elif method == "resources/read":
            self._reads[key] = str(params.get("uri", ""))
        elif method == "tools/call":
            self._record_call(key, params, at_ns)

    def _record_call(self, key: tuple[str, str], params: dict[str, Any], at_ns: int) -> None:
        tool = str(params.get("name", ""))
        self._number += 1
        effect = self._effects.get(tool, "external")
        call = OpenCall(f"{tool}-{at_ns:x}-{self._number}", tool, effect, at_ns)
        input = plain(params.get("arguments") or {})
        request = ev.ActionRequested(
            action=call.action, tool=tool, effect=effect, input=input, input_hash=hash_value(input)
        )
        started = EventDraft(ev.ActionStarted(action=call.action), actor="runtime")
        self._append(*self._introduction(key[0]), EventDraft(request, source=self._source), started)
        self._open[key] = call

    # Clients

    def _client(self, scope: str) -> ProxyClient:
        return self._clients.setdefault(scope, ProxyClient(unread=[]))

    def _note_client(self, scope: str, frame: Frame, params: dict[str, Any]) -> None:
        """Learns from a frame: the client's name, and that it has read its answers."""
        client = self._client(scope)
        client.unread.clear()
        meta = params.get("_meta")
        info = params.get("clientInfo") if frame["method"] == "initialize" else None
        info = info or (meta.get(_CLIENT_INFO) if isinstance(meta, dict) else None)
        if isinstance(info, dict) and isinstance(info.get("name"), str):
            client.name, client.version = info["name"][:200], str(info.get("version", ""))[:50]

    def _introduction(self, scope: str) -> list[EventDraft]:
        """Records who the client is, once and with its first call: a client without calls creates no session."""
        client = self._client(scope)
        if client.is_introduced or not client.name:
            return []
        client.is_introduced = True
        fields: dict[str, Value] = {"client": client.name, "version": client.version}
        return [
            EventDraft(ev.Foreign(foreign_kind="x.mcp.connected", data=fields), actor="runtime", source=self._source)
        ]

    def _record_departure(self, scope: str, lost_ids: tuple[Any, ...]) -> None:
        client = self._client(scope)
        if self._session is None:
            return
        drafts = []
        lost = {repr(id) for id in lost_ids}
        for _, _, seq in [answer for answer in client.unread if answer[0] in lost]:
            drafts.append(EventDraft(ev.NoteAdded(text=f"{client.title} {_NOT_DELIVERED}", on=seq), actor="runtime"))
        client.unread = [answer for answer in client.unread if answer[0] not in lost]
        if not client.has_left:
            client.has_left = True
            unread: list[Value] = [action for _, action, _ in client.unread]
            waiting: list[Value] = [call.action for key, call in self._open.items() if key[0] == scope]
            why = f"{client.title} left" + ("; whether it read its last answers is not known" if unread else "")
            fields: dict[str, Value] = {"client": client.name, "unread": unread, "unanswered": waiting, "why": why}
            drafts.append(
                EventDraft(ev.Foreign(foreign_kind="x.mcp.left", data=fields), actor="runtime", source=self._source)
            )
        if drafts:
            self._append(*drafts)

    def _record_answer(self, scope: str, frame: Frame, at_ns: int, is_delivered: bool) -> None:
        key = (scope, repr(frame["id"]))
        result = frame.get("result")
        if key in self._lists:
            self._lists.discard(key)
            self._learn(result)
        elif key in self._reads:
            uri = self._reads.pop(key)
            if result is not None:
                self._append(EventDraft(ev.ResourceTouched(resource=uri), actor="runtime", source=self._source))
        elif key in self._open:
            call = self._open[key]
            call.is_answered = True
            event = _outcome(call, frame, (at_ns - call.since_ns) // 1000)
            client = self._client(scope)
            if not is_delivered:
                event = msgspec.structs.replace(event, why=f"{client.title} {_NOT_DELIVERED}")
            seq = self._append(EventDraft(event, actor="tool", source=self._source, trust=self._trust))
            del self._open[key]
            if is_delivered:
                client.unread = [*client.unread[-(UNREAD_MAX - 1) :], (key[1], call.action, seq)]

    def _learn(self, result: Any) -> None:
        """Learns the effects of tools from their list. It is only the server's claim, so it is used only to recognise
        tools that read."""
        for tool in result.get("tools", ()) if isinstance(result, dict) else ():
            hints = tool.get("annotations") if isinstance(tool, dict) else None
            if isinstance(hints, dict) and isinstance(tool.get("name"), str):
                self._effects[tool["name"]] = "read" if hints.get("readOnlyHint") is True else "external"

    def _settle_open(self, scope: str | None = None) -> None:
        """Records the outcome of unanswered calls, of one conversation or of all, as unknown."""
        for key in [k for k in self._open if scope is None or k[0] == scope]:
            call = self._open.pop(key)
            why = "the answer came and was not recorded" if call.is_answered else _CONNECTION_ENDED
            event: ev.Event = ev.ActionUncertain(action=call.action, why=why)
            if call.effect == "read":
                event = ev.ActionFailed(action=call.action, error=ev.Failure("interrupted", why))
            with contextlib.suppress(WakelogError):
                self._append(EventDraft(event, actor="runtime", source=self._source))
        self._lists = {k for k in self._lists if scope is not None and k[0] != scope}
        self._reads = {k: v for k, v in self._reads.items() if scope is not None and k[0] != scope}

    def _end(self) -> None:
        self._settle_open()
        if self._closes and self._session is not None:
            self._session.life.end(why="the server ended")


def _to_stderr(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # stderr may be closed
        print(f"wakelog proxy: {text}", file=sys.stderr, flush=True)


def _outcome(call: OpenCall, frame: Frame, duration_us: int) -> ev.Event:
    """The outcome in an answer: a protocol error, an error of the tool, or a result."""
    cost = ev.Cost(duration_us=duration_us)
    error, result = frame.get("error"), frame.get("result")
    if isinstance(error, dict):
        failure = ev.Failure(f"rpc:{error.get('code', '')}", str(error.get("message", ""))[:2000])
        return ev.ActionFailed(action=call.action, error=failure, cost=cost)
    output = plain(result)
    summary = summarise(_text_of(output))
    if isinstance(result, dict) and result.get("isError") is True:
        return ev.ActionFailed(action=call.action, error=ev.Failure("tool", summary), output=output, cost=cost)
    return ev.ActionSucceeded(action=call.action, output=output, output_summary=summary, cost=cost)


def _text_of(result: Any) -> Any:
    """The text of a tool's result, if it has one."""
    content = result.get("content") if isinstance(result, dict) else None
    texts = [c["text"] for c in content if isinstance(c, dict) and isinstance(c.get("text"), str)] if content else []
    return " ".join(texts) if texts else result
