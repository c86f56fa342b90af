"""A session: the public verbs over one log.

Each verb is one durable commit, or one read. Nothing here knows how bytes are stored; nothing below knows what people
want to do. The verbs are grouped by what they are for, one file a group; here are turns, the typed part, and forks.
"""

from __future__ import annotations

import threading
from typing import Literal

import msgspec

from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError
from wakelog.history.points import attempts_of
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.model.ids import Seq
from wakelog.model.records import Draft
from wakelog.model.values import Value
from wakelog.runtime.bridge import Aio
from wakelog.runtime.recovery import remember, settling
from wakelog.runtime.values import plain
from wakelog.session.base import S, Where
from wakelog.session.calling import Calling
from wakelog.session.data import DataType
from wakelog.session.moving import Moving
from wakelog.session.notebook import session_html
from wakelog.session.reading import Reading
from wakelog.session.recording import Recording
from wakelog.session.turn import Turn
from wakelog.state.patch import equal, resolve

Resume = Literal["auto", "always", "never"]


class Session(Recording[S], Reading[S], Moving[S], Calling[S]):
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
        opening: list[ev.Event | Draft] = [ev.TurnStarted(input=user, retry=retry)]
        if user is not None:
            opening.append(Draft(ev.MessageAdded(role=role, content=user), actor="user", source=source, trust=trust))
        return Turn(self, opening, resume="never" if retry else resume)

    def begin_turn(self, turn: Turn[S], opening: list[ev.Event | Draft], resume: Resume = "never") -> tuple[int, int]:
        """Starts a turn; one that a dead process left open is first recorded as interrupted."""
        with self._turn_lock:
            if self._turn is not None:
                raise NotAllowedError(
                    f"turn @{self._turn.number} of {self.name or self.id} is still open in this process",
                    kind="turn-open",
                    hint="end it first, or fork the session to work in parallel",
                )
            self._turn = turn
        try:
            self._open_turn(opening, resume)
        except BaseException:
            self.finish_turn(turn)
            raise
        state = self.log.part("turn")
        return state["number"], state["attempt"]

    def _open_turn(self, opening: list[ev.Event | Draft], resume: Resume) -> None:
        now, started = self.log.part("turn"), opening[0]
        assert isinstance(started, ev.TurnStarted)
        resumes = resume != "never" and self._continues(now, started, resume)
        if now["status"] == "open":
            self._refuse_if_leased()
            self.append(*settling(self.log, "the process ended inside it", resumes=resumes))
        self.runtime.flow.new_turn()
        self.runtime.memory = remember(self.log, now["number"]) if resumes else None
        if (resumes or started.retry) and now["number"]:
            self.log.rewind(attempts_of(self.log, now["number"])[-1].first - 1, mode="retry")
        if resumes:
            opening = [msgspec.structs.replace(started, retry=True), *opening[1:]]
        self.append(*opening)

    def _continues(self, now: dict[str, Value], started: ev.TurnStarted, resume: Resume) -> bool:
        """Whether the last turn was cut and this is the same one again, unless somebody has rewound since."""
        if now["status"] not in ("open", "interrupted"):
            return False
        cut = attempts_of(self.log, now["number"])[-1]
        if self.log.part("view")["rewound"] > cut.first:
            return False
        if resume == "always":
            return True
        before = self.log.entry(cut.first)
        return equal(self.log.value(before, before.body.get("input")), plain(started.input))

    def finish_turn(self, turn: Turn[S]) -> None:
        with self._turn_lock:
            if self._turn is turn:
                self._turn = None
                self.runtime.memory = None

    def _refuse_if_leased(self) -> None:
        holder = self.log.living_holder()
        if holder:
            raise ConflictError(
                f"{self.name or self.id} is being written by {holder}", kind="leased", hint="wait for it"
            )

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
        return self.append(ev.StatePatched(patch=delta, why=why), expect=seen).seq

    # Forks

    def fork(self, at: Where = None, *, name: str = "", why: str = "") -> Session[S]:
        """A new session sharing the history up to a point. `Store.fork` also binds its name."""
        return Session(self.log.fork(self.seq(at), name=name, why=why), name=name, data_type=self.data_type)
