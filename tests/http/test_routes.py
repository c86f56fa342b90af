"""Every route of the table: it answers, it asks for the right key, and it shows nothing of another namespace."""

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.every import every
from tests.http.asking import Asker, Reply
from tests.http.schemas import check_reply, check_request
from tests.http.world import EXAMPLES, MARK, Example, World
from wakelog.http.app import App
from wakelog.http.guards import Rates
from wakelog.http.keys import SCOPES, Key, make_key
from wakelog.http.routes import Route, all_routes
from wakelog.http.server import RunningServer

ROUTES = {route.name: route for route in all_routes()}
ABOUT_A_SPACE = {name: route for name, route in ROUTES.items() if route.reach == "space"}
STREAMS = {name for name, route in ROUTES.items() if route.media == "text/event-stream"}
_numbers = count()


def key_for(running: RunningServer, scope: Any, *spaces: str) -> str:
    """A key in the server's file."""
    key, token = make_key(f"k{next(_numbers)}", scope, spaces, now=running.server.clock())
    running.server.keys.add(key)
    return token


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    from wakelog.http.server import serving
    from wakelog.http.state import Settings

    with serving(Settings(url=str(tmp_path_factory.mktemp("served")), rate=0, keepalive_s=0.2)) as running:
        running.server.failures = Rates(0, 0)
        yield running


@pytest.fixture(scope="module")
def calm(running: RunningServer) -> Iterator[World]:
    """A world that is only read."""
    made = World(running, "calm")
    yield made
    made.close()


@pytest.fixture
def world(request: pytest.FixtureRequest, running: RunningServer, calm: World) -> Iterator[World]:
    """A world for one test; for routes that only read, a shared one."""
    name = request.node.callspec.params["name"]
    if ROUTES[name].scope == "read" and EXAMPLES[name](calm).before is None:
        yield calm
        return
    made = World(running, f"a{next(_numbers)}")
    yield made
    made.close()


def ask(route: Route, example: Example, asker: Asker) -> Reply:
    path = example.full_path(route)
    if route.name in STREAMS:
        return first_frames(asker, path, example)
    return asker.ask(route.method, path, example.body, **example.query)


def first_frames(asker: Asker, path: str, example: Example) -> Reply:
    """The first events of a tail, up to its first keep-alive comment."""
    from tests.http.tailing import Tail

    with Tail(asker, path, **example.query) as tail:
        return Reply(tail.status, tail.headers, tail.until_quiet() if tail.status == 200 else tail.rest())


def test_every_route_has_an_example_and_every_example_a_route() -> None:
    assert set(EXAMPLES) == set(ROUTES)
    assert len(ROUTES) == len(all_routes()), "two routes have the same name"


def test_every_route_is_documented() -> None:
    silent = [name for name, route in ROUTES.items() if not route.doc.endswith(".")]
    assert not silent


@pytest.mark.parametrize("name", [name for name in ROUTES if name not in ABOUT_A_SPACE])
def test_it_answers_what_it_is_asked_as_documented(name: str, running: RunningServer, world: World) -> None:
    """Those about a namespace do so below, with a key of just the right scope."""
    example = EXAMPLES[name](world)
    if example.before is not None:
        example.before(world)
    reply = ask(ROUTES[name], example, Asker(running.url, running.key))
    _check_answer(ROUTES[name], example, reply)


def _check_answer(route: Route, example: Example, reply: Reply) -> None:
    assert reply.status == example.status, reply.content[:500]
    check_request(route, example.body)
    check_reply(route, reply)


@every("name", [n for n, r in ROUTES.items() if r.reach != "anyone"])
def test_without_a_key_it_says_only_that_one_is_needed(name: str, running: RunningServer, victim: World) -> None:
    route, example = ROUTES[name], EXAMPLES[name](victim)
    url = victim.url if route.reach == "space" else running.url
    for key in ("", "wlk_aaaaaaaa_wrong", "nonsense"):
        reply = ask(route, example, Asker(url, key))
        assert reply.status == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        assert MARK not in reply.content.decode()


@pytest.mark.parametrize("name", ABOUT_A_SPACE)
def test_each_scope_is_answered_as_documented_and_may_do_no_more_than_it_is_for(
    name: str, running: RunningServer, world: World
) -> None:
    route = ROUTES[name]
    too_little = SCOPES[: SCOPES.index(route.scope)]
    before = world.store.engine.head(world.session.id)
    example = EXAMPLES[name](world)
    for scope in too_little:
        reply = ask(route, example, Asker(world.url, key_for(running, scope, world.space)))
        assert (reply.status, reply.kind) == (403, "scope-missing")
        check_reply(route, reply)
    assert route.scope == "read" or name == "expand" or world.store.engine.head(world.session.id) == before
    if example.before is not None:
        example.before(world)
    reply = ask(route, example, Asker(world.url, key_for(running, route.scope, world.space)))
    _check_answer(route, example, reply)


@pytest.mark.parametrize("name", ["namespaces", "metrics"])
def test_what_is_about_the_whole_server_needs_a_key_that_sees_all_of_it(name: str, running: RunningServer) -> None:
    path = ROUTES[name].full_path
    assert Asker(running.url, key_for(running, "admin", "default")).get(path).status == 403
    assert Asker(running.url, key_for(running, "read", "*")).get(path).status == 200


# Isolation


@pytest.fixture(scope="module")
def victim(running: RunningServer) -> Iterator[World]:
    made = World(running, "victim")
    yield made
    made.close()


@every("name", ABOUT_A_SPACE)
def test_a_key_of_another_namespace_cannot_tell_it_from_one_that_is_not_there(
    name: str, running: RunningServer, victim: World
) -> None:
    route, example = ROUTES[name], EXAMPLES[name](victim)
    asker = Asker(f"{running.url}/ns/victim", stranger(running))
    nowhere = Asker(f"{running.url}/ns/nowhere", stranger(running))
    seen, unseen = ask(route, example, asker), ask(route, example, nowhere)
    assert (seen.status, seen.kind) == (404, "namespace-not-found")
    assert _without_names(seen, "victim") == _without_names(unseen, "nowhere")


@every("name", ABOUT_A_SPACE)
def test_nothing_of_one_namespace_is_seen_or_changed_from_another(
    name: str, running: RunningServer, victim: World
) -> None:
    """The same request, with all its names and ids, from within another namespace by a key that may do everything
    there."""
    route, example = ROUTES[name], EXAMPLES[name](victim)
    before = _content(victim)
    key = key_for(running, "admin", f"thief{next(_numbers)}")
    reply = ask(route, example, Asker(running.url, key))
    asked = repr((example.path, example.query, example.body)).encode()
    for mark in (victim.mark.encode(), victim.session.id.encode(), victim.fork.id.encode()):
        if mark not in asked and name not in BRINGS_IT:
            assert mark not in reply.content, f"{mark!r} came out of another namespace"
    if "session" in example.path:
        assert reply.status == 404, reply.content[:300]
    assert _content(victim) == before


BRINGS_IT = {"take_bundle"}
"""Requests that carry the content themselves."""


def test_a_key_without_a_namespace_in_the_address_goes_to_its_own(running: RunningServer, victim: World) -> None:
    key = key_for(running, "admin", "victim")
    assert Asker(running.url, key).get("/v1/info").json["namespace"] == "victim"
    assert Asker(running.url, running.key).get("/v1/info").json["namespace"] == "default"
    assert Asker(running.url, key).get("/v1/search", q=MARK).json["rows"]


@pytest.mark.parametrize("name", ["../victim", "..", "a/b", "A", "", "x" * 64, ".hidden", "a b", "a%00b"])
def test_a_namespace_cannot_be_named_so_that_it_leads_elsewhere(name: str, running: RunningServer) -> None:
    from tests.http.asking import segment

    reply = Asker(f"{running.url}/ns/{segment(name)}", running.key).post("/v1/namespace")
    assert reply.status in (400, 404)


def test_a_namespace_is_made_by_who_may_write_and_only_looked_at_by_who_may_read(running: RunningServer) -> None:
    reader, writer = key_for(running, "read", "later"), key_for(running, "write", "later")
    assert Asker(running.url, reader).get("/v1/info").kind == "namespace-not-found"
    assert Asker(running.url, writer).get("/v1/info").kind == "namespace-not-found"
    assert Asker(running.url, writer).post("/v1/namespace").json["namespace"] == "later"
    assert Asker(running.url, reader).get("/v1/info").status == 200
    assert "later" in Asker(running.url, running.key).get("/v1/namespaces").json["namespaces"]


def stranger(running: RunningServer) -> str:
    return key_for(running, "admin", "strangers")


def _without_names(reply: Reply, name: str) -> Any:
    return reply.content.replace(name.encode(), b"NAME")


def _content(world: World) -> Any:
    engine = world.store.engine
    return [(head, list(engine.read(head.session))) for head in engine.sessions()], engine.find(world.session.name)


def test_routes_are_found_by_their_segments_as_they_were_sent(running: RunningServer) -> None:
    asker = Asker(running.url, running.key)
    for name in ("a/b", "a%2Fb", "ü ✓", "events", "head", "?x=1", "#"):
        assert asker.post("/v1/sessions", {"name": name}).status == 200
        from tests.http.asking import segment

        assert asker.get(f"/v1/sessions/{segment(name)}/head").json["name"] == name
    assert asker.get("/v1/sessions/a/b/head").kind == "no-such-route"
    assert asker.post("/v1/sessions", {"name": "e12"}).kind == "bad-name", "an event, wherever a place can stand"


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/nope", "/v1/sessions/", "/v1//head", "/v1/sessions/x/%ff", "/ns"])
def test_what_is_no_route_is_told(path: str, running: RunningServer) -> None:
    reply = Asker(running.url, running.key).get(path)
    assert (reply.status, reply.kind) == (404, "no-such-route")


def test_a_method_that_a_route_does_not_have_is_told_with_those_it_has(running: RunningServer) -> None:
    for path, allowed in (("/v1/sessions", "GET, POST"), ("/v1/sessions/x/head", "GET"), ("/healthz", "GET")):
        reply = Asker(running.url, running.key).ask("PUT", path)
        assert (reply.status, reply.headers["allow"]) == (405, allowed)


def test_the_server_says_who_it_talks_to_only_to_its_log(running: RunningServer) -> None:
    reply = Asker(running.url, running.key).get("/v1/info", headers={"X-Request-Id": "mine-1"})
    assert reply.headers["x-request-id"] == "mine-1"
    assert "server" not in reply.headers
    strange = Asker(running.url, running.key).get("/v1/info", headers={"X-Request-Id": "bad id; x"})
    assert strange.headers["x-request-id"] != "bad id; x"


def test_keys_are_compared_as_values() -> None:
    one, token = make_key("n", "read", ("a",), now=1)
    assert isinstance(one, Key)
    assert one.sha256 not in token


def test_a_connection_that_is_not_http_is_refused(running: RunningServer) -> None:
    async def nothing(*_: Any) -> Any:
        raise AssertionError("nothing is read or sent")

    with pytest.raises(ValueError, match="answers http, not websocket"):
        asyncio.run(App(running.server)({"type": "websocket"}, nothing, nothing))
