"""Several servers on one NATS store: keys and namespaces belong to the cluster."""

import pytest

import wakelog
from tests.engines.nats_server import NatsServer
from tests.http.asking import Asker
from tests.http.conftest import Serve
from wakelog.errors import ConflictError, NotFoundError
from wakelog.http.keys import ANY, make_key
from wakelog.http.namespaces import NamespaceStores


@pytest.fixture
def url(nats: NatsServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A separate store, because keys belong to the whole store."""
    name = tmp_path_factory.mktemp("cluster").name
    return nats.url.replace("/wakelog?", f"/served-{name}?")


def test_what_one_server_knows_all_know(url: str, serve: Serve) -> None:
    a, b = serve(url, rate=0), serve(url, rate=0)
    key, token = make_key("agents", "write", (ANY,), now=1)
    keys = NamespaceStores(url).keys()
    keys.add(key)
    with (
        wakelog.open(f"{a.url}/ns/team", key=token) as through_a,
        wakelog.open(f"{b.url}/ns/team", key=token) as through_b,
    ):
        session = through_a.session("s")
        session.fact("k", 1)
        assert through_b.session("s").id == session.id
        assert through_b.session("s").head.seq == session.head.seq
    assert Asker(b.url, token).get("/v1/sessions").status == 200
    keys.revoke("agents")
    assert keys.all() == []
    keys.close()


def test_a_key_is_added_once_changed_as_it_was_and_dropped(url: str) -> None:
    first, second = NamespaceStores(url), NamespaceStores(url)
    with pytest.raises(NotFoundError):
        first.keys().revoke("nobody")
    key, _ = make_key("agents", "read", ("team",), now=1)
    first.keys().add(key)
    with pytest.raises(ConflictError):
        second.keys().add(make_key("agents", "admin", (ANY,), now=2)[0])
    shared = second.shared
    assert shared is not None
    [(was, _)] = shared.keys().items()
    assert shared.change_key(key, was)
    assert not shared.change_key(key, b"something else")
    assert not shared.drop_key(key, b"something else")
    assert shared.drop_key(key, next(iter(shared.keys())))
    for each in (first, second):
        each.close()


def test_namespaces_are_those_that_were_made_or_used(url: str) -> None:
    spaces = NamespaceStores(url)
    with pytest.raises(NotFoundError):
        spaces.get("team")
    spaces.get("team", create=True)
    with wakelog.open(f"{url}&namespace=beside") as store:
        store.session("s")
    other = NamespaceStores(url)
    assert other.names() == ["beside", "default", "team"]
    assert next(iter(other.get("beside").store.sessions())).name == "s"
    for each in (spaces, other):
        each.close()
