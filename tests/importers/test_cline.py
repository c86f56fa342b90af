"""Tasks of Cline, made here as that program writes them."""

import json
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.importers.growth import check_growth, seen_once
from wakelog.importers.discovery import find_transcripts
from wakelog.importers.formats import detect_format
from wakelog.importers.transcript_import import import_transcript

START = 1_767_600_000_000
ENVIRONMENT = "<environment_details>\n# Current Working Directory (/srv/shop) Files\nlimit.py\n</environment_details>"


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [*blocks, text(ENVIRONMENT)]}


def answer(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": [*blocks]}


def use(id: str, name: str, **given: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str, words: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": [text(words)]}


NATIVE = [
    user(text("<task>\nMake the limit a setting\n</task>")),
    answer(text("I look first."), use("t1", "read_file", path="limit.py")),
    user(result("t1", "LIMIT = 10")),
    answer(use("t2", "write_to_file", path="limit.py", content="LIMIT = 20\n")),
    user(result("t2", "The content was successfully saved to limit.py.")),
    answer(use("t3", "execute_command", command="rm -rf /tmp/x")),
    user(result("t3", "The user denied this operation."), text("<feedback>\nDo not delete anything\n</feedback>")),
    answer(use("t4", "attempt_completion", result="It is a setting.")),
]
XML = [
    user(text("<task>\nMake the limit a setting\n</task>")),
    answer(text("I look first.\n\n<read_file>\n<path>limit.py</path>\n</read_file>")),
    user(text("[read_file for 'limit.py'] Result:"), text("LIMIT = 10")),
    answer(text("<write_to_file>\n<path>limit.py</path>\n<content>\nLIMIT = 20\n</content>\n</write_to_file>")),
    user(text("[write_to_file for 'limit.py'] Result:"), text("The content was successfully saved to limit.py.")),
    answer(text("<execute_command>\n<command>rm -rf /tmp/x</command>\n</execute_command>")),
    user(
        text("[execute_command for 'rm -rf /tmp/x'] Result:"),
        text("The user denied this operation and provided the following feedback:"),
        text("<feedback>\nDo not delete anything\n</feedback>"),
    ),
    answer(text("<attempt_completion>\n<result>It is a setting.</result>\n</attempt_completion>")),
]


def seen_by_person(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is shown of a conversation: a request before each prompt joins it."""
    shown: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        at = START + index * 1000
        if message["role"] == "user":
            used = {"request": "…", "tokensIn": 100, "tokensOut": 10, "cacheReads": 5, "cost": 0.001}
            about = {"modelInfo": {"providerId": "anthropic", "modelId": "claude-sonnet-4-5", "mode": "act"}}
            started = {"ts": at, "type": "say", "say": "api_req_started", "text": json.dumps(used)}
            shown.append({**started, "conversationHistoryIndex": index - 1, **about})
        else:
            shown.append({"ts": at, "type": "say", "say": "text", "text": "…", "conversationHistoryIndex": index - 1})
    return shown


def written(folder: Path, messages: list[dict[str, Any]]) -> Path:
    task = folder / "1767600000000"
    task.mkdir(parents=True, exist_ok=True)
    (task / "ui_messages.json").write_text(json.dumps(seen_by_person(messages)))
    path = task / "api_conversation_history.json"
    path.write_text(json.dumps(messages))
    return path


@pytest.mark.parametrize("messages", [NATIVE, XML])
def test_prompts_calls_files_and_costs_are_there_in_both_ways_of_calling(
    tmp_path: Path, messages: list[dict[str, Any]]
) -> None:
    path = written(tmp_path, messages)
    assert detect_format(path).NAME == "cline"
    seen = seen_once(path)
    assert seen.prompts() == ["Make the limit a setting", "Do not delete anything"]
    assert [(c.tool, c.outcome) for c in seen.calls.values()] == [
        ("read_file", "succeeded"),
        ("write_to_file", "succeeded"),
        ("execute_command", "denied"),
        ("attempt_completion", "succeeded"),
    ]
    assert [(path, change) for path, change, _, _ in seen.files] == [("limit.py", "modified")]
    assert seen.cost == {"tokens_in": 4 * 105, "tokens_out": 40, "usd_micros": 4000}


def test_times_folder_and_model_are_taken_from_where_they_stand(tmp_path: Path) -> None:
    store = wakelog.open("memory:")
    report = import_transcript(store, written(tmp_path, NATIVE))
    session = store.resume(report.sessions[0].name)
    assert session.name == "cline-1767600000000"
    labels = session.log.part("labels")
    assert (labels["project"], labels["model"]) == ("/srv/shop", "claude-sonnet-4-5")
    (first, *_) = [e for e in session.log.entries() if e.kind == "turn.started"]
    assert first.happened_at == START * 1000
    assert "environment_details" not in str([m.text for m in session.messages()])


def test_the_conversation_alone_is_enough(tmp_path: Path) -> None:
    path = written(tmp_path, NATIVE)
    path.with_name("ui_messages.json").unlink()
    assert seen_once(path).prompts() == ["Make the limit a setting", "Do not delete anything"]
    path.with_name("ui_messages.json").write_text("[{half")
    assert len(seen_once(path).calls) == 4


@pytest.mark.parametrize("messages", [NATIVE, XML])
def test_a_task_that_grows_is_seen_as_if_it_was_imported_whole(
    tmp_path: Path, messages: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, messages)
    versions = [json.dumps(messages[:n]).encode() for n in range(1, len(messages) + 1)]
    check_growth(versions, path, "cline", monkeypatch)


def test_tasks_are_found_in_the_folders_of_editors(tmp_path: Path) -> None:
    storage = tmp_path / ".config" / "Code" / "User" / "globalStorage" / "saoudrizwan.claude-dev" / "tasks"
    path = written(storage, NATIVE)
    assert [(each.format, each.path) for each in find_transcripts(tmp_path)] == [("cline", path)]


def test_odd_messages_are_kept(tmp_path: Path) -> None:
    odd: list[Any] = ["words", {"role": "user", "content": 5}, {"role": "tool", "content": []}, *NATIVE]
    report = import_transcript(wakelog.open("memory:"), written_odd(tmp_path, odd))
    assert report.broken_count == 1
    assert report.new_records == len(odd)


def written_odd(folder: Path, messages: list[Any]) -> Path:
    path = folder / "1" / "api_conversation_history.json"
    path.parent.mkdir()
    path.write_text(json.dumps(messages))
    return path


TEXTS = [
    user(text("<task>\nMake the limit a setting\n</task>"), text("\n# task_progress RECOMMENDED\n\nKeep a list.")),
    answer(use("t1", "read_file", path="limit.py"), use("t2", "read_file", path="none.py"), use("t3", "use_subagents")),
    user(
        text("[read_file for 'limit.py'] Result:\nLIMIT = 10"),
        text("[read_file for 'none.py'] Result:\nThe tool execution failed with this error:\n<error>none</error>"),
        text("[subagents] Result:\nTotal: 1"),
        text("\n\n\t\t# TODO LIST UPDATE REQUIRED - You MUST include it."),
    ),
    answer(text("Now I write."), use("t4", "replace_in_file", path="limit.py", diff="…")),
    user(
        text(
            "[replace_in_file for 'limit.py'] Result:\nThe content was saved to limit.py.\n\n"
            '<final_file_content path="limit.py">\nLIMIT = 20\n\n</final_file_content>\n\nUse this content.'
        )
    ),
    answer(use("t5", "execute_command", command="pytest")),
    user(text("[execute_command for 'pytest'] Result:\nCommand failed with exit code 1.")),
    answer(use("t6", "attempt_completion", result="It is a setting.")),
]


def test_native_calls_may_get_their_results_as_texts(tmp_path: Path) -> None:
    seen = seen_once(written(tmp_path, TEXTS))
    assert seen.prompts() == ["Make the limit a setting"]
    assert [(call.tool, call.outcome) for call in seen.calls.values()] == [
        ("read_file", "succeeded"),
        ("read_file", "failed"),
        ("use_subagents", "succeeded"),
        ("replace_in_file", "succeeded"),
        ("execute_command", "failed"),
        ("attempt_completion", "succeeded"),
    ]
    assert next(call.output for call in seen.calls.values()) == "LIMIT = 10"
    assert [path for path, _, _, _ in seen.files] == ["limit.py"]
    assert [words.strip().partition(" ")[0] for words in seen.named("meta")] == ["#", "#"]


def test_a_result_may_say_what_is_in_the_file_now(tmp_path: Path) -> None:
    store = wakelog.open("memory:")
    report = import_transcript(store, written(tmp_path, TEXTS))
    log = store.resume(report.sessions[0].name).log
    (changed,) = (entry for entry in log.entries() if entry.kind == "file.changed")
    assert log.value(changed, changed.body["after"]) == "LIMIT = 20\n"


def test_a_conversation_is_recognised_under_another_name(tmp_path: Path) -> None:
    path = tmp_path / "limit-task.json"
    path.write_text(json.dumps(TEXTS))
    assert detect_format(path).NAME == "cline"
    assert seen_once(path).prompts() == ["Make the limit a setting"]


@pytest.mark.parametrize(
    "answered",
    [
        "The user denied this operation and provided the following feedback:\n<feedback>\nNot that one\n</feedback>",
        json.dumps({"status": "denied", "message": "The user denied this operation", "feedback": "Not that one"}),
    ],
)
def test_what_the_person_said_when_refusing_a_call_is_a_prompt(answered: str, tmp_path: Path) -> None:
    seen = seen_once(written(tmp_path, [*NATIVE[:6], user(result("t3", answered)), NATIVE[-1]]))
    assert seen.prompts() == ["Make the limit a setting", "Not that one"]
    assert seen.calls["t3"].outcome == "denied"


def test_what_a_file_says_about_feedback_is_nobodys_word(tmp_path: Path) -> None:
    source = 'LIMIT = 10\nanswer = {"status": "denied", "feedback": "Not that one"}\n'
    seen = seen_once(written(tmp_path, [*NATIVE[:2], user(result("t1", source)), NATIVE[-1]]))
    assert seen.prompts() == ["Make the limit a setting"]
