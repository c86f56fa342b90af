"""Where conversations are recorded: a lane is a session in which one conversation at a time has an open turn.

A turn starts when a request has new user input, and ends when the model answers without requesting a tool. A
conversation that starts while another one waits for its tools (a sub-agent's, or one in another thread) gets its own
lane, because a session cannot have two open turns. A free lane is reused, so a script that makes a thousand separate
calls has one session with a thousand turns.

If the program has opened a turn itself, nothing is opened or ended here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from wakelog.codec.canonical import hash_value
from wakelog.instruments.conversation import Conversation, SeenCallResult
from wakelog.instruments.model_request import ConversationItem
from wakelog.log.holder import TurnHold, end_of_holder, hold_turn, refuse_if_held
from wakelog.model import events as ev
from wakelog.model.calls import BEGIN_KINDS
from wakelog.model.ids import Seq
from wakelog.model.json_fields import text_in
from wakelog.model.parts import flat, parts_of
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.resume import settle_pending
from wakelog.session import Session

if TYPE_CHECKING:
    from wakelog.files.capture import Capture

WAITING_MAX = 8
"""How many lanes may wait for tool results. Beyond that, the one that waits longest is reused."""

BOUND_MAX = 256
"""How many sessions of the program are remembered. A forgotten one is read again."""
READ_MAX = 5000
"""How many events of a session are read at first, to know what the program records itself."""


class SessionLane:
    """One session, and its open turn."""

    def __init__(self, session: Session[Any], *, is_ours: bool) -> None:
        self.session = session
        self.is_ours = is_ours
        """Whether nobody else writes to it."""
        self.conversation: Conversation | None = None
        """The conversation whose turn is open."""
        self.last: Conversation | None = None
        """The conversation that was recorded here last."""
        self.failure: ev.Failure | None = None
        """The failure of the last call in the open turn."""
        self.systems: set[bytes] = set()
        """Digests of the recorded system prompts."""
        self.used = 0.0
        self.files_before: Any = None
        """The state of the files when the model requested tools."""
        self._hold: TurnHold | None = None
        self._turn = 0
        self._program_records = _ProgramRecords(session)

    @property
    def has_own_turn(self) -> bool:
        """Whether the program has a turn open in this session."""
        return self.session._runtime.turn is not None

    @property
    def is_free(self) -> bool:
        """Whether another conversation may have the next turn. A failed call may never be continued."""
        open_turn = self.conversation
        return open_turn is None or (self.failure is not None and not open_turn.is_busy)

    def may_open(self, conversation: Conversation) -> bool:
        """Whether a turn for this conversation can be opened here."""
        is_taken = not (self.is_free or self.conversation is conversation)
        return not self.has_own_turn and (self.is_ours or not is_taken)

    def opening(self, given: Value) -> list[EventDraft]:
        """The events that start a turn, and end the one before."""
        log = self.session.log
        drafts = self.ending()
        if not drafts and log.part("turn")["status"] == "open":
            refuse_if_held(log)
            drafts = settle_pending(log, end_of_holder(log))
        # If the program may open turns itself, this one must not block it.
        self._hold = hold_turn(log) if self.is_ours else None
        holder = self._hold.text if self._hold is not None else ""
        self.session._runtime.flow.new_turn()
        return [*drafts, EventDraft(ev.TurnStarted(input=given, holder=holder))]

    def opened(self, conversation: Conversation) -> None:
        self.conversation, self.failure = conversation, None
        self._turn = self.session.log.part("turn")["number"]

    def ending(self, why: str = "") -> list[EventDraft]:
        """The events that end the open turn. With a reason, the turn was interrupted."""
        if self.conversation is None:
            return []
        if self.failure is not None and self.failure.type == "interrupted":  # by whoever runs the program
            ended = ev.TurnEnded(outcome="interrupted", why=self.failure.message)
        elif self.failure is not None:
            ended = ev.TurnEnded(outcome="failed", error=self.failure)
        else:
            ended = ev.TurnEnded(outcome="interrupted" if why else "completed", why=why)
        return [EventDraft(ended, actor="runtime")]

    def ended(self) -> None:
        self.conversation = self.failure = None
        if self._hold is not None:
            self._hold.release()
            self._hold = None

    # What the program records itself

    def refresh(self) -> None:
        """Reads what others note_written since the last time."""
        if self.is_ours:
            return
        self._program_records.refresh()
        turn = self.session.log.part("turn")
        if self.conversation is not None and (turn["number"], turn["status"]) != (self._turn, "open"):
            self.ended()  # the program continued with its own turn

    def note_written(self, last: Seq, count: int) -> None:
        """Notes that the last `count` events, up to `last`, were written here."""
        if not self.is_ours:
            self._program_records.ours.update(range(last - count + 1, last + 1))

    def has_message(self, item: ConversationItem, *, is_input: bool) -> bool:
        """Whether the program recorded this itself. It can only have recorded the newest input recently: the same text
        in an earlier turn is another input."""
        return not self.is_ours and self._program_records.has_message(item, is_input)

    def has_call(self, result: SeenCallResult) -> bool:
        return not self.is_ours and self._program_records.has_call(result)


class _ProgramRecords:
    """Messages and calls that a program records itself. They are not recorded again."""

    def __init__(self, session: Session[Any]) -> None:
        self._session = session
        self._seen: Seq = 0
        self.ours: set[Seq] = set()
        self._edge: Seq = 0
        """Where the last turn started or ended."""
        self._messages: dict[tuple[str, str], list[Seq]] = {}
        self._calls: list[tuple[str, str, str]] = []

    def refresh(self) -> None:
        log = self._session.log
        self._seen = max(self._seen, log.head().seq - READ_MAX)
        for entry in log.entries(after=self._seen, payloads=True):
            self._seen = entry.seq
            if entry.kind in ("turn.started", "turn.ended"):
                self._edge = entry.seq
            if entry.seq in self.ours:
                self.ours.discard(entry.seq)
            elif entry.kind == "message.added":
                key = text_in(entry.body, "role"), _normalised_text(log.value(entry, entry.body.get("content")))
                self._messages.setdefault(key, []).append(entry.seq)
            elif entry.kind in BEGIN_KINDS and text_in(entry.body, "effect") != "model":
                body = entry.body
                self._calls.append((text_in(body, "action"), text_in(body, "tool"), text_in(body, "input_hash")))

    def has_message(self, item: ConversationItem, is_input: bool) -> bool:
        known = self._messages.get((item.role, _normalised_text(item.content)), [])
        found = next((seq for seq in known if seq > self._edge or not is_input), None)
        if found is not None:
            known.remove(found)
        return found is not None

    def has_call(self, result: SeenCallResult) -> bool:
        digest = hash_value(result.input if result.input is not None else {})
        for call in self._calls:
            if call[0] == result.action or call[1:] == (result.tool, digest):
                self._calls.remove(call)
                return True
        return False


def _normalised_text(content: Value) -> str:
    return " ".join(flat(parts_of(content)).split())


class SessionLanes:
    """The sessions of one program: the first one when something is recorded, more when conversations overlap."""

    def __init__(self, open_session: Callable[[int], Session[Any]], *, is_ours: bool) -> None:
        """`open_session` returns the session of a lane by its number, from 1."""
        self._open_session = open_session
        self._is_ours = is_ours
        self._lanes: list[SessionLane] = []
        self._bound: dict[str, SessionLane] = {}

    def __iter__(self) -> Any:
        return iter((*self._lanes, *self._bound.values()))

    @property
    def opened(self) -> list[Session[Any]]:
        """The sessions that were opened here."""
        return [lane.session for lane in self._lanes]

    def bound(self, session: Session[Any]) -> SessionLane:
        """The lane of a session that the program works in."""
        lane = self._bound.pop(session.id, None)
        if lane is None or lane.session is not session:
            lane = next((each for each in self._lanes if each.session is session), None)
            lane = lane or SessionLane(session, is_ours=False)
        self._bound[session.id] = lane  # the newest is last
        while len(self._bound) > BOUND_MAX:
            del self._bound[next(iter(self._bound))]
        lane.used = time.monotonic()
        return lane

    def place(self, conversation: Conversation) -> SessionLane:
        """The lane for the next request of a conversation: its own, a free one, or a new one."""
        lane = conversation.lane
        if lane not in self._lanes or not (lane.conversation is conversation or lane.is_free):
            lane = next((each for each in self._lanes if each.is_free), None) or self._another()
        lane.used = time.monotonic()
        return lane  # type: ignore[no-any-return]

    def _another(self) -> SessionLane:
        waiting = [each for each in self._lanes if each.conversation is not None and not each.conversation.is_busy]
        if len(waiting) >= WAITING_MAX:
            return min(waiting, key=lambda each: each.used)
        number = len(self._lanes) + 1
        lane = SessionLane(self._open_session(number), is_ours=self._is_ours or number > 1)
        self._lanes.append(lane)
        return lane


class FileCapture:
    """Lets sessions record what tools change in the project's folder. They share one capture, so that each change is
    recorded once."""

    def __init__(self) -> None:
        self._capture: Capture | None = None

    def start(self, session: Session[Any]) -> None:
        if self._capture is None:
            self._capture = session.files.capture()
        session._runtime.capture = self._capture


class LaneName(msgspec.Struct, frozen=True):
    """Names the sessions of a program: by program, time and process."""

    program: str
    pid: int
    run: int = 1
    """The number of the recording in that process."""

    def __call__(self, number: int) -> str:
        name = f"{self.program}-{time.strftime('%Y%m%d-%H%M%S')}-{self.pid}"
        return name + (f".{self.run}" if self.run > 1 else "") + (f"-{number}" if number > 1 else "")
