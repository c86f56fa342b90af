"""Real transcripts of Claude Code: what was imported has every count that an independent reader found in the file."""

from collections import Counter
from typing import Any

import pytest

from tests.importers.corpus import FOLDER, corpus_files, imported, oracle, records_of
from wakelog.importers.transcript_import import import_transcript
from wakelog.session import Session
from wakelog.store import Store

FILES = corpus_files("claude-code", "entire-checkpoints")


class Seen:
    """A transcript as it can be told from its sessions alone."""

    def __init__(self, store: Store, sessions: list[Session[Any]]) -> None:
        self.records: list[dict[str, Any]] = []
        self.broken: list[Any] = []
        self.asked: list[str] = []
        self.answered: list[str] = []
        self.replies: dict[str, int] = {}
        for session in sessions:
            self._read(session)

    def _read(self, session: Session[Any]) -> None:
        before = ""
        for id, _, rest in records_of(session):
            if not isinstance(rest, dict):
                self.broken.append(rest)
                continue
            record = {"uuid": id, **rest} if len(id) != 12 or "uuid" in rest else dict(rest)
            self.records.append(record)
            before = id
        assert before or not session.head.seq
        for entry in session.log.entries():
            body = entry.body
            if entry.kind == "action.recorded" and body.get("effect") == "model":
                message = body["action"].split("/")[0]
                self.replies[message] = self.replies.get(message, 0) + body.get("cost", {}).get("tokens_out", 0)
            elif entry.kind in ("action.recorded", "action.requested"):
                self.asked.append(body["action"])
            is_answer = entry.kind in ("action.recorded", "action.succeeded", "action.failed")
            if is_answer and body.get("effect") != "model" and "output" in body:
                self.answered.append(body["action"])


@pytest.mark.parametrize("name", FILES)
def test_every_record_and_its_type_is_there(name: str) -> None:
    store, report = imported(name)
    told = oracle()[name]
    seen = Seen(store, [store.resume(s.name) for s in report.sessions])
    assert len(seen.records) + told["non_objects"] == told["records"]
    assert Counter(r.get("type") for r in seen.records) == told["types"]
    assert len(seen.broken) == told["bad_lines"] + told["non_objects"]
    assert report.broken_count == told["bad_lines"] + told["non_objects"]


@pytest.mark.parametrize("name", FILES)
def test_answers_of_the_model_are_counted_once(name: str) -> None:
    store, report = imported(name)
    told = oracle()[name]
    seen = Seen(store, [store.resume(s.name) for s in report.sessions])
    assert sum(seen.replies.values()) == told["output_tokens_by_last_record_per_message"]
    assert len(seen.replies) <= told["api_messages"]


@pytest.mark.parametrize("name", FILES)
def test_a_second_import_adds_nothing(name: str) -> None:
    store, first = imported(name)
    heads = {s.name: store.resume(s.name).head.seq for s in first.sessions}
    again = import_transcript(store, FOLDER / name)
    assert again.new_records == 0
    assert heads == {s.name: store.resume(s.name).head.seq for s in first.sessions}
