"""Problems: their form, and the ones that every server has."""

from __future__ import annotations

from wakelog.conformance.bench import Bench, Remote, event, message, want
from wakelog.conformance.kit import check
from wakelog.conformance.wire import ServerFault


@check("errors")
def no_such_session(bench: Bench) -> None:
    """A session that does not exist is 404 `session-not-found`, in every operation."""
    path = f"/v1/sessions/{bench.name()}"
    for verb in ("", "/head", "/events", "/state"):
        bench.client.ask("GET", path + verb).refused(404, "session-not-found")
    bench.client.ask("POST", f"{path}/events", {"events": [message("a")]}).refused(404, "session-not-found")


@check("errors")
def problems_have_groups(bench: Bench) -> None:
    """A problem has a `group`, the class of its kind, which tells a client what to do; `type` names the kind."""
    session = bench.open()
    for reply, status, group in (
        (session.get("events/e9"), 404, "not-found"),
        (session.append(message("a"), expect=9), 409, "conflict"),
        (session.append(event("turn.ended")), 409, "not-allowed"),
        (session.append(event("no.such.kind")), 400, "invalid-input"),
    ):
        problem = reply.refused(status)
        got = (problem["group"], problem["type"])
        want((group, f"urn:wakelog:error:{problem['kind']}"), got, "group and type", reply.request)
    want(True, session.append(message("a"), expect=9).json.get("retryable"), "retryable of a conflict", bench.last)


@check("errors")
def unknown_fields_are_refused(bench: Bench) -> None:
    """An unknown field or parameter is refused with 400 `bad-request`, never ignored."""
    session = bench.open()
    name = bench.name()
    opened = bench.client.ask("POST", "/v1/sessions", {"name": name, "gaol": "a typo"})
    if opened.status == 200:
        bench.keep(Remote(bench.client, opened.json))
    opened.refused(400, "bad-request")
    bench.client.ask("GET", f"/v1/sessions/{name}/head").refused(404, "session-not-found")
    session.get("events", afetr=3).refused(400, "bad-request")
    reply = session.append(message("a"), expcet=1)
    reply.refused(400, "bad-request")
    session.check_unchanged(session.opened, reply)


@check("errors")
def bad_bodies_are_refused(bench: Bench) -> None:
    """A body that is not valid JSON of the right shape is 400 `bad-request`; an unknown media type is 415
    `wrong-media`."""
    session = bench.open()
    path = f"{session.path}/events"
    for raw in (b'{"events": [', b"[]", b'{"events": []}', b'{"events": [{"kind": 1}]}', b"\xff"):
        reply = bench.client.ask("POST", path, raw=raw, headers={"content-type": "application/json"})
        reply.refused(400, "bad-request")
        session.check_unchanged(session.opened, reply)
    bench.client.ask("POST", path, raw=b"{}", headers={"content-type": "text/plain"}).refused(415, "wrong-media")


@check("errors")
def routes_and_methods(bench: Bench) -> None:
    """An unknown path is 404 `no-such-route`; a wrong method on a known path is 405 with `Allow`."""
    bench.client.ask("GET", "/v1/no-such-thing").refused(404, "no-such-route")
    reply = bench.client.ask("PUT", "/v1/sessions")
    # Not `refused`, which takes a 405 for a missing operation.
    want(405, reply.status, "status", reply.request)
    if "POST" not in reply.headers.get("allow", ""):
        raise ServerFault("an Allow header with POST", reply.headers.get("allow", "none"), reply.request)


@check("errors")
def keys_are_asked_for(bench: Bench) -> None:
    """Without a valid key, every operation on sessions is 401 and tells nothing more."""
    session = bench.open()
    for path in ("/v1/info", session.path, f"{session.path}/events"):
        bench.client.ask("GET", path, with_key=False).refused(401, "key-missing")
        wrong = {"authorization": "Bearer wlk_none_none"}
        reply = bench.client.ask("GET", path, headers=wrong, with_key=False)
        reply.refused(401, "key-refused")
        if session.id.encode() in reply.content:
            raise ServerFault("nothing about the session", reply.shown, reply.request)
    reply = bench.client.ask("POST", f"{session.path}/events", {"events": [message("a")]}, with_key=False)
    reply.refused(401, "key-missing")
    session.check_unchanged(session.opened, reply)
