"""Namespaces: what another key must not see."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from wakelog.conformance.bench import Bench, message, want
from wakelog.conformance.kit import check
from wakelog.conformance.wire import ServerFault, WireClient


def _other(bench: Bench) -> WireClient:
    """The other key's client, after checking that its namespace exists and is another one."""
    assert bench.other is not None
    bench.open(client=bench.other)  # the first request that writes makes the namespace
    mine, theirs = bench.info["namespace"], bench.other.ask("GET", "/v1/info").ok()["namespace"]
    if mine == theirs:
        raise ServerFault("a second key for another namespace", f"both are for {mine!r}", bench.other.last)
    return bench.other


@check("namespaces", two_keys=True)
def other_key_sees_no_session(bench: Bench) -> None:
    """For a key of another namespace a session is 404 `session-not-found`, by id and by name, in every operation."""
    other = _other(bench)
    session = bench.open()
    head = session.add(message("secret"))
    for word in (session.id, session.name):
        path = f"/v1/sessions/{quote(word, safe='')}"
        for verb in ("", "/head", "/events", "/state", "/events/e2", "/messages", "/tail", "/bundle", "/verify"):
            _check_hidden(other, "GET", path + verb)
        for verb, body in (
            ("events", {"events": [message("x")]}),
            ("fork", {}),
            ("close", {}),
            ("rewind", {"to": "e1"}),
        ):
            _check_hidden(other, "POST", f"{path}/{verb}", body)
        _check_hidden(other, "DELETE", path)
    now = session.head()
    want((head["seq"], head["status"]), (now["seq"], now["status"]), "head", bench.last)


def _check_hidden(other: WireClient, method: str, path: str, body: object = None) -> None:
    reply = other.ask(method, path, body)
    if reply.status == 403 or reply.json.get("kind") == "no-such-route":
        return  # not offered, or not to this key, which reveals nothing about the session
    reply.refused(404, "session-not-found")


@check("namespaces", two_keys=True)
def names_are_apart(bench: Bench) -> None:
    """The same name in two namespaces is two sessions."""
    other = _other(bench)
    mine = bench.open()
    mine.add(message("mine"))
    theirs = bench.open(mine.name, client=other)
    if mine.id == theirs.id or theirs.opened["seq"] != 1:
        raise ServerFault("a session of their own", f"{theirs.id} at {theirs.opened['seq']}", other.last)


@check("namespaces", needs="list", two_keys=True)
def lists_are_apart(bench: Bench) -> None:
    """Lists show only the key's own namespace."""
    other = _other(bench)
    session = bench.open()
    reply = other.ask("GET", f"/v1/sessions?{urlencode({'name': session.name})}")
    want([], reply.ok()["rows"], "rows", reply.request)


@check("namespaces", needs="feed", two_keys=True)
def feeds_are_apart(bench: Bench) -> None:
    """The feed shows only the key's own namespace."""
    other = _other(bench)
    theirs = bench.open(client=other)
    with other.tail("/v1/tail") as tail:
        mine = bench.open()
        mine.add(message("secret"))
        theirs.add(message("end"))
        while (frame := tail.take()).json["session"] != theirs.id:
            if frame.json["session"] == mine.id:
                raise ServerFault("no event of another namespace", frame.data, tail.request)


@check("namespaces", two_keys=True)
def other_namespace_is_not_there(bench: Bench) -> None:
    """A namespace of another key is 404 `namespace-not-found`, with the same text whether it exists or not."""
    other = _other(bench)
    if other.base:
        return  # the address already names a namespace, and the checks above cover it
    there, not_there = bench.info["namespace"], bench.name()
    problems = []
    for name in (there, not_there):
        reply = other.ask("GET", f"/ns/{name}/v1/info")
        problem = reply.refused(404, "namespace-not-found")
        problems.append({k: v.replace(name, "NAME") if isinstance(v, str) else v for k, v in problem.items()})
    want(problems[1], problems[0], "problem", other.last)
