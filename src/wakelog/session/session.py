"""A session: the public verbs over one log.

Each verb is one durable commit, or one read. Nothing here knows how bytes are stored; nothing below knows what people
want to do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Literal, TypeVar

import msgspec

from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError
from wakelog.log import Log
from wakelog.log.reading import Entry
from wakelog.log.verify import VerifyReport, verify
from wakelog.model import events as ev
from wakelog.model.document import State
from wakelog.model.events import Trust
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Anchor, Draft, Head
from wakelog.model.values import Value
from wakelog.session.blame import Blame, blame
from wakelog.session.bridge import Aio
from wakelog.session.data import DataType
from wakelog.session.diff import TurnDiff, turn_diff
from wakelog.session.messages import Message, read_messages
from wakelog.session.notebook import session_html
from wakelog.session.points import Span, attempts_of
from wakelog.session.rewinding import Undone, undo
from wakelog.session.selectors import Point, Range, resolve_point, resolve_range
from wakelog.session.slices import Slice, read_slice
from wakelog.session.turn import Turn
from wakelog.state.patch import resolve

S = TypeVar("S")
Where = Seq | str | None
"""A point: an event's seq, a selector such as "@5" or "t:2h ago", or None for now."""


class Session(Generic[S]):
    """One append-only history with its state. Get one from a store."""

    def __init__(self, log: Log, *, name: str = "", data_type: DataType[S] | None = None) -> None:
        self.log = log
        self.name = name
        self.data_type: DataType[S] = data_type or DataType()
        self.aio = Aio(self)
        self._turn: Turn[S] | None = None
        self._turn_lock = threading.Lock()

    @property
    def id(self) -> SessionId:
        return self.log.id

    @property
    def head(self) -> Head:
        return self.log.head()

    @property
    def status(self) -> str:
        return self.head.status

    def __repr__(self) -> str:
        head = self.head
        return f"<session {self.name or self.id} at event {head.seq}, turn @{head.turn}, {head.status}>"

    def _repr_html_(self) -> str:
        return session_html(self)

    # Recording

    def append(
        self, *events: ev.Event | Draft, expect: Seq | None = None, commit_id: str = "", guard: int | None = None
    ) -> Head:
        """Appends typed events as one durable commit. See `Log.append`."""
        return self.log.append(*events, expect=expect, commit_id=commit_id, guard=guard)

    def _record(self, event: ev.Event, *, actor: str = "agent", source: str = "", trust: Trust = "trusted") -> Seq:
        return self.log.record(Draft(event, actor=actor, source=source, trust=trust))

    def message(self, role: str, content: Value, *, source: str = "", trust: Trust = "trusted", **fields: Any) -> Seq:
        """Adds a message of the conversation: transient, read back with `messages()`."""
        actor = "user" if role == "user" else "agent"
        return self._record(
            ev.MessageAdded(role=role, content=content, **fields), actor=actor, source=source, trust=trust
        )

    def decide(
        self,
        choice: str,
        *,
        because: str = "",
        alternatives: Iterable[str] = (),
        assumptions: Iterable[str] = (),
        evidence: Iterable[int | str] = (),
    ) -> Seq:
        """Records a decision: what was chosen, instead of what, because of what."""
        event = ev.DecisionMade(
            choice=choice,
            because=because,
            alternatives=tuple(alternatives),
            assumptions=tuple(assumptions),
            evidence=tuple(evidence),
        )
        return self._record(event)

    def fact(self, key: str, value: Value, *, why: str = "", source: str = "", trust: Trust = "trusted") -> Seq:
        """Records something known, under a key; a later fact of the same key replaces it."""
        return self._record(ev.FactRecorded(key=key, value=value, why=why), source=source, trust=trust)

    def retract(self, key: str, *, why: str = "") -> Seq:
        """Takes a fact back."""
        return self._record(ev.FactRetracted(key=key, why=why))

    def dead_end(self, tried: str, *, learned: str = "") -> Seq:
        """Records what did not work, so that nobody tries it again. A rewind keeps it."""
        return self._record(ev.DeadEndNoted(tried=tried, learned=learned))

    def artefact(self, name: str, *, uri: str = "", media: str = "", content: Value = None, why: str = "") -> Seq:
        """Records something made: a report, a build, a file elsewhere."""
        return self._record(ev.ArtefactRecorded(name=name, uri=uri, media=media, content=content, why=why))

    def file(self, path: str, change: Literal["created", "modified", "deleted"] = "modified", **fields: Any) -> Seq:
        """Records a changed file; also `added`, `removed`, `before`, `after`, `action`, `why`."""
        return self._record(ev.FileChanged(path=path, change=change, **fields))

    def touch(
        self,
        resource: str,
        category: Literal["file", "app", "data_source"] = "data_source",
        *,
        mode: Literal["read", "write"] = "read",
    ) -> Seq:
        """Records that a file, app or data source is in use: it joins the working set."""
        return self._record(ev.ResourceTouched(resource=resource, category=category, mode=mode))

    def set_goal(self, goal: str | None, *, why: str = "") -> Seq:
        return self._record(ev.GoalSet(goal=goal, why=why), actor="user")

    def label(self, labels: Mapping[str, str | None], *, why: str = "") -> Seq:
        """Sets labels; a value of None removes one."""
        return self._record(ev.LabelsSet(labels=dict(labels), why=why), actor="user")

    def set_budget(self, **limits: int | None) -> Seq:
        """Sets limits in `tokens`, `usd_micros`, `duration_us`; None lifts one."""
        return self._record(ev.BudgetSet(limits=limits), actor="user")

    def checkpoint(self, name: str, at: Where = None, *, remove: bool = False) -> Seq:
        """Names a point. Free: a name, not a copy."""
        return self._record(ev.CheckpointNamed(name=name, at=self.seq(at), remove=remove), actor="user")

    def note(self, text: str, on: Where = 0) -> Seq:
        """A remark on an event, or on the session."""
        return self._record(ev.NoteAdded(text=text, on=on if isinstance(on, int) else self.seq(on)), actor="user")

    def spawned(self, session: str, task: str = "") -> Seq:
        """Records that a sub-agent's session was started; `Store.spawn` opens and records one."""
        return self._record(ev.SubagentSpawned(session=session, task=task))

    def returned(
        self, session: str, outcome: str = "completed", *, output: Value = None, cost: ev.Cost | None = None
    ) -> Seq:
        """Records a sub-agent's result and what it cost."""
        return self._record(
            ev.SubagentReturned(session=session, outcome=outcome, output=output, cost=cost or ev.Cost())
        )

    # Turns

    def turn(
        self, user: Value = None, *, source: str = "", trust: Trust = "trusted", retry: bool = False, role: str = "user"
    ) -> Turn[S]:
        """A turn, to be used in a `with`. `user` is its input and becomes the first message.

        With `retry`, the view first goes back to where the last turn began, and this is its next attempt.
        """
        opening: list[ev.Event | Draft] = [ev.TurnStarted(input=user, retry=retry)]
        if user is not None:
            opening.append(Draft(ev.MessageAdded(role=role, content=user), actor="user", source=source, trust=trust))
        return Turn(self, opening)

    def begin_turn(self, turn: Turn[S], opening: list[ev.Event | Draft]) -> tuple[int, int]:
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
            now = self.log.state()["turn"]
            if now["status"] == "open":
                self._refuse_if_leased()
                self.append(*self._settling("the process ended inside it"))
            started = opening[0]
            if isinstance(started, ev.TurnStarted) and started.retry and now["number"]:
                self.log.rewind(attempts_of(self.log, now["number"])[-1].first - 1, mode="retry")
            self.append(*opening)
        except BaseException:
            self.finish_turn(turn)
            raise
        state = self.log.state()["turn"]
        return state["number"], state["attempt"]

    def finish_turn(self, turn: Turn[S]) -> None:
        with self._turn_lock:
            if self._turn is turn:
                self._turn = None

    def _refuse_if_leased(self) -> None:
        holder = self.log.living_holder()
        if holder:
            raise ConflictError(
                f"{self.name or self.id} is being written by {holder}", kind="leased", hint="wait for it"
            )

    def attempts(self, turn: int) -> list[Span]:
        """All attempts of a turn, side by side."""
        return attempts_of(self.log, turn)

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

    # Reading

    def seq(self, where: Where = None) -> Seq:
        """The event a point stands for."""
        if where is None:
            return self.head.seq
        return where if isinstance(where, int) else resolve_point(self.log, where)

    def state(self, at: Where = None) -> State:
        """The typed state at a point, or now."""
        return msgspec.convert(self.state_document(at), State)

    def state_document(self, at: Where = None) -> dict[str, Value]:
        """The same as plain JSON."""
        return self.log.state(None if at is None else self.seq(at))

    def state_hash(self, at: Where = None) -> str:
        """Equal for equal states, however they were reached."""
        return self.log.state_hash(None if at is None else self.seq(at))

    def events(self, **filters: Any) -> Iterator[Entry]:
        """Events by position and content: `after`, `upto`, `turn`, `attempt`, `since`, `until`, `kind`, `tool`."""
        return read_slice(self.log, Slice(**filters))

    def __getitem__(self, selector: str) -> Iterator[Entry]:
        """`session["@5"]`, `session["@3..@7"]`: the events of a turn or an inclusive range."""
        found: Point | Range = resolve_range(self.log, selector)
        return self.log.entries(after=found.first - 1, upto=found.last)

    def value(self, entry: Entry, value: Value) -> Value:
        """A value from an event's body, fetched if it was stored beside it."""
        return self.log.value(entry, value)

    def messages(self, at: Where = None) -> list[Message]:
        """The messages in view, oldest first. What was rewound is not among them; it is still in the log."""
        return read_messages(self.log, None if at is None else self.seq(at))

    def diff(self, a: Where = None, b: Where = None, *, other: Session[Any] | None = None) -> TurnDiff:
        """What changed from `a` to `b`, with event, tool and reason; by default what the last turn changed.

        With `other`, `b` is a point of that session: a fork, or any other.
        """
        if a is None and b is None and other is None:
            number = self.head.turn
            if not number:
                return turn_diff(self.log, 0, self.log, self.head.seq)
            return turn_diff(self.log, attempts_of(self.log, number)[-1].first - 1, self.log, self.head.seq)
        target = other.log if other is not None else self.log
        to = target.head().seq if b is None else (other or self).seq(b)
        return turn_diff(self.log, self.seq(a), target, to)

    def blame(self, pointer: str = "", at: Where = None) -> list[Blame]:
        """Who last wrote each key below a pointer: event, turn, tool and reason."""
        return blame(self.log, pointer, self.seq(at))

    def follow(self, *, after: Seq | None = None, timeout_s: float | None = None) -> Iterator[Entry]:
        """Events as they come, from any process, each once and in order."""
        return self.log.follow(after=self.head.seq if after is None else after, timeout_s=timeout_s)

    # Moving

    def rewind(self, to: Where, *, why: str = "") -> Head:
        """Moves the view back by appending. Goal, decisions, facts, working set and data return to what they were;
        status, turn numbers, money, flags, dead ends and open calls do not. `undo` takes it back."""
        return self.log.rewind(self.seq(to), why=why)

    def undo(self) -> Undone:
        """Takes back the newest rewind that was not yet undone; repeated, walks further back."""
        return undo(self.log)

    def fork(self, at: Where = None, *, name: str = "", why: str = "") -> Session[S]:
        """A new session sharing the history up to a point. `Store.fork` also binds its name."""
        return Session(self.log.fork(self.seq(at), name=name, why=why), name=name, data_type=self.data_type)

    # Life

    def pause(self, *, why: str = "") -> Head:
        """Nothing new takes effect until `resume`; outcomes of what began before are still accepted."""
        return self.append(Draft(ev.SessionPaused(why=why), actor="user"))

    def resume(self, *, host: str = "", why: str = "") -> Head:
        """Continues a paused session."""
        return self.append(Draft(ev.SessionResumed(host=host, why=why), actor="user"))

    def close(self, outcome: str = "completed", *, why: str = "") -> Head:
        """Ends the session. Open calls are settled first: what never started is abandoned, the rest is uncertain."""
        settled = self._settling("the session was closed")
        return self.append(*settled, Draft(ev.SessionClosed(outcome=outcome, why=why), actor="user"))

    def _settling(self, why: str) -> list[Draft]:
        """The events that leave nothing dangling: a running call with effects becomes uncertain, since nobody knows
        whether they happened; any other open call is abandoned; an open turn is interrupted."""
        state = self.log.state()
        events: list[ev.Event] = []
        for action, pending in state["pending_actions"].items():
            if pending["status"] == "running" and pending["effect"] in ("write", "external"):
                events.append(ev.ActionUncertain(action=action, why=why))
            elif pending["status"] != "uncertain":
                events.append(ev.ActionAbandoned(action=action, why=why))
        if state["turn"]["status"] == "open":
            events.append(ev.TurnEnded(outcome="interrupted", why=why))
        return [Draft(event, actor="runtime") for event in events]

    def reopen(self, *, why: str = "") -> Head:
        return self.append(Draft(ev.SessionReopened(why=why), actor="user"))

    def archive(self, *, why: str = "") -> Head:
        """Puts a closed session away; `reopen` brings it back."""
        return self.append(Draft(ev.SessionArchived(why=why), actor="user"))

    # Trust

    def verify(self, anchor: Anchor | None = None) -> VerifyReport:
        """Checks every byte, the chain, and what is derived from it; against an anchor also that nothing was cut
        off."""
        return verify(self.log, anchor)

    def anchor(self) -> Anchor:
        """The head, to be kept elsewhere."""
        return self.log.anchor()

    # Leases

    def take_lease(self, holder: str, *, ttl_s: float = 30.0, force: bool = False) -> int:
        """Claims the session for one writer; pass the epoch it returns as `guard`."""
        return self.log.take_lease(holder, ttl_s=ttl_s, force=force)

    def release_lease(self, epoch: int) -> Head:
        return self.log.release_lease(epoch)
