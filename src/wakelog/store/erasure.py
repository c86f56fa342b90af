"""Erasing content from a whole store: the erasure itself, a preview, the cascade, and the scan for secrets.

**Erase** removes the content from the log with its forks and adopters (log/removal.py), then from the index, then from
the engine's files. If old bytes must stay in files for now, `pending` says why. Names of keys and paths are never
erased; the result lists them.

**Cascade.** An event names its cause and the events it was derived from. So a later event that names the target,
directly or through others, may repeat its content. The walk includes forks that share the target.

**Scan.** Each stored event, with its payloads, is passed to a finder of secrets. The result says which kinds were
found; the secrets themselves are not kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from wakelog.engine import Engine
from wakelog.errors import NotFoundError, UnavailableError
from wakelog.log import Log, removal
from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId
from wakelog.model.values import Value
from wakelog.redaction import redact_event
from wakelog.state.patch import tokens_of
from wakelog.store.index_place import has_index

if TYPE_CHECKING:
    from wakelog.store import Store

REWRITE_MAX = 64 << 20
"""Larger tables are not rewritten during an erasure; `store scrub` does it."""
Finder = Callable[[ev.Event], Iterable[str]]
Events = dict[SessionId, tuple[Seq, ...]]
"""Events, by the session of the fork tree that holds them."""

_NAMED = {"facts": "fact", "labels": "label", "artefacts": "artefact", "files_modified": "file"}
"""Parts of the state whose keys are chosen names, with the word for each."""
_WORKING_SET = {"files": "file", "apps": "app", "data_sources": "data source"}


class Erasure(msgspec.Struct, frozen=True):
    """What an erasure did, or would do."""

    events: Events
    """The erased events by session, including those in forks, in adopters and wherever the content was repeated."""
    names: tuple[str, ...]
    """Keys and paths of the content. They are structure and stay."""
    pending: str = ""
    """Why old bytes are still in files, and how to remove them; empty when there are none."""


class Follower(msgspec.Struct, frozen=True):
    """An event that depends on a target: its session, and which earlier event it names."""

    session: SessionId
    seq: Seq
    kind: str
    turn: int
    named: Seq


class FoundSecret(msgspec.Struct, frozen=True):
    """An event in which secrets were found, and of what kinds."""

    session: SessionId
    seq: Seq
    kind: str
    turn: int
    markers: tuple[str, ...]


def preview(log: Log, seqs: Iterable[Seq]) -> Erasure:
    """Returns what erasing these events would do. They may be in several sessions of the fork tree."""
    parts = _by_holder(log, seqs).items()
    names = {name for _, mine in parts for seq in mine for name in _names(log.entry(seq))}
    return Erasure(_merge(removal.reach(_reader(log, part), mine) for part, mine in parts), tuple(sorted(names)))


def _merge(parts: Iterable[Mapping[SessionId, Iterable[Seq]]]) -> Events:
    events: dict[SessionId, set[Seq]] = {}
    for part in parts:
        for session, changed in part.items():
            events.setdefault(session, set()).update(changed)
    return {session: tuple(sorted(changed)) for session, changed in events.items()}


def erase_everywhere(store: Store, log: Log, seqs: Iterable[Seq], *, why: str, by: str) -> Erasure:
    """Erases events from the log, its forks and adopters, the index and the files."""
    chosen = sorted(set(seqs))
    erasure = preview(log, chosen)
    waits: list[str] = []
    for part, mine in _by_holder(log, chosen).items():
        with _noting_pending(waits):
            removal.erase(_reader(log, part), mine, why=why, by=by)
    log.forget()
    with _noting_pending(waits):
        scrub_removed(store)
    return msgspec.structs.replace(erasure, pending="; ".join(dict.fromkeys(waits)))


def scrub_index(store: Store) -> None:
    """Removes deleted and erased content from the index of a store, if it has one."""
    if "index" in store.__dict__ or has_index(store.engine):
        store.index.scrub()


def scrub_removed(store: Store) -> None:
    """Removes erased content from the index, and from engine files that keep old bytes. Raises UnavailableError
    (`scrub-pending`) if that has to wait."""
    scrub_index(store)
    if (rewrite := store.engine.abilities.rewrite) is not None:
        rewrite(most=REWRITE_MAX)


@contextlib.contextmanager
def _noting_pending(waits: list[str]) -> Iterator[None]:
    """Collects `scrub-pending` errors instead of raising: only the files are left to clean."""
    try:
        yield
    except UnavailableError as exc:
        if exc.kind != "scrub-pending":
            raise
        waits.append(f"{exc.message} ({exc.hint})")


def _by_holder(log: Log, seqs: Iterable[Seq]) -> Events:
    out: dict[SessionId, list[Seq]] = {}
    for seq in seqs:
        out.setdefault(log.holder_of(seq), []).append(seq)
    return {session: tuple(mine) for session, mine in out.items()}


def _reader(log: Log, holder: SessionId) -> Log:
    """Returns the log to erase an ancestor's events with: its own, or this fork's if the ancestor was deleted."""
    if holder == log.id or log.engine.head(holder).status == "deleted":
        return log
    return Log(log.engine, holder, clock=log.clock)


def _names(entry: Entry) -> Iterator[str]:
    """Yields the keys and paths that an event added to the state, and the name of a tool that a model invented."""
    error = entry.body.get("error")
    if entry.kind == "action.recorded" and type(error) is dict and error.get("type") == "unknown-tool":
        yield f"tool {entry.body.get('tool')}"
    for op in entry.delta:
        tokens = tokens_of(op["path"])
        for keys in (tokens, *_paths_in(op.get("value"), tokens)):
            match keys:
                case ["data", *_, key] if not key.isdigit():
                    yield f"data key {key}"
                case ["working_set", part, name, *_] if part in _WORKING_SET:
                    yield f"{_WORKING_SET[part]} {name}"
                case [part, name, *_] if part in _NAMED:
                    yield f"{_NAMED[part]} {name}"


def _paths_in(value: Value, tokens: list[str]) -> Iterator[list[str]]:
    """Yields the path of every key inside a value at the path `tokens`."""
    inside = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    for key, inner in inside:
        path = [*tokens, str(key)]
        yield path
        yield from _paths_in(inner, path)


def refuse_any_held(store: Store, sessions: Iterable[SessionId]) -> None:
    """Raises if a session is under a legal hold. A deleted session cannot be."""
    for session in sessions:
        if store.engine.head(session).status != "deleted":
            removal.refuse_if_held(store.engine, session)


def erase_all(
    store: Store,
    logs: Iterable[Log],
    seqs: dict[SessionId, list[Seq]],
    *,
    why: str = "",
    by: str = "",
    dry_run: bool = False,
) -> Erasure:
    """Erases events of several sessions everywhere; with `dry_run`, only says what that would do. `seqs` are by the
    session that stores them; `logs` are used to read them. Raises before anything is erased if a session is under a
    legal hold."""
    refuse_any_held(store, seqs)
    readers = {segment.session: log for log in logs for segment in log.segments}
    parts = []
    for holder, mine in seqs.items():
        log = readers.get(holder) or Log(store.engine, holder, even_deleted=True)
        parts.append(preview(log, mine) if dry_run else erase_everywhere(store, log, mine, why=why, by=by))
    return Erasure(
        _merge(part.events for part in parts),
        tuple(sorted({name for part in parts for name in part.names})),
        "; ".join(dict.fromkeys(part.pending for part in parts if part.pending)),
    )


def followers(log: Log, targets: Iterable[Seq]) -> list[Follower]:
    """Lists the later events that depend on the targets, in every live session of the fork tree that shares a target.
    The targets themselves are left out."""
    by_holder = _by_holder(log, targets)
    out: dict[tuple[SessionId, Seq], Follower] = {}
    for holder, mine in by_holder.items():
        for member in _tree(log.engine, holder):
            known = {seq for seq in mine if seq <= member.head().seq and member.holder_of(seq) == holder}
            if known and member.head().status != "deleted":
                out.update({(f.session, f.seq): f for f in _walk(member, known, min(known))})
    chosen = {(holder, seq) for holder, mine in by_holder.items() for seq in mine}
    return [out[place] for place in sorted(out) if place not in chosen]


def _tree(engine: Engine, session: SessionId) -> Iterator[Log]:
    """Yields a session and every fork below it, including deleted ones: other forks may read through them."""
    yield Log(engine, session, even_deleted=True)
    for child in engine.children(session, deleted=True):
        yield from _tree(engine, child.session)


def find_secrets(event: ev.Event) -> Iterable[str]:
    """Returns the kinds of secrets in an event, by the rules that redact new events."""
    return redact_event(event)[1]


def scan(
    log: Log, find: Finder = find_secrets, *, scanned: Callable[[], object] = lambda: None
) -> Iterator[FoundSecret]:
    """Yields the events in which `find` finds something. `scanned` is called for each event read. Erased and pruned
    events are skipped."""
    for entry in log.entries():
        if entry.is_intact and entry.record.body:
            scanned()
            markers = tuple(dict.fromkeys(find(_with_payloads(log, entry))))
            if markers:
                yield FoundSecret(log.holder_of(entry.seq), entry.seq, entry.kind, entry.header.turn, markers)


def _walk(log: Log, known: set[Seq], after: Seq) -> Iterator[Follower]:
    for entry in log.entries(after=after):
        named = _named(entry, known)
        if named:
            known.add(entry.seq)
            yield Follower(log.holder_of(entry.seq), entry.seq, entry.kind, entry.header.turn, named)


def _named(entry: Entry, known: set[Seq]) -> Seq:
    """Returns the earliest known event that this one names, or 0."""
    header = entry.header
    if header.cause in known:
        return header.cause
    for first, last in header.derived_from:
        few = known if len(known) < last - first else range(first, last + 1)
        found = min((seq for seq in few if first <= seq <= last and seq in known), default=0)
        if found:
            return found
    return 0


def _with_payloads(log: Log, entry: Entry) -> ev.Event:
    event = entry.event
    if isinstance(event, ev.Foreign):
        return event
    resolved = {}
    for field in event.payload_fields:
        try:
            value = log.value(entry, getattr(event, field))
        except NotFoundError:
            continue
        resolved[field] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return msgspec.structs.replace(event, **resolved) if resolved else event
