"""Real transcripts of Claude Code: what was imported has every count that an independent reader found in the file, and
a file that is imported while it grows ends up as one that is imported whole."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.importers.claude import told_of
from tests.importers.corpus import FOLDER, corpus_files, imported, oracle, records_of
from tests.seeds import some
from wakelog.importers.transcript_import import import_transcript
from wakelog.session import Session

FILES = corpus_files("claude-code", "entire-checkpoints")


class Seen:
    """A transcript as it can be told from its sessions alone."""

    def __init__(self, sessions: list[Session[Any]]) -> None:
        self.lines: list[dict[str, Any]] = []
        self.broken: list[Any] = []
        self.asked: list[str] = []
        self.answered: list[str] = []
        self.tokens_out = 0
        for session in sessions:
            self._read_records(session)
            self._read_calls(session)

    def _read_records(self, session: Session[Any]) -> None:
        for id, _, rest in records_of(session):
            line = self._line(id, rest)
            if line is None:
                self.broken.append(rest)
                continue
            self.lines.append(line)

    def _line(self, id: str, rest: Any) -> dict[str, Any] | None:
        if isinstance(rest, str):
            try:
                rest = json.loads(rest)
            except ValueError:
                return None
        if not isinstance(rest, dict):
            return None
        if "common" not in rest:  # it stands here as it was
            message = rest.get("message")
            blocks = message.get("content") if isinstance(message, dict) else None
            for block in blocks if isinstance(blocks, list) else ():
                if not isinstance(block, dict):
                    continue
                if block.get("type") == "tool_use":
                    self.asked.append(block["id"])
                elif block.get("type") == "tool_result":
                    self.answered.append(block["tool_use_id"])
            return rest
        common = rest.pop("common")
        return {**rest, **common, "uuid": id}

    def _read_calls(self, session: Session[Any]) -> None:
        for entry in session.log.entries():
            kind, body = entry.kind, entry.body
            if body.get("effect") == "model":
                self.tokens_out += body.get("cost", {}).get("tokens_out", 0)
                continue
            if kind == "action.requested" or (kind == "action.recorded" and body["tool"] != "unknown"):
                self.asked.append(body["action"])
            if kind in ("action.recorded", "action.succeeded", "action.failed") and "output" in body:
                self.answered.append(body["action"])

    def counts(self) -> dict[str, Any]:
        """The same counts as the oracle's, by its conventions."""
        all_named = [line for line in self.lines if line.get("uuid")]
        named = list({line["uuid"]: line for line in all_named}.values())
        uuids = {line["uuid"] for line in named}
        parents = Counter(line["parentUuid"] for line in named if line.get("parentUuid"))
        replies = [line["message"] for line in self.lines if line.get("type") == "assistant"]
        last = {m.get("id"): (m.get("usage") or {}).get("output_tokens") or 0 for m in replies}
        return {
            "records": len(self.lines) + sum(not isinstance(b, str) or _is_json(b) for b in self.broken),
            "types": dict(Counter(str(line.get("type")) for line in self.lines)),
            "bad_lines": sum(isinstance(b, str) and not _is_json(b) for b in self.broken),
            "sessions": len({line["sessionId"] for line in self.lines if line.get("sessionId")}),
            "uuids": len(uuids),
            "dup_uuids": len(all_named) - len(uuids),
            "roots": sum(not line.get("parentUuid") for line in named),
            "orphan_parents": sum(bool(line.get("parentUuid")) and line["parentUuid"] not in uuids for line in named),
            "branch_points": sum(count > 1 for count in parents.values()),
            "leaves": len(uuids - parents.keys()),
            "sidechain": sum(line.get("isSidechain") is True for line in self.lines),
            "tool_use": len(self.asked),
            "tool_use_distinct": len(set(self.asked)),
            "tool_result": len(self.answered),
            "tool_use_unanswered": len(set(self.asked) - set(self.answered)),
            "tool_result_unasked": len(set(self.answered) - set(self.asked)),
            "api_messages": len(last),
            "output_tokens_by_last_record_per_message": sum(last.values()),
            "versions": sorted({line["version"] for line in self.lines if line.get("version")}),
        }


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", FILES)
def test_every_count_of_the_file_can_be_told_from_what_was_imported(name: str) -> None:
    store, report = imported(name)
    told = dict(oracle()[name])
    seen = Seen([store.resume(s.name) for s in report.sessions])
    assert report.broken_count == told["bad_lines"] + told.pop("non_objects")
    assert {k: v for k, v in seen.counts().items() if k in told} == told
    assert seen.tokens_out == told["output_tokens_by_last_record_per_message"]


@pytest.mark.parametrize("name", FILES)
def test_a_second_import_adds_nothing(name: str) -> None:
    store, first = imported(name)
    heads = {s.name: store.resume(s.name).head.seq for s in first.sessions}
    again = import_transcript(store, FOLDER / name)
    assert again.new_records == 0
    assert heads == {s.name: store.resume(s.name).head.seq for s in first.sessions}


@pytest.mark.parametrize("name", some(FILES, 16))
def test_a_real_file_that_grows_is_as_one_that_is_whole(name: str, tmp_path: Path) -> None:
    whole = (FOLDER / name).read_bytes()
    path = tmp_path / Path(name).name
    at_once, in_steps = (wakelog.open("memory:", clock=lambda: 1) for _ in range(2))
    for part in (1, 2, 3, 5, 7, 9, 10):
        so_far = whole[: len(whole) * part // 10]
        if part == 10 or b'"sessionId"' in so_far.rpartition(b"\n")[0]:  # else nothing tells yet which session it is
            path.write_bytes(so_far)
            import_transcript(in_steps, path, format="claude-code")
    import_transcript(at_once, path)
    assert told_of(in_steps) == told_of(at_once)
