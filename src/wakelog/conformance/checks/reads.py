"""Reading: the state at a point, events, pages, conditional requests."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from wakelog.conformance.bench import Bench, Remote, event, fact, message, want
from wakelog.conformance.kit import check
from wakelog.conformance.wire import ServerFault


def _with_facts(bench: Bench) -> Remote:
    """Events 2, 3, 4 set one fact to 1, 2, 3."""
    session = bench.open()
    for value in (1, 2, 3):
        session.add(fact("n", value))
    return session


@check("state")
def state_at_a_point(bench: Bench) -> None:
    """The state at event n is what it was when n was the head; later events do not change it."""
    session = _with_facts(bench)
    for seq in (2, 3, 4):
        reply = session.get("state", at=f"e{seq}")
        answer = reply.ok()
        want((seq, seq - 1), (answer["at"], answer["value"]["facts"]["n"]["value"]), "at and value", reply.request)
    want({}, session.state(at="e1")["facts"], "facts at event 1", bench.last)


@check("state")
def state_now(bench: Bench) -> None:
    """Without `at`, the answer is the present state, and its `at` is the head's seq."""
    session = _with_facts(bench)
    reply = session.get("state")
    want((4, 3), (reply.ok()["at"], reply.json["value"]["facts"]["n"]["value"]), "at and value", reply.request)


@check("state")
def state_is_folded(bench: Bench) -> None:
    """The state at event n is `{}` with the deltas of events 1 to n applied in order."""
    session = bench.open(goal="see", data={"list": [1]})
    session.add(event("turn.started"), fact("a/b~c", 1), event("action.requested", action="a", tool="t"))
    session.add(event("labels.set", labels={"x": "y"}), event("action.succeeded", action="a"))
    session.add(event("fact.retracted", key="a/b~c"), event("turn.ended"))
    document: Any = {}
    for each in session.events():
        for operation in each["delta"]:
            document = _apply(document, operation)
        want(document, session.state(at=f"e{each['seq']}"), f"state at {each['seq']}", bench.last)


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    """Applies one operation of a delta: add, replace or remove, on objects and lists."""
    names = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    if not names:
        return operation["value"]
    place = document
    for name in names[:-1]:
        place = place[int(name)] if isinstance(place, list) else place[name]
    last: Any = int(names[-1]) if isinstance(place, list) else names[-1]
    if operation["op"] == "remove":
        del place[last]
    elif operation["op"] == "add" and isinstance(place, list):
        place.insert(last, operation["value"])
    else:
        place[last] = operation["value"]
    return document


@check("state")
def state_by_pointer(bench: Bench) -> None:
    """`pointer` (RFC 6901) selects one part of the state; a pointer to nothing is refused with 400 `bad-pointer`."""
    session = _with_facts(bench)
    want(3, session.state(pointer="/facts/n/value"), "value", bench.last)
    session.get("state", pointer="/facts/none").refused(400, "bad-pointer")


@check("state")
def state_at_a_turn(bench: Bench) -> None:
    """`@5` is the state after turn 5; `@` is the head."""
    session = bench.open()
    for value in (1, 2):
        session.add(event("turn.started"), fact("n", value), event("turn.ended"))
    want(1, session.state(at="@1")["facts"]["n"]["value"], "value after turn 1", bench.last)
    want(2, session.state(at="@")["facts"]["n"]["value"], "value now", bench.last)
    session.get("state", at="@9").refused(404, "turn-not-found")


@check("state", needs="names")
def state_at_a_checkpoint(bench: Bench) -> None:
    """`cp:NAME` is the point that the checkpoint names."""
    session = _with_facts(bench)
    session.post("checkpoint", {"name": "two", "at": "e3"}).ok()
    want(2, session.state(at="cp:two")["facts"]["n"]["value"], "value", bench.last)
    session.get("state", at="cp:none").refused(404, "checkpoint-not-found")


@check("state")
def state_at_no_point(bench: Bench) -> None:
    """A point that does not exist is 404 `event-not-found`; text that is not a point is 400 `bad-selector`."""
    session = bench.open()
    session.get("state", at="e9").refused(404, "event-not-found")
    session.get("state", at="never").refused(400, "bad-selector")


@check("state", needs="patch")
def state_is_patched(bench: Bench) -> None:
    """A patch changes `data` at its paths, and nothing else."""
    session = bench.open(data={"a": 1, "b": 2})
    session.post("patch", {"patch": [{"op": "replace", "path": "/data/a", "value": 3}]}).ok()
    want({"a": 3, "b": 2}, session.state(pointer="/data"), "data", bench.last)
    head = session.head()
    reply = session.post("patch", {"patch": [{"op": "add", "path": "/status", "value": "x"}]})
    reply.refused(400, "bad-patch")
    session.check_unchanged(head, reply)


# Events and pages


@check("events")
def event_by_number(bench: Bench) -> None:
    """`eN` returns event N, the same as in the list."""
    session = _with_facts(bench)
    want(session.events()[2], session.get("events/e3").ok(), "event", bench.last)
    session.get("events/e9").refused(404, "event-not-found")


@check("events")
def events_are_filtered(bench: Bench) -> None:
    """Filters are combined: `after`, `upto`, `kind` (a kind or its first word), `turn`, `place`."""
    session = bench.open()
    session.add(message("a"), event("turn.started"), fact("n", 1), message("b"), event("turn.ended"), message("c"))
    for query, wanted in (
        ({"after": 2, "upto": 4}, [3, 4]),
        ({"kind": "message.added"}, [2, 5, 7]),
        ({"kind": "turn"}, [3, 6]),
        ({"turn": 1}, [3, 4, 5, 6]),
        ({"turn": 1, "kind": "message"}, [5]),
        ({"place": "e2..e3"}, [2, 3]),
    ):
        want(wanted, [each["seq"] for each in session.events(**query)], f"seqs for {query}", bench.last)


@check("pages")
def event_pages_are_complete(bench: Bench) -> None:
    """All pages together have every event once, in order; the last page has no `next`."""
    session = bench.open()
    session.add(*(message(str(n)) for n in range(9)))
    want(list(range(1, 11)), [seq for page in _pages(session, 3) for seq in page], "seqs", bench.last)


@check("pages")
def pages_go_on_while_writing(bench: Bench) -> None:
    """Appends while a client reads pages disturb nothing, and their events are not missed."""
    session = bench.open()
    session.add(*(message(str(n)) for n in range(4)))
    seqs: list[int] = []
    for number, page in enumerate(_pages(session, 2)):
        seqs += page
        if number < 3:
            session.add(message("more"))
    want(list(range(1, 9)), seqs, "seqs", bench.last)


def _pages(session: Remote, limit: int) -> Any:
    after: int | None = 0
    while after is not None:
        reply = session.get("events", after=after, limit=limit)
        page = reply.ok()
        if len(page["events"]) > limit:
            raise ServerFault(f"at most {limit} events", str(len(page["events"])), reply.request)
        if (following := page.get("next")) is not None and following <= after:
            raise ServerFault(f"a `next` after {after}", str(following), reply.request)
        after = following
        yield [each["seq"] for each in page["events"]]


@check("pages", needs="list")
def session_pages_are_complete(bench: Bench) -> None:
    """All pages of the list of sessions together have every session once."""
    mark = bench.name()
    opened = {bench.open(f"{mark}-{n}").id for n in range(5)}
    results: list[str] = []
    after: str | None = ""
    while after is not None:
        reply = bench.client.ask("GET", f"/v1/sessions?{urlencode({'name': mark + '*', 'limit': 2, 'after': after})}")
        results += [row["id"] for row in reply.ok()["rows"]]
        after = reply.json["next"] or None
        if len(results) > 5:
            raise ServerFault("5 sessions", f"{len(results)} and more", reply.request)
    want(sorted(opened), sorted(results), "sessions", bench.last)


# Conditional requests

_BY_HEAD = ("head", "state", "events")


@check("conditional")
def etag_saves_the_answer(bench: Bench) -> None:
    """An answer that depends only on the head has an ETag; sent in `If-None-Match`, it gives 304 without a body."""
    session = _with_facts(bench)
    for verb in _BY_HEAD:
        reply = session.get(verb)
        reply.want(200)
        if not reply.etag:
            raise ServerFault("an ETag", "none", reply.request)
        again = session.get(verb, {"if-none-match": reply.etag})
        want((304, b""), (again.status, again.content), "status and body", again.request)


@check("conditional")
def etag_moves_with_the_head(bench: Bench) -> None:
    """After a new event the ETag is different, and the answer is complete."""
    session = _with_facts(bench)
    before = {verb: session.get(verb).etag for verb in _BY_HEAD}
    session.add(fact("n", 4))
    for verb, tag in before.items():
        reply = session.get(verb, {"if-none-match": tag})
        want(200, reply.status, "status", reply.request)
        if reply.etag == tag:
            raise ServerFault(f"another ETag than {tag}", tag, reply.request)
