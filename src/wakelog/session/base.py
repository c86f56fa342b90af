"""What all session verbs share: the log, the name, the data's type, how a point is given, how an event is recorded."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import EventDraft, Head
from wakelog.runtime.ambient import TrustMark
from wakelog.session.data import DataType

if TYPE_CHECKING:
    from wakelog.index.index import Index
    from wakelog.monitors.prices import Prices
    from wakelog.runtime.call import Runtime

S = TypeVar("S")
FOLLOWED = ("repo", "project", "branch")
"""Labels of a place in git that follow the session."""
Where = Seq | str | None
"""A point: an event's seq, a selector such as "@5" or "t:2h ago", or None for now."""
What = Seq | str
"""An event's seq, a selector ("e12", "@3"), a key of the state ("/facts/x"), a file or a line of it ("src/a.py:12")."""


class GitPlace:
    """The folder of a session, and where in git that is; an empty one is nowhere. `repo` is the repository's main work
    tree, `project` the folder that paths begin from, `branch` what is checked out: these are told again when they
    change. `commit` is where the session began, and stays."""

    def __init__(self, folder: str = "") -> None:
        self.folder = folder

    def labels(self) -> dict[str, str]:
        """What is true now; nothing outside of git. Reads a few small files."""
        if not self.folder:
            return {}
        from wakelog.files.capture import project_folder
        from wakelog.files.git_head import git_labels

        found = git_labels(self.folder)
        return {"project": project_folder(self.folder), **found} if found else {}

    def changes(self, labels: Mapping[str, str]) -> dict[str, str | None]:
        """What is no longer as these labels say. A session that was not begun in git stays as it is."""
        if "repo" not in labels or not (now := self.labels()):
            return {}
        return {name: now.get(name) for name in FOLLOWED if now.get(name) != labels.get(name)}


class Keeper(Protocol):
    """What a session asks the store it is in."""

    @property
    def index(self) -> Index: ...

    @property
    def prices(self) -> Prices: ...

    @property
    def on_effect(self) -> str:
        """What an effect with untrusted content in the window leads to: `flag`, or `ask`."""
        ...

    def wanted_by(self, session: Any) -> list[tuple[str, str]]:
        """The preferences that hold for a session: the words, and where they come from."""
        ...


def check_text(value: object, what: str) -> None:
    """InvalidInputError for an empty text: it would stay in the log for ever and help nobody."""
    if isinstance(value, str) and not value.strip():
        raise InvalidInputError(f"{what} is empty", kind="empty-text", hint="leave the call out, or say something")


def check_list(values: object, what: str) -> None:
    """InvalidInputError for one text in place of a list: it would be split into letters."""
    if isinstance(values, str):
        raise InvalidInputError(f"{what} are a list, not one text", kind="not-a-list", hint=f"[{values!r}]")


class Base(Generic[S]):
    """Identity, positions and raw events."""

    store: Keeper | None = None
    """The store it came from; None when it was made from a bare log."""
    _git_place = GitPlace()

    def __init__(self, log: Log, *, name: str = "", data_type: DataType[S] | None = None) -> None:
        self.log = log
        self.name = name
        self._data_type: DataType[S] = data_type or DataType()

    @functools.cached_property
    def _runtime(self) -> Runtime:
        """What makes calls and marks events: made when something is recorded, once for all threads."""
        from wakelog.runtime.call import Runtime

        return self.__dict__.setdefault("_runtime", Runtime(self.log))  # type: ignore[no-any-return]

    def __str__(self) -> str:
        """Returns the name, or the id where there is none: what a person calls it."""
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
        """The prices by which model calls are paid for: the store's."""
        if self.store is not None:
            return self.store.prices
        from wakelog.monitors.prices import built_in

        return built_in()

    @property
    def _is_answering(self) -> bool:
        """Whether a turn is open here that was completed before, and is only answered from the record."""
        return self._runtime.turn is not None and self._runtime.turn.is_done

    def seq(self, where: Where = None) -> Seq:
        """Returns the seq of the event at a point: `session.seq("@5")`."""
        if where is None:
            return self.head.seq
        if isinstance(where, int):
            return where
        from wakelog.timeline.selectors import resolve_point

        return resolve_point(self.log, where)

    def _upto(self, where: Where) -> Seq | None:
        """The same, but None stays None: it means "now", and then the kept state is used."""
        return None if where is None else self.seq(where)

    def _existing(self, where: Where) -> Seq:
        """The seq of the event at a point; NotFoundError when there is no such event."""
        seq, last = self.seq(where), self.head.seq
        if not 0 < seq <= last:
            raise NotFoundError(f"{self} has no event {seq} (it has e1..e{last})", kind="event-not-found")
        return seq

    def append(
        self, *events: ev.Event | EventDraft, expect: Seq | None = None, commit_id: str = "", guard: int | None = None
    ) -> Head:
        """Appends typed events as one durable commit. See `Log.append`. In a turn that is done it writes nothing."""
        if self._is_answering:
            return self.head
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
        """Records an event, or a draft as it is, unless another process has taken over the turn or the lease. In a turn
        that is done nothing is recorded again; then it is the seq of that turn's end."""
        runtime = self._runtime
        draft = (
            what
            if isinstance(what, EventDraft)
            else runtime.flow.draft(what, actor=actor, mark=TrustMark(trust, source), answers=answers)
        )
        turn = runtime.turn
        if turn is not None and turn.record is not None and turn.is_done:
            return turn.record.ended
        return self.log.record(runtime.placed(draft), guard=runtime.guard)
