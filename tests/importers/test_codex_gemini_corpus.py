"""Real transcripts of Codex and Gemini CLI: what was imported has every count that an independent reader found."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.importers.corpus import FOLDER, corpus_files, imported, oracle, records_of
from tests.importers.growth import check_growth
from tests.importers.seen import Seen
from wakelog.importers.transcript_import import import_transcript
from wakelog.session import Session

ROLLOUTS, EXECS, GEMINI = corpus_files("codex-rollout"), corpus_files("codex-exec-json"), corpus_files("gemini-cli")
OWN_CALLS = ("web_search", "image_generation")
"""Calls that the model's provider makes: they have no id and no result in the file, and are not counted there."""


def one(name: str) -> tuple[Session[Any], dict[str, Any]]:
    store, report = imported(name)
    assert len(report.sessions) == 1
    assert report.broken_count == 0
    return store.resume(report.sessions[0].name), oracle()[name]


def rests(session: Session[Any]) -> list[dict[str, Any]]:
    return [rest for _, _, rest in records_of(session)]


@pytest.mark.parametrize("name", ROLLOUTS)
def test_every_record_of_a_rollout_is_there_with_its_type(name: str) -> None:
    session, told = one(name)
    records = rests(session)
    assert len(records) == told["records"]
    assert told["bad_lines"] == 0
    assert Counter(f"{r['type']}/{r['payload'].get('type')}" for r in records) == told["types"]
    roles = [r["payload"] for r in records if r["type"] == "response_item" and r["payload"].get("type") == "message"]
    assert Counter(r["role"] for r in roles) == told["messages_by_role"]
    labels = session.log.part("labels")
    assert labels.get("agent_version") == told["cli_version"]


@pytest.mark.parametrize("name", ROLLOUTS)
def test_every_call_of_a_rollout_is_there_with_its_result(name: str) -> None:
    session, told = one(name)
    calls = {id: c for id, c in Seen(session).calls.items() if c.tool not in OWN_CALLS}
    unanswered = {id for id, c in calls.items() if c.outcome == "interrupted" and c.output is None}
    assert len(calls) == told["calls"]
    assert len(calls) - len(unanswered) == told["outputs"]
    assert len({id.partition("#")[0] for id in unanswered}) == told["unanswered"]


@pytest.mark.parametrize("name", ROLLOUTS)
def test_every_message_of_a_rollout_is_seen_once(name: str) -> None:
    session, told = one(name)
    seen = Seen(session)
    types = told["types"]
    assert len(seen.said()) == told["messages_by_role"].get("assistant", 0)
    heard = types.get("event_msg/user_message") or types.get("response_item/None", 0)
    assert len(seen.prompts()) == heard
    records = [r["payload"] for r in rests(session)]
    counts = [p["info"]["total_token_usage"] for p in records if p.get("type") == "token_count" and p.get("info")]
    spent = before = 0
    for total in (c["output_tokens"] for c in counts):
        # The sum begins anew when a session is resumed.
        spent, before = spent + (total - before if total >= before else total), total
    assert seen.cost["tokens_out"] == spent


@pytest.mark.parametrize("name", EXECS)
def test_every_record_of_an_exec_run_is_there(name: str) -> None:
    session, told = one(name)
    assert len(rests(session)) == told["records"]
    assert told["bad_lines"] == 0


@pytest.mark.parametrize("name", GEMINI)
def test_every_message_and_call_of_gemini_is_there(name: str) -> None:
    session, told = one(name)
    messages = [r for r in rests(session) if "type" in r]
    if "messages" not in told:
        assert told == {"kind": "dict"}
        assert len(messages) == 1
        return
    assert len(messages) == told["messages"]
    assert Counter(r["type"] for r in messages) == told["types"]
    seen = Seen(session)
    assert len(seen.calls) == told["tool_calls"]
    assert len(seen.prompts()) == told["types"]["user"]


@pytest.mark.parametrize("name", [*ROLLOUTS, *EXECS, *GEMINI])
def test_a_second_import_adds_nothing(name: str, tmp_path: Path) -> None:
    if not name:
        pytest.skip("the corpus of real transcripts is not here")
    store = wakelog.open("memory:")
    path = tmp_path / Path(name).name[-80:]
    path.write_bytes((FOLDER / name).read_bytes())
    first = import_transcript(store, path)
    heads = [store.resume(s.name).head for s in first.sessions]
    path.write_bytes(path.read_bytes() + b"\n")
    again = import_transcript(store, path)
    assert again.new_records == 0
    assert [store.resume(s.name).head for s in again.sessions] == heads


@pytest.mark.parametrize("name", [*ROLLOUTS, *EXECS])
def test_a_file_that_grows_is_seen_as_if_it_was_imported_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not name:
        pytest.skip("the corpus of real transcripts is not here")
    lines = (FOLDER / name).read_bytes().splitlines(keepends=True)
    places = sorted({*range(1, min(len(lines), 12)), *range(12, len(lines), 97), len(lines)})
    versions = (b"".join(lines[:n]) for n in places)
    check_growth(versions, tmp_path / "grows.jsonl", name.split("/")[0], monkeypatch)
