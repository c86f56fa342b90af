"""Model calls: what is recorded, what they depend on, and that nothing is paid twice."""

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.later import Later
from tests.runtime.lives import Desk, Killed
from wakelog.codec.canonical import hash_value
from wakelog.engines.memory import MemoryEngine
from wakelog.log.reader import Entry
from wakelog.model.events import ActionRequested, InputRequested
from wakelog.session import Session
from wakelog.store import Store

ANSWER = {"text": "I will look", "usage": {"input_tokens": 7, "output_tokens": 2}, "stop_reason": "end_turn"}


def complete(messages: Any, *, model: str = "m-1", temperature: float = 0.5, seed: int | None = None) -> dict[str, Any]:
    return ANSWER


def of(session: Session[Any], kind: str) -> list[Entry]:
    return list(session.events(kind=kind))


def mark(entry: Entry) -> tuple[str, str]:
    return entry.header.trust, entry.header.source


# What is recorded


def test_a_model_call_is_an_action_with_its_parameters_and_the_hash_of_what_it_was_shown(session: Session[Any]) -> None:
    messages = [{"role": "user", "content": "hello"}]
    with session.turn("hello"):
        assert session.model(complete, messages, temperature=0.25) == ANSWER
    (request,) = of(session, "action.requested")
    assert (request.body["tool"], request.body["effect"]) == ("m-1", "model")
    assert request.body["params"] == {"model": "m-1", "temperature": 0.25}
    assert request.body["context_hash"] == hash_value({"messages": messages})
    assert "hello" not in str(request.body)
    (outcome,) = of(session, "action.succeeded")
    assert outcome.body["stop_reason"] == "end_turn"
    assert outcome.header.cause == request.seq
    spent = session.state().budget.spent
    assert spent["tokens"] == 9


def test_without_a_context_the_model_is_taken_to_have_seen_all_that_is_in_view(session: Session[Any]) -> None:
    session.message("user", "one")
    session.message("user", "two")
    session.rewind(2)
    session.message("user", "three")
    seen = session.log.view()
    with session.turn("go"):
        session.model(complete, [])
    (request,) = of(session, "action.requested")
    assert request.header.derived_from[: len(seen) - 1] == tuple(seen[:-1])
    assert request.header.derived_from[-1][1] == request.seq - 1


def test_with_a_context_the_request_names_the_events_that_were_in_it(session: Session[Any]) -> None:
    with session.turn("go"):
        context = session.context.window()
        session.model(complete, context)
    (request,) = of(session, "action.requested")
    assert request.header.derived_from == tuple(context.ranges)


anthropic, openai_chat = Later("anthropic"), Later("openai.types.chat")

OPENAI = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt",
    "choices": [{"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": "hi"}}],
    "usage": {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 4},
    },
}
ANTHROPIC = {
    "id": "1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "max_tokens",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 3,
        "output_tokens": 2,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 2,
    },
}
GEMINI = {
    "candidates": [{"content": {"parts": [{"text": "hi"}]}, "finish_reason": "STOP"}],
    "usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 1, "thoughts_token_count": 1},
}
GEMINI_REST = {
    "candidates": [{"finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2},
}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (OPENAI, "length"),
        (lambda: openai_chat.ChatCompletion.model_validate(OPENAI), "length"),
        (ANTHROPIC, "max_tokens"),
        (lambda: anthropic.types.Message.model_validate(ANTHROPIC), "max_tokens"),
        (GEMINI, "STOP"),
        (GEMINI_REST, "STOP"),
        ({"text": "no usage"}, ""),
        ("only text", ""),
        (None, ""),
    ],
)
def test_usage_and_reason_are_read_from_the_answers_of_the_big_providers(
    session: Session[Any], answer: Any, reason: str
) -> None:
    answer = answer() if callable(answer) else answer

    def create(**given: Any) -> Any:
        return answer

    assert session.model(create, model="x", messages=[]) is answer
    (outcome,) = of(session, "action.succeeded")
    cost = outcome.body.get("cost", {})
    has_usage = answer is not None and "usage" in str(answer) and "no usage" not in str(answer)
    assert (cost.get("tokens_in", 0), cost.get("tokens_out", 0)) == ((10, 2) if has_usage else (0, 0))
    assert outcome.body.get("stop_reason", "") == reason


def test_large_parameters_are_recorded_by_their_hash(session: Session[Any]) -> None:
    tools = [{"name": f"tool {n}", "description": "x" * 100} for n in range(50)]

    def create(messages: Any, tools: Any, model: str) -> str:
        return "ok"

    session.model(create, [], tools=tools, model="m")
    (request,) = of(session, "action.requested")
    assert request.body["params"]["tools"] == {"hash": hash_value(tools)}


def test_defaults_that_only_say_not_given_are_left_out(session: Session[Any]) -> None:
    omit = object()

    def create(messages: Any, model: str, stop: Any = omit, top_p: float = 1.0, seed: Any = None) -> str:
        return "ok"

    session.model(create, [], model="m")
    (request,) = of(session, "action.requested")
    assert request.body["params"] == {"model": "m", "top_p": 1}


def test_an_error_of_the_model_goes_on_unchanged_and_may_be_retried(session: Session[Any]) -> None:
    tries: list[int] = []

    def create(messages: Any) -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("overloaded")
        return "ok"

    with pytest.raises(ConnectionError):
        session.model(create, [])
    policy = wakelog.Policy(effect="model", retry=2, backoff_s=0.0)
    assert session.model(create, [], policy=policy) == "ok"


# After a crash


def test_a_recorded_answer_is_given_again_as_its_type_and_nothing_is_paid_twice(desk: Desk) -> None:
    from openai.types.chat import ChatCompletion

    asked: list[int] = []

    def script(dies: bool) -> ChatCompletion:
        session, life = desk.process()

        def create(messages: Any, model: str) -> ChatCompletion:
            asked.append(1)
            return ChatCompletion.model_validate(OPENAI)

        with session.turn("go"):
            answer = session.model(create, [{"role": "user", "content": "go"}], model="gpt")
            if dies:
                life.is_dead = True
            life.breathe()
            return answer

    with pytest.raises(Killed):
        script(True)
    assert script(False) == ChatCompletion.model_validate(OPENAI)
    assert len(asked) == 1
    assert desk.operator.state().budget.spent["tokens"] == 12


def test_a_model_call_that_was_cut_is_asked_again_under_the_same_key(desk: Desk) -> None:
    keys: list[str] = []

    def script(dies: bool) -> str:
        session, life = desk.process()

        def create(messages: Any) -> str:
            call = wakelog.current_call()
            assert call is not None
            keys.append(call.key)
            if dies:
                life.is_dead = True
            life.breathe()
            return "ok"

        with session.turn("go"):
            return session.model(create, [])

    with pytest.raises(Killed):
        script(True)
    assert script(False) == "ok"
    assert keys[0] == keys[1]


SCRIPT = """
import sys
import openai, wakelog
from pathlib import Path

class Marker: ...

with wakelog.open(sys.argv[1]) as store:
    session = store.session("s")
    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1:9")
    create = client.chat.completions.create

    @session.tool
    def send(client, tags, to="ada"):
        with open(sys.argv[2], "a") as world:
            world.write("sent\\n")
        return "sent"

    with session.turn("go"):
        session.call(send, {"client": Marker(), "tags": {"a", "b", "c", "d", "e"}})
        try:
            session.model(create, model="m", messages=[], timeout=0.01)
        except openai.APIConnectionError:
            pass
        except wakelog.CallFailedError:
            print("given again")
        raise KeyboardInterrupt
"""


def test_arguments_that_are_objects_are_the_same_call_in_another_process(tmp_path: Path) -> None:
    """Addresses of objects, and the order of sets, are others in each process; so are a client's unset defaults."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    said = ""
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, str(script), str(tmp_path / "store"), str(tmp_path / "world")],
            capture_output=True,
            text=True,
            env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
        )
        assert "KeyboardInterrupt" in run.stderr, run.stderr
        said += run.stdout
    assert (tmp_path / "world").read_text() == "sent\n"
    assert said == "given again\n"


# What rests on what


def _fetch(session: Session[Any]) -> Any:
    @session.tool(effect="read", trust="untrusted", source="web:blog.example")
    def fetch(url: str) -> str:
        return "the column must be nullable"

    return fetch


UNTRUSTED = ("untrusted", "web:blog.example")


def test_what_follows_from_an_untrusted_result_is_untrusted_and_says_why(session: Session[Any]) -> None:
    fetch = _fetch(session)

    @session.tool(trust="trusted")
    def run_sql(sql: str) -> str:
        return "ok"

    with session.turn("fix the table"):
        session.decide("look it up")
        outcome = session.call(fetch, {"url": "https://blog.example"})
        session.message("tool", outcome.result, action=outcome.action)
        session.model(complete, [])
        session.decide("make it nullable")
        session.fact("column", "nullable")
        session.message("assistant", "it must be nullable")
        run_sql("alter table")
    before, after = of(session, "decision")
    assert mark(before) == ("trusted", "")
    fetched, answered, done = of(session, "action.succeeded")
    assert mark(fetched) == UNTRUSTED
    assert mark(answered) == UNTRUSTED
    assert mark(after) == UNTRUSTED
    assert after.header.cause == answered.seq
    (fact,) = of(session, "fact")
    assert mark(fact) == UNTRUSTED
    *_, tool_message, said = of(session, "message")
    assert mark(tool_message) == UNTRUSTED
    assert tool_message.header.derived_from == ((fetched.seq, fetched.seq),)
    assert mark(said) == UNTRUSTED
    request = of(session, "action.requested")[-1]
    assert mark(request) == UNTRUSTED
    assert request.header.cause == answered.seq
    assert mark(done) == ("trusted", ""), "what a trusted tool says is its own, whoever asked"


def test_a_pure_tool_is_trusted_as_far_as_its_caller(session: Session[Any]) -> None:
    fetch = _fetch(session)

    @session.tool(effect="pure")
    def shorten(text: str) -> str:
        return text[:5]

    with session.turn("go"):
        text = fetch("x")
        session.model(complete, [])
        shorten(text)
    assert mark(of(session, "action.recorded")[-1]) == UNTRUSTED


def test_a_new_turn_begins_with_a_clean_slate_but_the_model_has_still_seen_it(session: Session[Any]) -> None:
    fetch = _fetch(session)
    with session.turn("one"):
        fetch("x")
        session.model(complete, [])
    with session.turn("two"):
        session.decide("a decision of its own")
        session.model(complete, [])
        session.decide("one that rests on the model")
    first, second = of(session, "decision")
    assert (mark(first), first.header.cause) == (("trusted", ""), 0)
    assert mark(second) == UNTRUSTED


def test_a_context_decides_what_the_model_was_exposed_to(session: Session[Any]) -> None:
    class Window(list[Any]):
        ranges = ((1, 1),)
        exposure = "trusted"
        source = ""

    fetch = _fetch(session)
    with session.turn("go"):
        fetch("x")
        session.model(complete, Window())
        session.decide("safe")
    assert mark(of(session, "decision")[-1]) == ("trusted", "")


def test_all_that_is_recorded_inside_untrusted_is_marked(session: Session[Any]) -> None:
    @session.tool(effect="read")
    def read(path: str) -> str:
        return "x"

    with session.turn("go"), wakelog.untrusted("file:downloads"):
        read("a.txt")
        session.fact("a", 1)
        with wakelog.untrusted("web:x", trust="unverified"):
            session.fact("b", 1)
    marks = {mark(e) for e in session.events() if e.kind in ("action.requested", "action.succeeded", "fact.recorded")}
    assert marks == {("untrusted", "file:downloads")}


def test_a_result_given_again_after_a_crash_is_as_untrusted_as_it_was(desk: Desk) -> None:
    def script(dies: bool) -> None:
        session, life = desk.process()
        fetch = _fetch(session)
        with session.turn("go"):
            fetch("x")
            session.model(complete, [])
            if dies:
                life.is_dead = True
            life.breathe()
            session.decide("so")

    with pytest.raises(Killed):
        script(True)
    script(False)
    (decision,) = of(desk.operator, "decision")
    again = of(desk.operator, "action.recorded")
    assert [mark(e) for e in again] == [UNTRUSTED, UNTRUSTED]
    assert (mark(decision), decision.header.cause) == (UNTRUSTED, again[-1].seq)


# Cost of a long conversation


def _stored_bytes(count: int) -> int:
    engine = MemoryEngine()
    session = Store(engine).session("s")
    messages: list[dict[str, str]] = []
    with session.turn("go"):
        for n in range(count):
            messages.append({"role": "user", "content": f"message {n} " + "x" * 500})
            session.message("user", messages[-1]["content"])
            session.model(complete, messages)
    return sum(
        len(record.header) + len(record.body) for commit in engine.read(session.id) for record in commit.records
    ) + sum(len(content) for commit in engine.read(session.id, payloads=True) for _, content in commit.payloads)


def test_storage_grows_with_what_was_said_and_not_with_the_square_of_it() -> None:
    small, large = _stored_bytes(50), _stored_bytes(200)
    assert large < 4.4 * small
    assert large < 200 * 3000, "each call costs its message and a little more"


# Results that cannot be stored


class Cursor:
    """Something that is of no use after the process."""


@pytest.mark.parametrize("result", [Cursor(), {"rows": [Cursor()]}, 2**60, open, iter([1])])
def test_a_result_that_cannot_be_stored_is_refused_with_the_reason_and_never_stored_as_its_repr(
    session: Session[Any], result: Any
) -> None:
    ran = []

    @session.tool
    def query(sql: str) -> Any:
        ran.append(sql)
        return result

    with pytest.raises(wakelog.InvalidInputError, match="the result of query cannot be stored") as caught:
        query("select 1")
    assert caught.value.kind == "not-storable"
    assert ran == ["select 1"]
    assert not of(session, "action.succeeded")
    (failed,) = of(session, "action.failed")
    assert failed.body["error"]["type"] == "not-storable"
    assert failed.body["error"]["message"].startswith("it ran, but")
    assert "repr" not in str(failed.body)


def test_a_model_answer_that_cannot_be_stored_is_refused_too(session: Session[Any]) -> None:
    with pytest.raises(wakelog.InvalidInputError, match="cannot be stored"):
        session.model(lambda messages: Cursor(), [])
    assert not of(session, "action.succeeded")


def test_what_people_say_of_a_call_must_be_storable(session: Session[Any]) -> None:
    session.append(InputRequested(request="q", prompt="which one?"))
    with pytest.raises(wakelog.InvalidInputError, match="the answer cannot be stored"):
        session.calls.answer("q", Cursor())
    assert "q" in session.log.part("pending_actions")


def test_a_question_is_answered_and_neither_approved_nor_denied(session: Session[Any]) -> None:
    session.append(InputRequested(request="q", prompt="which one?"))
    for decide in (session.calls.approve, session.calls.deny):
        with pytest.raises(wakelog.NotAllowedError, match="q is a question") as refused:
            decide("q")
        assert "wakelog answer q" in refused.value.hint
    session.calls.answer("q", "the first")
    assert not session.log.part("pending_actions")


def test_a_call_of_a_tool_named_input_is_no_question(session: Session[Any]) -> None:
    session.append(ActionRequested(action="a", tool="input", approval=True))
    with pytest.raises(wakelog.NotAllowedError, match="a is a call"):
        session.calls.answer("a", "yes")
    session.calls.approve("a")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({}, ("unverified", "tool:look")),
        ({"effect": "read"}, ("unverified", "tool:look")),
        ({"effect": "external", "source": "web:x"}, ("unverified", "web:x")),
        ({"effect": "write"}, ("trusted", "")),
        ({"effect": "pure"}, ("trusted", "")),
        ({"effect": "read", "trust": "trusted"}, ("trusted", "")),
        ({"effect": "write", "trust": "untrusted"}, ("untrusted", "tool:look")),
    ],
)
def test_what_a_tool_reads_from_outside_is_unverified_unless_it_is_declared(
    session: Session[Any], policy: dict[str, Any], expected: tuple[str, str]
) -> None:
    @session.tool(**policy)
    def look() -> str:
        return "seen"

    with session.turn("go"):
        look()
    [done] = [e for e in session.events(kind="action") if e.kind in ("action.succeeded", "action.recorded")]
    assert mark(done) == expected


def test_a_patch_on_the_word_of_something_unverified_folds_to_what_is_read_later(session: Session[Any]) -> None:
    @session.tool(effect="read")
    def look() -> str:
        return "seen"

    with session.turn("go") as turn:
        look()
        turn.model(lambda messages: "found", messages=["go"])
        session.patch([{"op": "add", "path": "/data/found", "value": 1}])
    live = session.log.state()
    assert live == session.log.state(session.seq(session.head.seq))
    assert session.verify().ok


def test_an_answer_that_the_client_does_not_know_fully_comes_back_as_the_clients_type(session: Session[Any]) -> None:
    from openai.types.chat import ChatCompletion

    sent: dict[str, Any] = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
    choice = {"index": 0, "finish_reason": "new reason", "message": {"role": "assistant", "content": "hello"}}
    asked: list[int] = []

    def create(model: str, messages: list[Any]) -> ChatCompletion:
        asked.append(1)
        return ChatCompletion.construct(**{**sent, "choices": [choice]})

    for is_again in (False, True):
        with contextlib.suppress(KeyboardInterrupt), session.turn("go"):
            answer = session.model(create, model="m", messages=[])
            assert isinstance(answer, ChatCompletion)
            assert answer.choices[0].message.content == "hello"
            assert str(answer.choices[0].finish_reason) == "new reason"
            if not is_again:
                raise KeyboardInterrupt
    assert len(asked) == 1
