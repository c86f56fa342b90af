"""Sealing: from events to a commit that fits on the end of a session.

The tip is the session's end as this process knows it: seq, hash and folded state. Sealing a commit asks the machines
whether each event is legal there, folds its effect into the state, encodes and chains it, and moves the tip forward.
Nothing is stored yet. If the engine refuses the commit, `Sealed.undo` moves the tip back.

An event is encoded first and decoded again, so that the machines and effects see what any reader will see. The state
shares nothing with the caller's objects. Events that the core has encoded (`SealStep.encoded`) need no decoding: of
those kinds only texts, flags and numbers reach the state; but a patch is decoded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from wakelog.codec.chain import SALT_SIZE, SealItem, seal_records
from wakelog.codec.pack import pack_snapshot
from wakelog.codec.records import (
    Delta,
    EncodedEvent,
    PayloadCollector,
    check_event,
    decode_event,
    decode_ops,
    encode_delta,
    encode_event,
    kind_of,
)
from wakelog.engine import Pending
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError
from wakelog.log.native_seal import SealedRecords, seal_natively
from wakelog.model import events as ev
from wakelog.model import machines
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import GENESIS, Commit, EventDraft, ForkPoint
from wakelog.model.trust import TRUSTS
from wakelog.model.values import Value, check_text
from wakelog.state.changes import StateChanges, open_changes
from wakelog.state.effects import EventPlace, effect_of, write_effect
from wakelog.state.fold import Fold, Undo, is_due
from wakelog.state.patch import copy, equal
from wakelog.state.rewind import restore, rewind_delta

KNOWN_PAYLOADS = 1024
"""How many recent payloads a tip remembers at least. The same content again is stored as a reference to the first."""


class Tip:
    """The end of a session: position, chain and state, and the sizes that decide when a snapshot is due."""

    __slots__ = ("at", "bytes_since", "fold", "hash", "payloads", "seq", "snapshot_size")

    def __init__(self, fold: Fold, seq: Seq = 0, hash: bytes = GENESIS, at: int = 0) -> None:
        self.fold = fold
        self.seq = seq
        self.hash = hash
        self.at = at
        self.bytes_since = 0
        self.snapshot_size = 0
        self.payloads = PayloadCollector({})
        """Recent payloads: the same content again is stored as a reference to the first."""


class SealStep(msgspec.Struct, frozen=True, gc=False):
    """A draft and how to seal it. For a rewind or an adoption, `then` reads the state it leads to."""

    draft: EventDraft
    encoded: EncodedEvent | None = None
    """The admitted event as bytes, where the core has encoded it; `draft.event` is then the caller's."""
    is_bare: bool = False
    """The draft has no fields besides its event, so only the event is checked."""
    is_checked: bool = False
    """The event was admitted (admission.py): its values are as they will be stored."""
    then: Callable[[], dict[str, Value]] | None = None
    delta: Delta | None = None
    """The delta as the first writer stored it, for a commit sealed elsewhere. It must lead to the same state as the
    event; the order of its operations may differ."""


class SealChoices(msgspec.Struct, frozen=True, gc=False):
    """The free choices of the writer that first sealed a commit: its salts, and which payloads are references."""

    salts: bytes
    payloads: dict[bytes, Seq]


class Sealed:
    """A commit ready for the engine, and how to undo it if it is refused."""

    __slots__ = ("_before", "_tip", "commit", "generation", "new_payloads", "pending", "undone_by")

    def __init__(self, tip: Tip) -> None:
        self._tip = tip
        self._before = (tip.seq, tip.hash, tip.at, tip.bytes_since, tip.snapshot_size)
        self.undone_by: Undo = []
        self.new_payloads: list[bytes] = []
        self.commit: Commit
        self.pending: Pending
        self.generation = 0

    def undo(self) -> None:
        """Puts the tip back to where it was before this commit. Later commits must have been undone first."""
        tip = self._tip
        tip.fold.undo(self.undone_by)
        tip.seq, tip.hash, tip.at, tip.bytes_since, tip.snapshot_size = self._before
        for digest in self.new_payloads:
            tip.payloads.known.pop(digest, None)


def seal(
    tip: Tip,
    session: SessionId,
    steps: Sequence[SealStep],
    *,
    now: int,
    commit_id: str = "",
    guard: int | None = None,
    fork: ForkPoint | None = None,
    force_snapshot: bool = False,
    given: SealChoices | None = None,
) -> Sealed:
    """Seals events on the tip and moves it forward. On an error the tip is as it was. After an interrupt it may be half
    moved, and its owner drops it."""
    if not steps:
        raise InvalidInputError("an append needs at least one event", kind="empty-append")
    sealed = Sealed(tip)
    collector = tip.payloads if given is None else PayloadCollector(given.payloads)
    try:
        first, prev = tip.seq + 1, tip.hash
        at = tip.at = max(now, tip.at)
        salts = os.urandom(SALT_SIZE * len(steps)) if given is None else given.salts
        done = None
        if seal_natively is not None and given is None and fork is None:
            done = seal_natively(tip.fold, sealed.undone_by, steps, collector, prev, first, at, salts)
        if done is None:
            done = _seal_in_python(tip, sealed.undone_by, steps, fork, collector, prev, first, at, salts)
        records, tip.hash, size, turns, kinds, paths = done
        tip.seq = first + len(steps) - 1
        tip.bytes_since += size
        if collector.new:
            _remember(sealed, tip, collector.new, first)
        doc = tip.fold.doc
        sealed.commit = Commit(  # by place: by name takes twice as long
            session,
            commit_id or tip.hash.hex()[:16],
            first,
            tip.seq,
            prev,
            tip.hash,
            at,
            doc["lease"]["epoch"],
            doc["status"],
            doc["turn"]["number"],
            turns,
            kinds,
            paths,
            records,
            tuple(collector.new.items()),
            _snapshot_if_due(tip, "history.rewound" in kinds, force_snapshot),
            fingerprint_of(_checked_events(steps), steps) if commit_id else b"",
            guard,
            machines.are_late(kinds),
            fork,
        )
    except Exception:
        sealed.undo()
        raise
    finally:
        collector.new.clear()
    return sealed


def _seal_in_python(
    tip: Tip,
    undo: Undo,
    steps: Sequence[SealStep],
    fork: ForkPoint | None,
    collector: PayloadCollector,
    prev: bytes,
    first: Seq,
    at: int,
    salts: bytes,
) -> SealedRecords:
    """Seals the events one by one. The specification of `seal_natively`, and for all that it refuses."""
    events = _checked_events(steps)
    if fork is not None or ev.SessionForked in map(type, events):
        _check_place(events, fork)
    changes = open_changes(tip.fold, undo)
    items = [_seal_one(tip, step, event, collector, changes) for step, event in zip(steps, events, strict=True)]
    turns = {*map(_turn_of_item, items)} - {0}  # not comprehensions: these call no Python function
    kinds = tuple(dict.fromkeys(map(_kind_of_item, items)))
    paths = tuple(dict.fromkeys([event.path for event in events if type(event) is ev.FileChanged]))
    return *seal_records(prev, first, at, salts, items), (min(turns), max(turns)) if turns else (0, 0), kinds, paths


def _checked_events(steps: Sequence[SealStep]) -> list[ev.Event]:
    return [
        step.draft.event if step.is_checked or step.encoded is not None else check_event(step.draft.event)
        for step in steps
    ]


def _seal_one(
    tip: Tip, step: SealStep, event: ev.Event, collector: PayloadCollector, changes: StateChanges
) -> SealItem:
    """The parts of one event's record. Moves the tip past the event, except for the chain's hash."""
    draft, seq = step.draft, tip.seq + 1
    doc = tip.fold.doc
    kind = event.kind or kind_of(event)
    if kind in _FILLED_IN:
        event = _fill_in(tip, event)
    # Encoding comes first: it checks the types that the machines and effects rely on.
    if step.encoded is None:
        body, event = encode_event(event, collector)
    else:
        body, payloads = step.encoded
        if payloads and not collector.known.keys().isdisjoint(payloads):  # stored before, so it becomes a reference
            body, event = encode_event(check_event(event), collector)
        elif payloads:
            collector.new.update(payloads)
        if type(event) is ev.StatePatched:
            event = decode_event(kind, body)  # the state shares no value with the caller
    if draft.within is not None:
        _check_within(doc, draft.within)
    _check_legal(doc, kind, event)
    if not step.is_bare:
        _check_draft(draft, seq)
    turn, attempt = _turn_of(doc, event)
    cause = draft.cause
    if not cause and kind in machines.OF_ACTIONS:  # an outcome is caused by the request of its action
        pending = doc["pending_actions"].get(event.action)  # type: ignore[attr-defined]
        cause = pending["seq"] if pending else 0
    place = EventPlace(seq, turn, draft.source, draft.trust)
    if step.then is None and step.delta is None:
        write_effect(doc, event, place, changes)
    else:
        changes.extend(_given_delta(doc, step, event, place))
    delta = changes.finish()
    tip.seq = seq
    if kind == "state.patched":
        delta = b""  # its patch is its delta
    return kind, turn, attempt, draft.actor, cause, draft.derived_from, draft.source, draft.trust, body, delta


_kind_of_item, _turn_of_item = itemgetter(0), itemgetter(1)


def _given_delta(doc: dict[str, Value], step: SealStep, event: ev.Event, place: EventPlace) -> Delta:
    """The delta of a step that has one, or that leads to a given state. A copy that shares nothing with either."""
    delta = effect_of(doc, event, place) if step.then is None else _copied_state(doc, step.then(), event, place)
    if step.delta is not None:
        _check_same(doc, delta, step.delta, place.seq)
        delta = step.delta
    return decode_ops(encode_delta(delta))


def _copied_state(doc: dict[str, Value], then: dict[str, Value], event: ev.Event, place: EventPlace) -> Delta:
    """The delta of a rewind or an adoption: it leads to the state `then`."""
    if type(event) is ev.HistoryRewound:
        return rewind_delta(doc, then, seq=place.seq, to=event.to)
    return [*restore(doc, then), *effect_of(doc, event, place)]


_FILLED_IN = frozenset({"payload.redacted", "checkpoint.named"})


def _fill_in(tip: Tip, event: ev.Event) -> ev.Event:
    """The event with the fields that the log fills in: the seq that was redacted, or the hash of the current state."""
    if type(event) is ev.PayloadRedacted:
        return msgspec.structs.replace(event, target=tip.seq)
    assert type(event) is ev.CheckpointNamed
    return msgspec.structs.replace(event, state_hash=tip.fold.state_hash() if event.at == tip.seq else "")


def _check_same(doc: dict[str, Value], mine: Delta, delta: Delta, seq: Seq) -> None:
    """InvalidInputError unless two deltas lead to the same state."""
    if encode_delta(mine) == encode_delta(delta):
        return
    ours, theirs = Fold(copy(doc)), Fold(copy(doc))
    ours.apply(copy(mine))
    theirs.apply(copy(delta))
    if not equal(ours.doc, theirs.doc):
        raise InvalidInputError(f"the delta of event {seq} does not match the event", kind="bad-patch")


def _check_place(events: Sequence[ev.Event], fork: ForkPoint | None) -> None:
    """A fork, and only a fork, begins with `session.forked`."""
    places = [place for place, event in enumerate(events) if type(event) is ev.SessionForked]
    if places != ([] if fork is None else [0]):
        raise NotAllowedError("a fork, and only a fork, begins with session.forked", kind="not-a-fork")


def _check_draft(draft: EventDraft, seq: Seq) -> None:
    """Checks the header fields that callers choose: their types, and that they refer to earlier events."""
    is_bare = draft.cause == 0 and type(draft.cause) is int and draft.derived_from == ()
    if is_bare and draft.actor == "agent" and draft.source == "" and draft.trust == "trusted":
        return  # all defaults, as for most events
    for text in (draft.actor, draft.source):
        if type(text) is not str or not (text.isascii() or check_text(text, "a draft")):
            raise InvalidInputError(f"{text!r} is not text, as actor and source must be", kind="bad-draft")
    if draft.trust not in TRUSTS:
        raise InvalidInputError(
            f"{draft.trust!r} is not a level of trust", kind="bad-draft", hint=f"one of {', '.join(TRUSTS)}"
        )
    try:
        sound = 0 <= draft.cause < seq and all(0 < first <= last < seq for first, last in draft.derived_from)
        plain = all(type(n) is int for pair in draft.derived_from for n in (*pair, draft.cause))
    except (TypeError, ValueError):
        sound = plain = False
    if not sound or not plain or type(draft.cause) is not int:
        raise InvalidInputError(
            f"event {seq} can only be derived from earlier events, given by their seqs", kind="bad-draft"
        )


def _remember(sealed: Sealed, tip: Tip, payloads: Collection[bytes], seq: Seq) -> None:
    sealed.new_payloads.extend(payloads)
    known = tip.payloads.known
    known.update(dict.fromkeys(payloads, seq))
    if len(known) > 2 * KNOWN_PAYLOADS:
        # Drop many at once: removing the oldest one by one leaves a gap at the front that each search has to cross.
        tip.payloads.known = dict(list(known.items())[-KNOWN_PAYLOADS:])


def _turn_of(doc: dict[str, Value], event: ev.Event) -> tuple[int, int]:
    """The turn and attempt an event belongs to; (0, 1) between turns."""
    if not doc:
        return 0, 1
    turn = doc["turn"]
    if type(event) is ev.TurnStarted:
        return (turn["number"], turn["attempt"] + 1) if event.retry else (turn["number"] + 1, 1)
    return (turn["number"], turn["attempt"]) if turn["status"] == "open" else (0, 1)


def _snapshot_if_due(tip: Tip, rewound: bool, force: bool) -> bytes | None:
    if not (force or rewound or is_due(tip.bytes_since, tip.snapshot_size)):
        return None
    state = tip.fold.dump()
    if rewound and not force and len(state) * 2 > tip.snapshot_size and not is_due(tip.bytes_since, tip.snapshot_size):
        return None  # a rewind is a reason for a snapshot only if it halves the state
    tip.bytes_since, tip.snapshot_size = 0, len(state)
    return pack_snapshot(state)


def fingerprint_of(events: Sequence[ev.Event], steps: Sequence[SealStep]) -> bytes:
    """A hash of the authored content, without seqs and salts. It tells a repeated append from another one with the same
    commit id."""
    encode = PayloadCollector({}).encode
    whole = hashlib.sha256()
    for event, step in zip(events, steps, strict=True):
        if type(event) is ev.PayloadRedacted:
            continue  # added by the log, not by the caller
        if step.encoded is not None:
            body = step.encoded[0]
        else:
            body = encode(event.data if type(event) is ev.Foreign else event)
        whole.update(f"{kind_of(event)}\0{len(body)}\0".encode() + body)
    return whole.digest()


def _check_legal(doc: dict[str, Value], kind: str, event: ev.Event) -> None:
    """Asks the three machines. An illegal event raises an error that names the legal ones."""
    status = doc["status"] if doc else ""
    if status not in _AT_WORK or kind in machines.SESSION:
        _check_session(status, kind)
    check = _CHECKS.get(kind)
    if check is not None:
        check(doc, kind, event)


_AT_WORK = frozenset({"active", "open"})
"""Statuses in which only a move of the session itself can be illegal."""


_WAYS_BACK = {
    "paused": "session.life.unpause(), or wakelog resume in a shell, continues it",
    "closed": "session.life.reopen(), or wakelog reopen in a shell, opens it again",
    "archived": "session.life.reopen(), or wakelog reopen in a shell, opens it again",
}


def _check_session(status: str, kind: str) -> None:
    if machines.allowed_in(status, kind):
        return
    legal = machines.legal_in(status)
    what = f"a session that is {status}" if status else "a session that was not opened"
    raise NotAllowedError(
        f"{kind} is not allowed in {what}; allowed now: {', '.join(legal) or 'nothing'}",
        kind=f"session-{status or 'not-opened'}",
        hint=_WAYS_BACK.get(status, ""),
        legal=legal,
    )


def _check_action(doc: dict[str, Value], kind: str, event: Any) -> None:
    action = event.action
    pending = doc["pending_actions"].get(action)
    status = pending["status"] if pending else ""
    if status not in machines.ACTION[kind][0]:
        legal = machines.legal_for_action(status)
        what = f"action {action!r}, which is {status}" if status else f"action {action!r}, which is not pending"
        raise NotAllowedError(
            f"{kind} is not allowed for {what}; allowed now: {', '.join(legal)}, or action.evidence",
            kind="action-machine",
            legal=legal,
        )


def _check_turn(doc: dict[str, Value], kind: str, event: Any) -> None:
    turn = doc["turn"]
    if turn["status"] not in machines.TURN[kind][0]:
        state = f"turn {turn['number']} is open" if turn["status"] == "open" else "no turn is open"
        raise NotAllowedError(
            f"{kind} is not allowed: {state}",
            kind="turn-machine",
            legal=("turn.ended",) if turn["status"] == "open" else ("turn.started",),
        )
    if type(event) is ev.TurnStarted and event.retry and not turn["number"]:
        raise NotAllowedError("there is no turn to retry yet", kind="turn-machine", legal=("turn.started",))


def _check_within(doc: dict[str, Value], within: tuple[int, int]) -> None:
    turn, (number, attempt) = doc["turn"], within
    is_there = (turn["number"], turn["attempt"], turn["status"]) == (number, attempt, "open")
    if not is_there and doc["status"] not in ("closed", "archived"):  # those are refused by the session's machine
        raise ConflictError(
            f"attempt {attempt} of turn @{number} has ended: another process ended it, or started a new one",
            kind="turn-taken-over",
            hint="let only one process work on a session at a time; take_lease() keeps others out",
        )


def _check_settled(doc: dict[str, Value], kind: str, event: Any) -> None:
    unsettled = sorted(k for k, p in doc["pending_actions"].items() if p["status"] != "uncertain")
    is_open = doc["turn"]["status"] == "open"
    if is_open or unsettled:
        what = f"turn {doc['turn']['number']} is open" if is_open else f"{', '.join(unsettled)} pending"
        raise NotAllowedError(
            f"the session cannot be closed yet: {what}",
            kind="not-settled",
            legal=("turn.ended", "action.abandoned", "action.uncertain"),
        )


def _check_lease(doc: dict[str, Value], kind: str, event: Any) -> None:
    if event.epoch != doc["lease"]["epoch"] + 1:
        raise ConflictError(
            f"lease epoch {event.epoch} is not the next one: the session is at {doc['lease']['epoch']}",
            kind="fenced",
        )


def _check_release(doc: dict[str, Value], kind: str, event: Any) -> None:
    check_epoch(doc["lease"], event.epoch)


def check_epoch(lease: dict[str, Value], epoch: int) -> None:
    """ConflictError unless this is the epoch of the newest lease."""
    if epoch != lease["epoch"]:
        raise ConflictError(f"lease epoch {epoch} is not the present one, {lease['epoch']}", kind="fenced")


def _check_input(doc: dict[str, Value], kind: str, event: Any) -> None:
    pending = doc["pending_actions"].get(event.request)
    is_asked = pending is not None and pending["tool"] == "input"
    if is_asked != (kind == "input.answered") or (pending is not None and not is_asked):
        what = "is pending already" if pending else "was not asked"
        raise NotAllowedError(f"{kind} is not allowed: {event.request!r} {what}", kind="input-machine")


def _check_patch(doc: dict[str, Value], kind: str, event: Any) -> None:
    for op in event.patch:
        path, whole = op.get("path"), op.get("path") == "/data"
        known = op.get("op") in ("add", "remove", "replace")
        fits = known and type(path) is str and path.split("/")[:2] == ["", "data"]
        if not fits or (whole and type(op.get("value")) is not dict):
            raise InvalidInputError(
                "a state patch may add, remove and replace below /data only, which stays an object",
                kind="bad-patch",
                hint="the other parts of the state follow from events",
            )


_CHECKS: dict[str, Callable[[dict[str, Value], str, Any], None]] = {
    **dict.fromkeys(machines.ACTION, _check_action),
    **dict.fromkeys(machines.TURN, _check_turn),
    "session.closed": _check_settled,
    "lease.taken": _check_lease,
    "lease.released": _check_release,
    "input.requested": _check_input,
    "input.answered": _check_input,
    "state.patched": _check_patch,
}
