"""Writes observed conversations into sessions: messages, tool calls, model calls, turns.

One writer thread does all of it, and only it knows the state of each conversation. Failures stay in that thread: they
are reported once, counted, and noted as a gap when the store works again. The content of a missed request is not lost
for long, because the next one repeats it (conversation.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from wakelog.codec.canonical import hash_value
from wakelog.errors import WakelogError
from wakelog.instruments.conversation import Conversation, Conversations, SeenCallResult
from wakelog.instruments.lanes import SessionLane, SessionLanes
from wakelog.instruments.model_request import ConversationItem, ModelRequest
from wakelog.instruments.writer_thread import HOLD_S, RecordWriter
from wakelog.model import events as ev
from wakelog.model.parts import flat, parts_of, text_of
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.ambient import current_action
from wakelog.runtime.observed_call import ObservedCall, observed_stream
from wakelog.runtime.policy import Policy
from wakelog.runtime.streams import StreamRecord
from wakelog.runtime.tools import End
from wakelog.runtime.values import plain, summarise
from wakelog.session import Session

_logger = logging.getLogger("wakelog")
_TOOL = Policy()
_CUT = "the program ended"


def warn_by_log(text: str) -> None:
    """The program's own logging decides where this goes. Without any, it is stderr."""
    _logger.warning("%s", text)


class PassingCall:
    """A model call that is being observed. Its methods return at once, or after the short time that a store takes. None
    of them raises."""

    def __init__(self, recorder: ConversationRecorder, request: ModelRequest, session: Session[Any] | None) -> None:
        self.request = request
        self.session = session
        self.began = time.time_ns()
        self.lane: SessionLane | None = None
        self.conversation: Conversation | None = None
        self.observed: ObservedCall | None = None
        self._recorder = recorder
        self._is_over = False
        self.last: Future[None] | None = recorder.do(lambda: recorder.begin(self))

    def answered(self, answer: Any) -> None:
        """The complete answer arrived."""
        # Converted here: the object belongs to the program, which may change it.
        value = plain(answer)
        self.end(lambda: End("succeeded", value))

    def failed(self, error: BaseException) -> None:
        """The client raised."""
        self.end(lambda: self._ended_by(error))

    def refused(self, error: ev.Failure) -> None:
        """The provider answered with an error."""
        self.end(lambda: End("failed", error=error))

    def stream(self) -> StreamRecord:
        """Takes the parts of a streamed answer."""
        return observed_stream(lambda end: self.end(lambda: end), self._ended_by)

    def end(self, how: Callable[[], End]) -> None:
        if not self._is_over:
            self._is_over = True
            self.last = self._recorder.do(lambda: self._recorder.finish(self, how()))

    def _ended_by(self, error: BaseException) -> End:
        if self.observed is not None:
            return self.observed.classify_error(error)
        return End("failed", error=ev.Failure(type(error).__name__))


class ConversationRecorder:
    """Records the conversations of one program."""

    def __init__(
        self,
        open_session: Callable[[int], Session[Any]],
        *,
        source: str,
        is_ours: bool = True,
        holds_answers: bool = False,
        warn: Callable[[str], None] = warn_by_log,
    ) -> None:
        """`open_session` returns a session by its number, from 1, when something is recorded. With `is_ours` the
        sessions are made for this, and end with it. `source` says who observed the calls. With `holds_answers` a proxy
        passes an answer on only when it is recorded, so that the files are read before a tool can change them."""
        self.writer = RecordWriter(HOLD_S if holds_answers else None)
        self.holds_answers = holds_answers
        self._lanes = SessionLanes(open_session, is_ours=is_ours)
        self._conversations = Conversations()
        self._open: dict[int, PassingCall] = {}
        self._source = source
        self._is_ours = is_ours
        self._warn = warn
        self._missed = 0
        self._is_failing = False

    @property
    def sessions(self) -> list[Session[Any]]:
        """The sessions that were opened for this."""
        return self._lanes.opened

    def asked(self, request: ModelRequest, session: Session[Any] | None = None) -> PassingCall:
        """Call before a request is sent. `session` is the one that the program works in, if any."""
        return PassingCall(self, request, session)

    def missed(self, what: str) -> None:
        """Notes that something passed that cannot be read."""
        self._missed += 1
        self.do(self._note_gap)
        self._warn(f"{what} was passed on but not recorded")

    def do(self, job: Callable[[], None]) -> Future[None] | None:
        def guarded() -> None:
            try:
                job()
            except Exception as exc:  # whatever fails here, the program must not notice
                self._missed += 1
                if not self._is_failing:
                    self._is_failing = True
                    message = exc.message if isinstance(exc, WakelogError) else repr(exc)
                    self._warn(f"model calls go on but are not recorded: {message}")

        done = None
        with contextlib.suppress(RuntimeError):  # no thread can be started any more: the process is exiting
            done = self.writer.put(guarded)
        if done is None:
            self._missed += 1
        return done

    def close(self) -> None:
        """Writes what is left, and ends open turns."""
        self.writer.close(self._close)

    # In the writer thread

    def begin(self, call: PassingCall) -> None:
        """Records the new items of a request, and the start of the call."""
        request, session = call.request, call.session
        if session is not None and (session._is_answering or _is_in_model_call(session)):
            return  # `session.model` records it, or the turn is already answered
        scope = session.id if session is not None else ""
        conversation, new_items = self._conversations.find(request, scope)
        lane = self._lanes.bound(session) if session is not None else self._lanes.place(conversation)
        lane.refresh()
        if conversation.lane is None and lane.last is not None:
            new_items = request.items[lane.last.count_shared(request) :]
        self._note_gap(lane)
        conversation.adopt_ids(new_items)
        results = conversation.results(new_items)
        drafts = self._drafts(lane, conversation, request, new_items, results)
        if drafts:
            self._append(lane, drafts)
            if any(isinstance(d.event, ev.TurnStarted) for d in drafts):
                lane.opened(conversation)
        conversation.take_request(request, results)
        if conversation.lane is None:
            lane.systems.add(_digest(request.system))
        conversation.lane, lane.last = lane, conversation
        self._conversations.keep(conversation, scope)
        runtime = lane.session._runtime
        observed = ObservedCall(runtime, request.body, prices=lane.session._prices, provider=request.provider)
        observed.begin()
        lane.note_written(lane.session.head.seq, 2)
        self._is_failing = False
        call.observed, call.lane, call.conversation = observed, lane, conversation
        conversation.call, conversation.is_failed = call, True
        self._open[id(call)] = call

    def finish(self, call: PassingCall, end: End) -> None:
        """Records how a call ended, and the end of the turn if it ends there."""
        self._open.pop(id(call), None)
        observed, lane, conversation = call.observed, call.lane, call.conversation
        if observed is None or lane is None or conversation is None:
            return
        call.observed = None
        is_newest = conversation.call is call
        if is_newest:
            conversation.call = None
        is_answered = False
        if end.how == "succeeded":
            conversation.is_failed = conversation.is_failed and not is_newest
            asked = conversation.take_answer(end.result)
            is_answered = not asked or call.request.is_forced
            self._conversations.add_ids(conversation, *_ids_of(end.result), call.request.previous)
        has_turn = is_newest and lane.conversation is conversation and not lane.has_own_turn
        if has_turn:
            lane.failure = end.error if end.how != "succeeded" else None
        ending = lane.ending() if has_turn and is_answered else []
        observed.finish(end, *ending)
        lane.note_written(lane.session.head.seq, 1 + len(ending))
        if ending:
            lane.ended()
        capture = lane.session._runtime.capture
        lane.files_before = (
            capture.before() if capture is not None and end.how == "succeeded" and not is_answered else None
        )

    def _drafts(
        self,
        lane: SessionLane,
        conversation: Conversation,
        request: ModelRequest,
        new_items: tuple[ConversationItem, ...],
        results: list[SeenCallResult],
    ) -> list[EventDraft]:
        """The events of the new items: tool results, then, if the user said something, a turn with it."""
        newest = next((item for item in reversed(new_items) if item.role == "user"), None)
        said = [item for item in new_items if item.content is not None and not conversation.is_known(item)]
        said = [item for item in said if not lane.has_message(item, is_input=item is newest)]
        inputs = [item for item in said if item.role == "user"]
        drafts = [self._tool_call(lane, result) for result in results if not lane.has_call(result)]
        drafts += self._changed_files(lane, drafts)
        is_input = lane.conversation is not conversation or (inputs and not results)
        if is_input and lane.may_open(conversation):
            last = next((i.content for i in reversed(inputs)), None)
            drafts += lane.opening(last)
        if request.system and conversation.lane is None and _digest(request.system) not in lane.systems:
            drafts.append(EventDraft(ev.MessageAdded(role="system", content=request.system), source=self._source))
        for item in said:
            actor = "user" if item.role == "user" else "agent"
            event = ev.MessageAdded(role=item.role, content=item.content)
            drafts.append(lane.session._runtime.flow.draft(event, actor=actor))
        return drafts

    def _tool_call(self, lane: SessionLane, result: SeenCallResult) -> EventDraft:
        text = flat(parts_of(result.output)) if result.output is not None else ""
        given = result.input if result.input is not None else {}
        event = ev.ActionRecorded(
            action=result.action,
            tool=result.tool,
            outcome="failed" if result.is_error else "succeeded",
            input=given,
            input_hash=hash_value(given),
            output=result.output,
            output_summary=summarise(text or text_of(result.output)),
            error=ev.Failure("tool", summarise(text)) if result.is_error else None,
            inside=current_action(),
        )
        return lane.session._runtime.flow.draft(event, mark=_TOOL.mark(result.tool))

    def _changed_files(self, lane: SessionLane, calls: list[EventDraft]) -> list[EventDraft]:
        capture, files_before = lane.session._runtime.capture, lane.files_before
        if capture is None or files_before is None:
            return []
        lane.files_before = None
        # Several calls may have run in any order, so it is unknown which one changed a file.
        action = calls[0].event.action if len(calls) == 1 and isinstance(calls[0].event, ev.ActionRecorded) else ""
        return [EventDraft(change, actor="tool") for change in capture.changes(files_before, action=action)]

    def _append(self, lane: SessionLane, drafts: list[EventDraft]) -> None:
        before = lane.session.head.seq
        runtime = lane.session._runtime
        last = lane.session.append(*map(runtime.pin_to_turn, drafts), guard=runtime.guard).seq
        lane.note_written(last, last - before)

    def _note_gap(self, lane: SessionLane | None = None) -> None:
        lane = lane or next(iter(self._lanes), None)
        if self._missed and lane is not None:
            number = "a message" if self._missed == 1 else f"{self._missed} messages"
            missed = f"{number} to or from a model passed without being recorded"
            self._append(lane, [EventDraft(ev.GapNoted(missed=missed, source=self._source), actor="runtime")])
            self._missed = 0

    def _close(self) -> None:
        for call in list(self._open.values()):
            with contextlib.suppress(WakelogError):
                self.finish(call, End("interrupted", error=ev.Failure("interrupted", _CUT, retryable=True)))
        for lane in list(self._lanes):
            with contextlib.suppress(WakelogError):
                self._note_gap(lane)
                if (ending := lane.ending(why=_CUT)) and not lane.has_own_turn:
                    lane.session.append(*ending)
                lane.ended()
        for session in self._lanes.opened if self._is_ours else ():
            with contextlib.suppress(WakelogError):
                session.life.end(why=_CUT)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _is_in_model_call(session: Session[Any]) -> bool:
    action = current_action()
    pending: dict[str, Value] = session.log.part("pending_actions").get(action) or {}
    return bool(action) and pending.get("effect") == "model"


def _ids_of(answer: Value) -> tuple[str, ...]:
    """Ids by which a later request may refer to this answer: its own, or that of the provider's conversation."""
    if not isinstance(answer, dict) or answer.get("object") != "response":
        return ()
    kept = answer.get("conversation")
    ids = (answer.get("id"), kept.get("id") if isinstance(kept, dict) else None)
    return tuple(each for each in ids if isinstance(each, str))
