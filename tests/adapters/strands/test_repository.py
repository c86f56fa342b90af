"""The session repository, held against Strands' own in files, and with real agents and graphs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from strands import Agent, tool
from strands.models.model import Model
from strands.multiagent import GraphBuilder
from strands.session.file_session_manager import FileSessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

import wakelog
from tests.engines.on_postgres import postgres_url
from wakelog.adapters.strands import WakelogSessionManager, WakelogSessionRepository
from wakelog.errors import InvalidInputError
from wakelog.http.server import serving
from wakelog.http.state import Settings
from wakelog.store import Store


@pytest.fixture(params=["strands", "sqlite", "postgres", "http"])
def repository(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if request.param == "strands":
        yield FileSessionManager("unused", storage_dir=str(tmp_path))
        return
    if request.param == "http":
        with serving(Settings(url=str(tmp_path / "served"), rate=0)) as running:
            monkeypatch.setenv("WAKELOG_KEY", running.key)
            with wakelog.open(running.url) as store:
                yield WakelogSessionRepository(store)
        return
    url = postgres_url(request, tmp_path) if request.param == "postgres" else str(tmp_path / "store")
    with wakelog.open(url) as store:
        yield WakelogSessionRepository(store)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with wakelog.open(tmp_path / "store") as opened:
        yield opened


def session(id: str = "s1") -> Session:
    return Session(session_id=id, session_type=SessionType.AGENT)


def agent(id: str = "a1", **state: Any) -> SessionAgent:
    return SessionAgent(agent_id=id, state=state, conversation_manager_state={"n": 1})


def said(text: str, number: int, role: Any = "user") -> SessionMessage:
    return SessionMessage.from_message({"role": role, "content": [{"text": text}]}, number)


def texts(messages: list[SessionMessage]) -> list[str]:
    return [message.to_message()["content"][0]["text"] for message in messages]


def test_a_session_is_created_once_and_read_back(repository) -> None:
    assert repository.read_session("s1") is None
    made = repository.create_session(session())
    assert repository.read_session("s1") == made
    with pytest.raises(SessionException):
        repository.create_session(session())


def test_a_session_is_deleted_with_its_agents(repository) -> None:
    repository.create_session(session())
    repository.create_session(session("s2"))
    for id in ("s1", "s2"):
        repository.create_agent(id, agent())
    repository.delete_session("s1")
    assert repository.read_session("s1") is None
    assert repository.read_agent("s1", "a1") is None
    assert repository.read_agent("s2", "a1") is not None
    with pytest.raises(SessionException):
        repository.delete_session("s1")


def test_a_session_with_long_ids_is_deleted_with_its_agents(store) -> None:
    repository = WakelogSessionRepository(store)
    for id in ("s" * 200, "t" * 200):
        repository.create_session(session(id))
        repository.create_agent(id, agent("a" * 100))
    repository.delete_session("s" * 200)
    assert repository.read_agent("s" * 200, "a" * 100) is None
    assert repository.read_agent("t" * 200, "a" * 100) is not None


def test_an_agent_is_read_back_and_updated(repository) -> None:
    repository.create_session(session())
    assert repository.read_agent("s1", "a1") is None
    first = agent(x={"deep": [1, 2.5, None, b"\x00\xff"]})
    repository.create_agent("s1", first)
    assert repository.read_agent("s1", "a1") == first
    second = agent(x={"deep": [1]}, big=2**70)
    second.created_at = "later"
    repository.update_agent("s1", second)
    found = repository.read_agent("s1", "a1")
    assert (found.state, found.created_at) == ({"x": {"deep": [1]}, "big": 2**70}, first.created_at)
    with pytest.raises(SessionException):
        repository.update_agent("s1", agent("never"))


def test_messages_are_listed_in_their_order_and_by_pages(repository) -> None:
    repository.create_session(session())
    repository.create_agent("s1", agent())
    for number in range(12):
        repository.create_message("s1", "a1", said(str(number), number, "assistant" if number % 2 else "user"))
    everything = [str(n) for n in range(12)]
    assert texts(repository.list_messages("s1", "a1")) == everything
    assert texts(repository.list_messages("s1", "a1", limit=3)) == everything[:3]
    assert texts(repository.list_messages("s1", "a1", limit=3, offset=10)) == everything[10:]
    assert texts(repository.list_messages("s1", "a1", offset=4)) == everything[4:]
    assert texts([repository.read_message("s1", "a1", 11)]) == ["11"]
    assert repository.read_message("s1", "a1", 99) is None
    with pytest.raises(SessionException):
        repository.list_messages("s1", "never")
    with pytest.raises(ValueError):
        repository.read_message("s1", "a1", "1")


def test_a_message_comes_back_as_it_was(repository) -> None:
    repository.create_session(session())
    repository.create_agent("s1", agent())
    messages: list[Any] = [
        {"role": "user", "content": [{"text": "hé"}, {"image": {"format": "png", "source": {"bytes": b"\x00\x01"}}}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
                {"text": "I look."},
                {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"city": "Bern", "n": [1, 2.5]}}},
                {"toolUse": {"toolUseId": "t2", "name": "break", "input": {}}},
            ],
            "tracking_id": "x",
            "metadata": {"usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}, "custom": {"k": [1]}},
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"json": {"sky": "blue"}}]}},
                {"toolResult": {"toolUseId": "t2", "status": "error", "content": [{"text": "it broke"}]}},
            ],
        },
        {"role": "assistant", "content": [{"text": "It is blue."}]},
    ]
    stored = [SessionMessage.from_message(message, n) for n, message in enumerate(messages)]
    for each in stored:
        repository.create_message("s1", "a1", each)
    assert repository.list_messages("s1", "a1") == stored


def test_a_message_that_is_updated_is_replaced(repository) -> None:
    repository.create_session(session())
    repository.create_agent("s1", agent())
    first = said("a secret", 0)
    repository.create_message("s1", "a1", first)
    update = said("a secret", 0)
    update.created_at = "later"
    update.redact_message = {"role": "user", "content": [{"text": "[gone]"}]}
    repository.update_message("s1", "a1", update)
    (found,) = repository.list_messages("s1", "a1")
    assert (texts([found]), found.created_at) == (["[gone]"], first.created_at)
    assert texts([repository.read_message("s1", "a1", 0)]) == ["[gone]"]
    with pytest.raises(SessionException):
        repository.update_message("s1", "a1", said("x", 7))


def test_the_state_of_a_graph_is_kept(repository) -> None:
    repository.create_session(session())
    graph = SimpleNamespace(id="g1", serialize_state=lambda: dict(state))
    state: dict[str, Any] = {"status": "pending", "results": {}}
    assert repository.read_multi_agent("s1", "g1") is None
    with pytest.raises(SessionException):
        repository.update_multi_agent("s1", graph)
    repository.create_multi_agent("s1", graph)
    state |= {"status": "executing", "results": {"a": [1, 2**70]}, "current_task": "do it"}
    repository.update_multi_agent("s1", graph)
    assert repository.read_multi_agent("s1", "g1") == state


def test_two_writers_of_one_message_are_told_apart(store) -> None:
    repository = WakelogSessionRepository(store)
    repository.create_session(session())
    repository.create_agent("s1", agent())
    repository.create_message("s1", "a1", said("mine", 0))
    repository.create_message("s1", "a1", said("mine", 0))
    with pytest.raises(SessionException, match="already exists"):
        WakelogSessionRepository(store).create_message("s1", "a1", said("yours", 0))
    assert texts(repository.list_messages("s1", "a1")) == ["mine"]


@pytest.mark.parametrize("id", ["e86", "@5", "a/b", "..", "x" * 300, ""])
def test_any_id_names_a_session_of_its_own(store, id) -> None:
    repository = WakelogSessionRepository(store)
    repository.create_session(session(id))
    repository.create_agent(id, agent(id, of=id))
    assert repository.read_session(id) is not None
    found = repository.read_agent(id, id)
    assert found is not None
    assert found.state == {"of": id}
    assert repository.ids_of(repository.name_of(id, id)) in ((id, id), None)


def test_a_value_that_cannot_be_stored_is_refused_with_its_path(store) -> None:
    repository = WakelogSessionRepository(store)
    repository.create_session(session())
    with pytest.raises(InvalidInputError, match=r"agent\.state\.x\[1\]"):
        repository.create_agent("s1", agent(x=[1, object()]))
    assert repository.read_agent("s1", "a1") is None


# Real agents


class ScriptedModel(Model):  # type: ignore[misc]  # Any where it is not installed
    """Gives one answer of the script after another, and remembers what it was sent."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.sent: list[list[str]] = []

    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        self.sent.append([block["text"] for m in messages for block in m["content"] if "text" in block])
        answer = self.script.pop(0)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(answer, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": answer}}}
        else:
            name, given = answer
            yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": "t1"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": given}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(answer, str) else "tool_use"}}
        used = {"inputTokens": 100, "outputTokens": 10, "totalTokens": 110}
        yield {"metadata": {"usage": used, "metrics": {"latencyMs": 1}}}


@tool
def weather(city: str) -> str:
    """Tells the weather."""
    return f"sunny in {city}"


def run(store: Store, model: ScriptedModel, *prompts: str) -> Agent:
    manager = WakelogSessionManager("s1", store)
    made = Agent(model=model, tools=[weather], agent_id="a1", session_manager=manager, callback_handler=None)
    for prompt in prompts:
        made(prompt)
    return made


def test_a_run_of_an_agent_is_a_turn_with_calls_and_costs(store) -> None:
    made = run(store, ScriptedModel(("weather", '{"city": "Bern"}'), "It is sunny.", "Bye."), "Weather?", "Bye")
    log = store.resume("strands/s1/a1")
    state = log.state()
    assert (state.turn.number, state.turn.status) == (2, "completed")
    assert state.tools_used["weather"].calls == 1
    assert state.pending_actions == {}
    assert [m.text for m in log.messages() if m.role == "user"] == ["Weather?", "Bye"]
    assert log.messages()[-1].text == "Bye."
    assert store.cost("strands/s1").total.tokens_in == 300
    assert store.resume("strands/s1").state().subagents
    assert len(made.messages) == 6
    assert log.verify().ok


def test_another_process_goes_on_with_the_conversation(store) -> None:
    first = run(store, ScriptedModel("One.", "Two."), "1")
    first.state.set("k", {"n": 1})
    first("2")
    model = ScriptedModel("Three.")
    second = run(store, model, "3")
    assert model.sent == [["1", "One.", "2", "Two.", "3"]]
    assert second.state.get("k") == {"n": 1}


def test_a_rewind_takes_messages_and_state_back(store) -> None:
    run(store, ScriptedModel("One."), "1")
    log = store.resume("strands/s1/a1")
    log.checkpoint("one")
    made = run(store, ScriptedModel("Two.", "And."), "2")
    made.state.set("k", 1)
    made("and")
    log.rewind("cp:one")
    model = ScriptedModel("Three.")
    again = run(store, model, "3")
    assert model.sent == [["1", "One.", "3"]]
    assert again.state.get("k") is None


def test_a_graph_of_agents_is_kept_and_read_by_another_process(store) -> None:
    def graph(*answers: str) -> Any:
        builder = GraphBuilder()
        for name, answer in zip(("first", "second"), answers, strict=True):
            builder.add_node(Agent(model=ScriptedModel(answer), agent_id=name, name=name, callback_handler=None), name)
        builder.add_edge("first", "second")
        builder.set_entry_point("first")
        builder.set_session_manager(WakelogSessionManager("s1", store))
        builder.set_graph_id("g1")
        builder.set_max_node_executions(10)
        return builder.build()

    result = graph("one", "two")("do it")
    assert result.status.value == "completed"
    log = store.resume("strands/s1")
    kept = log.state().data["multi_agents"]["g1"]
    assert set(kept["completed_nodes"]) == {"first", "second"}
    assert log.state().turn.status == "completed"
    again = graph("three", "four")
    assert again("again").status.value == "completed"


WRITER = """
import sys
from strands.types.session import SessionAgent, SessionMessage
from strands.types.exceptions import SessionException
from wakelog.adapters.strands import WakelogSessionRepository

url, me = sys.argv[1:]
repository = WakelogSessionRepository(url)
for n in range(10):
    while True:
        number = len(repository.list_messages("s1", "a1"))
        message = {"role": "user", "content": [{"text": f"{me} {n}"}]}
        try:
            repository.create_message("s1", "a1", SessionMessage.from_message(message, number))
            break
        except SessionException:
            continue
repository.close()
"""


def test_four_processes_lose_nothing(store, tmp_path) -> None:
    repository = WakelogSessionRepository(store)
    repository.create_session(session())
    repository.create_agent("s1", agent())
    command = [sys.executable, "-c", WRITER, str(tmp_path / "store")]
    writers = [subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in "abcd"]
    for writer in writers:
        _, errors = writer.communicate(timeout=300)
        assert writer.returncode == 0, errors.decode()
    found = texts(repository.list_messages("s1", "a1"))
    for name in "abcd":
        assert [text for text in found if text.startswith(name)] == [f"{name} {n}" for n in range(10)]


def test_a_diff_shows_the_agents_state_and_no_bookkeeping(store) -> None:
    repository = WakelogSessionRepository(store)
    repository.create_session(session())
    repository.create_agent("s1", agent(step=1))
    log = store.resume("strands/s1/a1")
    before = log.head.seq
    repository.update_agent("s1", agent(step=2))
    changes = log.diff(f"e{before}", f"e{log.head.seq}").changes
    assert [(change.pointer, change.after) for change in changes] == [("/data/state/step", 2)]


def test_an_agent_that_an_earlier_version_stored_is_read_and_goes_on(store) -> None:
    repository = WakelogSessionRepository(store)
    repository.create_session(session())
    stored = agent(step=1)
    labels = {"framework": "strands", "strands.session": "s1", "strands.agent": "a1"}
    store.session("strands/s1/a1", data=stored.to_dict(), labels=labels)
    read: Any = repository.read_agent("s1", "a1")
    assert read.to_dict() == stored.to_dict()
    repository.update_agent("s1", agent(step=2))
    read = repository.read_agent("s1", "a1")
    assert (read.state, read.created_at) == ({"step": 2}, stored.created_at)
    assert set(store.resume("strands/s1/a1").state().data) == {"state", "$strands"}
