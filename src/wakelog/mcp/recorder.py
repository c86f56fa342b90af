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
QUEUE_MAX = 10_000
UNREAD_MAX = 50
"""Answers that are remembered until the client says something."""
_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
_CUT = "the connection ended before the answer came"
_NOT_HEARD = "never got this answer: it had left"


class Passed(msgspec.Struct):
    """A frame that passed, and when; without a frame, what else became of the conversation."""

    side: Side
    frame: Frame | None
    at_ns: int
    scope: str = ""
    """Which conversation its id belongs to, where one proxy serves several."""
    stored: threading.Event | None = None
    what: Literal["frame", "ended", "left", "renamed"] = "frame"
    lost: tuple[Any, ...] = ()
    """With `left`: the ids of answers that could not be handed on."""
    name: str = ""
    """With `renamed`: what the conversation is called from now on."""
    is_heard: bool = True
    """Whether somebody was there to hand it on to."""


class Open(msgspec.Struct):
    """A tool call that was asked for and not answered yet."""

    action: str
    tool: str
    effect: ev.Effect
    since_ns: int
    is_answered: bool = False
    """The answer came. It stays open until that is stored."""


class ProxyClient(msgspec.Struct):
    """Who asks, and what it was answered since it last said something."""

    name: str = ""
    version: str = ""
    is_told: bool = False
    has_left: bool = False
    unread: list[tuple[str, str, Seq]] = []
    """Request, action and event of each answer."""

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
        """`open_session` is called when something is to be written, and again if it failed. With `closes`, the session
        is the recorder's own and ends with it."""
        self._open_session = open_session
        self._session: Session[Any] | None = None
        self._source = f"mcp:{name}"
        self._trust: Trust = trust
        self._closes = closes
        self._warn = warn or _to_stderr
        self._queue: queue.Queue[Passed | None] = queue.Queue(QUEUE_MAX)
        self._open: dict[tuple[str, str], Open] = {}
        self._lists: set[tuple[str, str]] = set()
        self._reads: dict[tuple[str, str], str] = {}
        self._effects: dict[str, ev.Effect] = {}
        self._clients: dict[str, ProxyClient] = {}
        self._number = 0
        self._missed = 0
        self._is_failing = False
        self._thread = threading.Thread(target=self._work, name="wakelog recorder", daemon=True)
        self._thread.start()

    def passed(self, side: Side, frame: Frame, *, scope: str = "", wait_s: float = 0.0, is_heard: bool = True) -> None:
        """Hands a frame over. With `wait_s`, waits until it is stored, but no longer than that."""
        stored = threading.Event() if wait_s else None
        try:
            self._queue.put_nowait(Passed(side, frame, time.monotonic_ns(), scope, stored, is_heard=is_heard))
        except queue.Full:
            self._missed += 1
            return
        if stored is not None:
            stored.wait(wait_s)

    def ended(self, scope: str) -> None:
        """A conversation is over: what it was not answered, it never will be."""
        self._enqueue(Passed("client", None, time.monotonic_ns(), scope, what="ended"))

    def left(self, scope: str = "", *, lost: tuple[Any, ...] = ()) -> None:
        """The client went away; `lost` are the requests whose answers could not be handed on."""
        self._enqueue(Passed("client", None, time.monotonic_ns(), scope, what="left", lost=lost))

    def renamed(self, scope: str, name: str) -> None:
        """A conversation got its name from the server: whoever began it is still the client."""
        self._enqueue(Passed("client", None, time.monotonic_ns(), scope, what="renamed", name=name))

    def _enqueue(self, passed: Passed) -> None:
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(passed)

    def skipped(self, what: str) -> None:
        """Something passed that is not looked at; its call will be without an outcome."""
        self._missed += 1
        self._warn(f"{what} was passed on but not recorded")

    def close(self, timeout_s: float = 30.0) -> None:
        """Writes what is still to be written, and says of unanswered calls that their outcome is unknown. A slow store
        is waited for; one that takes nothing for `timeout_s` is given up."""
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
        while (passed := self._queue.get()) is not None:
            self._guarded(lambda p=passed: self._take(p))  # type: ignore[misc]
            if passed.stored is not None:
                passed.stored.set()
        self._guarded(self._end)

    def _guarded(self, write: Callable[[], None]) -> None:
        try:
            self._note_gap()
            write()
            if self._is_failing:
                self._is_failing = False
                self._warn("the store is back; what was missed is noted as a gap")
        except Exception as exc:  # whatever goes wrong here, the traffic must not notice
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

    def _take(self, passed: Passed) -> None:
        frame = passed.frame
        if passed.what == "left":
            self._note_leaving(passed)
        elif passed.what == "renamed":
            self._clients[passed.name] = self._client(passed.scope)
        elif frame is None:
            self._cut(passed.scope)
            self._clients.pop(passed.scope, None)
        elif "method" in frame:
            self._asked(passed, frame)
        elif "id" in frame and passed.side == "server":
            self._answered(passed, frame)

    def _asked(self, passed: Passed, frame: Frame) -> None:
        if passed.side != "client":
            return
        params = frame.get("params")
        self._hear(passed.scope, frame, as_dict(params))
        if "id" not in frame:
            return
        key = (passed.scope, repr(frame["id"]))
        params = as_dict(params)
        method = frame["method"]
        if method == "tools/list":
            self._lists.add(key)
        elif method == "resources/read":
            self._reads[key] = str(params.get("uri", ""))
        elif method == "tools/call":
            self._requested(passed, key, params)

    def _requested(self, passed: Passed, key: tuple[str, str], params: dict[str, Any]) -> None:
        tool = str(params.get("name", ""))
        self._number += 1
        effect = self._effects.get(tool, "external")
        call = Open(f"{tool}-{passed.at_ns:x}-{self._number}", tool, effect, passed.at_ns)
        given = plain(params.get("arguments") or {})
        request = ev.ActionRequested(
            action=call.action, tool=tool, effect=effect, input=given, input_hash=hash_value(given)
        )
        started = EventDraft(ev.ActionStarted(action=call.action), actor="runtime")
        self._append(*self._introduced(passed.scope), EventDraft(request, source=self._source), started)
        self._open[key] = call

    # Who asks

    def _client(self, scope: str) -> ProxyClient:
        return self._clients.setdefault(scope, ProxyClient(unread=[]))

    def _hear(self, scope: str, frame: Frame, params: dict[str, Any]) -> None:
        """What a client's frame says of it: its name, and that it read what it was answered."""
        client = self._client(scope)
        client.unread.clear()
        meta = params.get("_meta")
        info = params.get("clientInfo") if frame["method"] == "initialize" else None
        info = info or (meta.get(_CLIENT_INFO) if isinstance(meta, dict) else None)
        if isinstance(info, dict) and isinstance(info.get("name"), str):
            client.name, client.version = info["name"][:200], str(info.get("version", ""))[:50]

    def _introduced(self, scope: str) -> list[EventDraft]:
        """Says once who the client is, with its first call: a client that only looks makes no session."""
        client = self._client(scope)
        if client.is_told or not client.name:
            return []
        client.is_told = True
        about: dict[str, Value] = {"client": client.name, "version": client.version}
        return [
            EventDraft(ev.Foreign(foreign_kind="x.mcp.connected", data=about), actor="runtime", source=self._source)
        ]

    def _note_leaving(self, passed: Passed) -> None:
        client = self._client(passed.scope)
        if self._session is None:
            return
        drafts = []
        lost = {repr(each) for each in passed.lost}
        for request, _, seq in [each for each in client.unread if each[0] in lost]:
            client.unread = [each for each in client.unread if each[0] != request]
            drafts.append(EventDraft(ev.NoteAdded(text=f"{client.title} {_NOT_HEARD}", on=seq), actor="runtime"))
        if not client.has_left:
            client.has_left = True
            unread: list[Value] = [action for _, action, _ in client.unread]
            waiting: list[Value] = [call.action for key, call in self._open.items() if key[0] == passed.scope]
            why = f"{client.title} left" + ("; whether it read its last answers is not known" if unread else "")
            about: dict[str, Value] = {"client": client.name, "unread": unread, "unanswered": waiting, "why": why}
            drafts.append(
                EventDraft(ev.Foreign(foreign_kind="x.mcp.left", data=about), actor="runtime", source=self._source)
            )
        if drafts:
            self._append(*drafts)

    def _answered(self, passed: Passed, frame: Frame) -> None:
        key = (passed.scope, repr(frame["id"]))
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
            event = _outcome(call, frame, (passed.at_ns - call.since_ns) // 1000)
            client = self._client(passed.scope)
            if not passed.is_heard:
                event = msgspec.structs.replace(event, why=f"{client.title} {_NOT_HEARD}")
            seq = self._append(EventDraft(event, actor="tool", source=self._source, trust=self._trust))
            del self._open[key]
            if passed.is_heard:
                client.unread = [*client.unread[-(UNREAD_MAX - 1) :], (key[1], call.action, seq)]

    def _learn(self, result: Any) -> None:
        """What a list of tools says about their effects. A server's word, so it is only believed to make a call safer
        to repeat where it says that the tool reads."""
        for tool in result.get("tools", ()) if isinstance(result, dict) else ():
            hints = tool.get("annotations") if isinstance(tool, dict) else None
            if isinstance(hints, dict) and isinstance(tool.get("name"), str):
                self._effects[tool["name"]] = "read" if hints.get("readOnlyHint") is True else "external"

    def _cut(self, scope: str | None = None) -> None:
        """Says of the unanswered calls, of one conversation or of all, that their outcome is unknown."""
        for key in [k for k in self._open if scope is None or k[0] == scope]:
            call = self._open.pop(key)
            why = "the answer came and was not recorded" if call.is_answered else _CUT
            cut: ev.Event = ev.ActionUncertain(action=call.action, why=why)
            if call.effect == "read":
                cut = ev.ActionFailed(action=call.action, error=ev.Failure("interrupted", why))
            with contextlib.suppress(WakelogError):
                self._append(EventDraft(cut, actor="runtime", source=self._source))
        self._lists = {k for k in self._lists if scope is not None and k[0] != scope}
        self._reads = {k: v for k, v in self._reads.items() if scope is not None and k[0] != scope}

    def _end(self) -> None:
        self._cut()
        if self._closes and self._session is not None:
            self._session.life.end(why="the server ended")


def _to_stderr(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody may be listening there
        print(f"wakelog proxy: {text}", file=sys.stderr, flush=True)


def _outcome(call: Open, frame: Frame, took_us: int) -> ev.Event:
    """What an answer says about the call: an error of the protocol, of the tool, or a result."""
    cost = ev.Cost(duration_us=took_us)
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
    """The words of a tool's result, where it has some."""
    content = result.get("content") if isinstance(result, dict) else None
    texts = [c["text"] for c in content if isinstance(c, dict) and isinstance(c.get("text"), str)] if content else []
    return " ".join(texts) if texts else result
