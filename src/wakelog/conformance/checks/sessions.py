"""Sessions: opening and finding them."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from wakelog.conformance.bench import Bench, want
from wakelog.conformance.kit import check
from wakelog.conformance.wire import ServerFault


@check("sessions")
def session_opens(bench: Bench) -> None:
    """Opening a new name creates a session at event 1, `session.opened`, in status `open`."""
    session = bench.open(goal="see", labels={"kit": "yes"})
    want((1, "open", None), tuple(session.opened[k] for k in ("seq", "status", "parent")), "seq, status, parent")
    [first] = session.events()
    want((1, "session.opened"), (first["seq"], first["kind"]), "event 1", bench.last)
    state = session.state()
    want(("see", {"kit": "yes"}), (state["goal"], state["labels"]), "goal and labels", bench.last)


@check("sessions")
def session_opens_once(bench: Bench) -> None:
    """Opening an existing name returns that session unchanged and writes nothing."""
    session = bench.open()
    reply = bench.client.ask("POST", "/v1/sessions", {"name": session.name, "goal": "another"})
    want(session.id, reply.ok()["session"], "session", reply.request)
    session.check_unchanged(session.opened, reply)


@check("sessions")
def session_is_found_by_name(bench: Bench) -> None:
    """A session is found by its id, and by its name, percent-encoded as one segment of the path."""
    session = bench.open(bench.name(" é/%2F?"))
    for word in (session.name, session.id):
        reply = bench.client.ask("GET", f"/v1/sessions/{quote(word, safe='')}/head")
        want(session.id, reply.ok()["session"], "session", reply.request)


@check("sessions")
def session_summary(bench: Bench) -> None:
    """A session's summary holds its head, goal, labels, turn, pending actions, flags and budget."""
    session = bench.open(goal="see")
    reply = bench.client.ask("GET", session.path)
    answer = reply.ok()
    wanted = {"head", "holder", "goal", "labels", "turn", "view", "pending_actions", "flags", "budget", "last_error"}
    if missing := wanted - set(answer):
        raise ServerFault(f"fields {', '.join(sorted(wanted))}", f"none of {', '.join(sorted(missing))}", reply.request)
    want(session.head()["hash"], answer["head"]["hash"], "head", reply.request)


@check("sessions", needs="list")
def session_is_listed(bench: Bench) -> None:
    """The list of sessions contains a session as soon as the request that opened it was answered."""
    session = bench.open()
    reply = bench.client.ask("GET", f"/v1/sessions?{urlencode({'name': session.name})}")
    rows = [(row["id"], row["name"], row["status"]) for row in reply.ok()["rows"]]
    want([(session.id, session.name, "open")], rows, "rows", reply.request)
