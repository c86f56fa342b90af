"""The artifact and memory services, held against ADK's own in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.artifacts import InMemoryArtifactService
from google.adk.errors.input_validation_error import InputValidationError
from google.adk.events import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

import wakelog
from tests.adapters.store_urls import store_url as store_url
from tests.engines.on_postgres import postgres_url
from wakelog.adapters.adk import WakelogArtifactService, WakelogMemoryService
from wakelog.http.server import serving
from wakelog.http.state import Settings
from wakelog.store import Store

ME: Any = {"app_name": "shop", "user_id": "ann"}
HERE: Any = {**ME, "session_id": "s1"}


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with wakelog.open(store_url) as opened:
        yield opened


@pytest.fixture(params=["adk", "sqlite", "postgres", "http"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store | None]:
    """A store of ours, or None for ADK's own services."""
    if request.param == "adk":
        yield None
    elif request.param == "http":
        with serving(Settings(url=str(tmp_path / "served"), rate=0)) as running:
            monkeypatch.setenv("WAKELOG_KEY", running.key)
            with wakelog.open(running.url) as opened:
                yield opened
    else:
        url = postgres_url(request, tmp_path) if request.param == "postgres" else str(tmp_path / "store")
        with wakelog.open(url) as opened:
            yield opened


@pytest.fixture
def artifacts(place: Store | None) -> Any:
    return InMemoryArtifactService() if place is None else WakelogArtifactService(place)


@pytest.fixture
def memory(place: Store | None) -> Any:
    return InMemoryMemoryService() if place is None else WakelogMemoryService(place)


def text(words: str) -> types.Part:
    return types.Part(text=words)


def test_versions_of_an_artifact_are_kept_and_read_back(artifacts) -> None:
    async def test() -> None:
        picture = types.Part(inline_data=types.Blob(mime_type="image/png", data=bytes(range(256))))
        assert await artifacts.save_artifact(**HERE, filename="a.txt", artifact=text("one")) == 0
        assert await artifacts.save_artifact(**HERE, filename="a.txt", artifact={"text": "two"}) == 1
        assert await artifacts.save_artifact(**HERE, filename="b.png", artifact=picture) == 0
        assert await artifacts.load_artifact(**HERE, filename="a.txt") == text("two")
        assert await artifacts.load_artifact(**HERE, filename="a.txt", version=0) == text("one")
        assert await artifacts.load_artifact(**HERE, filename="a.txt", version=2) is None
        assert await artifacts.load_artifact(**HERE, filename="b.png") == picture
        assert await artifacts.load_artifact(**HERE, filename="c") is None
        assert await artifacts.list_versions(**HERE, filename="a.txt") == [0, 1]
        assert await artifacts.list_versions(**HERE, filename="c") == []
        assert await artifacts.list_artifact_keys(**HERE) == ["a.txt", "b.png"]
        assert await artifacts.list_artifact_keys(**{**HERE, "session_id": "s2"}) == []

    asyncio.run(test())


def test_artifacts_of_a_user_are_seen_from_every_session(artifacts) -> None:
    async def test() -> None:
        await artifacts.save_artifact(**HERE, filename="user:x", artifact=text("shared"))
        await artifacts.save_artifact(**HERE, filename="own", artifact=text("own"))
        other = {**HERE, "session_id": "s2"}
        assert await artifacts.load_artifact(**other, filename="user:x") == text("shared")
        assert await artifacts.load_artifact(**ME, filename="user:x") == text("shared")
        assert await artifacts.list_artifact_keys(**other) == ["user:x"]
        assert await artifacts.list_artifact_keys(**ME) == ["user:x"]
        assert await artifacts.list_artifact_keys(**HERE) == ["own", "user:x"]
        with pytest.raises(InputValidationError):
            await artifacts.save_artifact(**ME, filename="own", artifact=text("no session"))

    asyncio.run(test())


def test_a_deleted_artifact_is_gone_and_its_name_is_free(artifacts) -> None:
    async def test() -> None:
        await artifacts.save_artifact(**HERE, filename="a", artifact=text("one"))
        await artifacts.delete_artifact(**HERE, filename="a")
        await artifacts.delete_artifact(**HERE, filename="never")
        assert await artifacts.load_artifact(**HERE, filename="a") is None
        assert await artifacts.list_artifact_keys(**HERE) == []
        assert await artifacts.save_artifact(**HERE, filename="a", artifact=text("two")) == 0

    asyncio.run(test())


def test_a_version_tells_its_metadata(artifacts) -> None:
    async def test() -> None:
        saved = await artifacts.save_artifact(
            **HERE, filename="a", artifact=text("one"), custom_metadata={"by": ["x", 1]}
        )
        await artifacts.save_artifact(**HERE, filename="a", artifact=text("two"))
        first, last = await artifacts.list_artifact_versions(**HERE, filename="a")
        assert (first.version, first.mime_type, first.custom_metadata) == (saved, "text/plain", {"by": ["x", 1]})
        assert (last.version, last.custom_metadata) == (1, {})
        assert first.create_time <= last.create_time
        assert first.canonical_uri != last.canonical_uri
        assert (await artifacts.get_artifact_version(**HERE, filename="a")).version == 1
        assert (await artifacts.get_artifact_version(**HERE, filename="a", version=0)).version == 0
        assert await artifacts.get_artifact_version(**HERE, filename="a", version=7) is None
        assert await artifacts.list_artifact_versions(**HERE, filename="b") == []

    asyncio.run(test())


def reference(path: str) -> types.Part:
    return types.Part(file_data=types.FileData(file_uri=f"artifact://apps/{path}", mime_type="text/plain"))


def test_references_are_followed_within_their_scope(artifacts) -> None:
    async def test() -> None:
        place = "shop/users/ann/sessions/s1/artifacts"
        await artifacts.save_artifact(**HERE, filename="a", artifact=text("one"))
        await artifacts.save_artifact(**HERE, filename="b", artifact=reference(f"{place}/a/versions/0"))
        assert await artifacts.load_artifact(**HERE, filename="b") == text("one")
        elsewhere = reference("shop/users/bob/sessions/s1/artifacts/a/versions/0")
        with pytest.raises(InputValidationError):
            await artifacts.save_artifact(**HERE, filename="c", artifact=elsewhere)
        await artifacts.save_artifact(**HERE, filename="loop", artifact=reference(f"{place}/loop/versions/0"))
        with pytest.raises(InputValidationError):
            await artifacts.load_artifact(**HERE, filename="loop")
        far = types.Part(file_data=types.FileData(file_uri="gs://bucket/x", mime_type="text/csv"))
        await artifacts.save_artifact(**HERE, filename="far", artifact=far)
        assert await artifacts.load_artifact(**HERE, filename="far") == far
        with pytest.raises(InputValidationError):
            await artifacts.save_artifact(**HERE, filename="d", artifact=types.Part())

    asyncio.run(test())


def test_a_deleted_artifact_leaves_nothing_of_its_content(tmp_path: Path) -> None:
    async def test() -> None:
        service = WakelogArtifactService(tmp_path / "store")
        await service.save_artifact(**HERE, filename="a", artifact=text("a word that must go"))
        await service.delete_artifact(**HERE, filename="a")
        await service.close()

    asyncio.run(test())
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"word that must go" not in held


def said(words: str, id: str, author: str = "user") -> Event:
    return Event(id=id, author=author, invocation_id="i", content=types.Content(role="user", parts=[text(words)]))


def session(*events: Event, id: str = "s1") -> Session:
    return Session(id=id, **ME, events=list(events))


def found(memory: Any, query: str, **who: Any) -> list[str]:
    answer = asyncio.run(memory.search_memory(**{**ME, **who}, query=query))
    return [entry.id for entry in answer.memories]


def test_memory_finds_what_was_said_by_its_words_best_first(memory) -> None:
    asyncio.run(
        memory.add_session_to_memory(
            session(said("I like green tea", "1"), said("Green is a colour", "2", "agent"), said("Coffee", "3"))
        )
    )
    assert found(memory, "green TEA") == ["1", "2"]
    assert found(memory, "tee") == []
    assert found(memory, "green", user_id="bob") == []
    entry = asyncio.run(memory.search_memory(**ME, query="colour")).memories[0]
    assert (entry.author, entry.content.parts[0].text) == ("agent", "Green is a colour")
    assert entry.timestamp


def test_a_session_that_is_added_again_is_remembered_once(memory) -> None:
    asyncio.run(memory.add_session_to_memory(session(said("tea", "1"))))
    asyncio.run(memory.add_session_to_memory(session(said("tea", "1"), said("more tea", "2"))))
    asyncio.run(memory.add_events_to_memory(**ME, session_id="s1", events=[said("tea", "1"), said("last tea", "3")]))
    assert sorted(found(memory, "tea")) == ["1", "2", "3"]


def test_a_deleted_memory_does_not_come_back_with_its_session(memory) -> None:
    asyncio.run(memory.add_session_to_memory(session(said("tea", "1"), said("more tea", "2"))))
    asyncio.run(memory.delete_memory(**ME, memory_id="1"))
    asyncio.run(memory.delete_memory(**ME, memory_id="never"))
    asyncio.run(memory.add_session_to_memory(session(said("tea", "1"), said("more tea", "2"))))
    assert found(memory, "tea") == ["2"]


def test_memory_finds_words_in_texts_without_spaces(memory) -> None:
    asyncio.run(memory.add_session_to_memory(session(said("私はPythonを使う", "1"))))
    assert found(memory, "python") == ["1"]
    assert found(memory, "使う") == ["1"]


def test_a_part_of_a_word_with_an_accent_is_no_word(memory) -> None:
    asyncio.run(memory.add_session_to_memory(session(said("a naïve question", "1"), said("caféを飲む", "2"))))
    assert found(memory, "naïve") == ["1"]
    assert found(memory, "café") == ["2"]
    assert [found(memory, word) for word in ("na", "ve", "caf")] == [[], [], []]


def test_memories_can_be_added_by_hand(store) -> None:
    memory = WakelogMemoryService(store)
    entry = MemoryEntry(content=types.Content(parts=[text("she likes tea")]), author="me", custom_metadata={"k": 1})
    asyncio.run(memory.add_memory(**ME, memories=[entry], custom_metadata={"ttl": 5}))
    kept = asyncio.run(memory.search_memory(**ME, query="tea")).memories[0]
    assert (kept.author, kept.custom_metadata) == ("me", {"ttl": 5, "k": 1})
    assert kept.id
