"""A session: the public verbs over one log.

Each verb is one durable commit, or one read. Nothing here knows how bytes are stored; nothing below knows what people
want to do. The verbs are grouped by what they are for, one file a group; here are turns, the typed part, and forks.
"""

from __future__ import annotations

import os
import threading
from typing import Literal

from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError
from wakelog.log import Log
from wakelog.log.holder import Hold, end_of_holder
from wakelog.log.surgery import delete
from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.model.ids import Seq, fork_id
from wakelog.model.names import check_name
from wakelog.model.records import Draft, Head
from wakelog.model.values import Value
from wakelog.runtime.ambient import replaying
from wakelog.runtime.bridge import Aio
from wakelog.runtime.opening import Resume, open_turn, refuse_if_leased
from wakelog.runtime.recovery import settling
from wakelog.session.base import S, Where
from wakelog.session.calling import Calling
from wakelog.session.comparing import Comparing
from wakelog.session.data import DataType
from wakelog.session.filing import Filing
from wakelog.session.guarding import Guarding
from wakelog.session.moving import Moving
from wakelog.session.notebook import session_html
from wakelog.session.provenance import Provenance
from wakelog.session.reading import Reading
from wakelog.session.recording import Recording
from wakelog.session.remembering import Remembering
from wakelog.session.replaying import Replaying
from wakelog.session.turn import Turn
from wakelog.state.patch import resolve

Outcome = Literal["completed", "failed", "interrupted"]


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
    ) -> Turn[S]:
        """A turn, to be used in a `with`. `user` is its input and becomes the first message.

        If the last turn was cut (a crash, Ctrl-C, a stop by the runtime) and had the same input, this continues it as
        its next attempt: calls that were made are answered from the record. `resume="always"` does so whatever the
        input, `"never"` begins a new turn. With `retry`, the last turn is tried again from its start, calling
        everything anew.
        """
        said = []
        if user is not None:
            said = [Draft(ev.MessageAdded(role=role, content=user), actor="user", source=source, trust=trust)]
        started = ev.TurnStarted(input=user, retry=retry)
        return Turn(self, started, said, resume="never" if retry else resume)

    def begin_turn(
        self, turn: Turn[S], started: ev.TurnStarted, said: list[Draft], resume: Resume = "never"
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
        opening: list[ev.Event | Draft] = [Draft(begun, source=source, trust=trust)]
        if user is not None:
            opening.append(Draft(ev.MessageAdded(role=role, content=user), actor=actor, source=source, trust=trust))
        self.runtime.flow.new_turn()
        self.append(*left, *opening)
        number: int = self.log.part("turn")["number"]
        return number

    def end_turn(self, outcome: Outcome = "completed", *, why: str = "") -> Head:
        """Ends the turn that `start_turn` began."""
        return self.append(Draft(ev.TurnEnded(outcome=outcome, why=why), actor="runtime"))

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
