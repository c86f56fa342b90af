"""Two clients on one session: a turn that somebody has is neither ended nor written into by another."""

import json
import sys
from pathlib import Path

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import Implementation

import wakelog
from tests.mcp.test_server import call, refused
from wakelog.mcp.server import build_server

pytestmark = pytest.mark.anyio
FACT = [{"kind": "fact", "key": "a", "value": 1}]


def named(server: object, name: str) -> Client:
    return Client(server, mode="legacy", client_info=Implementation(name=name, version="1"))  # type: ignore[arg-type]


async def test_a_turn_another_client_has_is_refused_with_who_has_it_and_what_to_do(store: wakelog.Store) -> None:
    server = build_server(store)
    async with named(server, "claude") as one, named(server, "codex") as two:
        await call(one, "open_session", name="s")
        await call(one, "start_turn", session_id="s", input="mine")
        for tool, arguments in (
            ("start_turn", {"input": "yours"}),
            ("record", {"entries": FACT}),
            ("end_turn", {}),
        ):
            said = await refused(two, tool, session_id="s", **arguments)
            assert "[leased]" in said
            assert "belongs to claude" in said
            assert "fork" in said
        assert "claude" in (await call(two, "resume_session", session_id="s"))["busy"]
        assert "busy" not in await call(one, "resume_session", session_id="s")
        # Beside it is always a place.
        await call(two, "fork", session_id="s", name="beside")
        await call(two, "start_turn", session_id="beside", input="yours")
        await call(two, "record", session_id="beside", entries=FACT)
        await call(one, "record", session_id="s", entries=[{"kind": "fact", "key": "b", "value": 2}])
        await call(one, "end_turn", session_id="s")
        await call(two, "start_turn", session_id="s", input="now it is free")
    assert set(store.resume("s").state().facts) == {"b"}
    assert [e.body.get("outcome", "completed") for e in store.resume("s").events(kind="turn.ended")] == ["completed"]


async def test_a_client_that_begins_again_interrupts_its_own_turn(store: wakelog.Store) -> None:
    async with named(build_server(store), "claude") as c:
        await call(c, "open_session", name="s")
        await call(c, "start_turn", session_id="s", input="one")
        assert (await call(c, "start_turn", session_id="s", input="two"))["turn"] == 2
        await call(c, "end_turn", session_id="s")
    ended = [e.body.get("outcome", "completed") for e in store.resume("s").events(kind="turn.ended")]
    assert ended == ["interrupted", "completed"]


async def test_an_agent_records_into_the_turn_of_the_program_it_works_in(store: wakelog.Store) -> None:
    session = store.session("s")
    async with named(build_server(store), "claude") as c:
        with session.turn("the program's"):
            await call(c, "record", session_id="s", entries=FACT)
            assert "[leased]" in await refused(c, "end_turn", session_id="s")
    assert session.state().turn.status == "completed"
    assert "a" in session.state().facts


async def test_the_turn_of_a_client_that_is_gone_is_free(tmp_path: Path) -> None:
    path = tmp_path / "store"
    command = ["-m", "wakelog", "mcp", "--store", str(path)]
    with wakelog.open(path) as store, anyio.fail_after(180):
        async with Client(StdioServerParameters(command=sys.executable, args=command)) as other:
            await call(other, "open_session", name="s")
            await call(other, "start_turn", session_id="s", input="theirs")
            async with named(build_server(store), "codex") as c:
                assert "process" in await refused(c, "start_turn", session_id="s", input="mine")
        async with named(build_server(store), "codex") as c:
            await call(c, "start_turn", session_id="s", input="mine")
        (ended,) = store.resume("s").events(kind="turn.ended")
        assert ended.body["outcome"] == "interrupted"
        assert "process ended" in json.dumps(ended.body)
