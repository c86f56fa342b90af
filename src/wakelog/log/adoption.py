"""Adoption: copies a fork's result back into the session it was forked from.

One commit, written by the log itself:

    history.rewound   mode "adopt": the view goes back to the last event that the fork's view shares with this history
    history.adopted   names the fork; its delta makes the restorable parts of the state those of the fork
    copies            of the fork's events that are read from the log, or have a reason or content of their own:
                      messages and their compactions, decisions, facts, dead ends, artefacts, changed files; each
                      caused by the adopting event

So the session can be read on its own, whatever happens to the fork. It is a rewind, and one undo reverts all of it. The
fork's calls and turns are not copied: they happened there. What the fork spent counts here too, but once: an undo does
not give the money back, and the next adoption of the same fork does not spend it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from wakelog.engine import Engine
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, NotFoundError
from wakelog.log.reader import Entry, entries_of_kind, fetch
from wakelog.log.seal import SealStep
from wakelog.model import events as ev
from wakelog.model.document import REWOUND_PARTS
from wakelog.model.ids import Seq
from wakelog.model.payloads import Payload, as_ref
from wakelog.model.records import EventDraft, Head
from wakelog.model.trust import least_trusted
from wakelog.model.values import Value
from wakelog.state.adoption import adopted_parts

if TYPE_CHECKING:
    from wakelog.log.log import Log

_ALL = ("message.added", "decision.made", "file.changed", "dead_end.noted")
_HELD = {"fact.recorded": "facts", "artefact.recorded": "artefacts", "history.compacted": "evicted_keys"}
"""Copied only while the state still holds what they wrote."""
_MOVES = ("message.", "turn.", "action.", "subagent.", "input.")


class AdoptionPlan(msgspec.Struct, frozen=True):
    """The events to append, and the head that they were planned for."""

    head: Seq
    fork_head: Seq
    steps: tuple[SealStep, ...]


def plan_adoption(log: Log, fork: Log, at: Seq | None, *, why: str, force: bool) -> AdoptionPlan:
    """Plans the events that copy `fork`, as it was at `at`, into `log` as it is now."""
    left = _left_at(log, fork)
    fork_head = fork.head().seq
    at = fork_head if at is None else at
    if not left < at <= fork_head:
        raise NotFoundError(
            f"fork {fork} has no event {at} of its own (it has e{left + 1}..e{fork_head})",
            kind="event-not-found",
        )
    head = log.head().seq
    now = log.state(head)
    if now["turn"]["status"] == "open":
        raise NotAllowedError(
            f"turn @{now['turn']['number']} of {log} is open: a fork cannot be adopted in the middle of it",
            kind="turn-open",
            hint="end the turn first",
            legal=("turn.ended",),
        )
    if not force:
        _refuse_if_moved_on(log, fork, left, head)
    to, own = _split(fork, at, left)
    try:
        steps = tuple(_steps(log, fork, at, left, to, own, seq=head + 2, why=why))
    except NotFoundError as exc:
        if exc.kind != "payload-gone" or not (_erased_since(fork, fork_head) or _erased_since(log, head)):
            raise
        raise ConflictError(
            f"something was erased while {log} adopted {fork}; nothing was adopted",
            kind="erased-meanwhile",
            hint="adopt it again",
            head_seq=log.head().seq,
        ) from exc
    return AdoptionPlan(head, fork_head, steps)


def refuse_if_erased(log: Log, fork: Log, plan: AdoptionPlan) -> None:
    """ConflictError when something was erased from the fork during its adoption: a copy may have brought it back. The
    copies are erased and the adoption is undone."""
    if _erased_since(fork, plan.fork_head):
        from wakelog.log.removal import erase

        last = plan.head + len(plan.steps)
        erase(log, range(plan.head + 2, last + 1), why=f"{fork.id} was erased from while it was adopted")
        log.rewind(plan.head, mode="undo", why=f"undo of event {plan.head + 1}")
        raise ConflictError(
            f"something was erased from {fork} while {log} adopted it; the adoption was reverted",
            kind="erased-meanwhile",
            hint="adopt it again",
            head_seq=log.head().seq,
        )


def adoptions(engine: Engine, fork: Head, *, since: Seq) -> Iterator[Entry]:
    """The events by which a fork's parent adopted it at or after the fork's event `since`."""
    assert fork.fork is not None
    session = fork.fork.parent
    for entry in entries_of_kind(engine, session, "history.adopted", after=fork.fork.at):
        if not entry.record.body:  # pruned elsewhere and imported by a bundle: here a live fork forbids that
            raise NotAllowedError(
                f"session {session} adopted a fork and was pruned since: its base state may still hold the content",
                kind="pruned-fork",
                hint="retract the content there and prune again up to a later event",
            )
        if entry.body.get("session") == fork.session and entry.body.get("at", 0) >= since:
            yield entry


def _erased_since(log: Log, seq: Seq) -> bool:
    return any("payload.erased" in commit.kinds for commit in log.engine.read(log.id, after=seq))


def _left_at(log: Log, fork: Log) -> Seq:
    point = fork.head().fork
    if point is None or point.parent != log.id:
        origin = f"a fork of {point.parent}" if point is not None else "no fork"
        raise InvalidInputError(
            f"{fork} is {origin}, not a fork of {log}: only a session's own forks can be adopted",
            kind="not-its-fork",
            hint="compare shows how two sessions differ: wakelog compare A B",
        )
    return point.at


def _refuse_if_moved_on(log: Log, fork: Log, left: Seq, head: Seq) -> None:
    """ConflictError when adopting would hide events in view that came after the fork point."""
    since = [
        entry
        for low, high in log.view(head)
        if high > left
        for entry in log.entries(after=max(low - 1, left), upto=high)
        if _matters(entry)
    ]
    if since:
        turns = len({entry.header.turn for entry in since if entry.header.turn})
        what = f"{turns} turn{'s' if turns > 1 else ''}" if turns else f"{len(since)} events"
        raise ConflictError(
            f"{log} has new events since {fork} was forked at event {left}: {what}, from event"
            f" {since[0].seq} on, would leave the view",
            kind="moved-on",
            hint=f"wakelog adopt {fork} --force; nothing is lost, and undo reverts it",
            head_seq=head,
        )


def _matters(entry: Entry) -> bool:
    """Whether an event did something that a rewind would hide."""
    if entry.kind == "history.rewound":
        return False
    return entry.kind.startswith(_MOVES) or any(op["path"].split("/")[1:2][0] in REWOUND_PARTS for op in entry.delta)


def _split(fork: Log, at: Seq, left: Seq) -> tuple[Seq, list[Entry]]:
    """The last event of the shared history that the fork has in view, and its own events, up to `at`."""
    view = fork.view(at)
    to = max(min(high, left) for low, high in view if low <= left)
    in_view = [(low, high) for low, high in view if high > left]
    own = []
    for entry in fork.entries(after=left, upto=at):
        # A dead end stays one after a rewind.
        if entry.kind == "dead_end.noted" or any(low <= entry.seq <= high for low, high in in_view):
            own.append(entry)
    return to, own


def _steps(
    log: Log, fork: Log, at: Seq, left: Seq, to: Seq, own: list[Entry], *, seq: Seq, why: str
) -> Iterator[SealStep]:
    """The commit's events; the adopting one will stand at `seq`."""
    then, base = fork.state(at), log.state(to)
    chosen = list(_chosen(own, then))
    copied = [entry for entry in chosen if entry.is_intact]
    places = {entry.seq: seq + 1 + n for n, entry in enumerate(copied)}
    files = Counter(str(e.body.get("path", "")) for e in copied if e.kind == "file.changed")
    yield SealStep(
        EventDraft(ev.HistoryRewound(to=to, under=base["view"]["rewound"], mode="adopt", why=why), actor="user"),
        then=lambda: log.state(to),
    )
    trust, source = least_trusted((entry.header.trust, entry.header.source) for entry in own)
    adopted = ev.HistoryAdopted(
        session=fork.id,
        at=at,
        hash=fork.entry(at).hash.hex(),
        copied=tuple(places),
        gone=len(chosen) - len(copied),
        cost=_uncounted(log, fork, at, left),
        why=why,
    )
    yield SealStep(
        EventDraft(adopted, actor="user", cause=seq - 1, source=source if trust != "trusted" else "", trust=trust),
        then=lambda: adopted_parts(base, then, shared=left, seq=seq, places=places, files=files),
    )
    for entry in copied:
        yield SealStep(_copied(fork, entry, left, seq, places))


def _uncounted(log: Log, fork: Log, at: Seq, left: Seq) -> ev.Cost:
    """What the fork itself spent up to `at`, minus what earlier adoptions have counted."""
    there, shared = (fork.state(seq)["budget"]["spent"] for seq in (at, left))
    counted: Counter[str] = Counter()
    for entry in entries_of_kind(log.engine, log.id, "history.adopted", after=left):
        if entry.record.body and entry.body.get("session") == fork.id:
            counted.update(entry.body.get("cost") or {})
    tokens, usd_micros, duration_us = (
        max(0, there.get(name, 0) - shared.get(name, 0) - counted[field])
        for name, field in (("tokens", "tokens_in"), ("usd_micros", "usd_micros"), ("duration_us", "duration_us"))
    )
    return ev.Cost(tokens_in=tokens, usd_micros=usd_micros, duration_us=duration_us)


def _chosen(own: list[Entry], then: dict[str, Value]) -> Iterator[Entry]:
    """The events to copy. Facts, artefacts and compactions only while they are still valid."""
    held = {entry["seq"] for part in _HELD.values() for entry in then[part].values()}
    for entry in own:
        if entry.kind in _ALL or (entry.kind in _HELD and entry.seq in held and entry.is_intact):
            yield entry


def _copied(fork: Log, entry: Entry, left: Seq, seq: Seq, places: dict[Seq, Seq]) -> EventDraft:
    """An event of the fork as it is recorded here."""
    event, header = entry.event, entry.header
    changes: dict[str, Value] = {"occurred_at": event.occurred_at or header.at}
    for field in event.payload_fields:
        changes[field] = _payload(fork, entry, getattr(event, field))
    if isinstance(event, ev.DecisionMade):
        changes["evidence"] = tuple(_evidence(fork, each, left, places) for each in event.evidence)
    elif isinstance(event, ev.HistoryCompacted):
        changes["first"], changes["last"] = _range(event, left, places)
    return EventDraft(
        msgspec.structs.replace(event, **changes),
        actor=header.actor,
        cause=seq,
        derived_from=_flow(header.derived_from, left, places[entry.seq], places),
        source=header.source,
        trust=header.trust,
    )


def _payload(fork: Log, entry: Entry, value: Value) -> Value:
    """A value of the fork; a payload is copied byte for byte."""
    ref = as_ref(value)
    if ref is None:
        return value
    return Payload(fetch(fork.engine, fork.segments, ref.at or entry.seq, bytes.fromhex(ref.hash)), ref.media)


def _evidence(fork: Log, each: int | str, left: Seq, places: dict[Seq, Seq]) -> int | str:
    if type(each) is not int or each <= left:
        return each
    return places.get(each, f"{fork.id}@e{each}")


def _range(event: ev.HistoryCompacted, left: Seq, places: dict[Seq, Seq]) -> tuple[Seq, Seq]:
    """The range of a compaction in this history: for the fork's own events, their copies."""
    inside = [place for own, place in places.items() if event.first <= own <= event.last]
    first = event.first if event.first <= left else min(inside, default=event.first)
    return first, event.last if event.last <= left else max(inside, default=max(first, left))


def _flow(
    ranges: tuple[tuple[Seq, Seq], ...], left: Seq, seq: Seq, places: dict[Seq, Seq]
) -> tuple[tuple[Seq, Seq], ...]:
    """The sources of an event that are in this history: the shared part, and copies before this one."""
    out = [(first, min(last, left)) for first, last in ranges if first <= left]
    for first, last in ranges:
        few = [place for own, place in places.items() if first <= own <= last and place < seq] if last > left else []
        out += [(place, place) for place in few]
    return tuple(out)
