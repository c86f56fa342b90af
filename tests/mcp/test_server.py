"""The MCP server, through the official client, at the newest protocol version and the one before."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

import wakelog
from wakelog.mcp.server import build_server
from wakelog.mcp.tools import READING, WRITING

pytestmark = pytest.mark.anyio
versions = pytest.mark.parametrize("version", ["legacy", "2026-07-28"])


@asynccontextmanager
async def client(store: wakelog.Store, version: str, *, read_only: bool = False) -> AsyncIterator[Client]:
    async with Client(build_server(store, read_only=read_only), mode=version) as connected:
        yield connected


async def call(c: Client, tool: str, **arguments: Any) -> Any:
    result = await c.call_tool(tool, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert not result.is_error, content.text
    return json.loads(content.text) if content.text[:1] in "{[" else content.text


async def refused(c: Client, tool: str, **arguments: Any) -> str:
    result = await c.call_tool(tool, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert result.is_error
    return content.text


@versions
async def test_an_agent_keeps_its_session(store: wakelog.Store, version: str) -> None:
    async with client(store, version) as c:
        opened = await call(c, "open_session", name="fix-login", goal="users stay logged in")
        assert opened["is_new"]
        sid = opened["session_id"]
        await call(c, "start_turn", session_id=sid, input="why are users logged out?")
        entries = [
            {"kind": "message", "role": "assistant", "text": "I will look."},
            {"kind": "tool_call", "tool": "grep", "input": {"q": "TTL"}, "output": "TTL = 300", "effect": "read"},
            {"kind": "fact", "key": "ttl", "value": 300, "why": "grep"},
            {"kind": "decision", "choice": "raise it", "because": "a week is promised", "alternatives": ["refresh"]},
            {"kind": "dead_end", "tried": "cookies", "learned": "they are fine"},
            {"kind": "file", "path": "settings.py", "added": 1, "removed": 1},
            {"kind": "artefact", "name": "patch", "uri": "file:///patch"},
        ]
        await call(c, "record", session_id=sid, entries=entries, id="r1")
        again = await call(c, "record", session_id=sid, entries=entries, id="r1")
        await call(c, "end_turn", session_id=sid)
        state = store.resume("fix-login").state()
        assert (state.goal, state.turn.number, state.turn.status) == ("users stay logged in", 1, "completed")
        assert state.tools_used["grep"].calls == 1
        assert state.facts["ttl"].value == 300
        assert [d.choice for d in state.decisions_made.values()] == ["raise it"]
        assert list(state.files_modified) == ["settings.py"]
        assert again["e"] < store.resume("fix-login").head.seq

        assert (await call(c, "get_state", session_id=sid, key="/facts/ttl"))["value"]["value"] == 300
        diff = await call(c, "diff", session_id=sid)
        assert {"/facts/ttl", "/files_modified/settings.py"} <= {row["key"] for row in diff["changes"]}
        found = await call(c, "search", words="cookies")
        assert found["found"][0]["session"] == sid
        assert "raise it" in await call(c, "brief", session_id="fix-login")
        assert (await call(c, "list_sessions"))["sessions"][0]["session_id"] == sid


@versions
async def test_going_back_aside_and_on(store: wakelog.Store, version: str) -> None:
    session = store.session("s")
    with session.turn("one"):
        session.fact("a", 1)
    async with client(store, version) as c:
        await call(c, "checkpoint", session_id="s", name="good")
        await call(c, "record", session_id="s", entries=[{"kind": "fact", "key": "a", "value": 2}])
        forked = await call(c, "fork", session_id="s", name="other")
        await call(c, "rewind", session_id="s", to="cp:good", why="that was wrong")
        assert session.state().facts["a"].value == 1
        assert store.resume(forked["session_id"]).state().facts["a"].value == 2
        why = await call(c, "why", session_id="other", of="/facts/a")
        assert why
        closed = await call(c, "close_session", session_id="other")
        assert closed["status"] == "closed"
        session.life.pause()
        assert (await call(c, "resume_session", session_id="s"))["status"] == "active"


@versions
async def test_an_uncertain_call_is_seen_and_reconciled(store: wakelog.Store, version: str) -> None:
    session = store.session("s")

    @session.tool
    def pay() -> None:
        raise wakelog.UncertainError("the line broke")

    outcome = session.call("pay")
    async with client(store, version) as c:
        pending = await call(c, "pending", session_id="s")
        assert pending["pending"][outcome.action]["status"] == "uncertain"
        arguments = {"session_id": "s", "action": outcome.action, "outcome": "succeeded", "output": {"receipt": 7}}
        await call(c, "reconcile", **arguments, why="the bank shows it")
    assert session.state().pending_actions == {}


@versions
async def test_what_an_agent_says_is_unverified_and_what_it_read_untrusted(store: wakelog.Store, version: str) -> None:
    async with client(store, version) as c:
        sid = (await call(c, "open_session", name="s"))["session_id"]
        entries = [
            {"kind": "fact", "key": "own", "value": 1},
            {"kind": "fact", "key": "read", "value": 2, "source": "web:blog.example"},
        ]
        await call(c, "record", session_id=sid, entries=entries)
        events = (await call(c, "get_events", session_id=sid))["events"]
        marks = {e["key"]: (e["trust"], e["source"]) for e in events if e["kind"] == "fact.recorded"}
        assert marks["read"] == ("untrusted", "web:blog.example")
        assert marks["own"][0] == "unverified"
        assert marks["own"][1].startswith("mcp:")
        # There is no argument that makes it more than that.
        assert "trust" in await refused(
            c, "record", session_id=sid, entries=[{"kind": "fact", "key": "x", "value": 1, "trust": "trusted"}]
        )


@versions
async def test_errors_say_what_to_do(store: wakelog.Store, version: str) -> None:
    async with client(store, version) as c:
        text = await refused(c, "get_state", session_id="nowhere")
        assert "session-not-found" in text
        assert "nowhere" in text
        store.session("s")
        assert "turn-not-found" in await refused(c, "get_state", session_id="s", at="@7")
        assert "kind" in await refused(c, "record", session_id="s", entries=[{"kind": "rumour"}])
        with_secret = [{"kind": "message", "text": "token ghp_16C7e42F292c6912E7710c838347Ae178B4a"}]
        await call(c, "record", session_id="s", entries=with_secret)
        assert "ghp_16C7" not in json.dumps(await call(c, "get_events", session_id="s", full=True))


@versions
async def test_lists_go_on_where_they_were_cut(store: wakelog.Store, version: str) -> None:
    for n in range(25):
        store.session(f"s{n}")
    session = store.resume("s0")
    for n in range(30):
        session.fact(f"k{n}", "x" * 2000)
    async with client(store, version) as c:
        names: list[str] = []
        cursor = ""
        while cursor is not None:
            page = await call(c, "list_sessions", cursor=cursor, limit=7)
            names += [s["name"] for s in page["sessions"]]
            cursor = page["next"]
        assert sorted(names) == sorted(f"s{n}" for n in range(25))
        seqs: list[int] = []
        after: int | None = 0
        while after is not None:
            page = await call(c, "get_events", session_id="s0", where="e1..e31", after=after, limit=9)
            seqs += [e["e"] for e in page["events"]]
            after = page["next"]
        assert seqs == list(range(1, 32))
        assert "more characters" in json.dumps(page)


@versions
async def test_read_only_leaves_out_what_writes(store: wakelog.Store, version: str) -> None:
    async with client(store, version) as c:
        tools = {t.name: t for t in (await c.list_tools()).tools}
        assert set(tools) == {*READING, *WRITING}
        assert all(t.description for t in tools.values())
        assert all("session_id" in tools[n].input_schema["properties"] for n in tools if n not in _WITHOUT_ID)
        assert {n for n, t in tools.items() if t.annotations and t.annotations.read_only_hint} == set(READING)
    async with client(store, version, read_only=True) as c:
        assert {t.name for t in (await c.list_tools()).tools} == set(READING)
        assert "Unknown tool" in await refused(c, "record", session_id="s", entries=[])


_WITHOUT_ID = {"list_sessions", "open_session"}


@versions
async def test_resources_and_prompts(store: wakelog.Store, version: str) -> None:
    session = store.session("fix", goal="mend it")
    with session.turn("look"):
        session.fact("a", 1)
    async with client(store, version) as c:
        templates = {t.uri_template for t in (await c.list_resource_templates()).resource_templates}
        assert templates == {
            "wakelog://{session}/state",
            "wakelog://{session}/brief",
            "wakelog://{session}/turn/{turn}",
        }
        state = (await c.read_resource("wakelog://fix/state")).contents[0]
        assert json.loads(state.text)["goal"] == "mend it"  # type: ignore[union-attr]
        turn = (await c.read_resource("wakelog://fix/turn/1")).contents[0]
        assert json.loads(turn.text)[0]["kind"] == "turn.started"  # type: ignore[union-attr]
        with pytest.raises(MCPError, match="nowhere"):
            await c.read_resource("wakelog://nowhere/state")
        prompts = {p.name: p for p in (await c.list_prompts()).prompts}
        assert set(prompts) == {"keep_session", "resume_session"}
        assert all(p.description for p in prompts.values())
        told = await c.get_prompt("resume_session", {"session_id": "fix"})
        assert "mend it" in told.messages[0].content.text  # type: ignore[union-attr]


async def test_subscribers_of_the_newest_version_hear_of_changes_made_elsewhere(
    store: wakelog.Store, tmp_path: Path
) -> None:
    store.session("s")
    async with client(store, "2026-07-28") as c, c.listen(resource_subscriptions=["wakelog://s/state"]) as news:
        with wakelog.open(tmp_path / "store") as other:
            other.resume("s").fact("a", 1)
        with anyio.fail_after(180):
            async for event in news:
                assert event.uri == "wakelog://s/state"  # type: ignore[union-attr]
                break


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
async def test_subscribers_of_the_version_before_hear_of_changes_too(store: wakelog.Store) -> None:
    session = store.session("s")
    heard = anyio.Event()

    async def listen(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            assert str(message.params.uri) == "wakelog://s/state"
            heard.set()

    async with Client(build_server(store), mode="legacy", message_handler=listen) as c:
        await c.subscribe_resource("wakelog://s/state")
        session.fact("a", 1)
        with anyio.fail_after(180):
            await heard.wait()


async def test_over_stdio_nothing_but_the_protocol_is_on_stdout(tmp_path: Path) -> None:
    command = ["-m", "wakelog", "mcp", "--store", str(tmp_path / "store")]
    first = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    first["params"] = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    calls = [
        first,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "open_session", "arguments": {"name": "x"}},
        },
        {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "tools/call",
            "params": {"name": "get_state", "arguments": {"session_id": "?"}},
        },
    ]
    async with await anyio.open_process([sys.executable, *command]) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        await server.stdin.send("".join(json.dumps(f) + "\n" for f in calls).encode())
        said = b""
        with anyio.fail_after(180):
            while said.count(b"\n") < 3:
                said += await server.stdout.receive()
        await server.stdin.aclose()
        assert await server.wait() == 0
    assert sorted(json.loads(line)["id"] for line in said.splitlines()) == [1, 2, 3]

    async with Client(StdioServerParameters(command=sys.executable, args=command)) as c:
        assert (await call(c, "open_session", name="x"))["is_new"] is False
