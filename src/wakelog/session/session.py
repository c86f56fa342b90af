"""A session: the public verbs over one log.

Each verb is one durable commit, or one read. Nothing here knows how bytes are stored; nothing below knows what people
want to do. The verbs are grouped by what they are for, one file a group; here are turns, the typed part, and forks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar, cast, get_args

from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError
from wakelog.log import Log
from wakelog.log.holder import Hold, end_of_holder
from wakelog.log.surgery import delete
from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.model.ids import Seq, fork_id
from wakelog.model.names import check_name
from wakelog.model.records import EventDraft, Head
from wakelog.model.values import Value
from wakelog.runtime.ambient import replaying
from wakelog.runtime.bridge import Aio
from wakelog.runtime.recovery import settling
from wakelog.runtime.turn_record import check_turn_id
from wakelog.runtime.turn_start import Resume, open_turn, refuse_if_leased
from wakelog.runtime.values import revive
from wakelog.session.base import S, Where, check_text
from wakelog.session.budget import Guarding
from wakelog.session.calls import Calling
from wakelog.session.compare import Comparing
from wakelog.session.context import Remembering
from wakelog.session.data import DataType
from wakelog.session.files import Filing
from wakelog.session.lifecycle import Moving
from wakelog.session.notebook import session_html
from wakelog.session.provenance import Provenance
from wakelog.session.reads import Reading
from wakelog.session.records import Recording
from wakelog.session.replay import Replaying
from wakelog.session.turn import Turn
from wakelog.state.patch import resolve

Outcome = Literal["completed", "failed", "interrupted"]
R = TypeVar("R")


class Session(
    Recording[S],
    Reading[S],
    Moving[S],
    Comparing[S],
    Calling[S],
    Guarding[S],
    Provenance[S],
    Filing[S],
    Remembering[S],
    Replaying[S],
):
    """One append-only history with its state. Get one from a store."""

    def __init__(self, log: Log, *, name: str = "", data_type: DataType[S] | None = None) -> None:
        super().__init__(log, name=name, data_type=data_type)
        self.aio = Aio(self)
        self._turn: Turn[S] | None = None
        self._turn_lock = threading.Lock()

    def __repr__(self) -> str:
        head = self.head
        return f"<session {self.name or self.id} at event {head.seq}, turn @{head.turn}, {head.status}>"

    def _repr_html_(self) -> str:
        return session_html(self)

    # Turns

    def turn(
        self,
        user: Value = None,
        *,
        source: str = "",
        trust: Trust = "trusted",
        retry: bool = False,
        resume: Resume = "auto",
        role: str = "user",
        id: str = "",
    ) -> Turn[S]:
        """A turn, to be used in a `with`. `user` is its input and becomes the first message.

        If the last turn was cut (a crash, Ctrl-C, a stop by the runtime) and had the same input, this continues it as
        its next attempt: calls that were made are answered from the record. `resume="always"` does so whatever the
        input, `"never"` begins a new turn. With `retry`, the last turn is tried again from its start, calling
        everything anew.

        With an `id`, the turn is done once. If it is completed, nothing runs again: `turn.is_done` says so, and calls
        are answered from the record. If it was cut or failed, this continues it, whatever its input.
        """
        check_text(role, "a message's role")
        if resume not in get_args(Resume):
            raise InvalidInputError(
                f"{resume!r} is not a way to resume", kind="bad-resume", hint=f"one of {', '.join(get_args(Resume))}"
            )
        said = []
        if id:
            check_turn_id(id)
            if retry or resume == "never":
                raise InvalidInputError(
                    "a turn with an id is continued, not begun anew",
                    kind="bad-turn-id",
                    hint="give it a new id; or leave the id out to try the last turn again",
                )
        if user is not None:
            said = [EventDraft(ev.MessageAdded(role=role, content=user), actor="user", source=source, trust=trust)]
        started = ev.TurnStarted(input=user, retry=retry, id=id)
        return Turn(self, started, said, resume="never" if retry else resume)

    def run_turn(self, id: str, function: Callable[[Turn[S]], R], user: Value = None, **how: Any) -> R:
        """Runs `function(turn)` in a turn of this id, once: when the turn is completed, the function is not called, and
        what it returned is given from the record. The other keywords are those of `turn`."""
        check_turn_id(id)
        with self.turn(user, id=id, **how) as turn:
            if turn.is_done:
                return cast("R", revive(function, turn.result))
            turn.result = result = function(turn)
            return result

    async def arun_turn(
        self, id: str, function: Callable[[Turn[S]], Awaitable[R]], user: Value = None, **how: Any
    ) -> R:
        """The same for a coroutine function."""
        check_turn_id(id)
        async with self.turn(user, id=id, **how) as turn:
            if turn.is_done:
                return cast("R", revive(function, turn.result))
            turn.result = result = await function(turn)
            return result

    def begin_turn(
        self, turn: Turn[S], started: ev.TurnStarted, said: list[EventDraft], resume: Resume = "never"
    ) -> tuple[int, int]:
        """Starts a turn; one that a dead process left open is first recorded as interrupted."""
        replay = replaying()
        if replay is not None and replay is not self.runtime:
            replay.meets(self)
        with self._turn_lock:
            if self._turn is not None:
                raise NotAllowedError(
                    f"turn @{self._turn.number} of {self.name or self.id} is still open in this process",
                    kind="turn-open",
                    hint="end it first, or fork the session to work in parallel",
                )
            self._turn = turn
        try:
            self.runtime.turn = open_turn(self.runtime, started, said, resume)
        except BaseException:
            self.finish_turn(turn)
            raise
        return self.runtime.turn.within

    def start_turn(
        self,
        user: Value = None,
        *,
        source: str = "",
        trust: Trust = "trusted",
        role: str = "user",
        actor: str = "user",
        hold: Hold | None = None,
    ) -> int:
        """Begins a turn without a `with`, for callers in several processes, and returns its number. One that was left
        open is first recorded as interrupted; one that a living process has is refused. With a `hold`, which the
        caller keeps until the turn is over, the turn is this process's own. `actor` is whose word the input is: an
        agent that tells what it was asked is not the user."""
        left = []
        if self.log.part("turn")["status"] == "open":
            refuse_if_leased(self.runtime)
            left = settling(self.log, end_of_holder(self.log))
        begun = ev.TurnStarted(input=user, holder=hold.text if hold is not None else "")
        opening: list[ev.Event | EventDraft] = [EventDraft(begun, source=source, trust=trust)]
        if user is not None:
            opening.append(
                EventDraft(ev.MessageAdded(role=role, content=user), actor=actor, source=source, trust=trust)
            )
        self.runtime.flow.new_turn()
        self.append(*left, *opening)
        number: int = self.log.part("turn")["number"]
        return number

    def end_turn(self, outcome: Outcome = "completed", *, why: str = "") -> Head:
        """Ends the turn that `start_turn` began."""
        return self.append(EventDraft(ev.TurnEnded(outcome=outcome, why=why), actor="runtime"))

    def finish_turn(self, turn: Turn[S]) -> None:
        with self._turn_lock:
            if self._turn is turn:
                self._turn = None
                if self.runtime.turn is not None and self.runtime.turn.hold is not None:
                    self.runtime.turn.hold.let_go()
                self.runtime.turn = None

    # The typed part

    @property
    def data(self) -> S:
        """The session's own data now, typed; a copy. Change it in a turn's draft or with `patch`."""
        return self.data_type.load(self.log.state()["data"])

    def patch(self, patch: list[dict[str, Value]], *, why: str = "", expect: Seq | None = None) -> Seq:
        """Changes `data` by a JSON Patch (RFC 6902, paths below /data), checked against its type. O(patch) to store.

        The patch is meant for the state it was made on: another writer in between is a ConflictError.
        """
        seen = self.head.seq if expect is None else expect
        held, delta = resolve({"data": self.log.state(seen)["data"]}, patch)
        if not isinstance(held["data"], dict):
            raise InvalidInputError("data must stay an object", kind="bad-data")
        self.data_type.load(held["data"])
        return self.append(self.runtime.flow.draft(ev.StatePatched(patch=delta, why=why)), expect=seen).seq

    # Forks

    def fork(self, at: Where = None, *, name: str = "", why: str = "") -> Session[S]:
        """A new session sharing the history up to a point. A name is bound to it, and must be free."""
        engine = self.log.engine
        if name and engine.find(check_name(name)) is not None:
            raise _name_taken(name)
        session = fork_id(self.id, os.urandom(5))
        log = self.log.fork(self.seq(at), name=name, why=why, session=session)
        if name and engine.claim(name, session) != session:
            delete(log, why=f"the name {name} was taken meanwhile")
            raise _name_taken(name)
        child: Session[S] = Session(log, name=name, data_type=self.data_type)
        child.store = self.store
        return child


def _name_taken(name: str) -> ConflictError:
    return ConflictError(f"the name {name!r} is taken", kind="name-taken", hint="choose another name")
