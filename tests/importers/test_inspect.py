"""Inspect: an evaluation and its samples, as one document or as a zip."""

import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.importers.corpus import expected
from tests.importers.read_back import ReadBack, bring_in, memory, said, written
from wakelog.errors import InvalidInputError

AT = "2025-05-12T20:28:26.845209-04:00"


def event(kind: str, **about: Any) -> dict[str, Any]:
    return {"event": kind, "timestamp": AT, "working_start": 0.5, **about}


def model(message: dict[str, Any], *given: dict[str, Any], span: str = "") -> dict[str, Any]:
    usage = {"input_tokens": 60, "output_tokens": 10, "total_tokens": 70, "input_tokens_cache_read": 20}
    choice = {"message": {"role": "assistant", **message}, "stop_reason": "stop"}
    output = {"model": "lamp-1-2025", "choices": [choice], "usage": usage}
    return event("model", model="acme/lamp-1", input=list(given), output=output, span_id=span)


SYSTEM = {"id": "s", "role": "system", "content": "attachment://abc"}
USER = {"id": "u", "role": "user", "content": "Is it on?"}
CALL = {"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}, "type": "function"}


def sample(**more: Any) -> dict[str, Any]:
    return {
        "id": 1,
        "epoch": 2,
        "input": [USER],
        "target": "yes",
        "attachments": {"abc": "You know lamps."},
        "messages": [SYSTEM, USER, {"id": "a", "role": "assistant", "content": "Yes."}],
        "scores": {"match": {"value": "C", "explanation": "It says yes."}},
        "events": [
            event("span_begin", id="i", name="init", type="init"),
            event("sample_init", sample={}, state={"messages": [USER], "store": {}}),
            event("span_end", id="i"),
            event("span_begin", id="g", name="generate", type="solver"),
            model({"id": "a0", "content": "Let me look.", "tool_calls": [CALL]}, SYSTEM, USER, span="g"),
            event(
                "tool", id="c1", function="bash", arguments={"cmd": "ls"}, result="lamp", working_time=0.5, span_id="g"
            ),
            event("state", changes=[{"op": "add", "path": "/messages/1", "value": "Yes.", "replaced": None}]),
            event("store", changes=[{"op": "add", "path": "/lamp", "value": True}]),
            model({"id": "a", "content": "Yes."}, SYSTEM, USER, span="g"),
            event("span_end", id="g"),
            event("score", score={"value": "C", "explanation": "It says yes."}),
        ],
        **more,
    }


def log(*samples: dict[str, Any], status: str = "success") -> dict[str, Any]:
    metrics = {"accuracy": {"name": "accuracy", "value": 0.5}}
    return {
        "version": 2,
        "status": status,
        "eval": {"task": "acme/lamps", "model": "acme/lamp-1", "run_id": "R1", "created": AT},
        "plan": {"steps": []},
        "results": {"scores": [{"name": "match", "metrics": metrics}]},
        "samples": list(samples),
    }


def imported(tmp_path: Path, *samples: dict[str, Any]) -> list[ReadBack]:
    report, found = bring_in(memory(), written(tmp_path / "lamps.json", log(*samples)))
    assert report.format == "inspect"
    return found


def test_the_evaluation_is_a_session_and_each_sample_is_one_of_its_sub_agents(tmp_path: Path) -> None:
    whole, first, second = imported(tmp_path, sample(), sample(id="b/c"))
    assert (first.labels["sample"], first.labels["epoch"], second.labels["sample"]) == ("1", "2", "b/c")
    assert [body["session"] for body in whole.of("subagent.spawned")] == [first.session.id, second.session.id]
    assert [c["output"] for c in whole.calls] == [{"match": "C"}, {"match": "C"}]
    assert whole.of("note.added")[0]["text"] == "match: accuracy 0.5"
    assert whole.outcome == "completed"


def test_calls_of_models_and_tools_are_told_by_the_events(tmp_path: Path) -> None:
    found = imported(tmp_path, sample())[1]
    assert found.of("turn.started")[0]["input"] == "Is it on?"
    assert [said(reply) for reply in found.replies] == ["Let me look.", "Yes."]
    cost = found.replies[0]["cost"]
    assert (cost["tokens_in"], cost["tokens_out"]) == (60, 10)
    bash = found.calls[0]
    assert (bash["tool"], bash["input"], bash["output"], bash["cost"]["duration_us"]) == (
        "bash",
        {"cmd": "ls"},
        "lamp",
        500_000,
    )


def test_attachments_stand_where_they_are_mentioned(tmp_path: Path) -> None:
    found = imported(tmp_path, sample())[1]
    assert [m["content"] for m in found.of("message.added") if m["role"] == "system"] == ["You know lamps."]


def test_what_happens_in_a_span_is_inside_it(tmp_path: Path) -> None:
    found = imported(tmp_path, sample())[1]
    (span,) = (c for c in found.calls if c["tool"] == "solver:generate")
    assert {c["inside"] for c in (*found.replies, found.calls[0])} == {span["action"]}


def test_changes_of_the_state_are_patches_of_the_state(tmp_path: Path) -> None:
    found = imported(tmp_path, sample())[1]
    assert found.of("state.patched")[2]["delta"] == [{"op": "add", "path": "/data/state/messages/1", "value": "Yes."}]
    data = found.session.log.part("data")
    assert data["state"]["messages"] == [USER, "Yes."]
    assert data["store"] == {"lamp": True}


def test_a_patch_that_does_not_fit_is_kept_and_changes_nothing(tmp_path: Path) -> None:
    odd = event("state", changes=[{"op": "remove", "path": "/nothing/here"}])
    found = imported(tmp_path, sample(events=[odd]))[1]
    assert found.of("state.patched") == []
    assert odd in found.records.values()


def test_scores_are_labels_and_remarks(tmp_path: Path) -> None:
    found = imported(tmp_path, sample())[1]
    assert (found.labels["score"], found.labels["score.match"]) == ("C", "C")
    assert found.of("note.added")[0]["text"] == "score C: It says yes."
    assert found.outcome == "completed"


@pytest.mark.parametrize(
    ("about", "outcome"),
    [({"error": {"message": "boom"}}, "failed"), ({"limit": {"type": "token", "limit": 9}}, "token limit")],
)
def test_a_sample_that_broke_off_says_so(tmp_path: Path, about: dict[str, Any], outcome: str) -> None:
    assert imported(tmp_path, sample(**about))[1].outcome == outcome


def test_without_events_the_messages_tell_what_happened(tmp_path: Path) -> None:
    error = {"type": "timeout", "message": "too slow"}
    messages = [
        SYSTEM,
        USER,
        {"role": "assistant", "content": "Hm.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "function": "bash", "content": "", "error": error},
        {"role": "assistant", "content": "Yes."},
    ]
    used = {"acme/lamp-1": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}}
    found = imported(tmp_path, sample(events=[], messages=messages, model_usage=used))[1]
    assert [said(reply) for reply in found.replies] == ["Hm.", "Yes."]
    assert (found.calls[0]["tool"], found.calls[0]["outcome"]) == ("bash", "timed_out")
    assert found.session.log.part("budget")["spent"]["tokens"] == 7


def test_steps_of_older_versions_are_spans(tmp_path: Path) -> None:
    events = [
        event("step", action="begin", type="solver", name="generate"),
        model({"id": "a", "content": "Yes."}, USER),
        event("step", action="end", type="solver", name="generate"),
    ]
    found = imported(tmp_path, sample(events=events))[1]
    assert found.calls[0]["tool"] == "solver:generate"
    assert found.replies[0]["inside"] == found.calls[0]["action"]


def zipped(path: Path, content: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        began = {k: v for k, v in content.items() if k in ("version", "eval", "plan")}
        file.writestr("_journal/start.json", json.dumps(began))
        for one in content["samples"]:
            file.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        file.writestr("header.json", json.dumps({k: v for k, v in content.items() if k != "samples"}))
    return path


def test_a_zip_tells_the_same_as_a_document(tmp_path: Path) -> None:
    report, zip_found = bring_in(memory(), zipped(tmp_path / "lamps.eval", log(sample())))
    assert report.format == "inspect"
    _, found = bring_in(memory(), written(tmp_path / "lamps.json", log(sample())))
    assert [one.session.name for one in zip_found] == [one.session.name for one in found]
    assert zip_found[1].kinds == found[1].kinds
    assert list(zip_found[0].records) == ["_journal/start.json", "samples/1_epoch_2.json", "header.json"]


def in_zstandard(path: Path) -> Path:
    """The same zip with its entries in Zstandard, as Inspect writes it now. Python could not write that before 3.14."""
    with zipfile.ZipFile(path) as file:
        content = {info.filename: file.read(info) for info in file.infolist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, raw in content.items():
            file.writestr(name, zstandard.compress(raw))
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        place = file.start_dir
        for info in file.infolist():
            told = zlib.crc32(content[info.filename]), len(content[info.filename])
            for start, method, crc, size in ((info.header_offset, 8, 14, 22), (place, 10, 16, 24)):
                struct.pack_into("<H", data, start + method, 93)
                struct.pack_into("<I", data, start + crc, told[0])
                struct.pack_into("<I", data, start + size, told[1])
            place += 46 + len(info.filename.encode())
    path.write_bytes(data)
    return path


def test_a_zip_in_zstandard_tells_the_same(tmp_path: Path) -> None:
    _, found = bring_in(memory(), zipped(tmp_path / "lamps.eval", log(sample())))
    report, packed = bring_in(memory(), in_zstandard(tmp_path / "lamps.eval"))
    assert report.broken == ()
    assert [one.kinds for one in packed] == [one.kinds for one in found]


@pytest.mark.parametrize(("method", "what"), [(16, "CRC"), (24, "larger than it says")])
def test_an_entry_in_zstandard_that_is_not_what_it_says_is_named(tmp_path: Path, method: int, what: str) -> None:
    path = in_zstandard(zipped(tmp_path / "lamps.eval", log(sample())))
    with zipfile.ZipFile(path) as file:
        start = file.start_dir
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, start + method, 7)
    path.write_bytes(data)
    report, _ = bring_in(memory(), path)
    assert len(report.broken) == 1
    assert what in report.broken[0]


def test_a_sample_of_a_zip_that_cannot_be_read_is_named_and_the_others_are_taken_in(tmp_path: Path) -> None:
    path = zipped(tmp_path / "lamps.eval", log(sample(), sample(id=2)))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("samples/3_epoch_1.json", '{"id": 3, ')
    report, found = bring_in(memory(), path)
    assert report.broken_count == 1
    assert len(found) == 4


def test_a_header_of_a_zip_that_cannot_be_read_does_not_change_what_the_evaluation_is(tmp_path: Path) -> None:
    path = zipped(tmp_path / "lamps.eval", log(sample()))
    _, whole = bring_in(memory(), path)
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content[:9] if name == "header.json" else content)
    report, found = bring_in(memory(), path)
    assert report.broken_count == 1
    assert [one.session.name for one in found] == [one.session.name for one in whole]


def test_a_zip_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "lamps.eval", log(sample()))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InvalidInputError) as refused:
        bring_in(memory(), path, "inspect")
    assert refused.value.kind == "bad-transcript"


def test_an_evaluation_that_goes_on_is_closed_when_it_is_over(tmp_path: Path) -> None:
    store = memory()
    path = tmp_path / "lamps.json"
    _, (whole,) = bring_in(store, written(path, log(status="started") | {"results": None}))
    assert whole.outcome == ""
    _, (whole, *_) = bring_in(store, written(path, log(sample())))
    assert whole.outcome == "completed"
    assert len(whole.of("turn.started")) == 1


def test_real_logs_have_the_counts_of_an_independent_reader() -> None:
    store = memory()
    for path, counts in expected("inspect"):
        report, found = bring_in(store, path)
        assert report.format == "inspect"
        assert report.broken_count == 0
        samples = [one for one in found if "sample" in one.labels]
        ids = [id for one in samples for id in one.records]
        seen = {
            "samples": len(samples),
            "events": sum(id.startswith("e:") for id in ids),
            "messages": sum(id.startswith("m:") for id in ids),
        }
        if "zip_entries" in counts:
            seen = {"zip_entries": len(found[0].records)}
        assert seen == counts, path.name
