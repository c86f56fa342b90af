"""Appending: order, the expected head, atomicity, refusals, repeated commits, and several writers at once."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor

from wakelog.conformance.bench import Bench, event, fact, message, want
from wakelog.conformance.kit import check
from wakelog.conformance.wire import ServerFault

WRITERS, EACH = 6, 5


@check("append")
def append_keeps_order(bench: Bench) -> None:
    """Events of a session are numbered 1, 2, 3 … without gaps, in the order in which they were stored."""
    session = bench.open()
    for text in ("a", "b", "c"):
        session.add(message(text))
    session.add(message("d"), message("e"))
    events = session.events(after=1)
    want([2, 3, 4, 5, 6], [each["seq"] for each in events], "seqs", bench.last)
    want(list("abcde"), [each["body"]["content"] for each in events], "contents", bench.last)


@check("append")
def append_answers_with_head(bench: Bench) -> None:
    """The answer to an append is the head after it. Every read after the answer sees the events."""
    session = bench.open()
    reply = session.append(message("a"), message("b"))
    head = reply.ok()
    want(3, head["seq"], "seq", reply.request)
    want(head, session.head(), "head", bench.last)
    last = session.events()[-1]
    want((3, head["hash"]), (last["seq"], last["hash"]), "last event's seq and hash", bench.last)


@check("append")
def append_is_one_commit(bench: Bench) -> None:
    """The events of one request are one commit: they have consecutive numbers and the same `commit_id` and `at`."""
    session = bench.open()
    head = session.add(message("a"), message("b"), message("c"))
    got = [(each["seq"], each["commit_id"], each["at"]) for each in session.events(after=1)]
    want([(seq, head["commit_id"], head["at"]) for seq in (2, 3, 4)], got, "seq, commit_id, at", bench.last)


@check("append")
def append_keeps_values(bench: Bench) -> None:
    """Bodies come back as they were sent: text, whole numbers up to 2^53 − 1, fractions, nesting."""
    session = bench.open()
    value = {"text": 'é😀"\\\n', "most": 2**53 - 1, "least": 1 - 2**53, "part": 0.1, "deep": [[None, True, {"": []}]]}
    session.add(fact("k", value), event("x.conformance", own=value))
    first, second = session.events(after=1)
    want(value, first["body"]["value"], "value", bench.last)
    want(("x.conformance", {"own": value}), (second["kind"], second["body"]), "own kind", bench.last)
    want(value, session.state()["facts"]["k"]["value"], "value in the state", bench.last)


@check("append")
def append_keeps_header(bench: Bench) -> None:
    """The event's header has `actor`, `cause`, `derived_from`, `source` and `trust` as they were sent."""
    session = bench.open()
    header = {"actor": "user", "cause": 1, "derived_from": [[1, 1]], "source": "web:x", "trust": "untrusted"}
    session.add(event("message.added", header, role="user", content="x"))
    [got] = session.events(after=1)
    want(header, {name: got[name] for name in header}, "header", bench.last)


@check("append")
def append_expects_head(bench: Bench) -> None:
    """If `expect` is not the head's seq, the append is refused with 409 `head-moved`, which has `head_seq`, and writes
    nothing."""
    session = bench.open()
    head = session.add(message("a"))
    for expect in (1, 99):
        reply = session.append(message("b"), expect=expect)
        want(2, reply.refused(409, "head-moved").get("head_seq"), "head_seq", reply.request)
        session.check_unchanged(head, reply)
    want(3, session.add(message("c"), expect=2)["seq"], "seq", bench.last)


@check("append")
def append_is_atomic(bench: Bench) -> None:
    """A commit is stored completely or not at all: if one event is refused, the whole request is refused."""
    session = bench.open()
    head = session.head()
    for wrong, status, kind in (
        (event("turn.ended"), 409, "turn-machine"),
        (event("no.such.kind"), 400, "unknown-kind"),
        (event("fact.recorded", key="k"), 400, "bad-event"),
    ):
        reply = session.append(message("a"), message("b"), wrong)
        reply.refused(status, kind)
        session.check_unchanged(head, reply)


@check("append")
def append_names_legal_moves(bench: Bench) -> None:
    """An event that a state machine does not allow is refused with 409; `legal` lists the kinds that are allowed."""
    session = bench.open()
    for wrong, kind, legal in (
        (event("turn.ended"), "turn-machine", "turn.started"),
        (event("action.succeeded", action="none"), "action-machine", "action.requested"),
        (event("session.archived"), "session-open", "session.closed"),
    ):
        reply = session.append(wrong)
        if legal not in reply.refused(409, kind).get("legal", ()):
            raise ServerFault(f"`legal` with {legal}", repr(reply.json.get("legal")), reply.request)


@check("append")
def append_settles_actions(bench: Bench) -> None:
    """A requested call is pending until it has an outcome, and it has one outcome only."""
    session = bench.open()
    session.add(event("turn.started"), event("action.requested", action="a", tool="t"))
    want(["a"], list(session.state()["pending_actions"]), "pending actions", bench.last)
    session.add(event("action.started", action="a"), event("action.succeeded", action="a", output=1))
    want([], list(session.state()["pending_actions"]), "pending actions", bench.last)
    session.append(event("action.succeeded", action="a")).refused(409, "action-machine")


@check("append")
def append_refuses_own_kinds(bench: Bench) -> None:
    """Only the server writes kinds that are about stored events (rewinds, forks, erasures); others get `own-kind`."""
    session = bench.open()
    for kind, body in (
        ("history.rewound", {"to": 1}),
        ("session.forked", {"parent": session.id, "at": 1, "hash": "00"}),
        ("range.pruned", {"upto": 1, "last_hash": "00", "base": {}}),
    ):
        reply = session.append({"kind": kind, "body": body})
        reply.refused(409, "own-kind")
        session.check_unchanged(session.opened, reply)


@check("append", needs="redaction")
def append_redacts(bench: Bench) -> None:
    """A secret that is found is replaced before anything is stored; `payload.redacted`, in the same commit, names its
    kind."""
    session = bench.open()
    secret = f"ghp_{secrets.token_hex(18)}"
    session.add(message(f"the token is {secret}"), commit_id="r")
    for verb in ("events", "state", "bundle"):
        reply = session.get(verb)
        if secret.encode() in reply.content:
            raise ServerFault("no secret in any answer", "the secret", reply.request)
    want(["message.added", "payload.redacted"], [each["kind"] for each in session.events(after=1)], "kinds", bench.last)


@check("append")
def append_takes_a_thousand(bench: Bench) -> None:
    """The server accepts a commit of 1,000 events, and a body of 1 MiB."""
    session = bench.open()
    reply = session.append(*(message(f"{n:04d}" + "." * 900) for n in range(1000)))
    want(1001, reply.ok()["seq"], "seq", reply.request)
    want([2, 1001], [session.events(limit=1, after=n)[0]["seq"] for n in (1, 1000)], "seqs", bench.last)


# Repeated commits


@check("append")
def repeat_is_stored_once(bench: Bench) -> None:
    """The same events with the same `commit_id` are stored once; a repetition gets the first answer again."""
    session = bench.open()
    first = session.add(message("a"), message("b"), commit_id="one")
    want("one", first["commit_id"], "commit_id", bench.last)
    reply = session.append(message("a"), message("b"), commit_id="one")
    want(first, reply.ok(), "answer", reply.request)
    session.check_unchanged(first, reply)


@check("append")
def repeat_comes_before_expect(bench: Bench) -> None:
    """A repeated commit is recognised before `expect` is checked, and also after other commits."""
    session = bench.open()
    first = session.add(message("a"), commit_id="one", expect=1)
    head = session.add(message("b"))
    reply = session.append(message("a"), commit_id="one", expect=1)
    want(first["seq"], reply.ok()["seq"], "seq", reply.request)
    session.check_unchanged(head, reply)


@check("append")
def repeat_after_close(bench: Bench) -> None:
    """A repeated commit is recognised after the session was closed."""
    session = bench.open()
    first = session.add(message("a"), commit_id="one")
    closed = session.post("close", {}).ok()
    reply = session.append(message("a"), commit_id="one")
    want(first["seq"], reply.ok()["seq"], "seq", reply.request)
    session.check_unchanged(closed, reply)


@check("append")
def commit_id_is_not_reused(bench: Bench) -> None:
    """Other events with a used `commit_id` are refused with 400 `commit-id-reused`."""
    session = bench.open()
    head = session.add(message("a"), commit_id="one")
    reply = session.append(message("other"), commit_id="one")
    reply.refused(400, "commit-id-reused")
    session.check_unchanged(head, reply)


@check("append")
def commit_id_is_the_sessions_own(bench: Bench) -> None:
    """A `commit_id` is valid within its session only."""
    for _ in range(2):
        want(2, bench.open().add(message("a"), commit_id="one")["seq"], "seq", bench.last)


@check("append")
def lost_answer_can_be_repeated(bench: Bench) -> None:
    """A client that lost the answer repeats the commit, and it is stored once."""
    session = bench.open()
    body = {"events": [message("a")], "commit_id": "one"}
    session.client.ask_and_hang_up("POST", f"{session.path}/events", body)
    want(2, session.add(message("a"), commit_id="one")["seq"], "seq", bench.last)
    want(["a"], [each["body"]["content"] for each in session.events(after=1)], "contents", bench.last)


# Several writers


@check("concurrency")
def writers_lose_nothing(bench: Bench) -> None:
    """Parallel writers lose nothing: every acknowledged append is stored once, without gaps."""
    session = bench.open()

    def write(writer: int) -> list[tuple[int, str]]:
        return [(session.add(message(f"{writer}-{n}"))["seq"], f"{writer}-{n}") for n in range(EACH)]

    with ThreadPoolExecutor(WRITERS) as pool:
        answered = sorted(pair for pairs in pool.map(write, range(WRITERS)) for pair in pairs)
    got = [(each["seq"], each["body"]["content"]) for each in session.events(after=1)]
    want(list(range(2, 2 + WRITERS * EACH)), [seq for seq, _ in got], "seqs", bench.last)
    want(answered, got, "the events that were answered", bench.last)


@check("concurrency")
def one_writer_wins(bench: Bench) -> None:
    """If several writers expect the same head, exactly one is accepted."""
    session = bench.open()
    with ThreadPoolExecutor(WRITERS) as pool:
        replies = list(pool.map(lambda n: session.append(message(str(n)), expect=1), range(WRITERS)))
    want([200] + [409] * (WRITERS - 1), sorted(each.status for each in replies), "statuses", bench.last)
    for each in replies:
        if each.status == 409:
            each.refused(409, "head-moved")
    want(2, session.head()["seq"], "head", bench.last)


@check("concurrency")
def one_repeat_is_stored(bench: Bench) -> None:
    """The same commit sent several times in parallel is stored once, and all requests get the same answer."""
    session = bench.open()
    with ThreadPoolExecutor(WRITERS) as pool:
        heads = list(pool.map(lambda _: session.add(message("a"), commit_id="same"), range(WRITERS)))
    want([2] * WRITERS, [each["seq"] for each in heads], "seqs", bench.last)
    want(2, session.head()["seq"], "head", bench.last)


@check("concurrency")
def one_session_is_opened(bench: Bench) -> None:
    """Opening the same name several times in parallel creates one session."""
    name = bench.name()
    with ThreadPoolExecutor(WRITERS) as pool:
        opened = list(pool.map(lambda _: bench.open(name), range(WRITERS)))
    want(1, len({each.id for each in opened}), "sessions", bench.last)
