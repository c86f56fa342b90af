"""Tails: events as they come, and going on after a break."""

from __future__ import annotations

from urllib.parse import urlencode

from wakelog.conformance.bench import Bench, message, want
from wakelog.conformance.kit import check
from wakelog.conformance.wire import Frame


def _seqs(frames: list[Frame]) -> list[int]:
    return [each.json["seq"] for each in frames]


@check("tail", "A tail with `after` sends what is stored after that event, then what comes; an event's id is its seq.", needs="tail")
def tail_sends_what_is_stored(bench: Bench) -> None:
    session = bench.open()
    session.add(message("a"), message("b"))
    with session.tail(after=1) as tail:
        frames = tail.take(2)
        want(["2", "3"], [each.id for each in frames], "ids", tail.request)
        want(session.events(after=1), [each.json for each in frames], "events", tail.request)
        session.add(message("c"))
        want([4], _seqs(tail.take(1)), "seqs", tail.request)


@check("tail", "A tail without `after` begins with what is new.", needs="tail")
def tail_begins_now(bench: Bench) -> None:
    session = bench.open()
    session.add(message("old"))
    with session.tail() as tail:
        session.add(message("new"))
        want([3], _seqs(tail.take(1)), "seqs", tail.request)


@check("tail", "A tail with `Last-Event-ID` goes on after that event, whatever `after` says: no gap, and in order.", needs="tail")
def tail_resumes(bench: Bench) -> None:
    session = bench.open()
    session.add(message("a"), message("b"))
    with session.tail(after=1) as tail:
        last = tail.take(1)[0].id
    session.add(message("c"))
    for query in ({}, {"after": 0}):
        with session.tail({"last-event-id": last}, **query) as tail:
            head = session.add(message("later"))
            wanted = list(range(3, head["seq"] + 1))
            want(wanted, _seqs(tail.take(len(wanted))), "seqs", tail.request)


@check("tail", "`kind` lets through these kinds only, by name or first word.", needs="tail")
def tail_is_filtered(bench: Bench) -> None:
    session = bench.open()
    with session.tail(after=0, kind="message") as tail:
        session.add(message("a"), {"kind": "x.other"}, message("b"))
        want([2, 4], _seqs(tail.take(2)), "seqs", tail.request)


@check("tail", "The feed of all sessions keeps the order within each; any id of it is a place to go on from.", needs="feed")
def feed_resumes(bench: Bench) -> None:
    session = bench.open()
    with bench.client.tail("/v1/tail") as tail:
        session.add(message("a"), message("b"))
        session.add(message("c"))
        frames = tail.take(3, session.id)
        want([2, 3, 4], _seqs(frames), "seqs", tail.request)
    for skip in (1, 2):
        with bench.client.tail("/v1/tail", {"last-event-id": frames[skip - 1].id}) as tail:
            want([2, 3, 4][skip:], _seqs(tail.take(3 - skip, session.id)), "seqs", tail.request)
    with bench.client.tail(f"/v1/tail?{urlencode({'after': frames[0].id})}") as tail:
        want([3], _seqs(tail.take(1, session.id)), "seqs", tail.request)
