"""Every page is also data: its path with `.json` leads to the route with the same content."""

import msgspec
import pytest

from tests.http.asking import Asker
from tests.http.conftest import Serve
from wakelog.web.addresses import is_page, twin_of

TWINS = [
    ("", "", "/v1/sessions"),
    ("", "agent=codex&since=7d&sort=x", "/v1/sessions?agent=codex&since=7d"),
    ("s/fix-auth", "", "/v1/sessions/fix-auth"),
    ("s/fix-auth/@12", "", "/v1/sessions/fix-auth/events?place=%4012"),
    ("s/fix-auth/@12.2", "", "/v1/sessions/fix-auth/events?place=%4012.2"),
    ("s/fix-auth/e1042", "", "/v1/sessions/fix-auth/events/e1042"),
    ("s/fix-auth/@12/state/plan/2", "", "/v1/sessions/fix-auth/state?at=%4012&pointer=%2Fplan%2F2"),
    ("s/fix-auth/diff/@11..@12", "kind=state", "/v1/sessions/fix-auth/diff?a=%4011&b=%4012"),
    ("s/fix-auth/context/@9", "", "/v1/sessions/fix-auth/context?at=%409"),
    ("s/fix-auth/files/src/auth.py", "at=@9", "/v1/sessions/fix-auth/file-diff?a=%400&b=%409&path=src%2Fauth.py"),
    ("s/fix-auth/why", "of=e2213", "/v1/sessions/fix-auth/why?what=e2213"),
    ("s/fix-auth/verify", "", "/v1/sessions/fix-auth/verify"),
    ("search", "q=cors", "/v1/search?q=cors"),
    ("cost", "by=day", "/v1/cost?by=day"),
    ("s/fix-auth/why", "of=e5&direction=effects", "/v1/sessions/fix-auth/taint?source=e5"),
    ("live", "needs=stuck", "/v1/live?needs=stuck"),
    ("compare", "b=y@2&a=x@1", "/v1/compare?side=x%401&side=y%402"),
    ("taint", "source=web:*", "/v1/taint?source=web%3A%2A"),
    ("audit", "", "/v1/holds"),
    ("store", "", "/v1/store"),
]


@pytest.mark.parametrize(("path", "query", "twin"), TWINS)
def test_a_page_has_a_twin(path: str, query: str, twin: str) -> None:
    pairs = [(name, value) for name, _, value in (part.partition("=") for part in query.split("&") if part)]
    segments = path.split("/")
    assert is_page(segments)
    assert twin_of(segments, pairs) == twin


def test_pages_without_data_have_none() -> None:
    assert twin_of(["search"], []) is None
    assert twin_of(["s", "x", "odd"], []) is None
    assert not is_page(["v1", "sessions"])


@pytest.mark.usefixtures("built")
def test_a_page_asked_for_as_json_leads_to_the_api(serve: Serve) -> None:
    running = serve()
    asker = Asker(running.url, running.key)
    for path, headers in (("/s/x.json", {}), ("/s/x", {"Accept": "application/json"})):
        reply = asker.get(path, headers)
        assert (reply.status, reply.headers["location"]) == (307, "/v1/sessions/x")
    assert asker.get("/sessions.json").headers["location"] == "/v1/sessions"
    assert asker.get("/help.json").headers["location"] == "/openapi.json"
    assert asker.get("/x/9f3a11c0.json").headers["location"] == "/v1/commits/9f3a11c0"
    assert asker.get("/search.json").kind == "no-such-route"
    assert asker.get("/s/x", {"Accept": "text/html, application/json"}).status == 200


@pytest.mark.usefixtures("built")
def test_a_list_comes_one_record_a_line(serve: Serve) -> None:
    running = serve()
    asker = Asker(running.url, running.key)
    for name in ("one", "two"):
        asker.post("/v1/sessions", {"name": name})
    reply = asker.get("/.ndjson")
    assert reply.headers["content-type"] == "application/x-ndjson"
    lines = [msgspec.json.decode(line) for line in reply.content.splitlines()]
    assert lines == asker.get("/v1/sessions").json["rows"]
    cut = asker.get("/v1/sessions?limit=1", {"Accept": "application/x-ndjson"})
    assert len(cut.content.splitlines()) == 1
    assert cut.headers["wakelog-next"] == asker.get("/v1/sessions?limit=1").json["next"]
    assert len(asker.get("/s/one/@.ndjson").content.splitlines()) == 1
    assert asker.get("/s/one.ndjson").kind == "bad-request"
    assert Asker(running.url, "").get("/.ndjson").status == 401


@pytest.mark.usefixtures("not_built")
def test_the_twins_are_there_without_a_build(serve: Serve) -> None:
    assert Asker(serve().url).get("/s/x.json").status == 307
