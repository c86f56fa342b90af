"""The session of the OpenAI Agents SDK, with its own runner, against its own session."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool
from agents.memory import OpenAIResponsesCompactionSession, Session, SessionSettings

import wakelog
from tests.adapters.command_line import command
from tests.adapters.openai_agents.fake_model import ScriptedModel, asks, says
from tests.adapters.store_urls import store_url as store_url
from wakelog.adapters.openai_agents import WakelogSession
from wakelog.errors import InvalidInputError
from wakelog.store import Store

QUIET = RunConfig(tracing_disabled=True)
ITEMS: list[Any] = [
    {"role": "user", "content": [{"type": "input_text", "text": "hé"}, {"type": "input_image", "image_url": "u"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "think"}]},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{ "odd":1.0}', "id": "fc_1"},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "1"}]},
    {"type": "computer_call", "call_id": "c2", "id": "cu_1", "action": {"type": "click", "x": 1, "y": 2}},
    {"type": "computer_call_output", "call_id": "c2", "output": {"type": "computer_screenshot", "image_url": "x"}},
    {"type": "mcp_call", "id": "mcp_1", "name": "look", "server_label": "s", "arguments": "{}", "output": "o"},
    {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": "1"}]},
    {"type": "compaction", "encrypted_content": "xyz"},
    {"type": "item_reference", "id": "m"},
]


@function_tool
def weather(city: str) -> str:
    return f"sunny in {city}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with wakelog.open(tmp_path / "store") as opened:
        yield opened


def agent(*script: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(*script)
    return Agent(name="helper", model=model, tools=[weather]), model


def test_it_is_a_session_of_the_sdk(store: Store) -> None:
    session = WakelogSession("user-1", store)
    assert isinstance(session, Session)
    assert session.session_settings == SessionSettings()
    assert WakelogSession("u", store, session_settings={"limit": 3}).session_settings == SessionSettings(limit=3)


def test_items_come_back_as_theirs_do_from_every_store(store_url: str) -> None:
    async def run() -> None:
        theirs, ours = SQLiteSession("s"), WakelogSession("s", store_url)
        for each in (theirs, ours):
            await each.add_items(ITEMS[:4])
            await each.add_items(ITEMS[4:])
            await each.add_items([])
        again = WakelogSession("s", store_url)
        for limit in (None, 0, 1, 3, 50, -1):
            assert await ours.get_items(limit) == await theirs.get_items(limit) == await again.get_items(limit)
        for _ in range(len(ITEMS) + 1):
            assert await ours.pop_item() == await theirs.pop_item()
            assert await again.get_items() == await theirs.get_items()
        await ours.add_items(ITEMS[:2])
        await again.clear_session()
        assert await ours.get_items() == []
        await ours.add_items(ITEMS[:1])
        assert await again.get_items() == ITEMS[:1]
        ours.close()
        again.close()
        theirs.close()

    asyncio.run(run())


def test_a_runner_is_told_the_same_history_as_by_their_session(store: Store) -> None:
    def script() -> tuple[Any, ...]:
        return [asks("weather", city="Paris"), asks("weather", city="Rome")], [says("sunny")], [says("bye")]

    async def run(session: Any) -> list[Any]:
        helper, model = agent(*script())
        await Runner.run(helper, "weather?", session=session, run_config=QUIET)
        await Runner.run(helper, "thanks", session=session, run_config=QUIET)
        return [[_without_ids(item) for item in sent] for sent in model.sent]

    ours = WakelogSession("s", store)
    assert asyncio.run(run(ours)) == asyncio.run(run(SQLiteSession("s")))
    log = ours.session.log
    assert [e.header.turn for e in log.entries() if e.kind == "turn.ended"] == [1, 2]
    assert [e.body["tool"] for e in log.entries() if e.kind == "action.requested"] == ["weather", "weather"]
    assert [e.body["output"] for e in log.entries() if e.kind == "action.succeeded"] == [
        "sunny in Paris",
        "sunny in Rome",
    ]


def _without_ids(item: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in item.items() if k not in ("id", "call_id")}


def test_the_limit_of_the_settings_holds_for_runs(store: Store) -> None:
    async def run() -> list[Any]:
        session = WakelogSession("s", store, session_settings=SessionSettings(limit=2))
        await session.add_items([{"role": "user", "content": f"{n}"} for n in range(5)])
        helper, model = agent([says("ok")])
        await Runner.run(helper, "5", session=session, run_config=QUIET)
        return model.sent[0]

    assert [item["content"] for item in asyncio.run(run())] == ["3", "4", "5"]


@pytest.mark.parametrize(("limit", "given"), [(2, ["3", "4", "5"]), (0, ["5"]), (50, None), (None, None)])
def test_an_answer_names_the_part_of_the_history_that_its_model_was_given(
    store: Store, limit: int | None, given: list[str] | None
) -> None:
    async def run() -> WakelogSession:
        session = WakelogSession("s", store, session_settings=SessionSettings(limit=limit))
        await session.add_items([{"role": "user", "content": f"{n}"} for n in range(5)])
        helper, _ = agent([asks("weather", city="Rome")], [says("ok")])
        await Runner.run(helper, "5", session=session, run_config=QUIET)
        return session

    log = asyncio.run(run()).session.log
    answers = [entry for entry in log.entries() if entry.body.get("effect") == "model"]
    assert len(answers) == 2
    for answer in answers:
        windows = answer.header.derived_from
        inside = [e for first, last in windows for e in log.entries(after=first - 1, upto=last)]
        spoken = [e.body.get("content", e.body.get("input")) for e in inside if e.header.actor == "user"]
        assert (spoken if windows else None) == given
        assert not windows or windows[-1][1] == answer.seq - 1


def test_a_look_at_the_items_during_a_run_does_not_count_as_what_the_model_was_given(store: Store) -> None:
    async def run() -> WakelogSession:
        session = WakelogSession("s", store)
        await session.add_items([{"role": "user", "content": "one"}])
        await session.get_items(limit=0)
        await session.add_items([{"role": "assistant", "content": "ok"}])
        await session.get_items()
        await session.add_items([{"role": "user", "content": "two"}])
        await session.get_items(limit=1)
        await session.create_branch_from_turn(2)
        await session.add_items([{"role": "assistant", "content": "on a branch"}])
        return session

    session = asyncio.run(run())
    assert [e.header.derived_from for e in session.session.log.entries() if e.body.get("effect") == "model"] == [(), ()]


@pytest.mark.parametrize("id", ["e86", "@5", "last-error", " padded ", "a/b@c"])
def test_an_id_that_is_a_selector_is_a_session_like_any_other(store: Store, id: str) -> None:
    async def run() -> None:
        session = WakelogSession(id, store)
        await session.add_items(ITEMS[:1])
        assert await WakelogSession(id, store).get_items() == ITEMS[:1]
        assert session.session_id == id
        assert store.resume(session.name).log.part("labels")["origin"] == id

    asyncio.run(run())


def test_commands_show_times_and_thoughts(tmp_path: Path) -> None:
    thought = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "I need the weather."}]}
    call = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"post":1234567890123456789}'}

    async def run() -> None:
        with WakelogSession("chat", tmp_path / "store") as session:
            await session.add_items([{"role": "user", "content": "How is it?"}, thought, call])

    asyncio.run(run())
    shown = command("show", "chat@1", "--store", str(tmp_path / "store"))
    assert "(thinking) I need the weather." in shown
    assert '{"post":1234567890123456789}' in shown
    assert "no times recorded" not in shown + command("log", "chat", "--store", str(tmp_path / "store"))


def test_branches_are_forks(store: Store) -> None:
    async def run() -> None:
        session = WakelogSession("talk", store)
        for n in (1, 2, 3):
            await session.add_items([{"role": "user", "content": f"q{n}"}, {"role": "assistant", "content": f"a{n}"}])
        whole = await session.get_items()
        branch = await session.create_branch_from_turn(2, "other")
        assert await session.get_items() == whole[:2]
        await session.add_items([{"role": "user", "content": "q2b"}])
        assert store.resume("talk+other").head.fork is not None
        listed = await session.list_branches()
        assert [(b["branch_id"], b["user_turns"], b["is_current"]) for b in listed] == [
            ("main", 3, False),
            (branch, 2, True),
        ]
        await session.switch_to_branch("main")
        assert await session.get_items() == whole
        forked = await session.fork("talk-2", before_turn=3)
        assert await forked.get_items() == whole[:4]
        with pytest.raises(InvalidInputError, match="has no turn 9"):
            await session.create_branch_from_turn(9)

    asyncio.run(run())


def test_values_that_are_no_json_are_refused_with_their_path(store: Store) -> None:
    async def run() -> None:
        session = WakelogSession("s", store)
        with pytest.raises(InvalidInputError, match=r"messages\[1\]\.content\[0\]\.data"):
            await session.add_items([ITEMS[0], {"role": "user", "content": [{"type": "x", "data": b"1"}]}])
        assert await session.get_items() == []

    asyncio.run(run())


def test_their_compaction_works_over_it(store: Store) -> None:
    class Responses:
        async def compact(self, **asked: Any) -> Any:
            return SimpleNamespace(output=[{"type": "compaction", "encrypted_content": "short"}], usage=None)

    class Client:
        responses = Responses()

    async def run() -> None:
        under = WakelogSession("s", store)
        session = OpenAIResponsesCompactionSession("s", under, client=Client(), compaction_mode="input")
        await session.add_items([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])
        await session.run_compaction({"force": True})
        kept = await under.get_items()
        assert {"type": "compaction", "encrypted_content": "short"} in kept
        assert {"role": "assistant", "content": "a"} not in kept
        rewound = next(entry for entry in under.session.log.entries() if entry.kind == "history.rewound")
        following = under.session.log.entry(rewound.seq + 1)
        assert following.commit_id == rewound.commit_id  # a crash cannot come between
        assert "a" in [m.text for m in under.session.messages(at="@1")]

    asyncio.run(run())


@pytest.mark.parametrize("is_overtaken", [False, True])
def test_a_compaction_replaces_what_the_model_saw_and_only_if_nobody_has_added_to_it(
    tmp_path: Path, is_overtaken
) -> None:
    def play(open_session: Any) -> list[Any]:
        class Responses:
            async def compact(self, **asked: Any) -> Any:
                if is_overtaken:
                    await open_session().add_items([{"role": "user", "content": "from elsewhere"}])
                return SimpleNamespace(output=[{"type": "compaction", "encrypted_content": "short"}], usage=None)

        async def run() -> list[Any]:
            under = open_session()
            await under.add_items([{"role": "user", "content": "old"}, {"role": "assistant", "content": "old answer"}])
            client: Any = SimpleNamespace(responses=Responses())
            session = OpenAIResponsesCompactionSession(
                "s", under, client=client, compaction_mode="input", should_trigger_compaction=lambda seen: True
            )
            helper, _ = agent([says("one")])
            limited = RunConfig(tracing_disabled=True, session_settings=SessionSettings(limit=1))
            await Runner.run(helper, "new", session=session, run_config=limited)
            return [(i.get("role"), i.get("type"), str(i.get("content"))[:20]) for i in await under.get_items()]

        return asyncio.run(run())

    theirs = play(lambda: SQLiteSession("s", tmp_path / "their.db"))
    ours = play(lambda: WakelogSession("s", str(tmp_path / "ours")))
    assert ours == theirs
    assert any("from elsewhere" in content for _, _, content in ours) == is_overtaken
    assert any(kind == "compaction" for _, kind, _ in ours) == (not is_overtaken)
    assert ours[0] == ("user", None, "old")


def test_items_that_the_sdk_encrypted_are_kept_and_nothing_is_read_from_them(store: Store) -> None:
    """`EncryptedSession` gives these to the session below it."""
    sealed = [{"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": f"token {n}"} for n in range(3)]

    async def run() -> None:
        session = WakelogSession("sealed", store)
        await session.add_items(sealed[:2])
        await session.add_items(sealed[2:])
        assert await WakelogSession("sealed", store).get_items() == sealed
        assert await session.get_items(2) == sealed[1:]
        assert await session.pop_item() == sealed[2]
        assert await session._atomic_replace_items(sealed[:1])
        assert await session.get_items() == sealed[:1]

    asyncio.run(run())
    session = store.resume("sealed")
    assert session.state().turn.number == 0
    assert [message.text for message in session.messages()] == ["(not readable: __enc__, v, kid, payload)"]


def test_settings_that_were_set_as_a_dict_hold(store: Store) -> None:
    async def run() -> None:
        session: Any = WakelogSession("s", store)
        await session.add_items(ITEMS)
        session.session_settings = {"limit": 2}
        assert await session.get_items() == ITEMS[-2:]

    asyncio.run(run())


def test_a_setting_that_does_not_exist_is_refused(store: Store) -> None:
    with pytest.raises(TypeError, match="Unknown session settings: limitt"):
        WakelogSession("user-1", store, session_settings={"limitt": 1})


CHILD = """
import asyncio, os, signal, sys
from agents import Agent, RunConfig, Runner, function_tool
from tests.adapters.command_line import command
from tests.adapters.openai_agents.fake_model import ScriptedModel, asks, says
from wakelog.adapters.openai_agents import WakelogSession

@function_tool
def weather(city: str) -> str:
    if city == "Rome":
        os.kill(os.getpid(), signal.SIGKILL)
    return "sunny"

model = ScriptedModel([asks("weather", city="Paris")], [asks("weather", city="Rome")])
agent = Agent(name="helper", model=model, tools=[weather])
session = WakelogSession("killed", sys.argv[1])
asyncio.run(Runner.run(agent, "weather?", session=session, run_config=RunConfig(tracing_disabled=True)))
"""


def test_a_run_that_was_killed_is_resumed_with_what_was_saved(tmp_path: Path) -> None:
    place = str(tmp_path / "store")
    root = Path(__file__).parents[3]
    child = subprocess.run(
        [sys.executable, "-c", CHILD, place], cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, check=False
    )
    assert child.returncode == -signal.SIGKILL

    async def run() -> None:
        session = WakelogSession("killed", place)
        kept = await session.get_items()
        assert [item.get("type", item.get("role")) for item in kept] == [
            "user",
            "function_call",
            "function_call_output",
        ]
        helper, model = agent([says("sunny in both")])
        result = await Runner.run(helper, "go on", session=session, run_config=QUIET)
        assert result.final_output == "sunny in both"
        assert model.sent[0][:3] == kept
        outcomes = [e.body.get("outcome", "completed") for e in session.session.log.entries() if e.kind == "turn.ended"]
        assert outcomes[-1] == "completed"
        assert session.session.verify().ok
        session.close()

    asyncio.run(run())


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    place = str(tmp_path / "store")
    root = Path(__file__).parents[3]
    code = (
        "import asyncio, sys\n"
        "from wakelog.adapters.openai_agents import WakelogSession\n"
        "async def main():\n"
        "    s = WakelogSession('shared', sys.argv[1])\n"
        "    for n in range(10):\n"
        "        await s.add_items([{'role': 'user', 'content': sys.argv[2] + str(n)}])\n"
        "asyncio.run(main())\n"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, place, who], cwd=root, env={**os.environ, "PYTHONPATH": str(root)}
        )
        for who in "abcd"
    ]
    assert [child.wait(timeout=120) for child in children] == [0, 0, 0, 0]

    async def run() -> list[Any]:
        session = WakelogSession("shared", place)
        items = await session.get_items()
        session.close()
        return items

    said = [item["content"] for item in asyncio.run(run())]
    assert sorted(said) == sorted(f"{who}{n}" for who in "abcd" for n in range(10))
    for who in "abcd":
        assert [s for s in said if s[0] == who] == [f"{who}{n}" for n in range(10)]


def test_a_session_that_is_not_of_the_sdk_is_not_written_to(store: Store) -> None:
    made = store.session("user-1", data={"mine": 1})
    with pytest.raises(InvalidInputError, match="not a session of openai-agents") as refused:
        asyncio.run(WakelogSession("user-1", store).add_items(ITEMS))
    assert refused.value.kind == "foreign-session"
    assert made.head.seq == 1
