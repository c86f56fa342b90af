"""Whatever a file of these formats holds: it is taken in or refused, and nothing of it is taken in twice."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.importers import (
    test_ag_ui,
    test_inspect,
    test_mini_swe_agent,
    test_openhands,
    test_otel_spans,
    test_swe_agent,
    test_tau_bench,
)
from tests.importers.read_back import ReadBack, memory
from wakelog.errors import WakelogError
from wakelog.importers.transcript_import import import_transcript

ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 2**60, 1.5, "", "x", "###STOP###", [], {}, [[]], [None], {"a": None}, "ünï", {"$payload": "x"}]
)


def _mini() -> Any:
    look, end = test_mini_swe_agent.answer("a\n```bash\nls\n```"), test_mini_swe_agent.result(0, "b")
    return test_mini_swe_agent.trajectory(look, end)


def _swe() -> Any:
    shown = test_swe_agent.window("/repo/lamp.py", "a")
    return test_swe_agent.run(
        test_swe_agent.step("edit 1:1\na\nend_of_edit", shown), test_swe_agent.step("submit", "d")
    )


def _stream() -> Any:
    call = test_ag_ui.call("c1", "look", "{}", parent="m1")
    state = [test_ag_ui.event("STATE_SNAPSHOT", snapshot={}), test_ag_ui.event("STATE_DELTA", delta=[])]
    said = test_ag_ui.message("m1", "a", "b")
    return [test_ag_ui.started(test_ag_ui.USER), *said, *call, *state, test_ag_ui.FINISHED]


SAMPLES: dict[str, Callable[[], Any]] = {
    "swe-agent": _swe,
    "mini-swe-agent": _mini,
    "openhands": lambda: [*test_openhands.conversation(), *test_openhands.stream()],
    "inspect": lambda: test_inspect.log(test_inspect.sample()),
    "tau-bench": lambda: [test_tau_bench.run()],
    "ag-ui": _stream,
    "otel-spans": lambda: test_otel_spans.exported(*test_otel_spans.talk()),
}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document, as its container and key."""
    keys = range(len(value)) if isinstance(value, list) else list(value)
    for key in keys:
        yield value, key
        if isinstance(value[key], list | dict):
            yield from places(value[key])


@pytest.mark.parametrize("format", SAMPLES)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_odd_values_anywhere_are_taken_in_or_refused(tmp_path: Path, format: str, data: st.DataObject) -> None:
    content = copy.deepcopy(SAMPLES[format]())
    for _ in range(data.draw(st.integers(1, 4))):
        found = list(places(content))
        if not found:
            break
        container, key = data.draw(st.sampled_from(found))
        if isinstance(container, dict) and data.draw(st.booleans()):
            del container[key]
        else:
            container[key] = copy.deepcopy(data.draw(ODD))
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(content))
    store = memory()
    try:
        first = import_transcript(store, path, format=format)
    except WakelogError:
        return
    path.write_text(json.dumps(content) + "\n")
    again = import_transcript(store, path, format=format)
    assert again.new_records == 0
    assert [s.name for s in again.sessions] == [s.name for s in first.sessions]


@pytest.mark.parametrize("format", SAMPLES)
@pytest.mark.parametrize("content", ["", "null", "3", "[]", "{}", '"x"', "[3]", '{"a": ', "\x00\x01"])
def test_a_file_that_is_no_such_thing_is_refused_or_empty(tmp_path: Path, format: str, content: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(content)
    try:
        report = import_transcript(memory(), path, format=format)
    except WakelogError:
        return
    assert report.new_records <= 2


def texts(value: Any) -> Iterator[str]:
    """Every line of text in a document, also in texts that are JSON themselves."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        try:
            told = json.loads(value)
        except ValueError:
            told = None
        if isinstance(told, dict | list):
            yield from texts(told)
        else:
            yield from (line.strip() for line in value.splitlines())


@pytest.mark.parametrize("format", SAMPLES)
def test_every_word_of_a_file_is_in_its_sessions(tmp_path: Path, format: str) -> None:
    content = SAMPLES[format]()
    store = memory()
    path = tmp_path / "run.json"
    path.write_text(json.dumps(content))
    found = [ReadBack(store.resume(s.session)) for s in import_transcript(store, path, format=format).sessions]
    held = "\n".join(line for one in found for line in texts([[body for _, body in one.events], one.records]))
    is_time = re.compile(r"\d{4}-\d\d-\d\dT.*")
    lost = {line for line in texts(content) if line not in held and not is_time.fullmatch(line)}
    # Of a call of the OpenAI API, that it is one; of a message that holds a result, the signs around it.
    assert lost <= {"function", "<returncode>0</returncode>", "<output>", "b</output>"}


@pytest.mark.parametrize("format", SAMPLES)
def test_how_a_document_is_laid_out_does_not_matter(tmp_path: Path, format: str) -> None:
    content = SAMPLES[format]()
    layouts = [json.dumps(content), json.dumps(content, indent=1)]
    if isinstance(content, list):
        layouts.append("[\n" + ",\n".join(map(json.dumps, content)) + "\n]\n")
    seen = []
    for layout in layouts:
        store = memory()
        path = tmp_path / "run.json"
        path.write_text(layout)
        report = import_transcript(store, path, format=format)
        seen.append([ReadBack(store.resume(s.session)).kinds for s in report.sessions])
        assert report.broken_count == 0
    assert all(each == seen[0] for each in seen)


@pytest.mark.parametrize("format", SAMPLES)
def test_each_format_is_recognised_by_its_own_files(tmp_path: Path, format: str) -> None:
    path = tmp_path / ("x.traj" if format == "swe-agent" else "x.json")
    path.write_text(json.dumps(SAMPLES[format](), indent=2))
    assert import_transcript(memory(), path).format == format
