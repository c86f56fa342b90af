"""The sub-agents of a session that hooks report: where their transcripts are, when they start, and when they end.

Agents report them differently: Claude Code and Codex tell when one starts and stops, Gemini CLI does not, and after a
kill nobody does. So a sub-agent has started when its transcript is there. It has ended when its own hook says so, when
the transcript of its parent does, or when the program that ran it ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from wakelog.hooks.agents import HookedAgent
from wakelog.hooks.spool_files import SpooledRecord
from wakelog.importers.source.files import storable
from wakelog.importers.writer.recorded_subagents import RecordedSubagents
from wakelog.model import events as ev
from wakelog.model.ids import SessionId
from wakelog.model.json_fields import text_in
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.timeline.turn_words import words_of_turn

TASK_MAX = 500


class Subagent(msgspec.Struct, frozen=True):
    """A sub-agent with a session of its own. `id` is the agent's own."""

    id: str
    session: Session[Any]

    @property
    def is_done(self) -> bool:
        """Whether its transcript holds the end of its work."""
        return bool(self.session.log.part("turn")["status"] == "completed")


def subagent_transcripts(agent: HookedAgent, origin: str, records: Sequence[SpooledRecord]) -> dict[Path, str]:
    """The transcripts of the sub-agents of a session, each with the sub-agent's id."""
    found: dict[Path, str] = {}
    named = {Path(text_in(record.data, "transcript_path")) for record in records}
    for transcript in filter(is_written, named):
        found |= _beside(agent, transcript, origin)
    for data in (record.data for record in records):
        id, path = text_in(data, "agent_id"), text_in(data, "agent_transcript_path")
        if agent.name == "codex":
            # Events of a sub-agent name its own transcript, except the one at its end.
            path = path or text_in(data, "transcript_path")
        if id and path:
            found[Path(path)] = id
    return {path: id for path, id in found.items() if is_written(path)}


def is_written(path: Path) -> bool:
    """Whether a path that an agent names is a file with content."""
    try:
        return path.is_file() and path.stat().st_size > 0
    except OSError:  # no path at all, such as one that is too long
        return False


def _beside(agent: HookedAgent, transcript: Path, origin: str) -> dict[Path, str]:
    if agent.name == "claude-code":
        paths = transcript.with_suffix("").glob("subagents/**/agent-*.jsonl")
        return {path: path.stem.removeprefix("agent-") for path in sorted(paths)}
    if agent.name == "gemini":
        folder = transcript.parent / re.sub(r"[^A-Za-z0-9._-]", "_", origin)
        return {path: path.stem for path in sorted(folder.glob("*.jsonl"))}
    return {}


def subagent_origin(agent: HookedAgent, origin: str, id: str) -> str:
    """The origin of a sub-agent's transcript."""
    return f"{origin}/agent-{id}" if agent.name == "claude-code" else id


class SubagentEvents:
    """Makes the events of a parent about its sub-agents. `told` is what its log says of them so far."""

    def __init__(
        self, parent: str, found: Iterable[Subagent], told: Mapping[str, Any], stops: Mapping[str, str]
    ) -> None:
        """`stops` are the last words of the sub-agents whose end a hook reports, whenever it comes."""
        self._all = {each.session.id: each for each in found}
        self._found = {each.id: each for each in self._all.values() if spawner_of(each) == parent}
        self._told = RecordedSubagents(told)
        self._stops = stops

    def started(self) -> Iterator[ev.Event]:
        """Sub-agents that the log does not name yet. A transcript often names one only when it has ended."""
        for each in self._found.values():
            if not self._told.status(each.session.id):
                yield from self._told.started(each.session.id, _task(each))

    def stopped(self, id: str) -> Iterator[ev.Event]:
        """One of them has stopped, by itself."""
        if id in self._found:
            yield from self._returned(self._found[id], "succeeded")

    def left(self, at_us: int) -> Iterator[ev.Event]:
        """The program that ran at this time has ended, and with it those that it had started."""
        for each in self._found.values():
            is_running = self._told.status(each.session.id) == "running"
            if is_running and each.session.log.entry(1).happened_at <= at_us:
                yield from self._returned(
                    each, "succeeded" if each.is_done or each.id in self._stops else "interrupted"
                )

    def _returned(self, each: Subagent, outcome: str) -> Iterator[ev.Event]:
        yield from self._told.returned(each.session.id, outcome, self.last_words(each))

    def last_words(self, each: Subagent) -> Value:
        """What a hook said to be its result."""
        said = self._stops.get(each.id, "")
        return storable(said) if said else None

    def outcome(self, each: Subagent, *below: Subagent) -> str:
        """How a sub-agent has ended, also one that another sub-agent started. Empty while it runs."""
        if status := self._told.status(each.session.id):
            return "" if status == "running" else status
        if each.id in self._stops:
            return "succeeded"
        above = self._all.get(SessionId(spawner_of(each)))
        has_ended = above is not None and above not in below and bool(self.outcome(above, each, *below))
        return ("succeeded" if each.is_done else "interrupted") if has_ended else ""


def spawner_of(each: Subagent) -> str:
    """The session that started it."""
    return str(each.session.log.entry(1).body.get("spawner", "")).partition("@")[0]


def _task(each: Subagent) -> str:
    """The first words that it was given."""
    words = words_of_turn(each.session.log, 1)
    return words.text[:TASK_MAX] if words is not None else ""
