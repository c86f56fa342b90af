"""Which files were changed in the last turns: one row for each path, from the events in view, newest first.

Only turns in view count, because rewound changes do not explain what the project looks like now. Nothing older than the
requested turns is read. What comes after the newest rewind is in view, so the state, which tells the view, is asked
only where a rewind stands among these turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.timeline.points import attempts_of
from wakelog.timeline.slices import tool_of

PAGE = 64
"""So many events are read at a time, from the newest back."""


class ChangedFile(msgspec.Struct, frozen=True):
    """A file that was changed: how last, how often, in which turns, and by which tool and event last. Lines are summed
    up over all changes."""

    path: str
    change: str
    changes: int
    turns: tuple[int, ...]
    tool: str
    seq: Seq
    at: int
    added: int
    removed: int
    trust: str


class ChangedFiles(msgspec.Struct, frozen=True):
    """The turns that were looked at, oldest first, and the files changed in them, the last changed first."""

    turns: tuple[int, ...]
    files: tuple[ChangedFile, ...]


def changed_files(log: Log, last: int = 5, *, at: Seq | None = None) -> ChangedFiles:
    """The files changed in the last turns in view; with 0, in all of the history in view, also outside of turns."""
    head = log.head()
    upto = head.seq if at is None else at
    near = _newest(log, last, upto) if last and head.turn and 0 < upto <= head.seq else None
    if near is not None:
        return ChangedFiles(near[0], _files(log, near[1], near[0]))
    view = log.view(upto)
    turns = _turns(log, view, last) if last else ()
    if last and not turns:
        return ChangedFiles((), ())
    first = attempts_of(log, turns[0])[0].first if turns else 1
    seen: set[int] = set()
    files = _files(log, _in_view(log, view, first), turns, seen)
    return ChangedFiles(turns if last else tuple(sorted(seen - {0})), files)


def _files(
    log: Log, entries: Iterable[Entry], turns: tuple[int, ...], seen: set[int] | None = None
) -> tuple[ChangedFile, ...]:
    """The files changed in some turns, the last changed first. With `seen`, in any turn, and those are noted there."""
    found: dict[str, ChangedFile] = {}
    tools: dict[str, str] = {}
    unnamed: dict[str, list[Entry]] = {}
    for entry in entries:
        if seen is not None:
            seen.add(entry.header.turn)
        if entry.kind.startswith("action."):
            action = str(entry.body.get("action", ""))
            if isinstance(entry.body.get("tool"), str):
                tool_of(log, entry, tools)
            elif action not in tools:
                unnamed.setdefault(action, []).append(entry)
        elif entry.kind == "file.changed" and (not turns or entry.header.turn in turns):
            for call in unnamed.pop(str(entry.body.get("action", "")), ()):
                tool_of(log, call, tools)  # looked up only for calls that changed a file: it is a read
            _note(found, entry, tools)
    return tuple(sorted(found.values(), key=lambda f: -f.seq))


def _newest(log: Log, last: int, upto: Seq) -> tuple[tuple[int, ...], list[Entry]] | None:
    """The last turns up to an event and their events, in order, read back from there; None when a rewind was met."""
    turns: set[int] = set()
    pages: list[list[Entry]] = []
    low = upto
    while low > 0:
        high, low = low, max(0, low - PAGE)
        page = list(log.entries(after=low, upto=high))
        if any(entry.kind == "history.rewound" for entry in page):
            return None
        pages.append(page)
        turns.update(entry.header.turn for entry in page if entry.kind == "turn.started")
        # Turns do not go back, so all attempts of a turn were read when an event of one before it was.
        before = next((entry.header.turn for entry in page if entry.header.turn), 0)
        if before and len(turns) >= last and before < sorted(turns)[-last]:
            break
    chosen = tuple(sorted(turns)[-last:])
    entries = [entry for page in reversed(pages) for entry in page]
    begun = (n for n, entry in enumerate(entries) if entry.kind == "turn.started" and entry.header.turn in chosen)
    return chosen, entries[next(begun, len(entries)) :]


def _turns(log: Log, view: list[tuple[Seq, Seq]], last: int) -> tuple[int, ...]:
    """The newest turns that began in view."""
    found: list[int] = []
    head = log.head()
    turn = head.turn
    if len(view) == 1 and view[0][1] == head.seq:  # nothing was rewound, so they follow each other
        return tuple(range(max(1, turn - last + 1), turn + 1))
    while turn > 0 and len(found) < last:
        spans = attempts_of(log, turn)
        if any(low <= span.first <= high for span in spans for low, high in view):
            found.append(turn)
            turn -= 1
            continue
        # Rewound: on with the newest turn of the part in view before it.
        high = max((high for low, high in view if high < spans[0].first), default=0)
        turn = min(turn - 1, log.entry(high).header.turn or turn - 1) if high else 0
    return tuple(reversed(found))


def _in_view(log: Log, view: list[tuple[Seq, Seq]], first: Seq) -> Iterator[Entry]:
    for low, high in view:
        if high >= first:
            yield from log.entries(after=max(low, first) - 1, upto=high)


def _note(found: dict[str, ChangedFile], entry: Entry, tools: dict[str, str]) -> None:
    body, turn = entry.body, entry.header.turn
    path = body.get("path")
    if not isinstance(path, str):
        return  # erased
    before = found.get(path)
    turns = before.turns if before else ()
    found[path] = ChangedFile(
        path=path,
        change=str(body.get("change", "modified")),
        changes=(before.changes if before else 0) + 1,
        turns=turns if not turn or turn in turns else (*turns, turn),
        tool=tools.get(str(body.get("action", "")), ""),
        seq=entry.seq,
        at=entry.happened_at,
        added=(before.added if before else 0) + int(body.get("added", 0)),
        removed=(before.removed if before else 0) + int(body.get("removed", 0)),
        trust=entry.header.trust,
    )
