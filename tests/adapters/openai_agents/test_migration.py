"""Databases of the SDK's own sessions, imported and gone on with."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession

import wakelog
from tests.adapters.openai_agents.test_session import ITEMS
from wakelog.adapters.openai_agents import WakelogSession
from wakelog.importers.transcript_import import import_transcript
from wakelog.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with wakelog.open(tmp_path / "store") as opened:
        yield opened


def talk(*words: str) -> list[Any]:
    return [
        item for w in words for item in ({"role": "user", "content": w}, {"role": "assistant", "content": f"re {w}"})
    ]


def test_an_imported_session_is_gone_on_with_as_if_it_had_always_been_ours(store: Store, tmp_path: Path) -> None:
    async def run() -> None:
        path = tmp_path / "theirs.db"
        theirs = SQLiteSession("e86", path)
        await theirs.add_items([*ITEMS[:8], *talk("one")])
        report = import_transcript(store, path)
        assert report.format == "openai-agents"
        assert (report.new_records, [s.turns for s in report.sessions]) == (10, [2])
        ours = WakelogSession("e86", store)
        assert await ours.get_items() == await theirs.get_items()
        assert ours.session.head.turn == 2
        assert ours.session.verify().ok
        await theirs.add_items(talk("two"))
        again = import_transcript(store, path)
        assert again.new_records == 2
        assert import_transcript(store, path).new_records == 0
        assert await ours.get_items() == await theirs.get_items()
        await ours.add_items(talk("three"))
        for _ in range(2):
            await ours.pop_item()
        while (expected := await theirs.pop_item()) is not None:
            assert await ours.pop_item() == expected
        assert await ours.get_items() == []
        theirs.close()

    asyncio.run(run())


def test_branches_are_sessions_that_the_adapter_finds(store: Store, tmp_path: Path) -> None:
    async def run() -> None:
        path = tmp_path / "theirs.db"
        theirs = AdvancedSQLiteSession(session_id="talk", db_path=path, create_tables=True)
        await theirs.add_items(talk("one", "two"))
        await theirs.create_branch_from_turn(2, "other")
        await theirs.add_items(talk("else"))
        report = import_transcript(store, path)
        assert [s.name for s in report.sessions] == ["talk", "talk+other"]
        assert await WakelogSession("talk", store).get_items() == talk("one", "two")
        branched = WakelogSession("talk", store)
        await branched.switch_to_branch("other")
        assert await branched.get_items() == await theirs.get_items() == talk("one", "else")
        theirs.close()

    asyncio.run(run())
