"""Tails: live events, and resuming after a break."""

from __future__ import annotations

from urllib.parse import urlencode

from wakelog.conformance.bench import Bench, message, want
from wakelog.conformance.kit import check


@check("tail", needs="tail")
def tail_sends_what_is_stored(bench: Bench) -> None:
    """A tail with `after` sends the stored events after that one, then new ones; an event's id is its seq."""
    session = bench.open()
    session.add(message("a"), message("b"))
    with session.tail(after=1) as tail:
        frames = tail.take_events(2, 3)
        want(["2", "3"], [each.id for each in frames], "ids", tail.request)
        want(session.events(after=1), [each.json for each in frames], "events", tail.request)
        session.add(message("c"))
        tail.take_events(4)


@check("tail", needs="tail")
def tail_begins_now(bench: Bench) -> None:
    """A tail without `after` starts with new events."""
    session = bench.open()
    session.add(message("old"))
    with session.tail() as tail:
        session.add(message("new"))
        tail.take_events(3)


@check("tail", needs="tail")
def tail_resumes(bench: Bench) -> None:
    """A tail with `Last-Event-ID` continues after that event, without a gap and in order; it overrides `after`."""
    session = bench.open()
    session.add(message("a"), message("b"))
    with session.tail(after=1) as tail:
        last = tail.take().id
    session.add(message("c"))
    for query in ({}, {"after": 0}):
        with session.tail({"last-event-id": last}, **query) as tail:
            head = session.add(message("later"))
            tail.take_events(*range(3, head["seq"] + 1))


@check("tail", needs="tail")
def tail_is_filtered(bench: Bench) -> None:
    """`kind` selects kinds, by name or first word."""
    session = bench.open()
    with session.tail(after=0, kind="message") as tail:
        session.add(message("a"), {"kind": "x.other"}, message("b"))
        tail.take_events(2, 4)


@check("tail", needs="feed")
def feed_resumes(bench: Bench) -> None:
    """The feed of all sessions keeps the order within each session, and can continue after any of its ids."""
    session = bench.open()
    with bench.client.tail("/v1/tail") as tail:
        session.add(message("a"), message("b"))
        session.add(message("c"))
        frames = tail.take_events(2, 3, 4, session=session.id)
    for skip in (1, 2):
        with bench.client.tail("/v1/tail", {"last-event-id": frames[skip - 1].id}) as tail:
            tail.take_events(*[2, 3, 4][skip:], session=session.id)
    with bench.client.tail(f"/v1/tail?{urlencode({'after': frames[0].id})}") as tail:
        tail.take_events(3, session=session.id)
