"""A session's life, and leases on it."""

from __future__ import annotations

from wakelog.conformance.bench import Bench, event, fact, message, want
from wakelog.conformance.kit import check
from wakelog.conformance.wire import ServerFault


@check("lifecycle")
def pause_holds_back(bench: Bench) -> None:
    """While a session is paused, nothing new starts (409 `session-paused`). Outcomes of calls that had started are
    accepted."""
    session = bench.open()
    session.add(event("turn.started"), event("action.requested", action="a", tool="t"))
    paused = session.post("pause", {}).ok()
    want("paused", paused["status"], "status", bench.last)
    for new in (event("action.requested", action="b", tool="t"), fact("n", 1)):
        reply = session.append(new)
        reply.refused(409, "session-paused")
        session.check_unchanged(paused, reply)
    session.add(event("action.succeeded", action="a"))
    want("active", session.post("resume", {}).ok()["status"], "status", bench.last)
    session.add(fact("n", 1))


@check("lifecycle")
def close_ends(bench: Bench) -> None:
    """A closed session refuses everything new (409 `session-closed`) except remarks, flags and late reports."""
    session = bench.open()
    closed = session.post("close", {"outcome": "completed"}).ok()
    want("closed", closed["status"], "status", bench.last)
    reply = session.append(message("late"))
    legal = reply.refused(409, "session-closed").get("legal", ())
    if "session.reopened" not in legal:
        raise ServerFault("`legal` with session.reopened", repr(legal), reply.request)
    session.check_unchanged(closed, reply)
    want("closed", session.add(event("note.added", text="a remark"))["status"], "status", bench.last)


@check("lifecycle")
def close_settles(bench: Bench) -> None:
    """Closing first settles what is open: the turn ends, and only uncertain calls stay pending."""
    session = bench.open()
    session.add(event("turn.started"), event("action.requested", action="a", tool="t"))
    session.post("close", {}).ok()
    state = session.state()
    open_ = {id: each["status"] for id, each in state["pending_actions"].items() if each["status"] != "uncertain"}
    want({}, open_, "pending actions", bench.last)
    if state["turn"]["status"] == "open":
        raise ServerFault("an ended turn", "an open one", bench.last)


@check("lifecycle")
def reopen_and_archive(bench: Bench) -> None:
    """A closed session can be reopened or archived, and an archived one reopened. An open session cannot be
    archived."""
    session = bench.open()
    session.post("archive", {}).refused(409, "session-open")
    for verb, status in (("close", "closed"), ("archive", "archived"), ("reopen", "active")):
        want(status, session.post(verb, {}).ok()["status"], "status", bench.last)
    session.add(message("on"))


@check("lifecycle", needs="removal")
def delete_is_for_good(bench: Bench) -> None:
    """Every request about a deleted session gets 404 `session-deleted`. Its name can be used again."""
    session = bench.open()
    session.add(message("gone"))
    bench.client.ask("DELETE", session.path).ok()
    for verb in ("head", "events", "state"):
        session.get(verb).refused(404, "session-deleted")
    session.append(message("late")).refused(404, "session-deleted")
    again = bench.open(session.name)
    if again.id == session.id or again.opened["seq"] != 1:
        raise ServerFault("another session at event 1", f"{again.id} at {again.opened['seq']}", bench.last)


@check("lifecycle", needs="removal")
def erase_takes_content(bench: Bench) -> None:
    """Erased content is in no answer any more. The event, its position and the chain stay, and the session still
    verifies."""
    session = bench.open()
    session.add(message("erase me"), message("stay"))
    before = [(each["seq"], each["kind"], each["hash"]) for each in session.events()]
    session.post("erase", {"events": [2], "why": "conformance"}).ok()
    for verb in ("events", "state", "bundle"):
        reply = session.get(verb)
        if b"erase me" in reply.content:
            raise ServerFault("no answer with what was erased", "it is still there", reply.request)
    events = session.events()
    want(before, [(each["seq"], each["kind"], each["hash"]) for each in events[:3]], "events", bench.last)
    want([True, False, True], [each["intact"] for each in events[:3]], "intact", bench.last)
    report = session.get("verify")
    if report.status == 200:  # where it is offered
        want([], report.json["integrity"], "integrity", report.request)


# Leases


@check("leases", needs="lease")
def lease_has_one_holder(bench: Bench) -> None:
    """While a living holder has the lease, another is refused with 409 `leased`; `force` takes it over."""
    session = bench.open()
    first = session.post("lease", {"holder": "one", "ttl_s": 600}).ok()["epoch"]
    session.post("lease", {"holder": "two"}).refused(409, "leased")
    second = session.post("lease", {"holder": "two", "force": True}).ok()["epoch"]
    if second <= first:
        raise ServerFault(f"an epoch after {first}", str(second), bench.last)
    want("two", bench.client.ask("GET", session.path).ok()["holder"], "holder", bench.last)


@check("leases", needs="lease")
def lease_fences(bench: Bench) -> None:
    """If `guard` is not the newest epoch, the append is refused with 409 `fenced` and writes nothing."""
    session = bench.open()
    old = session.post("lease", {"holder": "one", "ttl_s": 600}).ok()["epoch"]
    want(old, session.add(message("a"), guard=old)["epoch"], "epoch", bench.last)
    new = session.post("lease", {"holder": "two", "force": True}).ok()["epoch"]
    head = session.head()
    reply = session.append(message("late"), guard=old)
    reply.refused(409, "fenced")
    session.check_unchanged(head, reply)
    session.add(message("b"), guard=new)


@check("leases", needs="lease")
def lease_is_released(bench: Bench) -> None:
    """Anybody can take a released lease; only the holder's epoch releases it."""
    session = bench.open()
    epoch = session.post("lease", {"holder": "one", "ttl_s": 600}).ok()["epoch"]
    session.post("lease/release", {"epoch": epoch + 1}).refused(409, "fenced")
    session.post("lease/release", {"epoch": epoch}).ok()
    want("", bench.client.ask("GET", session.path).ok()["holder"], "holder", bench.last)
    session.post("lease", {"holder": "two"}).ok()


@check("leases", needs="lease")
def lease_is_kept_alive(bench: Bench) -> None:
    """A heartbeat appends nothing. With an older epoch it is 409 `fenced`, and the newest holder stays alive."""
    session = bench.open()
    old = session.post("lease", {"holder": "one", "ttl_s": 600}).ok()["epoch"]
    epoch = session.post("lease", {"holder": "two", "ttl_s": 600, "force": True}).ok()["epoch"]
    head = session.head()
    reply = session.post("lease/beat", {"epoch": epoch, "holder": "two", "ttl_s": 600})
    reply.want(200)
    session.check_unchanged(head, reply)
    session.post("lease/beat", {"epoch": old, "holder": "one"}).refused(409, "fenced")
    want("two", bench.client.ask("GET", session.path).ok()["holder"], "holder", bench.last)
