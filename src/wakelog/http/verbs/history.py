"""Read a session at any point: state, events, messages, diff, blame; and check whether it was altered."""

from __future__ import annotations

from typing import Annotated

import msgspec

from wakelog.diff.rewind_preview import RewindPreview
from wakelog.diff.turn_diff import TurnDiff
from wakelog.diff.writers import Blame
from wakelog.engines.remote.wire import Question
from wakelog.errors import CorruptLogError, InvalidInputError
from wakelog.http.routes import Raw, VerbRequest, route, time_of
from wakelog.http.shapes import At, EventRecord, Limit, Position, Query, are_absolute, record_of
from wakelog.insight.items import Insight
from wakelog.log.damage import Hole
from wakelog.log.reader import fetch
from wakelog.log.verify import VerifyReport
from wakelog.model.ids import SessionId
from wakelog.model.payloads import without_bytes
from wakelog.model.records import Anchor
from wakelog.model.values import INT_MAX, Value
from wakelog.state.patch import get
from wakelog.timeline.call_table import CallRow
from wakelog.timeline.files import ChangedFiles
from wakelog.timeline.messages import Message
from wakelog.timeline.selectors import resolve_range

PAYLOAD_MAX = 16 << 20


class StateQuery(At, frozen=True):
    pointer: str = ""
    """A JSON Pointer: only this part of the state."""


class StateAnswer(msgspec.Struct, frozen=True):
    """The state, or a part of it, after an event."""

    session: str
    at: int
    state_hash: str
    value: Value


class EventsQuery(Query, frozen=True):
    """Which events; all filters are combined."""

    place: str = ""
    """A selector of a position or a range: `@5`, `@3..@7`, `e12`, `cp:NAME`."""
    after: Position = 0
    """The `next` of the previous page, or any event."""
    upto: Position | None = None
    turn: Position | None = None
    attempt: Position | None = None
    since: str = ""
    until: str = ""
    kind: tuple[str, ...] = ()
    """A kind, or its first word; may be repeated."""
    tool: str | None = None
    payloads: Annotated[int, msgspec.Meta(ge=0, le=PAYLOAD_MAX)] = 0
    """Payloads up to this many bytes are included; larger ones are references."""
    limit: Limit = 100
    even_damaged: bool = False
    """Read what is readable of a damaged session, with `holes` for the rest. Then only `after`, `upto`, `limit` and
    `payloads` apply."""

    def is_fixed_by_head(self) -> bool:
        return not self.since and not self.until and not self.even_damaged and are_absolute(self.place)


class EventsPage(msgspec.Struct, frozen=True):
    """Events, oldest first; pass `next` as `after` to read on."""

    events: tuple[EventRecord, ...]
    next: int | None = None
    holes: tuple[Hole, ...] = ()
    """Events that cannot be read, and why; only with `even_damaged`."""


class PayloadsQuery(Query, frozen=True):
    payloads: Annotated[int, msgspec.Meta(ge=0, le=PAYLOAD_MAX)] = PAYLOAD_MAX
    """Payloads up to this many bytes are included; larger ones are references."""


class MessagesQuery(At, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=INT_MAX)] | None = None
    """Only the last messages; older ones are not read."""
    before: Position | None = None
    """To get the previous page: the `seq` of the first message of this one."""


class MessagesAnswer(msgspec.Struct, frozen=True):
    messages: tuple[Message, ...]


class DiffQuery(Query, frozen=True):
    """Two points; by default, what the last turn changed."""

    a: str = ""
    b: str = ""
    other: str = ""
    """Another session that `b` is in."""

    def is_fixed_by_head(self) -> bool:
        return not self.other and are_absolute(self.a, self.b)


class CallsQuery(Query, frozen=True):
    place: str = ""
    """A turn or a range: `@2`, `@1..@5`; by default the whole session."""

    def is_fixed_by_head(self) -> bool:
        return not self.place or are_absolute(*self.place.split(".."))


class CallTable(msgspec.Struct, frozen=True):
    calls: tuple[CallRow, ...]


class InsightQuery(Query, frozen=True):
    where: str = ""
    """A turn or a range: `@2`, `@1..@5`; by default the last turn."""
    all: bool = False
    """Include minor items."""


class BlameQuery(At, frozen=True):
    pointer: str = ""


class ChangedFilesQuery(At, frozen=True):
    last: Position = 5
    """In how many of the last turns in view; 0 for all of the history."""


class BlameAnswer(msgspec.Struct, frozen=True):
    keys: tuple[Blame, ...]


class ToQuery(Query, frozen=True):
    to: str

    def is_fixed_by_head(self) -> bool:
        return are_absolute(self.to)


class AgainstAnchor(Question, frozen=True):
    """An anchor kept elsewhere: a head that the log must still contain."""

    seq: Annotated[int, msgspec.Meta(ge=1, le=INT_MAX)]
    hash: str
    at: int = 0


@route("GET", "/sessions/{session}/state", by_head=True)
def state(call: VerbRequest, query: StateQuery) -> StateAnswer:
    """Returns the state at a point, or now; all of it or one part."""
    session = call.session()
    at = session.seq(query.at or None)
    document = session.log.state(session.seq(at)) if at else {}
    try:
        value = get(document, query.pointer)
    except InvalidInputError as exc:
        raise InvalidInputError(exc.message, kind="bad-pointer", hint="a pointer looks like /facts/deploy") from exc
    return StateAnswer(session.id, at, session.log.state_hash(session.seq(at)) if at else "", value)


@route("GET", "/sessions/{session}/events", by_head=True)
def events(call: VerbRequest, query: EventsQuery) -> EventsPage:
    """Lists events in order, filtered by position, turn, time, kind and tool, page by page."""
    if query.even_damaged:
        return _events_around_damage(call, query)
    session = call.session()
    after, upto = query.after, query.upto
    if query.place:
        span = resolve_range(session.log, query.place)
        after, upto = max(after, span.first - 1), span.last if upto is None else min(upto, span.last)
    events = session.events(
        after=after,
        upto=upto,
        turn=query.turn,
        attempt=query.attempt,
        since=time_of(query.since, call.now),
        until=time_of(query.until, call.now),
        kind=query.kind or None,
        tool=query.tool,
    )
    tools: dict[str, str] = {}
    records: list[EventRecord] = []
    for entry in events:
        if len(records) == query.limit:
            return EventsPage(tuple(records), records[-1].seq)
        records.append(record_of(session.log, entry, tools, query.payloads))
    return EventsPage(tuple(records))


@route("GET", "/sessions/{session}/calls", by_head=True)
def calls(call: VerbRequest, query: CallsQuery) -> CallTable:
    """Lists calls, one row each, oldest first: time, tool, input hash, outcome, duration, cost, and what each changed
    in the state."""
    return CallTable(tuple(call.session().calls.table(query.place or None)))


def _events_around_damage(call: VerbRequest, query: EventsQuery) -> EventsPage:
    """A page of what is readable in a damaged session."""
    log = call.space.store.resume(call.path["session"], even_damaged=True).log
    holes: list[Hole] = []
    tools: dict[str, str] = {}
    records: list[EventRecord] = []
    for entry in log.entries(after=query.after, upto=query.upto, on_hole=holes.append):
        if len(records) == query.limit:
            return EventsPage(
                tuple(records), records[-1].seq, tuple(each for each in holes if each.first <= records[-1].seq)
            )
        try:
            records.append(record_of(log, entry, tools, query.payloads))
        except CorruptLogError:  # the event is intact, but it refers to a damaged commit
            tools[str(entry.body.get("action", ""))] = ""
            records.append(record_of(log, entry, tools))
    return EventsPage(tuple(records), None, tuple(holes))


@route("GET", "/sessions/{session}/events/{place}", by_head=True)
def event(call: VerbRequest, query: PayloadsQuery) -> EventRecord:
    """Returns one event, by a selector: `e12`, `last-error`, `@5` for the last of a turn."""
    session = call.session()
    entry = session.log.entry(session.seq(call.path["place"]))
    return record_of(session.log, entry, {}, query.payloads)


@route("GET", "/sessions/{session}/payloads/{seq}/{hash}", media="application/octet-stream")
def payload(call: VerbRequest) -> Raw:
    """Returns the bytes of a payload, by its hash and the event that stored it (the reference's `at`, or its own
    event)."""
    log = call.session().log
    seq, digest = call.path["seq"], call.path["hash"]
    try:
        wanted = int(seq), bytes.fromhex(digest)
    except ValueError:
        raise InvalidInputError(f"{seq}/{digest} is not an event's number and a hash", kind="bad-request") from None
    if not 0 < wanted[0] <= INT_MAX:
        raise InvalidInputError(f"{seq} is not an event's number", kind="bad-request")
    content = fetch(call.space.engine, log.segments, *wanted)
    return Raw(content, "application/octet-stream", {"content-disposition": "attachment"})


@route("GET", "/sessions/{session}/messages", by_head=True)
def messages(call: VerbRequest, query: MessagesQuery) -> MessagesAnswer:
    """Returns the messages in view, oldest first, with their payloads; all of them, or the last ones."""
    results = call.session().messages(query.at or None, limit=query.limit, before=query.before)
    return MessagesAnswer(tuple(msgspec.structs.replace(m, content=without_bytes(m.content)) for m in results))


@route("GET", "/sessions/{session}/diff", by_head=True)
def diff(call: VerbRequest, query: DiffQuery) -> TurnDiff:
    """Shows what changed between two points, each change with its event, tool and reason. `a` alone, such as @2, shows
    what that turn changed; a range, such as @2..@5, shows what changed since."""
    session = call.session()
    other = call.space.session(query.other) if query.other else None
    return session.diff(query.a or None, query.b or None, other=other)


@route("GET", "/sessions/{session}/insight")
def insight(call: VerbRequest, query: InsightQuery) -> Insight:
    """Shows what the agent decided, changed and gave up in some turns, by default in the last. Rules derive it from the
    agent's own words. Each item quotes the log and is `derived`, never recorded."""
    return call.session().insight(**call.kwargs(query))


@route("GET", "/sessions/{session}/blame", by_head=True)
def blame(call: VerbRequest, query: BlameQuery) -> BlameAnswer:
    """Shows who last wrote each key at and below a pointer."""
    return BlameAnswer(tuple(call.session().history.blame(**call.kwargs(query))))


@route("GET", "/sessions/{session}/files", by_head=True)
def changed_files(call: VerbRequest, query: ChangedFilesQuery) -> ChangedFiles:
    """Lists the files changed in the last turns in view, with turns, tool, event and count."""
    return call.session().files.modified(**call.kwargs(query))


@route("GET", "/sessions/{session}/preview", by_head=True)
def preview(call: VerbRequest, query: ToQuery) -> RewindPreview:
    """Shows what a rewind to a point would do, without doing it: what is restored, what stays, what cannot be
    undone."""
    return call.session().history.preview_rewind(query.to)


@route("GET", "/sessions/{session}/anchor", by_head=True)
def anchor(call: VerbRequest) -> Anchor:
    """Exports the head hash for later tamper checks."""
    return call.session().anchor()


@route("GET", "/sessions/{session}/verify")
def verify(call: VerbRequest) -> VerifyReport:
    """Verifies every byte, the chain and the derived data. A fault is part of the answer, not an error."""
    return call.session().verify()


@route("POST", "/sessions/{session}/verify")
def verify_against(call: VerbRequest, body: AgainstAnchor) -> VerifyReport:
    """Verifies a session like GET, and against an anchor that nothing was cut off or rewritten."""
    session = call.session()
    return session.verify(Anchor(SessionId(session.id), body.seq, body.hash, body.at))
