"""Where conversations are recorded: a lane is a session in which one of them at a time has the turn.

A turn starts when a request brings something new from the user, and ends when the model answers without asking for a
tool. A conversation that starts while another one waits for its tools, as a sub-agent's does, or in another thread,
gets a lane of its own: two turns cannot be open in one session. A lane that is free is used again, so a script that
makes a thousand separate calls has one session with a thousand turns.

In a turn that the program opened itself, nothing is opened or ended here.
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
from wakelog.model.calls import ASKS
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
"""Lanes that may wait for the results of tools; then the one that waits longest is used for another conversation."""

BOUND_MAX = 256
"""Sessions of the program that are remembered; one that was forgotten is read again."""
READ_MAX = 5000
"""Events of a session that are read when it is met, to know what the program records itself."""


class SessionLane:
    """One session, and what is going on in it."""

    def __init__(self, session: Session[Any], *, is_ours: bool) -> None:
        self.session = session
        self.is_ours = is_ours
        """Whether nobody else writes there."""
        self.conversation: Conversation | None = None
        """The one whose turn is open."""
        self.last: Conversation | None = None
        """The newest one that was recorded here."""
        self.failure: ev.Failure | None = None
        """What the last call of the open turn failed with."""
        self.systems: set[bytes] = set()
        """System prompts that are recorded."""
        self.used = 0.0
        self.picture: Any = None
        """The files as they were when the model asked for tools."""
        self._hold: TurnHold | None = None
        self._turn = 0
        self._others = _Others(session)

    @property
    def has_own_turn(self) -> bool:
        """Whether the program has a turn open in this session."""
        return self.session._runtime.turn is not None

    @property
    def is_free(self) -> bool:
        """Whether another conversation may have the next turn. After a failed call nobody may ever go on."""
        open_turn = self.conversation
        return open_turn is None or (self.failure is not None and not open_turn.is_busy)

    def may_open(self, conversation: Conversation) -> bool:
        """Whether a turn for this conversation can be opened here."""
        is_taken = not (self.is_free or self.conversation is conversation)
        return not self.has_own_turn and (self.is_ours or not is_taken)

    def opening(self, given: Value) -> list[EventDraft]:
        """What starts a turn here, and ends the one before."""
        log = self.session.log
        drafts = self.ending()
        if not drafts and log.part("turn")["status"] == "open":
            refuse_if_held(log)
            drafts = settle_pending(log, end_of_holder(log))
        # Where the program may open turns itself, this one must not stand in its way.
        self._hold = hold_turn(log) if self.is_ours else None
        holder = self._hold.text if self._hold is not None else ""
        self.session._runtime.flow.new_turn()
        return [*drafts, EventDraft(ev.TurnStarted(input=given, holder=holder))]

    def opened(self, conversation: Conversation) -> None:
        self.conversation, self.failure = conversation, None
        self._turn = self.session.log.part("turn")["number"]

    def ending(self, why: str = "") -> list[EventDraft]:
        """What ends the open turn. Without a reason it came to its end; with one it was cut."""
        if self.conversation is None:
            return []
        if self.failure is not None:
            ended = ev.TurnEnded(outcome="failed", error=self.failure)
        else:
            ended = ev.TurnEnded(outcome="interrupted" if why else "completed", why=why)
        return [EventDraft(ended, actor="runtime")]

    def ended(self) -> None:
        self.conversation = self.failure = None
        if self._hold is not None:
            self._hold.let_go()
            self._hold = None

    # What the program records by itself

    def look(self) -> None:
        """Reads what others wrote here since the last time."""
        if self.is_ours:
            return
        self._others.look()
        turn = self.session.log.part("turn")
        if self.conversation is not None and (turn["number"], turn["status"]) != (self._turn, "open"):
            self.ended()  # the program went on with a turn of its own

    def wrote(self, last: Seq, count: int) -> None:
        """The last events, up to `last`, are from here."""
        if not self.is_ours:
            self._others.ours.update(range(last - count + 1, last + 1))

    def has_message(self, item: ConversationItem, *, is_input: bool) -> bool:
        """Whether the program recorded this itself. The newest input it can only have recorded lately: the same words
        in an earlier turn were said earlier."""
        return not self.is_ours and self._others.has_message(item, is_input)

    def has_call(self, result: SeenCallResult) -> bool:
        return not self.is_ours and self._others.has_call(result)


class _Others:
    """Messages and calls that a program records itself, in its own words. They are not recorded a second time."""

    def __init__(self, session: Session[Any]) -> None:
        self._session = session
        self._seen: Seq = 0
        self.ours: set[Seq] = set()
        self._edge: Seq = 0
        """Where the last turn began or ended."""
        self._messages: dict[tuple[str, str], list[Seq]] = {}
        self._calls: list[tuple[str, str, str]] = []

    def look(self) -> None:
        log = self._session.log
        self._seen = max(self._seen, log.head().seq - READ_MAX)
        for entry in log.entries(after=self._seen, payloads=True):
            self._seen = entry.seq
            if entry.kind in ("turn.started", "turn.ended"):
                self._edge = entry.seq
            if entry.seq in self.ours:
                self.ours.discard(entry.seq)
            elif entry.kind == "message.added":
                key = text_in(entry.body, "role"), _gist(log.value(entry, entry.body.get("content")))
                self._messages.setdefault(key, []).append(entry.seq)
            elif entry.kind in ASKS and text_in(entry.body, "effect") != "model":
                body = entry.body
                self._calls.append((text_in(body, "action"), text_in(body, "tool"), text_in(body, "input_hash")))

    def has_message(self, item: ConversationItem, is_input: bool) -> bool:
        known = self._messages.get((item.role, _gist(item.content)), [])
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


def _gist(content: Value) -> str:
    return " ".join(flat(parts_of(content)).split())


class SessionLanes:
    """The sessions of one program: the first when something is to be recorded, more when conversations overlap."""

    def __init__(self, open_session: Callable[[int], Session[Any]], *, is_ours: bool) -> None:
        """`open_session` gives the session of a lane by its number, from 1."""
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
        self._bound[session.id] = lane  # the newest last
        while len(self._bound) > BOUND_MAX:
            del self._bound[next(iter(self._bound))]
        lane.used = time.monotonic()
        return lane

    def place(self, conversation: Conversation) -> SessionLane:
        """The lane for the next request of a conversation: its own, one that is free, or a new one."""
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
    """Lets sessions record what tools change in the project's folder: one for all of them, so that each change is told
    once."""

    def __init__(self) -> None:
        self._capture: Capture | None = None

    def start(self, session: Session[Any]) -> None:
        if self._capture is None:
            self._capture = session.files.capture()
        session._runtime.capture = self._capture


class LaneName(msgspec.Struct, frozen=True):
    """How the sessions of a program are called: by what runs, when, and which process."""

    program: str
    pid: int
    run: int = 1
    """Which recording of that process it is."""

    def __call__(self, number: int) -> str:
        name = f"{self.program}-{time.strftime('%Y%m%d-%H%M%S')}-{self.pid}"
        return name + (f".{self.run}" if self.run > 1 else "") + (f"-{number}" if number > 1 else "")
