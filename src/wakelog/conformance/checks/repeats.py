"""Idempotency: what a commit id is good for."""

from __future__ import annotations

from wakelog.conformance.bench import Bench, message, want
from wakelog.conformance.kit import check


@check("append", "The same events with the same `commit_id` are stored once; a repetition gets the first answer again.")
def repeat_is_stored_once(bench: Bench) -> None:
    session = bench.open()
    first = session.add(message("a"), message("b"), commit_id="one")
    want("one", first["commit_id"], "commit_id", bench.last)
    reply = session.append(message("a"), message("b"), commit_id="one")
    want(first, reply.ok(), "answer", reply.request)
    session.unmoved(first, reply)


@check("append", "A repeated commit is recognised before `expect` is checked, and also after other commits.")
def repeat_comes_before_expect(bench: Bench) -> None:
    session = bench.open()
    first = session.add(message("a"), commit_id="one", expect=1)
    head = session.add(message("b"))
    reply = session.append(message("a"), commit_id="one", expect=1)
    want(first["seq"], reply.ok()["seq"], "seq", reply.request)
    session.unmoved(head, reply)


@check("append", "A repeated commit is recognised after the session was closed.")
def repeat_after_close(bench: Bench) -> None:
    session = bench.open()
    first = session.add(message("a"), commit_id="one")
    closed = session.post("close", {}).ok()
    reply = session.append(message("a"), commit_id="one")
    want(first["seq"], reply.ok()["seq"], "seq", reply.request)
    session.unmoved(closed, reply)


@check("append", "Other events with a used `commit_id` are refused with 400 `commit-id-reused`.")
def commit_id_is_not_reused(bench: Bench) -> None:
    session = bench.open()
    head = session.add(message("a"), commit_id="one")
    reply = session.append(message("other"), commit_id="one")
    reply.refused(400, "commit-id-reused")
    session.unmoved(head, reply)


@check("append", "A `commit_id` is valid within its session only.")
def commit_id_is_the_sessions_own(bench: Bench) -> None:
    for _ in range(2):
        want(2, bench.open().add(message("a"), commit_id="one")["seq"], "seq", bench.last)


@check("append", "A client that lost the answer repeats the commit, and it is stored once.")
def lost_answer_can_be_repeated(bench: Bench) -> None:
    session = bench.open()
    body = {"events": [message("a")], "commit_id": "one"}
    session.client.ask_and_hang_up("POST", f"{session.path}/events", body)
    want(2, session.add(message("a"), commit_id="one")["seq"], "seq", bench.last)
    want(["a"], [each["body"]["content"] for each in session.events(after=1)], "contents", bench.last)
