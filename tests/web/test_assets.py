"""The files of the page over HTTP, and their headers."""

import gzip
from pathlib import Path

import pytest

from tests.http.asking import Asker
from tests.http.conftest import Serve
from tests.web.pages import HTML, SCRIPT, build_page
from wakelog.errors import UnsupportedError
from wakelog.web.assets import POLICY, read_assets, require_page

PAGES = ("/", "/s/fix-auth", "/s/fix-auth/@12", "/s/a%2Fb/e7", "/live", "/cost?by=day", "/s/x/files/src/a.py", "/help")


@pytest.mark.usefixtures("built")
def test_every_page_is_the_same_file_and_needs_no_key(serve: Serve) -> None:
    asker = Asker(serve().url)
    for path in PAGES:
        reply = asker.get(path)
        assert (reply.status, reply.content) == (200, HTML), path
        assert reply.headers["cache-control"] == "no-store"


@pytest.mark.usefixtures("built")
def test_every_file_comes_with_the_policy(serve: Serve) -> None:
    asker = Asker(serve().url)
    for path in ("/", "/assets/index-1a2b.js", "/assets/index-3c4d.css", "/icon.svg"):
        headers = asker.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"


def test_the_policy_lets_nothing_in_from_elsewhere() -> None:
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("frame-ancestors") == "'none'"
    assert rules.pop("require-trusted-types-for") == "'script'"
    assert rules.pop("trusted-types") == "svelte-trusted-html"
    assert set(rules.values()) == {"'self'"}, "no host, no inline, no eval"


@pytest.mark.usefixtures("built")
def test_files_named_by_their_content_are_kept_and_packed(serve: Serve) -> None:
    asker = Asker(serve().url)
    plain = asker.get("/assets/index-1a2b.js")
    packed = asker.get("/assets/index-1a2b.js", {"Accept-Encoding": "gzip"})
    assert plain.content == gzip.decompress(packed.content) == SCRIPT
    assert "immutable" in plain.headers["cache-control"]
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "accept-encoding"
    assert "content-encoding" not in asker.get("/icon.svg", {"Accept-Encoding": "gzip"}).headers, "it is too small"


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "path", ["/notes.txt", "/assets/../notes.txt", "/assets/%2e%2e/%2e%2e/pages.py", "/assets/none.js", "/etc/passwd"]
)
def test_only_files_of_the_page_are_given_out(path: str, serve: Serve) -> None:
    reply = Asker(serve().url).get(path)
    assert (reply.status, reply.kind) == (404, "no-such-route")


@pytest.mark.usefixtures("built")
def test_a_head_is_a_page_without_its_body(serve: Serve) -> None:
    reply = Asker(serve().url).ask("HEAD", "/")
    assert (reply.status, reply.content) == (200, b"")
    assert reply.headers["content-length"] == str(len(HTML))


@pytest.mark.usefixtures("built")
def test_other_methods_on_a_page_are_the_apis_to_refuse(serve: Serve) -> None:
    assert Asker(serve().url).post("/", {}).kind == "no-such-route"


@pytest.mark.usefixtures("not_built")
def test_without_a_build_the_server_serves_and_has_no_page(serve: Serve) -> None:
    running = serve()
    assert Asker(running.url).get("/").kind == "no-such-route"
    assert Asker(running.url, running.key).get("/v1/info").status == 200


@pytest.mark.usefixtures("not_built")
def test_without_a_build_one_line_says_how_to_get_one() -> None:
    with pytest.raises(UnsupportedError, match="the page was not built") as told:
        require_page()
    assert "make page" in told.value.hint
    assert "\n" not in told.value.message + told.value.hint


def test_the_table_holds_the_kinds_of_files_that_it_knows(tmp_path: Path) -> None:
    build_page(tmp_path / "static")
    found = read_assets(tmp_path / "static")
    assert sorted(found) == ["assets/index-1a2b.js", "assets/index-3c4d.css", "icon.svg", "index.html"]
    assert [name for name, asset in found.items() if asset.is_fixed] == [
        "assets/index-1a2b.js",
        "assets/index-3c4d.css",
    ]
