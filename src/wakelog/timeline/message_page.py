"""A page of the messages of a session, read backwards from its end or from a message. Older events are not read.

A model's answer is left out if a message of the same turn repeats it, so a turn must be read completely before any of
its messages is returned. Turn numbers never decrease: once an event of an earlier turn was read, the turn is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wakelog.errors import InvalidInputError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.timeline.compactions import Ranges
from wakelog.timeline.messages import (
    Message,
    MessageView,
    read_all,
    read_placed,
    summary_messages,
    view_messages,
)

PAGE = 256
"""How many events to read at a time, from the newest back."""


def read_message_page(
    log: Log, at: Seq | None = None, *, compacted: bool = True, limit: int | None = None, before: Seq | None = None
) -> list[Message]:
    """The messages in view at a point, oldest first: with `limit`, only the last ones; with `before`, only those before
    that message.

    A compacted range is one message with its summary (role "summary"), unless `compacted` is false. A turn's input that
    no message repeats is a message of the user, as in an imported session. Model answers are included, each once: if
    the agent also recorded the answer as a message of the same turn, that message is used. An erased or pruned message
    says so and is not skipped."""
    if limit is not None and limit < 1:
        raise InvalidInputError(f"limit is {limit}; it must be 1 or more", kind="bad-limit")
    view = view_messages(log, at, compacted=compacted)
    if before is None:
        end = view.at + 1
    else:
        # A summary is placed where its range began.
        end = next((c.first for c in view.summaries if c.seq == before), before)
    if limit is None:
        return [message for place, message in read_all(log, view) if place < end]
    results = _read_back(log, view, end, limit)
    if results is None:
        results = [(place, message) for place, message in read_all(log, view) if place < end]
    return [message for _, message in results[-limit:]]


def _read_back(log: Log, view: MessageView, end: Seq, limit: int) -> list[tuple[Seq, Message]] | None:
    """The messages before `end` with their positions, at least `limit` if there are that many. None if all messages
    have to be read: outside of turns, a message may repeat the answer of any model call."""
    entries: list[Entry] = []
    pages = _read_pages_back(log, view.ranges, end - 1)
    enough = limit
    while True:
        page = next(pages, None)
        if page is not None:
            entries[:0] = page if entries else [*page, *_read_rest_of_turn(log, view.ranges, end, page)]
            if len(entries) < enough:
                continue
        begin = _first_complete(entries) if page is not None else 0
        placed, replies = read_placed(log, entries)
        if not all(reply.turn for reply in replies):
            return None
        placed += summary_messages(log, (c for c in view.summaries if begin <= c.first < end))
        results = sorted(((place, m) for place, m in placed if begin <= place < end), key=lambda p: p[0])
        if page is None or len(results) >= limit:
            return results
        enough = 2 * len(entries)


def _read_pages_back(log: Log, ranges: Ranges, upto: Seq) -> Iterator[list[Entry]]:
    """The events in these ranges up to one, a page at a time, the newest page first."""
    for first, last in reversed(ranges):
        last = min(last, upto)
        while last >= first:
            low = max(first, last - PAGE + 1)
            yield list(log.entries(after=low - 1, upto=last, payloads=True))
            last = low - 1


def _read_rest_of_turn(log: Log, ranges: Ranges, end: Seq, page: Sequence[Entry]) -> list[Entry]:
    """The events from `end` on that belong to the newest turn of the page."""
    turn = max((entry.header.turn for entry in page), default=0)
    rest: list[Entry] = []
    for first, last in ranges if turn else ():
        for entry in log.entries(after=max(first, end) - 1, upto=last, payloads=True) if last >= end else ():
            if entry.header.turn > turn:
                return rest
            rest.append(entry)
    return rest


def _first_complete(entries: Sequence[Entry]) -> Seq:
    """The first event from which on all turns were read completely."""
    turns = [entry.header.turn for entry in entries]
    lowest = min(filter(None, turns), default=0)
    if not lowest:
        # Outside of turns nothing depends on earlier events.
        return entries[0].seq
    return next((e.seq for e, turn in zip(entries, turns, strict=True) if turn > lowest), entries[-1].seq + 1)
