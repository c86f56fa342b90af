"""What all session verbs share: the log, the name, the data's type, resolving a point, and recording an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.model.ids import Seq, SessionId
from wakelog.model.late_value import LateValue
from wakelog.model.records import EventDraft, Head
from wakelog.runtime.ambient import TrustMark
from wakelog.session.data import DataType

if TYPE_CHECKING:
    from wakelog.index.index import Index
    from wakelog.index.word_places import WordPlaces
    from wakelog.monitors.prices import Prices
    from wakelog.runtime.call import Runtime

S = TypeVar("S")
GIT_LABELS = ("repo", "project", "branch")
"""Labels that are updated when a session's place in git changes."""
Where = Seq | str | None
"""A point: an event's seq, a selector such as "@5" or "t:2h ago", or None for now."""
What = Seq | str
"""An event's seq, a selector ("e12", "@3"), a key of the state ("/facts/x"), a file or a line of it ("src/a.py:12")."""


class GitPlace:
    """A session's folder and its place in git; without a folder it has none. `repo` is the repository's main work tree,
    `project` the folder that paths are relative to, `branch` what is checked out. `commit` is where the session began,
    and does not change."""

    def __init__(self, folder: str = "") -> None:
        self.folder = folder
        self._files: tuple[str, ...] = ()
        self._last: tuple[object, dict[str, str]] = (None, {})
        """The stamp of git's files when the labels were last read, and those labels."""

    def labels(self) -> dict[str, str]:
        """Reads the labels from a few small files of git; empty outside of git."""
        if not self.folder:
            return {}
        from wakelog.files.git_head import git_labels

        return self._with_project(git_labels(self.folder))

    def _with_project(self, results: dict[str, str]) -> dict[str, str]:
        from wakelog.files.project import project_folder

        return {"project": project_folder(self.folder), **results} if results else {}

    def changes(self, labels: Mapping[str, str]) -> dict[str, str | None]:
        """Returns the labels that changed. A session that did not begin in git has none."""
        if "repo" not in labels or not self.folder or not (now := self._branch_labels()):
            return {}
        return {name: now.get(name) for name in GIT_LABELS if now.get(name) != labels.get(name)}

    def _branch_labels(self) -> dict[str, str]:
        """The labels without `commit`. They are read again when git has changed its files."""
        from wakelog.files.git_head import branch_labels, head_files, stamp_of

        stamp, known = self._last
        if stamp is None or stamp_of(self._files) != stamp:
            self._files = head_files(self.folder)
            stamp = stamp_of(self._files)  # before they are read: what changes meanwhile is read the next time
            known = self._with_project(branch_labels(self.folder))
            self._last = stamp, known
        return known


class SessionStore(Protocol):
    """What a session needs from its store."""

    @property
    def index(self) -> Index: ...

    @property
    def prices(self) -> Prices: ...

    @property
    def on_effect(self) -> str:
        """What to do about an effect while untrusted content is in the window: `flag` or `ask`."""
        ...

    def word_places(self, session: SessionId) -> WordPlaces | None:
        """Returns the words that the index has of a session; None if there is no local index."""
        ...

    def preferences_for(self, session: Any) -> list[tuple[str, str]]:
        """Returns the preferences that apply to a session: text and source."""
        ...


def check_text(value: object, what: str) -> None:
    """Raises InvalidInputError for empty text."""
    if isinstance(value, str) and not value.strip():
        raise InvalidInputError(f"{what} is empty", kind="empty-text", hint="leave the call out, or say something")


def check_list(values: object, what: str) -> None:
    """Raises InvalidInputError for a string instead of a list: it would be split into letters."""
    if isinstance(values, str):
        raise InvalidInputError(f"{what} are a list, not one text", kind="not-a-list", hint=f"[{values!r}]")


def check_tokens(budget: object) -> None:
    """Raises InvalidInputError for a budget that is not a number of tokens."""
    if budget is not None and not isinstance(budget, int):
        raise InvalidInputError(
            f"{budget!r} is not a number of tokens"[:200], kind="bad-limit", hint="pass a whole number, such as 8000"
        )


def check_session(value: object) -> None:
    """Raises InvalidInputError for what is not a session, such as the name of one."""
    if not isinstance(value, Base):
        raise InvalidInputError(
            f"{value!r} is not a session"[:200], kind="not-a-session", hint='pass the session: store.resume("NAME")'
        )


class Base(Generic[S]):
    """Identity, positions and raw events."""

    store: SessionStore | None = None
    """The store it came from; None if it was made from a log alone."""
    _git_place = GitPlace()

    def __init__(self, log: Log, *, name: str = "", data_type: DataType[S] | None = None) -> None:
        self.log = log
        self.name = name
        self._data_type: DataType[S] = data_type or DataType()

    @LateValue
    def _runtime(self) -> Runtime:
        """Makes calls and adds cause and trust to events. Created on first use, once for all threads."""
        from wakelog.runtime.call import Runtime

        return Runtime(self.log)

    def __str__(self) -> str:
        """Returns the name, or the id if it has none."""
        return self.name or self.id

    @property
    def id(self) -> SessionId:
        """Returns the session's id."""
        return self.log.id

    @property
    def head(self) -> Head:
        """Returns the newest position: seq, turn, status, hash."""
        return self.log.head()

    @property
    def status(self) -> str:
        """Returns the status: open, active, paused, closed, archived or deleted."""
        return self.head.status

    def _prices(self) -> Prices:
        """Returns the store's price table, or the built-in one."""
        if self.store is not None:
            return self.store.prices
        from wakelog.monitors.prices import built_in

        return built_in()

    @property
    def _is_answering(self) -> bool:
        """Whether the open turn was completed before. Then nothing is recorded."""
        return self._runtime.turn is not None and self._runtime.turn.is_done

    def seq(self, where: Where = None) -> Seq:
        """Returns the seq of the event at a point: `session.seq("@5")`."""
        if where is None:
            return self.head.seq
        if isinstance(where, int):
            return where
        if not isinstance(where, str):
            raise InvalidInputError(
                f"{where!r} is not a valid position"[:200],
                kind="bad-selector",
                hint='a position is the seq of an event, or a text such as "@5", "e1042" or "cp:NAME"',
            )
        from wakelog.timeline.selectors import resolve_point

        return resolve_point(self.log, where)

    def _upto(self, where: Where) -> Seq | None:
        """The same, but None stays None: it means "now", for which the state is cached."""
        return None if where is None else self.seq(where)

    def _existing(self, where: Where) -> Seq:
        """Returns the seq of the event at a point. Raises NotFoundError if there is no such event."""
        seq, last = self.seq(where), self.head.seq
        if not 0 < seq <= last:
            raise NotFoundError(f"{self} has no event {seq} (it has e1..e{last})", kind="event-not-found")
        return seq

    def append(
        self, *events: ev.Event | EventDraft, expect: Seq | None = None, commit_id: str = "", guard: int | None = None
    ) -> Head:
        """Appends typed events as one durable commit. See `Log.append`. In a turn that is already done
        (`turn.is_done`), nothing is written."""
        for each in events:
            if not isinstance(each, ev.Event | EventDraft):
                raise InvalidInputError(
                    f"{each!r} is not an event"[:200],
                    kind="bad-event",
                    hint='append typed events, such as wakelog.events.FactRecorded(key="ttl", value=300)',
                )
        if self._is_answering:
            return self.head
        return self._store(events, expect, commit_id, guard)

    def _store(
        self, events: Sequence[ev.Event | EventDraft], expect: Seq | None, commit_id: str, guard: int | None
    ) -> Head:
        return self.log.append(*events, expect=expect, commit_id=commit_id, guard=guard)

    def _record(
        self,
        what: ev.Event | EventDraft,
        *,
        actor: str = "agent",
        source: str = "",
        trust: Trust = "trusted",
        answers: str = "",
    ) -> Seq:
        """Records an event, or a draft unchanged, and returns its seq. Refused if another process has taken over the
        turn or the lease. In a turn that is already done nothing is recorded, and the seq of its end is returned."""
        runtime = self._runtime
        draft = (
            what
            if isinstance(what, EventDraft)
            else runtime.flow.draft(what, actor=actor, mark=TrustMark(trust, source), answers=answers)
        )
        turn = runtime.turn
        if turn is not None and turn.record is not None and turn.is_done:
            return turn.record.ended
        return self._store_one(runtime.pin_to_turn(draft), runtime.guard)

    def _store_one(self, draft: EventDraft, guard: int | None) -> Seq:
        return self.log.record(draft, guard=guard)
