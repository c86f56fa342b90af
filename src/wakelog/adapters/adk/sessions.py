"""ADK's session service: an ADK session is a session named `adk/<app>/<user>/<session>`.

Each ADK event is one durable commit. It is refused, with ADK's own error, if the caller's session is stale. The state
of a user and of an app is shared by many sessions, so it is the data of separate sessions. It is written after the
event, under a commit id made from that event: if the process dies in between, the next access to the session writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import msgspec
from google.adk.events.event import Event
from google.adk.platform import time as adk_time
from google.adk.platform import uuid as adk_uuid
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session
from google.adk.sessions.state import State

from wakelog.adapters.adk.errors import AlreadyExistsError, SessionNotFoundError, StaleSessionError
from wakelog.adapters.adk.event_drafts import FORMAT, LABELS, EventDrafts, SessionPlace, micros
from wakelog.adapters.adk.event_reader import NewestEvent, newest_event, read_events, rest_of
from wakelog.adapters.adk.state_values import ScopedState
from wakelog.adapters.compound_names import compound_name, ids_of, is_hashed
from wakelog.adapters.exact_values import from_stored
from wakelog.adapters.held_logs import HeldLog, LogsAdapter, merge_data
from wakelog.adapters.stores import Place
from wakelog.errors import ConflictError, NotFoundError
from wakelog.importers.writer.reply_costs import ReplyCosts
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import Head
from wakelog.model.values import Value
from wakelog.runtime.bridge import in_thread

SESSIONS, STATES = "adk", "adk-state"
_id_of = attrgetter("id")
RECENT = 64
"""How many of the last events are searched for an event that the caller sends again."""


class WakelogSessionService(LogsAdapter, BaseSessionService):  # type: ignore[misc]  # Any if it is not installed
    """Stores ADK's sessions as sessions of a wakelog store."""

    framework = FORMAT

    def __init__(self, store: Place = None) -> None:
        super().__init__(store)
        self._costs = ReplyCosts(self.store)

    # Ids

    @staticmethod
    def name_of(*, app_name: str, user_id: str, session_id: str) -> str:
        """The name of the session in the store, for `store.resume` and the command line."""
        return compound_name(SESSIONS, app_name, user_id, session_id)

    @staticmethod
    def ids_of(name: str) -> tuple[str, str, str] | None:
        """The app, user and session of a name; None if it is not the name of an ADK session."""
        ids = ids_of(SESSIONS, name)
        return (ids[0], ids[1], ids[2]) if ids is not None and len(ids) == 3 else None

    # ADK's interface

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        chosen = (session_id or "").strip() or adk_uuid.new_uuid()
        return await in_thread(self._create, (app_name, user_id, chosen), ScopedState(state))

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        return await in_thread(self._get, (app_name, user_id, session_id.strip()), config or GetSessionConfig())

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        return await in_thread(self._list, app_name, user_id)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        name = compound_name(SESSIONS, app_name, user_id, session_id.strip())
        await in_thread(self._logs.delete, name, why="deleted through ADK")

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        return await in_thread(self._shared_state, app_name, user_id)

    async def append_event(self, session: Session, event: Event) -> Event:
        if event.partial or _is_among(event, session.events[-RECENT:]):
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        await in_thread(self._append, session, event)
        return await super().append_event(session=session, event=event)

    async def take_over(self, other: BaseSessionService, *, app_name: str) -> int:
        """Copies the sessions of an app from another session service, with their events and state; returns how many.
        Events copied before are skipped, and so are sessions that were continued here."""
        from wakelog.adapters.adk.session_copy import copy_sessions

        copies = [copied async for copied in copy_sessions(self, other, app_name, self.share)]
        return sum(1 for copied in copies if copied.is_new or copied.events)

    def share(self, app: str, user: str, state: dict[str, Any]) -> None:
        """Sets keys of the state of an app and a user. Keys have their prefixes."""
        self._set_shared(app, user, ScopedState(state).shared)

    async def __aenter__(self) -> WakelogSessionService:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Sessions

    def _create(self, ids: tuple[str, str, str], state: ScopedState) -> Session:
        app, user, _ = ids
        name, now = compound_name(SESSIONS, *ids), adk_time.get_time()
        if self._logs.find(name) is not None:
            raise AlreadyExistsError(f"Session with id {ids[2]} already exists.")
        opened = ev.SessionOpened(
            name=name,
            agent=app,
            labels={"framework": FORMAT, **{label: id for label, id in zip(LABELS, ids, strict=True) if id}},
            data=state.stored_session(),
            occurred_at=micros(now),
        )
        try:
            held = self._logs.create(name, opened)
        except ConflictError:
            raise AlreadyExistsError(f"Session with id {ids[2]} already exists.") from None
        self._set_shared(app, user, state.shared)
        held.cache = 1, NewestEvent()
        return self._session(ids, held, opened.data, [], opened.occurred_at / 1e6)

    def _get(self, ids: tuple[str, str, str], config: GetSessionConfig) -> Session | None:
        held = self._logs.find(compound_name(SESSIONS, *ids))
        if held is None:
            return None
        seq, state = held.log.now()
        newest = self._newest(held, seq)
        self._apply_shared(ids, held, newest)
        events = read_events(held.log, seq, last=config.num_recent_events, since=config.after_timestamp)
        return self._session(ids, held, state["data"], events, _updated(held, newest), newest)

    def _list(self, app: str, user: str | None) -> ListSessionsResponse:
        shared: dict[str, dict[str, Any]] = {}
        found = []
        for ids, head in self._heads(app, user):
            held = self._logs.find(head.name, is_listed=True)
            if held is None:
                continue
            seq, state = held.log.now()
            newest = self._newest(held, seq)
            if ids[1] not in shared:
                shared[ids[1]] = self._merge_shared({}, app, ids[1])
            updated = _updated(held, newest)
            found.append(self._session(ids, held, state["data"], [], updated, newest, shared[ids[1]]))
        found.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=found)

    def _heads(self, app: str, user: str | None) -> Iterator[tuple[tuple[str, str, str], Head]]:
        for head in self.store.sessions():
            ids = self.ids_of(head.name)
            if (
                ids is None
                and is_hashed(SESSIONS, head.name)
                and (held := self._logs.find(head.name, is_listed=True)) is not None
            ):
                labels = held.log.part("labels")
                ids = (labels.get(LABELS[0], ""), labels.get(LABELS[1], ""), labels.get(LABELS[2], ""))
            if ids is not None and ids[0] == app and (user is None or ids[1] == user):
                yield ids, head

    def _session(
        self,
        ids: tuple[str, str, str],
        held: HeldLog,
        data: dict[str, Value],
        events: list[Event],
        updated: float,
        newest: NewestEvent = NewestEvent(),  # noqa: B008 - frozen
        shared: dict[str, Any] | None = None,
    ) -> Session:
        app, user, id = ids
        own = from_stored(data)
        state = {**own, **from_stored(shared)} if shared is not None else self._merge_shared(own, app, user)
        session = Session(app_name=app, user_id=user, id=id, state=state, events=events, last_update_time=updated)
        session._storage_update_marker = _marker(held, newest)
        return session

    # Events

    def _append(self, session: Session, event: Event) -> None:
        ids = session.app_name, session.user_id, session.id
        name = compound_name(SESSIONS, *ids)
        change = ScopedState(event.actions.state_delta if event.actions else None)
        held = self._logs.find(name, is_written=True)
        if held is None:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        with held.lock:
            is_first = held.cache is not None

            def attempt() -> Head:
                # First try with what this process knows. If that is old, the store refuses, and the next try reads.
                nonlocal is_first
                refresh, is_first = not is_first, False
                return self._try_append(ids, held, session, event, change, refresh=refresh)

            try:
                head = retry_on_moved_head(held.log.id, "to append to", attempt)
            except NotFoundError as exc:
                self._logs.drop(name)
                raise SessionNotFoundError(f"Session {session.id} not found.") from exc
            newest = NewestEvent(
                head.commit_id,
                event.id,
                event.invocation_id,
                event.timestamp,
                bool(event.is_final_response()),
                change.shared,
            )
            held.cache = head.seq, newest
            session.last_update_time = event.timestamp
            session._storage_update_marker = _marker(held, newest)
            self._apply_shared(ids, held, newest)

    def _try_append(
        self,
        ids: tuple[str, str, str],
        held: HeldLog,
        session: Session,
        event: Event,
        change: ScopedState,
        *,
        refresh: bool,
    ) -> Head:
        log = held.log
        seq, parts, data = log.look("turn", "pending_actions", data=change.session, refresh=refresh)
        newest = self._newest(held, seq)
        if self._is_stale(held, session, newest):
            if not refresh:  # maybe this process, not the caller, is behind
                return self._try_append(ids, held, session, event, change, refresh=True)
            raise StaleSessionError(
                "The session has been modified in storage since it was loaded. Please reload the session before"
                " appending more events."
            )
        self._apply_shared(ids, held, newest)
        place = SessionPlace(
            ids=ids,
            has_turn=parts["turn"]["status"] == "open",
            invocation=newest.invocation,
            was_final=newest.is_final,
            pending=parts["pending_actions"],
            data=data,
        )
        held.cache = seq, newest
        before = event.actions.rewind_before_invocation_id if event.actions else None
        if before and (to := self._start_of(held, before)):
            state = log.state(to)
            data = {key: state["data"][key] for key in change.session if key in state["data"]}
            drafts = EventDrafts(event, change, msgspec.structs.replace(place, data=data), self._costs).make()
            return log.rewind(to, why="rewound by ADK", expect=seq, then=drafts)
        return log.append(*EventDrafts(event, change, place, self._costs).make(), expect=seq)

    def _start_of(self, held: HeldLog, invocation: str) -> Seq:
        """The last event before an invocation started; 0 if the invocation is not in the log."""
        commit, before = "", 0
        for entry in held.log.entries():
            if entry.commit_id != commit:
                commit, before = entry.commit_id, entry.seq - 1
            rest = rest_of(held.log, entry)
            if rest is not None and rest["event"].get("invocation_id") == invocation:
                return before
        return 0

    def _newest(self, held: HeldLog, seq: Seq) -> NewestEvent:
        with held.lock:
            if held.cache is None:
                held.cache = seq, newest_event(held.log, seq)
            elif held.cache[0] < seq:
                after, known = held.cache
                held.cache = seq, newest_event(held.log, seq, known=known, after=after)
            newest: NewestEvent = held.cache[1]
            return newest

    def _is_stale(self, held: HeldLog, session: Session, newest: NewestEvent) -> bool:
        marker = session._storage_update_marker
        if marker is not None:
            return bool(marker != _marker(held, newest))
        if _updated(held, newest) <= session.last_update_time:
            return False
        # The caller built the session object itself. It is current if it has the newest event.
        return bool(newest.id != (session.events[-1].id if session.events else ""))

    # State shared by sessions

    def _merge_shared(self, own: dict[str, Any], app: str, user: str) -> dict[str, Any]:
        state = dict(own)
        state.update((State.APP_PREFIX + key, value) for key, value in self._shared_state(app).items())
        state.update((State.USER_PREFIX + key, value) for key, value in self._shared_state(app, user).items())
        return state

    def _shared_state(self, *ids: str) -> dict[str, Any]:
        held = self._logs.find(compound_name(STATES, *ids))
        return from_stored(held.log.state()["data"]) if held is not None else {}

    def _apply_shared(self, ids: tuple[str, str, str], held: HeldLog, newest: NewestEvent) -> None:
        """Applies the newest event's change to the shared state, exactly once."""
        if newest.shared:
            self._set_shared(ids[0], ids[1], newest.shared, commit=f"adk:{held.log.id}:{newest.commit}")
            with held.lock:
                if held.cache is not None and held.cache[1] is newest:
                    held.cache = held.cache[0], msgspec.structs.replace(newest, shared={})

    def _set_shared(self, app: str, user: str, change: dict[str, Value], commit: str = "") -> None:
        for prefix, scope in ((State.APP_PREFIX, (app,)), (State.USER_PREFIX, (app, user))):
            part = {key.removeprefix(prefix): value for key, value in change.items() if key.startswith(prefix)}
            if not part:
                continue
            name = compound_name(STATES, *scope)
            held = self._logs.open(name, dict(zip(LABELS, scope, strict=False)), agent=app)
            merge_data(held.log, part, commit_id=commit)


def _marker(held: HeldLog, newest: NewestEvent) -> str:
    return f"{held.log.id}@{newest.commit}"


def _is_among(event: Event, known: list[Event]) -> bool:
    # Mostly no id is the same, and looking for one this way calls no Python code.
    return event.id in map(_id_of, known) and event in known


def _updated(held: HeldLog, newest: NewestEvent) -> float:
    """The time of the newest event; without one, when the session was created."""
    return newest.timestamp if newest.id else held.log.entry(1).happened_at / 1e6
