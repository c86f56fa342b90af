"""Answers stay short and true, whatever the session went through: huge, erased, pruned, rewound, closed, deleted."""

import json
import re
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

import wakelog
from tests.mcp.test_server import call, client, refused
from wakelog.log.removal import erase, prune
from wakelog.mcp.answers import ANSWER_MAX, fit, size
from wakelog.mcp.server import build_server

pytestmark = pytest.mark.anyio
NEWEST = "2026-07-28"

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=20), inner, max_size=30),
    max_leaves=80,
)


@given(values, st.integers(200, 5000))
def test_what_fits_is_whole_and_what_does_not_is_cut_to_about_the_room(value: Any, room: int) -> None:
    shown = fit(value, room, 1000)
    if size(value) <= room:
        assert shown == value
    else:
        assert size(shown) <= 4 * room + 200  # a text counts characters, and one may be four bytes or six


async def test_the_list_of_tools_is_small_and_its_schemas_are_lean(store: wakelog.Store) -> None:
    async with client(store, NEWEST) as c:
        listed = (await c.list_tools()).model_dump(mode="json", by_alias=True, exclude_none=True)
    text = json.dumps(listed["tools"], separators=(",", ":"))
    assert len(text) < 14_000
    assert '"title"' not in text
    assert "\\n" not in text
    # Flat: a client that checks arguments itself meets a union with one complaint for each alternative.
    assert not re.search(r'"(anyOf|oneOf|allOf|\$ref|\$defs)"', text)
    entry = next(t for t in listed["tools"] if t["name"] == "record")["inputSchema"]["properties"]["entries"]["items"]
    assert (entry["additionalProperties"], entry["required"]) == (False, ["kind"])
    assert "fact" in entry["properties"]["kind"]["enum"]


async def test_a_huge_state_is_cut_and_says_so_and_each_part_can_be_asked_for(store: wakelog.Store) -> None:
    session = store.session("big", goal="stay small")
    with session.turn("grow"):
        for n in range(60):
            session.fact(f"k{n}", "y" * 18_000)
    async with client(store, NEWEST) as c:
        whole = await call(c, "get_state", session_id="big")
        assert size(whole) <= ANSWER_MAX
        assert whole["value"]["goal"] == "stay small"
        assert "ask for a key" in whole["cut"]
        text, skip = "", 0
        while skip is not None:
            part = await call(c, "get_state", session_id="big", key="/facts/k7/value", skip=skip)
            assert size(part) <= ANSWER_MAX
            text, skip = text + part["value"], part["next"]
        assert text == "y" * 18_000
        for full in (False, True):
            seen: list[int] = []
            after: int | None = 0
            while after is not None:
                page = await call(c, "get_events", session_id="big", where="@1", after=after, limit=200, full=full)
                assert size(page) <= ANSWER_MAX
                seen += [e["e"] for e in page["events"]]
                after = page["next"]
            assert seen == list(range(2, session.head.seq + 1))
        read = (await c.read_resource("wakelog://big/state")).contents[0]
        assert len(read.text) < 250_000


async def test_erased_and_pruned_events_are_shown_as_such_and_break_nothing(store: wakelog.Store) -> None:
    session = store.session("s")
    for n in range(4):
        with session.turn(f"turn {n}"):
            session.fact(f"k{n}", f"value-{n} " + "z" * 40_000)
    first, second, third, _ = [e.seq for e in session.events(kind="fact.recorded")]
    erase(session.log, [third], why="asked to")
    async with client(store, NEWEST) as c:
        events = (await call(c, "get_events", session_id="s", where=f"e{third}"))["events"]
        assert "value-2" not in json.dumps(events)
        assert events[0]["gone"] == "erased"
        for of in (f"e{third}", "/facts/k3"):
            await call(c, "why", session_id="s", of=of)
        assert "value-2" not in await call(c, "brief", session_id="s")
        prune(session.log, second, why="old")
        events = (await call(c, "get_events", session_id="s", where="e1..e18", limit=200))["events"]
        assert [e["gone"] for e in events if e["e"] == first] == ["pruned"]
        assert "value-0" not in json.dumps(events)
        assert "value-3" in await call(c, "brief", session_id="s")
        assert "pruned" in await refused(c, "get_state", session_id="s", at=f"e{first}")
        await call(c, "get_state", session_id="s")
        await call(c, "why", session_id="s", of="/facts/k0")
        await call(c, "get_events", session_id="s")


async def test_rewound_events_say_so(store: wakelog.Store) -> None:
    session = store.session("s")
    for n in range(3):
        with session.turn(f"turn {n}"):
            session.fact("k", n)
    session.rewind("@1")
    async with client(store, NEWEST) as c:
        events = (await call(c, "get_events", session_id="s", limit=200))["events"]
        assert {e.get("turn", 0) for e in events if e.get("rewound")} == {2, 3}
        assert {e["value"] for e in events if e["kind"] == "fact.recorded" and not e.get("rewound")} == {0}


async def test_closed_and_deleted_sessions_say_what_to_do(store: wakelog.Store) -> None:
    async with client(store, NEWEST) as c:
        await call(c, "open_session", name="s", goal="one")
        assert (await call(c, "open_session", name="s", goal="two"))["goal"] == "one"
        await call(c, "close_session", session_id="s")
        text = await refused(c, "record", session_id="s", entries=[{"kind": "fact", "key": "a", "value": 1}])
        assert "session-closed" in text
        assert "fork" in text
        assert "fork" in (await call(c, "open_session", name="s"))["note"]
        forked = await call(c, "fork", session_id="s", name="on")
        await call(c, "record", session_id=forked["session_id"], entries=[{"kind": "fact", "key": "a", "value": 1}])
        store.delete(store.resume("on"))
        for tool in ("get_state", "brief", "resume_session", "end_turn"):
            text = await refused(c, tool, session_id="on")
            assert "session-not-found" in text
            assert "list_sessions" in text
        with pytest.raises(MCPError, match="session-not-found"):
            await c.get_prompt("resume_session", {"session_id": "on"})


async def test_a_cursor_goes_on_when_its_session_is_deleted_meanwhile(store: wakelog.Store) -> None:
    for n in range(9):
        store.session(f"s{n}")
    async with client(store, NEWEST) as c:
        first = await call(c, "list_sessions", limit=4)
        store.delete(store.resume(first["sessions"][-1]["session_id"]))
        second = await call(c, "list_sessions", limit=20, cursor=first["next"])
        names = [s["name"] for page in (first, second) for s in page["sessions"]]
        assert sorted(names) == [f"s{n}" for n in range(9)]
        assert "bad-cursor" in await refused(c, "list_sessions", cursor="gone")


async def test_wrong_arguments_are_named_in_few_words(store: wakelog.Store) -> None:
    store.session("s")
    async with client(store, NEWEST) as c:
        text = await refused(c, "record", session_id="s", entries=[{"kind": "fact", "key": "n"}])
        assert text.endswith("[bad-arguments] entries.0: a fact needs value; its fields are key, value, why, source")
        text = await refused(c, "record", session_id="s", entries=[{"kind": "goal", "goal": "g", "tool": "x"}])
        assert "a goal takes no tool" in text
        text = await refused(c, "record", session_id="s", entries=[{"kind": "fact", "added": -1}] * 100)
        assert len(text) < 600
        assert "more" in text
        # What a model fills in for completeness means nothing.
        empty: dict[str, Any] = {"choice": "", "alternatives": [], "output": None, "effect": "external", "why": ""}
        await call(c, "record", session_id="s", entries=[{"kind": "fact", "key": "n", "value": None, **empty}])
        assert store.resume("s").state().facts["n"].value is None
        assert "key-not-found" in await refused(c, "get_state", session_id="s", key="/nope/x")
        assert (await call(c, "get_state", session_id="s", key="status"))["value"] == "open"


async def test_two_agents_on_one_session_lose_nothing(store: wakelog.Store) -> None:
    server = build_server(store)
    async with Client(server, mode=NEWEST) as one, Client(server, mode="legacy") as two:
        await call(one, "open_session", name="shared")

        async def note(c: Client, who: str, n: int) -> None:
            entry = {"kind": "fact", "key": f"{who}{n}", "value": "naïve 😀 \u202e"}
            await call(c, "record", session_id="shared", entries=[entry], id=f"{who}{n}")

        async with anyio.create_task_group() as group:
            for n in range(25):
                group.start_soon(note, one, "a", n)
                group.start_soon(note, two, "b", n)
    session = store.resume("shared")
    assert set(session.state().facts) == {f"{who}{n}" for who in "ab" for n in range(25)}
    assert {f.value for f in session.state().facts.values()} == {"naïve 😀 \u202e"}
    assert session.verify().ok


def _all_strings(session: wakelog.Session, n: int) -> list[dict[str, Any]]:
    """Entries with texts that grow when they are written as JSON."""
    long = '\\"\x01é' * 2_000
    return [
        {"kind": "message", "text": long},
        {"kind": "decision", "choice": f"c{n} {long}", "because": long, "alternatives": [long] * 3},
        {"kind": "tool_call", "tool": "t", "input": {f"k{i}": long for i in range(9)}, "output": long},
        {"kind": "fact", "key": f"k{n}", "value": [long] * 5, "why": long},
        {"kind": "file", "path": f"src/{n}/" + "d/" * 200, "why": long},
        {"kind": "goal", "goal": long},
    ]


async def test_no_answer_is_longer_than_a_client_shows_and_the_pages_hold_everything(store: wakelog.Store) -> None:
    session = store.session("big", goal="x" * 20_000)
    for n in range(60):
        store.session(f"other-{n}-" + "é" * 100, goal="g" * 500)
    async with Client(build_server(store), mode=NEWEST) as c:
        for n in range(4):
            await call(c, "start_turn", session_id="big", input="what? " * 3000)
            await call(c, "record", session_id="big", entries=_all_strings(session, n))

        async def ask(tool: str, **arguments: Any) -> Any:
            result = await c.call_tool(tool, arguments)
            text = result.content[0].text  # type: ignore[union-attr]
            assert not result.is_error, text
            assert len(text) <= ANSWER_MAX, tool
            return json.loads(text) if text[:1] == "{" else text

        async def pages(tool: str, rows: str, cursor: str = "skip", **arguments: Any) -> list[Any]:
            found: list[Any] = []
            after: Any = None
            while True:
                page = await ask(tool, **arguments, **({} if after is None else {cursor: after}))
                found += page[rows]
                after = page["next"]
                if after is None:
                    return found

        last = session.head.seq
        assert len(await pages("list_sessions", "sessions", "cursor", limit=100)) == 61
        for full in (False, True):
            events = await pages("get_events", "events", "after", session_id="big", where=f"e1..e{last}", full=full)
            assert [e["e"] for e in events] == list(range(1, last + 1))
        assert len(await pages("files", "files", session_id="big", last=0)) == 4
        assert len(await pages("get_state", "value", session_id="big", key="/facts", at=f"e{last}")) == 4
        changes = await pages("diff", "changes", session_id="big", a="e1", b=f"e{last}")
        assert len(changes) == len(session.diff("e1", f"e{last}").changes)
        steps = await pages("why", "steps", session_id="big", of="/facts/k3")
        assert len(steps) == len(session.why("/facts/k3").steps)
        assert len(await pages("search", "found", words="what", limit=50)) >= 4
        for tool in ("brief", "resume_session", "pending", "get_state", "get_events"):
            await ask(tool, session_id="big")
        await ask("brief", session_id="big", budget=2000)
        await ask("open_session", name="big")

        # What is cut says what, and can be read to its end.
        cut = next(e for e in events if e["kind"] == "action.recorded")
        assert set(cut["cut"]) >= {"input", "output"}
        where = f"e{cut['e']}"
        parts = await pages("get_events", "value", session_id="big", where=where, field="output")
        assert "".join(parts) == '\\"\x01é' * 2_000
        parts = await pages("get_events", "value", session_id="big", where=where, field="input")
        assert json.loads("".join(parts))["k8"] == '\\"\x01é' * 2_000
