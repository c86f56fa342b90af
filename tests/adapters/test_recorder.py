"""Messages of any framework become turns, calls and outcomes, each once, and come back as they were."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import wakelog
from wakelog.adapters.recorder import ListChange, Recorder
from wakelog.errors import ConflictError, InvalidInputError
from wakelog.importers.writer.kept_items import fill_item, hollow_out
from wakelog.model.events import ActionRequested, TurnStarted
from wakelog.model.names import is_name, name_of_id
from wakelog.store import Store

RESPONSES: list[dict[str, Any]] = [
    {"role": "user", "content": "What is the weather in Paris?"},
    {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAA"},
    {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Paris"}'},
    {"id": "fc_2", "type": "function_call", "call_id": "call_2", "name": "clock", "arguments": '{"zone": "CET"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
    {"type": "function_call_output", "call_id": "call_2", "output": "noon"},
    {"id": "m_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sunny."}]},
    {"role": "user", "content": [{"type": "input_text", "text": "And tomorrow?"}]},
    {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"query": "weather tomorrow"}},
    {"id": "m_2", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain."}]},
]
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": "What is the weather in Paris?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
    {"role": "assistant", "content": "Sunny."},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Read"}, {"type": "text", "text": "both files."}]},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I read both."},
            {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a.txt"}},
            {"type": "tool_use", "id": "toolu_2", "name": "read_file", "input": {"path": "b.txt"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "A"},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no such file", "is_error": True},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Only one is there."}]},
]
LISTS = {"responses": RESPONSES, "chat": CHAT, "anthropic": ANTHROPIC}


@pytest.fixture
def store() -> Iterator[Store]:
    with wakelog.open("memory:") as opened:
        yield opened


def recorder(store: Store, **how: Any) -> Recorder:
    return Recorder(store.session("talk", folder=""), **how)


def kinds(made: Recorder) -> list[str]:
    return [e.kind for e in made.session.log.entries() if e.kind not in ("session.opened", "items.kept")]


@pytest.mark.parametrize("shape", LISTS)
def test_messages_come_back_as_they_were_given(store: Store, shape: str) -> None:
    given = copy.deepcopy(LISTS[shape])
    recorder(store).add(*given)
    assert recorder(store).messages() == LISTS[shape] == given


@pytest.mark.parametrize("shape", LISTS)
def test_a_growing_list_is_recorded_once(store: Store, shape: str) -> None:
    at_once, grown, given = Recorder(store.session("once", folder="")), recorder(store), LISTS[shape]
    at_once.add(*given)
    for size in range(len(given) + 1):
        grown.sync(given[:size])
        assert grown.sync(given[:size]) == ListChange()
    assert grown.messages() == given
    assert grown.session.head.turn == at_once.session.head.turn
    counted = [sorted(k for k in kinds(each) if "turn" in k or "succ" in k) for each in (grown, at_once)]
    assert counted[0] == counted[1]


def test_turns_calls_and_outcomes_are_found_in_responses_items(store: Store) -> None:
    made = recorder(store)
    made.add(*RESPONSES)
    assert kinds(made) == [
        *("turn.started", "action.recorded", "action.requested", "action.requested"),
        *("action.succeeded", "action.succeeded", "action.recorded", "turn.ended"),
        *("turn.started", "action.recorded", "action.recorded", "action.recorded", "turn.ended"),
    ]
    asked = [e.body for e in made.session.log.entries() if e.kind == "action.requested"]
    assert [(a["tool"], a["input"], a["group"]) for a in asked] == [
        ("weather", {"city": "Paris"}, "rs_1"),
        ("clock", {"zone": "CET"}, "rs_1"),
    ]
    assert made.session.head.turn == 2


def test_a_result_that_says_it_is_an_error_is_a_failed_call(store: Store) -> None:
    made = recorder(store)
    made.add(*ANTHROPIC)
    [failed] = [e.body for e in made.session.log.entries() if e.kind == "action.failed"]
    assert (failed["action"], failed["error"]["message"]) == ("toolu_2", "no such file")


def test_a_call_without_a_result_is_pending_and_then_uncertain(store: Store) -> None:
    made = recorder(store)
    made.add(*CHAT[:3])
    assert [p["status"] for p in made.session.log.part("pending_actions").values()] == ["running"]
    made.add({"role": "user", "content": "Never mind."})
    assert [p["status"] for p in made.session.log.part("pending_actions").values()] == ["uncertain"]
    assert kinds(made)[-3:] == ["action.uncertain", "turn.ended", "turn.started"]
    made.add(CHAT[3])
    assert made.session.log.part("pending_actions") == {}


def test_a_shorter_list_is_a_rewind_and_says_so(store: Store) -> None:
    made = recorder(store)
    made.sync(CHAT)
    assert made.sync(CHAT[:2]) == ListChange(removed=3, how="rewind")
    assert made.messages() == recorder(store).messages() == CHAT[:2]
    [rewound] = [e.body for e in made.session.log.entries() if e.kind == "history.rewound"]
    assert rewound["why"] == "the list of messages was edited after 2 of 5"
    assert made.sync(CHAT) == ListChange(3, 0, "append")


def test_an_edited_list_is_a_fork_where_that_is_asked_for(store: Store) -> None:
    made = recorder(store, on_edit="fork")
    made.sync(CHAT)
    edited = [*CHAT[:4], {"role": "assistant", "content": "Sunny, and warm."}]
    done = made.sync(edited)
    assert (done.added, done.removed, done.how, done.session) == (1, 1, "fork", made.session.id)
    assert made.messages() == edited
    assert recorder(store).messages() == CHAT


def test_a_misspelt_choice_is_refused_at_once(store: Store) -> None:
    for wrong in ({"on_edit": "reject"}, {"effects": {"find_order": "reads"}}):
        with pytest.raises(InvalidInputError, match="is not") as caught:
            Recorder(store.session("s"), **wrong)
        assert caught.value.hint.startswith("one of")


def test_an_edited_list_is_refused_where_that_is_asked_for(store: Store) -> None:
    made = recorder(store, on_edit="refuse")
    made.sync(CHAT)
    with pytest.raises(ConflictError) as refused:
        made.sync(CHAT[:-1])
    assert refused.value.kind == "history-edited"
    assert made.messages() == CHAT


def test_marks_of_a_cache_are_no_edit(store: Store) -> None:
    made = recorder(store)
    made.sync(ANTHROPIC)
    marked = copy.deepcopy(ANTHROPIC)
    marked[0]["content"][1]["cache_control"] = {"type": "ephemeral"}
    assert made.sync(marked) == ListChange()


def test_popped_messages_leave_the_view_one_by_one(store: Store) -> None:
    made, other = recorder(store), recorder(store)
    made.add(*RESPONSES)
    taken = [(made if n % 2 else other).pop() for n in range(len(RESPONSES))]
    assert taken == RESPONSES[::-1]
    assert made.pop() is None
    made.add(*CHAT)
    assert other.messages() == CHAT
    assert other.clear() == len(CHAT)
    assert made.messages() == []
    made.session.undo()
    assert made.messages() == CHAT


def test_a_fork_between_two_messages_of_one_commit_has_those_before_it(store: Store) -> None:
    made = recorder(store)
    made.add(*RESPONSES)
    for size, item in enumerate(made.log.refresh()):
        assert Recorder(made.session.fork(item.first - 1)).messages() == RESPONSES[:size]


def test_what_is_erased_from_an_event_is_gone_from_its_message(store: Store) -> None:
    made = recorder(store)
    made.add({"role": "user", "content": "My pin is 4711"})
    made.add({"role": "assistant", "content": "Noted."})
    started = made.log.refresh()[0].first
    store.erase(made.session, started)
    for each in (made, recorder(store)):
        assert each.messages() == [
            {"role": "user", "content": f"(erased, e{started})"},
            {"role": "assistant", "content": "Noted."},
        ]
    assert not any(b"4711" in e.record.body for e in made.session.log.entries())


def test_a_masked_secret_is_masked_in_its_message_too(store: Store) -> None:
    made = recorder(store)
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    made.add({"role": "user", "content": f"use {secret}"}, {"role": "assistant", "content": "done"})
    assert made.messages() == recorder(store).messages()
    assert secret not in str(made.messages())
    assert len(made.messages()) == 2


def test_a_whole_answer_brings_its_model_and_usage(store: Store) -> None:
    made = recorder(store)
    made.add({"role": "user", "content": "hi"})
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    message = {"role": "assistant", "content": "hello"}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    made.add({"id": "c_1", "object": "chat.completion", "model": "gpt-4o", "choices": [choice], "usage": usage})
    [reply] = [e.body for e in made.session.log.entries() if e.kind == "action.recorded"]
    assert (reply["action"], reply["params"], reply["stop_reason"]) == ("c_1", {"model": "gpt-4o"}, "stop")
    assert (reply["cost"]["tokens_in"], reply["cost"]["tokens_out"]) == (12, 3)
    assert made.messages()[-1] == message


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ({"role": "user", "content": object()}, r"messages\[1\].content"),
        ({"role": "user", "content": [{"type": "text", "text": b"x"}]}, r"messages\[1\].content\[0\].text"),
        ({"role": "user", "content": {"n": "\ud800"}}, r"messages\[1\].content.n"),
        ("hello", r"messages\[1\]"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_path_and_nothing_is_written(
    store: Store, message: Any, path: str
) -> None:
    made = recorder(store)
    before = made.session.head.seq
    with pytest.raises(InvalidInputError, match=path):
        made.add({"role": "user", "content": "fine"}, message)
    assert made.session.head.seq == before


def test_two_recorders_of_one_session_lose_nothing(store: Store) -> None:
    one, two = recorder(store), Recorder(store.resume(recorder(store).session.id))
    for n in range(6):
        (one if n % 2 else two).add({"role": "user", "content": f"{n}"}, {"role": "assistant", "content": "ok"})
    assert one.messages() == two.messages()
    assert [m["content"] for m in one.messages()[::2]] == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.parametrize("id", ["e86", "@5", "", "last-error", "s_01M7JHZ4S3CE11S0Z84RPZY87C", "a\nb", "..", "x" * 400])
def test_an_id_that_cannot_name_a_session_gets_a_name_of_its_own(id: str) -> None:
    name = name_of_id(id)
    assert is_name(name)
    assert name != id
    assert name == name_of_id(id) != name_of_id(id + " ")


def test_an_id_that_can_name_a_session_is_its_name() -> None:
    assert name_of_id("user-123") == "user-123"


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "user", '{"a":1}', '{"a": 1}', "$in"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "$in", "is", "as", "role"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(_values, _values)
@example({"$in": {"is": 1}}, {"$in": [0, "input"]})
@example({"x": '{"a": 1}', "y": '{"a":1}'}, {"a": 1})
def test_a_hollow_item_is_filled_to_what_it_was(item: Any, held: Any) -> None:
    whole = {"item": item, "held": held}
    events = [TurnStarted(input=held), ActionRequested(action="a", tool="t", input=item)]
    fields = {(0, "input"): held, (1, "input"): item}
    assert fill_item(hollow_out(whole, enumerate(events)), lambda number, name: fields[number, name]) == whole


def test_numbers_and_keys_that_a_log_refuses_come_back_as_they_were(store: Store) -> None:
    id = 1_234_567_890_123_456_789  # as long as many services make them
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Who wrote it?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "find", "input": {"post": id}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "Ann", "n": 2**70}]},
        {"role": "assistant", "content": "Ann.", "extra": {"$payload": 1, "ratio": float("inf")}},
    ]
    recorder = Recorder(store.session("s"))
    recorder.add(*messages[:2])
    assert recorder.sync(messages) == ListChange(2, 0, "append")
    assert Recorder(store.resume("s")).messages() == messages
    assert recorder.pop() == messages[-1]
