"""Which files were changed in the last turns: one row per path, newest first.

Only turns in view count, because rewound changes do not explain what the project looks like now. Nothing older than the
requested turns is read. Everything after the newest rewind is in view, so the view is only computed if there is a
rewind among these turns.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.timeline.points import attempts_of, read_view
from wakelog.timeline.slices import tool_of

PAGE = 64
"""How many events to read at a time, from the newest back."""


class ChangedFile(msgspec.Struct, frozen=True):
    """A changed file. `change`, `tool`, `seq` and `at` are of its last change; `added` and `removed` are sums of lines
    over all changes."""

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
    """The turns that were read, oldest first, and the files changed in them, the last changed first."""

    turns: tuple[int, ...]
    files: tuple[ChangedFile, ...]


def changed_files(log: Log, last: int = 5, *, at: Seq | None = None) -> ChangedFiles:
    """The files changed in the last turns in view; with 0, in all of the history in view, including outside of
    turns."""
    head = log.head()
    upto = head.seq if at is None else at
    if last and head.turn and 0 < upto <= head.seq:
        newest = _read_newest_turns(log, last, upto)
        if newest is not None:
            turns, entries = newest
            return _collect(log, entries, turns)
    if not last:
        return _collect(log, read_view(log, upto), ())
    turns = _turns_in_view(log, log.view(upto), last)
    if not turns:
        return ChangedFiles((), ())
    return _collect(log, read_view(log, upto, first=attempts_of(log, turns[0])[0].first), turns)


def _collect(log: Log, entries: Iterable[Entry], turns: tuple[int, ...]) -> ChangedFiles:
    """The files changed in these turns; if none are given, in all turns and outside of turns."""
    results: dict[str, ChangedFile] = {}
    tools: dict[str, str] = {}
    unnamed: dict[str, list[Entry]] = {}
    seen: set[int] = set()
    for entry in entries:
        seen.add(entry.header.turn)
        if entry.kind.startswith("action."):
            action = str(entry.body.get("action", ""))
            if isinstance(entry.body.get("tool"), str):
                tool_of(log, entry, tools)
            elif action not in tools:
                unnamed.setdefault(action, []).append(entry)
        elif entry.kind == "file.changed" and (not turns or entry.header.turn in turns):
            for call in unnamed.pop(str(entry.body.get("action", "")), ()):
                tool_of(log, call, tools)  # may read the log, so only for calls that changed a file
            _add_change(results, entry, tools)
    return ChangedFiles(turns or tuple(sorted(seen - {0})), tuple(sorted(results.values(), key=lambda f: -f.seq)))


def _read_newest_turns(log: Log, last: int, upto: Seq) -> tuple[tuple[int, ...], list[Entry]] | None:
    """The last turns up to an event and their events in order, read backwards; None if there is a rewind among
    them."""
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
        # Turn numbers never decrease: an event of an earlier turn means that all attempts of the later ones were read.
        oldest = next((entry.header.turn for entry in page if entry.header.turn), 0)
        if oldest and len(turns) >= last and oldest < sorted(turns)[-last]:
            break
    chosen = tuple(sorted(turns)[-last:])
    entries = [entry for page in reversed(pages) for entry in page]
    starts = (n for n, entry in enumerate(entries) if entry.kind == "turn.started" and entry.header.turn in chosen)
    return chosen, entries[next(starts, len(entries)) :]


def _turns_in_view(log: Log, view: list[tuple[Seq, Seq]], last: int) -> tuple[int, ...]:
    """The newest turns that began in view."""
    results: list[int] = []
    head = log.head()
    turn = head.turn
    if len(view) == 1 and view[0][1] == head.seq:  # nothing was rewound, so the numbers are consecutive
        return tuple(range(max(1, turn - last + 1), turn + 1))
    while turn > 0 and len(results) < last:
        spans = attempts_of(log, turn)
        if any(low <= span.first <= high for span in spans for low, high in view):
            results.append(turn)
            turn -= 1
            continue
        # Rewound: continue with the newest turn of the range in view before it.
        high = max((high for low, high in view if high < spans[0].first), default=0)
        turn = min(turn - 1, log.entry(high).header.turn or turn - 1) if high else 0
    return tuple(reversed(results))


def _add_change(results: dict[str, ChangedFile], entry: Entry, tools: dict[str, str]) -> None:
    body, turn = entry.body, entry.header.turn
    path = body.get("path")
    if not isinstance(path, str):
        return  # erased
    before = results.get(path)
    turns = before.turns if before else ()
    results[path] = ChangedFile(
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
