"""Chats of GitHub Copilot, made here as VS Code exports them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.importers.growth import check_growth, seen_once
from wakelog.errors import WakelogError
from wakelog.importers.formats import detect_format

START = 1_767_600_000_000
FILE = "/srv/shop/limit.py"


def request(number: int, words: str, response: list[Any], **more: Any) -> dict[str, Any]:
    message = {"text": words, "parts": [{"kind": "text", "text": words}]}
    result = {"timings": {"totalElapsed": 5000}, "metadata": more.pop("metadata", {})}
    about = {"requestId": f"request_{number}", "timestamp": START + number * 60_000, "modelId": "copilot/gpt-4.1"}
    return {**about, "message": message, "response": response, "result": result, **more}


def call(id: str, name: str, **given: Any) -> dict[str, Any]:
    return {"id": id, "name": name, "arguments": json.dumps(given)}


def content(value: Any) -> dict[str, Any]:
    return {"$mid": 20, "content": [{"$mid": 21, "value": value}]}


TREE = {"node": {"children": [{"type": 2, "text": "LIMIT"}, {"type": 2, "text": "= 10", "lineBreakBefore": True}]}}
AGENT = request(
    1,
    "make the limit a setting",
    [
        {"kind": "mcpServersStarting", "didStartServerIds": []},
        {
            "kind": "toolInvocationSerialized",
            "toolId": "run_in_terminal",
            "toolCallId": "c3",
            "toolSpecificData": {"kind": "terminal", "terminalCommandState": {"exitCode": 1}},
        },
        {"value": "It is a setting."},
    ],
    metadata={
        "promptTokens": 1200,
        "outputTokens": 30,
        "toolCallRounds": [
            {"response": "I look.", "toolCalls": [call("c1", "read_file", filePath=FILE)]},
            {"response": "", "toolCalls": [call("c2", "create_file", filePath=FILE, content="LIMIT = 20\n")]},
            {
                "thinking": {"text": "Test it."},
                "response": "",
                "toolCalls": [call("c3", "run_in_terminal", command="pytest")],
            },
            {"response": "It is a setting.", "toolCalls": []},
        ],
        "toolCallResults": {"c1": content(TREE), "c2": content("Created."), "c3": content("1 failed")},
    },
)
ASKED = request(
    2,
    "why is it ten?",
    [
        {"kind": "thinking", "value": "Hm."},
        {"value": "See "},
        {"kind": "inlineReference", "inlineReference": {"path": FILE, "scheme": "file"}},
        {"value": "."},
        {"kind": "textEditGroup", "uri": {"fsPath": FILE}, "edits": [[{"text": "x"}]]},
        {"kind": "undoStop", "id": "1"},
    ],
)
STOPPED = request(3, "and now?", [{"value": "Well"}], isCanceled=True)


def written(folder: Path, requests: list[Any]) -> Path:
    path = folder / "chat.json"
    path.write_text(json.dumps({"responderUsername": "GitHub Copilot", "requests": requests}, indent=2))
    return path


def test_the_rounds_of_an_agent_are_replies_with_calls_results_and_files(tmp_path: Path) -> None:
    path = written(tmp_path, [AGENT])
    assert detect_format(path).NAME == "copilot-chat"
    seen = seen_once(path)
    assert seen.prompts() == ["make the limit a setting"]
    assert seen.said() == ["I look.", "It is a setting."]
    assert [(c.tool, c.outcome, c.output) for c in seen.calls.values()] == [
        ("read_file", "succeeded", "LIMIT\n= 10"),
        ("create_file", "succeeded", "Created."),
        ("run_in_terminal", "failed", "1 failed"),
    ]
    assert seen.files == [(FILE, "created", 1, 0)]
    assert (seen.cost["tokens_in"], seen.cost["tokens_out"]) == (1200, 30)
    assert seen.turns == ["completed"]


def test_without_rounds_what_was_shown_is_read(tmp_path: Path) -> None:
    seen = seen_once(written(tmp_path, [ASKED, STOPPED]))
    assert seen.prompts() == ["why is it ten?", "and now?"]
    assert seen.said() == ["See `limit.py`.", "Well"]
    assert [(path, change) for path, change, _, _ in seen.files] == [(FILE, "modified")]
    assert seen.turns == ["completed", "interrupted"]


def test_a_chat_that_grows_is_seen_as_if_it_was_imported_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [AGENT, ASKED, STOPPED]
    versions = [written(tmp_path, requests[:n]).read_bytes() for n in range(1, 4)]
    check_growth(versions, tmp_path / "chat.json", "copilot-chat", monkeypatch)


def test_odd_requests_are_kept_and_a_broken_chat_is_refused(tmp_path: Path) -> None:
    odd = [7, {"message": "hello", "response": "no list", "result": "no object"}, {"message": {"text": 3}}]
    assert seen_once(written(tmp_path, [*odd, AGENT])).prompts() == ["hello", "make the limit a setting"]
    broken = tmp_path / "broken.json"
    broken.write_text('{"responderUsername": "GitHub Copilot", "requests": {}}')
    with pytest.raises(WakelogError, match="is not a chat"):
        seen_once(broken)


def test_a_call_without_a_result_and_a_result_that_is_plain_text(tmp_path: Path) -> None:
    calls = [call("c1", "read_file", filePath=FILE), call("c2", "read_file", filePath=FILE)]
    metadata = {"toolCallRounds": [{"response": "I look.", "toolCalls": calls}], "toolCallResults": {"c2": "LIMIT"}}
    seen = seen_once(written(tmp_path, [request(1, "look", [], metadata=metadata, isCanceled=True)]))
    assert [c.output for c in seen.calls.values()] == ["", "LIMIT"]
