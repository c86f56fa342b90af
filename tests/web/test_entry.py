"""How a browser signs in, and what others on the same machine cannot do with its cookie."""

import logging

import pytest

from tests.http.asking import Asker
from tests.http.conftest import Serve
from wakelog.http.server import RunningServer, serving
from wakelog.http.state import Settings
from wakelog.web.entry import Tickets, cookie_name, entry_address, key_in

NOTE = {"name": "s"}


def enter(running: RunningServer, key: str = "") -> tuple[str, str]:
    """Sends a key, and returns the cookie's pair and the whole header."""
    reply = Asker(running.url, key or running.key).post("/enter")
    assert reply.status == 204, reply.content
    pair, _, rest = reply.headers["set-cookie"].partition(";")
    return pair, rest


def own(running: RunningServer, **headers: str) -> Asker:
    """The page itself, as a browser sends its requests."""
    return Asker(
        running.url, Cookie=enter(running)[0], Origin=running.url, **{"Sec-Fetch-Site": "same-origin", **headers}
    )


def test_a_key_becomes_a_cookie_that_only_the_page_sends(serve: Serve) -> None:
    running = serve()
    pair, rest = enter(running)
    assert pair == f"wakelog-{running.url.rpartition(':')[2]}={running.key}"
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {each.strip() for each in rest.split(";")}
    page = own(running)
    assert page.get("/v1/info").status == 200
    assert page.post("/v1/sessions", NOTE).status == 200


def test_a_wrong_key_gets_no_cookie(serve: Serve) -> None:
    reply = Asker(serve().url, "wlk_aaaa_no").post("/enter")
    assert (reply.status, reply.kind) == (401, "key-refused")
    assert "set-cookie" not in reply.headers


def test_without_a_key_there_is_only_the_page_and_no_data(serve: Serve) -> None:
    running = serve()
    assert Asker(running.url).get("/v1/sessions").kind == "key-missing"
    assert Asker(running.url, Cookie=f"{cookie_name('127.0.0.1:1')}={running.key}").get("/v1/sessions").status == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_port_cannot_use_the_cookie(site: str, serve: Serve) -> None:
    """A browser sends the cookie to all ports of this machine, which are one site."""
    running = serve()
    cookie = enter(running)[0]
    stranger = Asker(running.url, Cookie=cookie, **{"Sec-Fetch-Site": site})
    assert stranger.get("/v1/info").kind == "key-missing"
    with_origin = Asker(running.url, Cookie=cookie, Origin="http://127.0.0.1:9")
    assert with_origin.post("/v1/sessions", NOTE).kind == "wrong-origin"


def test_a_change_with_the_cookie_must_say_that_it_is_from_the_page(serve: Serve) -> None:
    running = serve()
    nameless = Asker(running.url, Cookie=enter(running)[0])
    assert nameless.get("/v1/info").status == 200
    assert nameless.post("/v1/sessions", NOTE).kind == "key-missing"


def test_a_rebound_name_gets_neither_page_nor_data(serve: Serve) -> None:
    running = serve()
    cookie = enter(running)[0]
    for path in ("/", "/v1/info"):
        reply = Asker(running.url, Cookie=cookie).get(path, {"Host": "evil.example"})
        assert (reply.status, reply.kind) == (403, "wrong-host")
    assert Asker(running.url, running.key).ask("POST", "/enter", headers={"Host": "evil.example"}).kind == "wrong-host"


def test_leaving_ends_the_cookie(serve: Serve) -> None:
    running = serve()
    reply = own(running).post("/leave")
    assert reply.status == 204
    assert "Max-Age=0" in reply.headers["set-cookie"]


def test_a_ticket_is_taken_once(serve: Serve) -> None:
    running = serve()
    ticket = running.server.tickets.make(running.key)
    assert enter(running, ticket)[0].endswith(running.key)
    assert Asker(running.url, ticket).post("/enter").status == 401
    assert Asker(running.url, running.server.tickets.make(running.key)).get("/v1/info").status == 401, "it is no key"


def test_a_ticket_that_nobody_made_is_nothing() -> None:
    tickets = Tickets()
    tickets.make("key")
    assert tickets.take("once-x") == ""
    assert tickets.take("wlk_a_b") == "wlk_a_b"


def test_a_page_that_may_only_read_changes_nothing(tmp_path) -> None:
    with serving(Settings(url=str(tmp_path / "store")), launch_scope="read") as running:
        page = own(running)
        assert page.get("/v1/sessions").status == 200
        reply = page.post("/v1/sessions", NOTE)
        assert (reply.status, reply.kind) == (403, "scope-missing")


def test_no_log_line_holds_the_key(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    running = serve()
    secret = running.key.split("_", 2)[2]  # the secret itself may hold the sign that parts a key
    with caplog.at_level(logging.DEBUG):
        own(running).get("/v1/info")
        Asker(running.url, running.key).post("/enter")
    said = [str(vars(record)) for record in caplog.records if record.name.startswith("wakelog")]
    assert said
    assert not [line for line in said if secret in line]


def test_the_address_has_the_key_where_no_server_sees_it() -> None:
    assert entry_address("http://127.0.0.1:1", "a b", "/s/x") == "http://127.0.0.1:1/s/x#key=a%20b"


def test_the_cookie_of_another_port_is_not_taken() -> None:
    assert key_in("a=1; wakelog-80=x; wakelog-81=y", "127.0.0.1:81") == "y"
    assert key_in("a=1", "127.0.0.1:81") == ""
    assert cookie_name("wakelog.example") == "wakelog-page"
