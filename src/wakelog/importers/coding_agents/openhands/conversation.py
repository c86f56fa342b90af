"""OpenHands' command line and SDK: a folder for each conversation, `~/.openhands/conversations/<id>/`.

`base_state.json` has the settings and the usage of each reply; `events/event-<number>-<id>.json` has one event each, as
events_v1.py reads them. An event is written once. The usage of a reply may come later than the reply, so it is a step
of its own. Times have no zone: they are the machine's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.errors import WakelogError
from wakelog.importers import steps as st
from wakelog.importers.coding_agents.openhands.events_v1 import EventReader
from wakelog.importers.common.amounts import micros, read_whole_usage, tokens
from wakelog.importers.source.files import Sample, digest, home_files, read_document, read_object, stat_of
from wakelog.importers.source.timestamps import local_microseconds
from wakelog.model.json_fields import as_dict, as_list, dicts_in, text_in
from wakelog.model.usage import Usage

NAME = "openhands-conversation"
TITLE = "OpenHands"
AGENT = "openhands"
FILE, EVENTS = "base_state.json", "events/event-*.json"
find_in_home = home_files(f".openhands/conversations/*/{FILE}")


def recognises(sample: Sample) -> bool:
    return sample.first == b"{" and sample.has(b'"persistence_dir"', b'"execution_status"', b'"workspace"')


def is_event_file(path: Path) -> bool:
    """Whether a file is one event of a conversation, and not a transcript."""
    return path.name.startswith("event-") and path.parent.with_name(FILE).is_file()


def transcripts(path: Path) -> Iterator[st.Transcript]:
    state = read_object(path, "a conversation of OpenHands")
    files = sorted(path.parent.glob(EVENTS))
    labels = {"project": text_in(as_dict(state.get("workspace")), "working_dir")}
    head = st.TranscriptHead(text_in(state, "id") or path.resolve().parent.name, AGENT, labels=labels)
    yield st.Transcript(head, lambda: _records(state, files), stat_of(path, *files))


def _records(state: dict[str, Any], files: list[Path]) -> Iterator[tuple[st.SourceRecord, int]]:
    reader, usages = EventReader(text_in(as_dict(state.get("workspace")), "working_dir")), _Usages(state)
    for path in files:
        size = stat_of(path)[0]
        try:
            event = read_document(path)
        except WakelogError as exc:
            # Whole files are put in place, so a broken one stays broken.
            with path.open("rb") as file:
                content = file.read()
            yield st.SourceRecord(digest(content), rest=content.decode(errors="replace"), broken=str(exc)), size
            continue
        if not isinstance(event, dict):
            broken = f"{path.name} is not an object"
            yield st.SourceRecord(digest(path.name), rest=event, broken=broken), size
            continue
        id = text_in(event, "id") or path.stem
        steps, rest = reader.read(id, event)
        named = [(f"{id}/{number}", step) for number, step in enumerate(usages.with_models(steps))]
        named += [(f"{id}/used", step) for step in usages.of(steps)]
        if event.get("kind") == "ObservationEvent" and text_in(event, "tool_name") == "finish":
            named.append((f"{id}/end", st.TurnEndStep()))
        own = f"{id}.used" if any(name == f"{id}/used" for name, _ in named) else id
        yield st.named_record(own, named, local_microseconds(text_in(event, "timestamp")), rest), size
    for id, cost in usages.others():
        yield st.named_record(f"usage-{id}", [(f"usage-{id}", cost)], 0, None), 0
    if files and state.get("execution_status") == "stuck":
        end = f"{files[-1].stem}/stuck"
        yield st.named_record(end, [(end, st.TurnEndStep("failed", "stuck"))], 0, None), 0


class _Usages:
    """The usage of each reply, by the reply's id: the agent's, and those of models that only help it."""

    def __init__(self, state: dict[str, Any]) -> None:
        llm = as_dict(as_dict(state.get("agent")).get("llm"))
        self._model, self._own = text_in(llm, "model"), text_in(llm, "usage_id") or "agent"
        self._found: dict[str, st.CostStep] = {}
        self._helpers: list[str] = []
        self._seen: set[str] = set()
        for name, entry in as_dict(as_dict(state.get("stats")).get("usage_to_metrics")).items():
            metrics = as_dict(entry)
            used, paid = dicts_in(metrics.get("token_usages")), as_list(metrics.get("costs"))
            for number, each in enumerate(used):
                cost = as_dict(paid[number]).get("cost") if len(paid) == len(used) else 0
                id = text_in(each, "response_id")
                self._found[id] = st.CostStep(text_in(each, "model"), _usage(each), micros(cost))
                # The last reply of the agent may not have its event yet.
                if name != self._own or number < len(used) - 1:
                    self._helpers.append(id)

    def with_models(self, steps: list[st.Step]) -> Iterator[st.Step]:
        for step in steps:
            if isinstance(step, st.ReplyStep):
                used = self._found.get(step.id)
                yield st.ReplyStep(
                    step.id, step.content, model=used.model if used else self._model, is_last=step.is_last
                )
            else:
                yield step

    def of(self, steps: list[st.Step]) -> Iterator[st.Step]:
        for step in steps:
            if isinstance(step, st.ReplyStep) and (used := self._found.get(step.id)) is not None:
                self._seen.add(step.id)
                yield st.ReplyStep(step.id, [], model=used.model, usage=used.usage, cost_micros=used.cost_micros)

    def others(self) -> Iterator[tuple[str, st.CostStep]]:
        """The usage of replies that have no event: summaries of the history, titles."""
        for id in self._helpers:
            if id and id not in self._seen:
                yield id, self._found[id]


def _usage(data: dict[str, Any]) -> Usage:
    caches = {"cache_read": "cache_read_tokens", "cache_write": "cache_write_tokens"}
    usage = read_whole_usage(data, input="prompt_tokens", output="completion_tokens", **caches)
    reasoned = tokens(data.get("reasoning_tokens"))
    return msgspec.structs.replace(usage, output=max(0, usage.output - reasoned), reasoning=reasoned)
