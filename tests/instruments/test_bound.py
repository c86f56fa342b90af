"""An instrumented client inside a program that keeps a session itself: nothing is recorded twice."""

import threading
from typing import Any

import wakelog
from tests.instruments.apis import ANSWER, APIS, CALL, QUESTION, RESULT, ask_chat
from tests.instruments.conftest import Recorded
from tests.later import Later
from tests.runtime.providers import Provider

openai = Later("openai")

CHAT = APIS["chat"]


def test_calls_in_a_turn_are_recorded_in_it_and_its_input_only_once(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai")
    session = recorded.store.session("mine")
    remote.plays += [CHAT.says(call=True), CHAT.says(ANSWER), CHAT.says("Bye.")]
    history = CHAT.first()
    with session.turn(QUESTION):
        ask_chat(remote, history)
        history += CHAT.then()
        ask_chat(remote, history)
        assert recorded.of("turn.ended") == []
    history += [{"role": "assistant", "content": ANSWER}, {"role": "user", "content": "Thanks"}]
    with session.turn("Thanks"):
        ask_chat(remote, history)
    assert [e.body["content"] for e in recorded.of("message.added")] == [QUESTION, "Thanks"]
    assert [e.header.turn for e in recorded.of("action.requested")] == [1, 1, 2]
    assert len(recorded.of("action.recorded")) == 1
    assert len(recorded.of("turn.started")) == 2
    wakelog.uninstrument()
    assert session.status == "active", "a session that the program opened stays open"


def test_a_tool_that_the_program_records_itself_is_not_recorded_again(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai")
    session = recorded.store.session("mine")

    @session.tool(effect="read")
    def get_weather(city: str) -> str:
        return RESULT

    for by_id in (True, False):
        remote.plays += [CHAT.says(call=True), CHAT.says(ANSWER)]
        with session.turn(QUESTION):
            ask_chat(remote, CHAT.first())
            if by_id:
                session.call("get_weather", CALL[2], id=CALL[0])
            else:
                get_weather(**CALL[2])
            ask_chat(remote, [*CHAT.first(), *CHAT.then()])
    assert recorded.of("action.recorded") == []
    assert [e.body["tool"] for e in recorded.of("action.requested")].count("get_weather") == 2


def test_a_message_that_is_new_in_a_request_is_recorded(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai")
    session = recorded.store.session("mine")
    remote.plays.append(CHAT.says(ANSWER))
    with session.turn(QUESTION):
        ask_chat(remote, [*CHAT.first(), {"role": "user", "content": "In degrees, please."}])
    assert [e.body["content"] for e in recorded.of("message.added")] == [QUESTION, "In degrees, please."]


def test_a_call_through_the_session_is_recorded_once(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai")
    session = recorded.store.session("mine")
    remote.plays.append(CHAT.says(ANSWER))
    with openai.OpenAI(api_key="none", base_url=remote.url) as client, session.turn(QUESTION):
        given: Any = {"model": "gpt-4.1", "messages": CHAT.first()}
        session.model(client.chat.completions.create, **given)
    wakelog.uninstrument()
    assert len(recorded.of("action.requested")) == 1
    assert recorded.of("action.succeeded")


def test_a_model_that_a_tool_asks_is_recorded_inside_the_tool(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai")
    session = recorded.store.session("mine")
    remote.plays.append(CHAT.says(ANSWER))

    @session.tool(effect="read")
    def ask_somebody(question: str) -> str:
        return ask_chat(remote, [{"role": "user", "content": question}])

    with session.turn("go"):
        assert ask_somebody(QUESTION) == ANSWER
    tool, model = recorded.of("action.requested")
    assert model.body["inside"] == tool.body["action"]


def test_a_session_given_to_instrument_gets_its_turns_from_the_requests(recorded: Recorded, remote: Provider) -> None:
    session = recorded.store.session("mine")
    wakelog.instrument("openai", session=session)
    remote.plays += [CHAT.says("1"), CHAT.says("2"), CHAT.says("3")]
    ask_chat(remote, [{"role": "user", "content": "one"}])
    with session.turn("two"):
        ask_chat(remote, [{"role": "user", "content": "two"}])
    ask_chat(remote, [{"role": "user", "content": "three"}])
    wakelog.uninstrument()
    assert [e.body["input"] for e in recorded.of("turn.started")] == ["one", "two", "three"]
    assert [e.body["content"] for e in recorded.of("message.added")] == ["one", "two", "three"]
    assert session.status == "active"


def test_a_turn_of_the_program_can_begin_while_tools_are_awaited(recorded: Recorded, remote: Provider) -> None:
    session = recorded.store.session("mine")
    wakelog.instrument("openai", session=session)
    remote.plays += [CHAT.says(call=True), CHAT.says(ANSWER)]
    ask_chat(remote, CHAT.first())
    with session.turn("something else"):
        pass
    ask_chat(remote, [*CHAT.first(), *CHAT.then()])
    assert [e.body["tool"] for e in recorded.of("action.recorded")] == [CALL[1]]
    assert len(recorded.of("turn.ended")) == 3


def test_files_that_tools_change_are_recorded_where_the_session_captures_them(
    recorded: Recorded, remote: Provider, tmp_path: Any
) -> None:
    session = recorded.store.session("mine")
    session.files.capture(tmp_path, folder=tmp_path)
    wakelog.instrument("openai", session=session)
    remote.plays += [CHAT.says(call=True), CHAT.says(ANSWER)]
    ask_chat(remote, CHAT.first())
    (tmp_path / "weather.txt").write_text(RESULT)
    ask_chat(remote, [*CHAT.first(), *CHAT.then()])
    (changed,) = recorded.of("file.changed")
    assert (changed.body["path"], changed.body["action"]) == ("weather.txt", CALL[0])
    assert [file.path for file in session.files.modified().files] == ["weather.txt"]


def test_files_that_tools_change_are_recorded_on_request(
    recorded: Recorded, remote: Provider, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    wakelog.instrument("openai", store=recorded.store, files=True)
    remote.plays += [CHAT.says(call=True), CHAT.says(ANSWER)]
    ask_chat(remote, CHAT.first())
    (tmp_path / "weather.txt").write_text(RESULT)
    ask_chat(remote, [*CHAT.first(), *CHAT.then()])
    assert [file.path for file in recorded.session.files.modified().files] == ["weather.txt"]


def test_a_turn_that_is_done_is_not_recorded_again(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai")
    session = recorded.store.session("mine")
    remote.plays += [CHAT.says(ANSWER), CHAT.says(ANSWER)]
    for _ in range(2):
        with session.turn(QUESTION, id="once"):
            ask_chat(remote, CHAT.first())
    wakelog.uninstrument()
    assert len(recorded.of("action.requested")) == 1


def test_two_threads_in_one_turn_are_recorded_in_it(recorded: Recorded, remote: Provider) -> None:
    wakelog.instrument("openai")
    session = recorded.store.session("mine")
    remote.plays += [CHAT.says("ok"), CHAT.says("ok")]
    with session.turn("both"):
        work = [
            threading.Thread(target=session.calls.bind(ask_chat), args=(remote, [{"role": "user", "content": name}]))
            for name in ("a", "b")
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert len(recorded.of("action.succeeded")) == 2
    assert {e.header.turn for e in recorded.of("action.requested", "action.succeeded")} == {1}
    assert sorted(m[1] for m in recorded.said() if m[0] == "user") == ["a", "b", "both"]
