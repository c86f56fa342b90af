"""`WakelogSession`: a session of the OpenAI Agents SDK, stored as a wakelog session.

Items are recorded as turns, model calls, tool calls and outcomes, and are returned unchanged. Removing items
(`pop_item`, `clear_session`) is a rewind: the log keeps them. A branch is a fork.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from agents.memory import SessionSettings
from agents.tracing import get_current_trace

from wakelog.adapters.item_log import KeptItem
from wakelog.adapters.openai_agents.run_notes import RUNS, RunNotes
from wakelog.adapters.ownership import own_session
from wakelog.adapters.recorder import Recorder
from wakelog.adapters.stores import Place, StoreUser
from wakelog.errors import InvalidInputError
from wakelog.model.events import Effect
from wakelog.model.names import name_of_id
from wakelog.runtime.bridge import in_thread, in_thread_to_the_end
from wakelog.session import Session

AGENT = "openai-agents"
FORMAT = "openai-agents"
MAIN = "main"


class WakelogSession(StoreUser):
    """A session for the SDK. Several processes may have the same one open."""

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        store: Place = None,
        *,
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
        effects: Mapping[str, Effect] | None = None,
    ) -> None:
        """`store` is an open store, or an argument of `wakelog.open`. `effects` are the effects of tools by name:
        `{"get_weather": "read"}`; other tools count as external."""
        super().__init__(store)
        self.session_id = session_id
        self.session_settings = _settings(session_settings)
        self._effects = effects
        self.name = name_of_id(session_id)
        """The name of the wakelog session: the id, if it is a valid name."""
        self._main: Session[Any] | None = None
        self._recorder: Recorder | None = None
        self._branch = MAIN
        self._offered_from = 0
        """Where the items begin that the SDK was last given, if a limit cut them; 0 if it was given all."""
        self._shown_from = 0
        """The same for the run that is being recorded. A later look at the items does not change it."""

    # The protocol

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items in view, oldest first; with a limit, only the newest."""
        if limit is None:
            limit = _settings(self.session_settings).limit
        self._notes()
        return await in_thread(self._offer, None if limit is None or limit < 0 else limit)

    async def add_items(self, items: Sequence[Any]) -> None:
        """Adds items in one commit."""
        if items:
            notes = self._notes()
            await in_thread_to_the_end(self._add, list(items), notes)

    async def pop_item(self) -> Any:
        """Removes the newest item from view and returns it; None if there is none."""
        return await in_thread_to_the_end(lambda: self._open().pop(why="pop_item"))

    async def clear_session(self) -> None:
        """Removes all items from view."""
        await in_thread_to_the_end(lambda: self._open().clear(why="clear_session"))

    async def _atomic_replace_items(self, items: Sequence[Any]) -> bool:
        """The SDK's compaction calls this if a session has it; otherwise it clears the session and adds the items, and
        a crash in between leaves it empty."""
        await in_thread_to_the_end(lambda: self._open().replace(*items, why="compacted"))
        return True

    async def _get_compaction_snapshot(self, limit: int, *, prune_prefix: object = None) -> Any:
        """The SDK's compaction calls this if a session has it, to replace only the newest items, and only if nobody has
        added others meanwhile. Expired items of an encrypted session (`prune_prefix`) stay; they are never returned."""
        if type(self) is not WakelogSession:
            return None  # what a subclass does to items is unknown
        from agents.memory.session import _CompactionSnapshot

        def read() -> tuple[Recorder, list[KeptItem], bool]:
            recorder = self._open()
            items = recorder.log.refresh()
            return recorder, items[-limit:], len(items) <= limit

        recorder, newest, is_complete = await in_thread(read)

        async def replace_suffix(start: int, output: Sequence[Any]) -> bool:
            if not (old := newest[start:]):
                return False
            return await in_thread_to_the_end(lambda: recorder.replace(*output, instead_of=old, why="compacted"))

        return _CompactionSnapshot([item.original for item in newest], is_complete, replace_suffix)

    # Branches

    async def fork(self, session_id: str, *, before_turn: int | None = None) -> WakelogSession:
        """A new session with the history of this one; with `before_turn`, only the history before that user message,
        counted from 1."""

        def make() -> WakelogSession:
            at = self._fork_point(before_turn)
            forked = self._open().session.fork(at, name=name_of_id(session_id), why=f"forked as {session_id}")
            child = WakelogSession(session_id, self.store, session_settings=self.session_settings)
            child._effects, child._main = self._effects, forked
            return child

        return await in_thread_to_the_end(make)

    async def create_branch_from_turn(self, turn_number: int, branch_name: str | None = None) -> str:
        """Creates a branch with the history before user message `turn_number`, counted from 1, and switches to it. A
        branch is a fork; the name of its session is made from this one's name and the branch."""

        def make() -> str:
            at = self._fork_point(turn_number)
            branch = branch_name or f"turn-{turn_number}-e{self._open().session.head.seq}"
            forked = self._open().session.fork(at, name=self._branch_name(branch), why=f"branch {branch}")
            self._switch(forked, branch)
            return branch

        return await in_thread_to_the_end(make)

    async def switch_to_branch(self, branch_id: str) -> None:
        """Switches to another branch; `main` is the session itself."""

        def switch() -> None:
            if branch_id == MAIN:
                self._switch(self._main_session(), MAIN)
            else:
                self._switch(self.store.resume(self._branch_name(branch_id)), branch_id)

        await in_thread(switch)

    async def list_branches(self) -> list[dict[str, Any]]:
        """The branches, the session itself first."""

        def read() -> list[dict[str, Any]]:
            root = self._main_session().id
            prefix = f"{self.name}+"
            found = {MAIN: Recorder(self._main_session(), format=FORMAT)}
            for head in self.store.sessions():
                if head.name.startswith(prefix) and head.session.startswith(root):
                    found[head.name.removeprefix(prefix)] = Recorder(self.store.resume(head.session), format=FORMAT)
            return [_branch(name, recorder, name == self._branch) for name, recorder in found.items()]

        return await in_thread(read)

    @property
    def session(self) -> Session[Any]:
        """The wakelog session, for diff, why, rewind and all other verbs."""
        return self._open().session

    def _main_session(self) -> Session[Any]:
        if self._main is None:
            self._main = own_session(self.store, AGENT, self.session_id, origin=self.session_id)
        return self._main

    def _open(self) -> Recorder:
        if self._recorder is None:
            self._recorder = self._record(self._main_session())
        return self._recorder

    def _record(self, session: Session[Any]) -> Recorder:
        # The SDK's EncryptedSession gives items that only it can read.
        return Recorder(session, effects=self._effects, format=FORMAT, takes_any=True)

    def _switch(self, session: Session[Any], branch: str) -> None:
        self._recorder = self._record(session)
        self._branch = branch
        self._offered_from = self._shown_from = 0

    def _branch_name(self, branch: str) -> str:
        if not branch.strip() or branch == MAIN:
            raise InvalidInputError(f"{branch!r} cannot name a branch", kind="bad-name", hint="choose another name")
        return name_of_id(f"{self.name}+{branch}")

    def _fork_point(self, turn: int | None) -> int | None:
        """The last event before a user message, counted from 1."""
        if turn is None:
            return None
        messages = [item for item in self._open().log.refresh() if item.value.get("role") == "user"]
        if not 1 <= turn <= len(messages):
            raise InvalidInputError(
                f"{self.session_id} has no turn {turn}: it has {len(messages)} user messages",
                kind="turn-not-found",
                hint=f"use a number from 1 to {len(messages)}" if messages else "add items first",
            )
        return messages[turn - 1].first - 1

    def _notes(self) -> RunNotes | None:
        """What the tracer knows about the current run. From now on it leaves the items to this session."""
        trace = get_current_trace()
        notes = RUNS.find(trace.trace_id) if trace is not None else None
        if notes is not None and (notes.recorder is None or notes.is_session):
            notes.is_session = True
            return notes
        return None

    def _offer(self, limit: int | None) -> list[Any]:
        log = self._open().log
        items = log.refresh(limit)
        is_cut = len(items) < len(log.items)
        self._offered_from = (items[0].first if items else log.seen + 1) if is_cut else 0
        return [item.original for item in items]

    def _add(self, items: list[Any], notes: RunNotes | None) -> None:
        recorder = self._open()
        if any(isinstance(item, dict) and item.get("role") == "user" for item in items):
            self._shown_from = self._offered_from
        if notes is None:
            recorder.add(*items, shown_from=self._shown_from)
            return
        notes.recorder = recorder
        plain = [item for item in items if isinstance(item, dict)]
        known = [item.value for item in recorder.log.refresh(32)]
        recorder.add(
            *items,
            reply=notes.take_reply(plain, recorder),
            calls=notes.take_calls(plain, known),
            shown_from=self._shown_from,
            stays_open=True,
        )
        notes.turn = recorder.session.log.part("turn")["number"]


def _settings(given: SessionSettings | Mapping[str, Any] | None) -> SessionSettings:
    if given is None:
        return SessionSettings()
    if not isinstance(given, Mapping):
        return given
    if unknown := sorted(given.keys() - {field.name for field in dataclasses.fields(SessionSettings)}):
        raise TypeError(f"Unknown session settings: {', '.join(unknown)}")
    return SessionSettings(**given)


def _branch(name: str, recorder: Recorder, is_current: bool) -> dict[str, Any]:
    items = recorder.messages()
    turns = 0
    with contextlib.suppress(AttributeError):
        turns = sum(item.get("role") == "user" for item in items)
    return {"branch_id": name, "message_count": len(items), "user_turns": turns, "is_current": is_current}
