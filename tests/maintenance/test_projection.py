"""Projectors of many namespaces in one process: one that fails does not end the others."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import wakelog
from wakelog import errors
from wakelog.maintenance import projection
from wakelog.maintenance.projection import NamespaceProjections, Projection
from wakelog.store import Store

HUNG_S = 60


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Store]]:
    monkeypatch.setattr(projection, "NEW_NAMESPACES_S", 0.01)
    monkeypatch.setattr(projection, "FAILED_S", 0.01)
    found = {name: wakelog.open(tmp_path / name) for name in ("bad", "good")}
    for store in found.values():
        store.session("s").fact("k", 1)
    yield found
    for store in found.values():
        store.close()


def test_a_projector_that_fails_is_started_again_and_the_others_go_on(stores: dict[str, Store]) -> None:
    told: list[tuple[str, str]] = []
    stepped = {name: threading.Event() for name in stores}
    broken = [errors.CorruptLogError("a row is damaged"), errors.NotAllowedError("no"), RuntimeError("a bug")]

    def open_one(name: str) -> Store:
        if name == "bad" and len(broken) > 1:
            raise broken.pop()
        return stores[name]

    def step(name: str, now: Projection) -> None:
        if name == "bad" and broken:
            raise broken.pop()  # in the projector's own thread
        stepped[name].set()

    running = NamespaceProjections(lambda: list(stores), open_one)
    thread = threading.Thread(target=running.run, args=(step, lambda *what: told.append(what)))
    thread.start()
    assert all(each.wait(HUNG_S) for each in stepped.values())
    running.stop()
    thread.join(HUNG_S)
    assert not thread.is_alive()
    assert told == [("bad", "a bug"), ("bad", "no"), ("bad", "a row is damaged")]
    assert [len(store.index.sessions().rows) for store in stores.values()] == [1, 1]


def test_when_all_projectors_have_failed_the_error_is_raised(stores: dict[str, Store]) -> None:
    told: list[str] = []

    def fail(name: str, now: Projection) -> None:
        raise errors.NotAllowedError(f"not {name}")

    running = NamespaceProjections(lambda: ["good"], lambda name: stores[name])
    with pytest.raises(errors.NotAllowedError, match="not good"):
        running.run(fail, lambda _, what: told.append(what))
    assert told == ["not good"]
