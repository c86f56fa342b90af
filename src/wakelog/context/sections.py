"""The parts of the state as lines of text, for briefs and windows.

Everything comes from the state and a few single events, whatever the length of the session. Text that is not trusted is
fenced, with its source. The state says which facts are trusted; for other lines the event behind them is read, but only
in a session where anything was ever distrusted.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable
from itertools import islice
from typing import Any

from wakelog.context.handles import Evicted, read_evicted
from wakelog.context.quotes import fence, mark_of, one_line
from wakelog.context.token_budget import Part, SectionLine
from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.document import agent_data, name_objects
from wakelog.model.events import Trust
from wakelog.model.ids import Seq
from wakelog.model.names import unquoted_name
from wakelog.model.parts import text_of
from wakelog.model.payloads import is_erased
from wakelog.model.values import Value
from wakelog.timeline.messages import content_of
from wakelog.timeline.session_names import name_of_session

LINE = 400
"""The maximum length of a line."""


class StateWriter:
    """Writes the parts of a state as lines. With `numbers`, lines name the events behind them.

    A model's window has no numbers, and omits what the open turn left behind before `since`: a resumed attempt must
    show the model the same text again, or its recorded answers would not be found.
    """

    def __init__(self, log: Log, state: dict[str, Value], *, numbers: bool = True, since: Seq = 0) -> None:
        head = log.head()
        self.log = log
        self.state = state
        self.numbers = numbers
        self._since = since
        self._read: dict[Seq, Entry | None] = {}
        self.handle = unquoted_name(head.name) or str(log.id)

    def shows(self, part: str) -> str:
        """The command that shows a part of the state."""
        return f"`wakelog state /{part} -s {self.handle}`"

    # The parts

    def goal(self) -> Part:
        goal = self.state["goal"]
        lines = iter([self.goal_line()] if goal is not None else [])
        return Part("goal", "Goal", 0 if goal is None else 1, lines, self.shows("goal"), first=True)

    def goal_line(self, limit: int = 2000) -> SectionLine:
        """The goal; fenced when somebody other than the user set it."""
        goal, mark = self.state["goal"], self.state.get("goal_from")
        if mark is None or isinstance(goal, dict):
            return SectionLine(f"- {one_line(goal, limit)}")
        block = textwrap.indent(fence(goal, trust=mark["trust"], source=mark["source"], limit=limit), "  ")
        return SectionLine(f"- goal, {block.lstrip()}", mark["seq"], mark["trust"], mark["source"])

    def pending(self) -> Part:
        shown = [p for p in self.state["pending_actions"].items() if self._is_shown(p[1]["turn"], p[1]["seq"])]
        results = sorted(shown, key=lambda p: (_URGENT.get(p[1]["status"], 9), p[1]["seq"]))
        lines = (self._pending(action, pending) for action, pending in results)
        return Part("pending", "Pending", len(results), lines, self.shows("pending_actions"), weight=3, first=True)

    def decisions(self, *, weight: int = 4) -> Part:
        made = _newest(self.state["decisions_made"])
        lines = (self._decision(seq, decision) for seq, decision in made)
        return Part("decisions", "Decisions", len(made), lines, self.shows("decisions_made"), weight=weight)

    def facts(self) -> Part:
        known = sorted(self.state["facts"].items(), key=lambda f: -f[1]["seq"])
        lines = (self._fact(key, fact) for key, fact in known)
        return Part("facts", "Facts", len(known), lines, self.shows("facts"), weight=4)

    def dead_ends(self) -> Part:
        results = [e for e in _newest(self.state["dead_ends"]) if self._is_shown(e[1]["turn"], e[0])]
        lines = (self._dead_end(seq, end) for seq, end in results)
        return Part("dead_ends", "Dead ends", len(results), lines, self.shows("dead_ends"), weight=2)

    def last_error(self) -> Part:
        error = self.state["last_error"]
        lines = iter([self._error(error)] if error else [])
        return Part("last_error", "Last error", 1 if error else 0, lines, self.shows("last_error"))

    def flags(self) -> Part:
        flags = sorted(self.state["flags"].items(), key=lambda f: (_GRAVE.get(f[1]["severity"], 2), -f[1]["seq"]))
        lines = (self._flag(name, flag) for name, flag in flags)
        return Part("flags", "Flags", len(flags), lines, self.shows("flags"))

    def data(self) -> Part:
        data = agent_data(self.state["data"])
        # Its source is not known, so it is shown as JSON, where texts stay in quotes.
        lines = (
            SectionLine(f"- {one_line(key, 80)}: {one_line(_json(name_objects(value)), LINE)}")
            for key, value in data.items()
        )
        return Part("data", "The agent's own data", len(data), lines, self.shows("data"), weight=2)

    def files(self) -> Part:
        files = sorted(self.state["files_modified"].items(), key=lambda f: -f[1]["last"])
        lines = (self._file(path, used) for path, used in files)
        return Part("files", "Files changed", len(files), islice(lines, 40), self.shows("files_modified"), weight=2)

    def artefacts(self) -> Part:
        made = sorted(self.state["artefacts"].items(), key=lambda a: -a[1]["seq"])
        lines = (
            self.said(f"{name} {text_of(each.get('uri') or '')}".rstrip(), each["seq"], what="artefact")
            for name, each in made
        )
        return Part("artefacts", "Artefacts", len(made), lines, self.shows("artefacts"))

    def subagents(self) -> Part:
        results = sorted(self.state["subagents"].items(), key=lambda s: (s[1]["status"] != "running", -s[1]["seq"]))
        lines = (
            self.said(
                f"{self._name(id)} {text_of(each['status'])}: {text_of(each['task'])}", each["seq"], what="sub-agent"
            )
            for id, each in results
        )
        return Part("subagents", "Sub-agents", len(results), lines, self.shows("subagents"))

    def _name(self, id: str) -> str:
        """The name of another session; in a window, or if it has none, its id."""
        return name_of_session(self.log, id) if self.numbers else id  # a name may change, and a window must not

    def working_set(self) -> Part:
        changed = self.state["files_modified"]
        used = [
            (seq, name, part)
            for part, names in self.state["working_set"].items()
            for name, seq in names.items()
            if part != "files" or name not in changed  # those are listed as changed files
        ]
        lines = (
            self.said(f"{name} ({_SETS[part]})", seq, what="in use") for seq, name, part in sorted(used, reverse=True)
        )
        return Part("working_set", "Working set", len(used), islice(lines, 12), self.shows("working_set"))

    def budget(self) -> Part:
        spent, limits = self.state["budget"]["spent"], self.state["budget"]["limits"]
        lines = [
            SectionLine(
                f"- {name}: {show(spent.get(unit, 0))}" + (f" of {show(limits[unit])}" if limits.get(unit) else "")
            )
            for unit, (name, show) in _UNITS.items()
            if spent.get(unit) or limits.get(unit)
        ]
        return Part("budget", "Budget", len(lines), iter(lines), self.shows("budget"))

    def evicted(self, listed: tuple[Evicted, ...] | None = None, *, describe: bool = True) -> Part:
        evicted_items = read_evicted(self.state["evicted_keys"]) if listed is None else listed
        lines = (self._evicted(each, describe) for each in reversed(evicted_items))
        return Part("evicted", "Left the window", len(evicted_items), islice(lines, 12), self.shows("evicted_keys"))

    # Lines

    def _is_shown(self, turn: int, seq: Seq) -> bool:
        return seq >= self._since or turn != self.state["turn"]["number"]

    def said(
        self, value: Value, seq: Seq, *, what: str = "", lead: str = "", tail: str = "", trust: Trust | None = None
    ) -> SectionLine:
        """A line of recorded text: on one line if it is trusted; else fenced, after a word for `what` it is. If the
        agent itself wrote it after it had read something unverified, it stays on one line, with a mark."""
        trust, source = self.mark(seq, trust)
        number = f" (e{seq})" if self.numbers and seq else ""
        if trust == "trusted":
            return SectionLine(f"- {lead}{one_line(value, LINE)}{tail}{number}", seq)
        if trust == "unverified" and self._is_by_agent(seq):
            marked = f"{number} [{mark_of(trust, source)}]"
            return SectionLine(f"- {lead}{one_line(value, LINE)}{tail}{marked}", seq, trust, source)
        block = textwrap.indent(fence(value, trust=trust, source=source, limit=LINE), "  ")
        return SectionLine(f"- {what or lead.rstrip(': ')}{tail}{number}, {block.lstrip()}", seq, trust, source)

    def mark(self, seq: Seq, trust: Trust | None = None) -> tuple[Trust, str]:
        """The trust and the source of the event behind a line."""
        if trust == "trusted" or not seq or not self.state["trust"]:
            return "trusted", ""
        entry = self.entry(seq)
        if entry is None:
            return trust or "trusted", ""
        return trust or entry.header.trust, entry.header.source

    def _is_by_agent(self, seq: Seq) -> bool:
        """Whether an event is from the agent, and is distrusted only because of what led to it."""
        entry = self.entry(seq)
        if entry is None or not entry.header.cause:
            return False
        cause = self.entry(entry.header.cause)
        if cause is None or (cause.header.trust, cause.header.source) != (entry.header.trust, entry.header.source):
            return False
        if entry.kind == "message.added":
            return entry.body.get("role") == "assistant"
        is_answer = entry.kind.startswith("action.") and entry.kind != "action.requested"
        return not is_answer or cause.body.get("effect") == "model"

    def _decision(self, seq: Seq, decision: dict[str, Any]) -> SectionLine:
        text = text_of(decision["choice"])
        if because := decision.get("because"):
            text += f", because {text_of(because)}"
        if instead := decision.get("alternatives"):
            text += f"; not: {', '.join(map(text_of, instead))}"
        if assumed := decision.get("assumptions"):
            text += f"; assuming: {', '.join(map(text_of, assumed))}"
        turn = f"@{decision['turn']} " if decision["turn"] else ""
        return self.said(text, seq, what=f"decision {turn}".rstrip(), lead=turn)

    def _fact(self, key: str, fact: dict[str, Any]) -> SectionLine:
        value = fact["value"]
        shown = text_of(value) if is_erased(value) else _json(value)
        return self.said(f"{key}: {shown}", fact["seq"], what="fact", trust=fact.get("trust", "trusted"))

    def _dead_end(self, seq: Seq, end: dict[str, Any]) -> SectionLine:
        learned = text_of(end.get("learned") or "")
        return self.said(f"{text_of(end.get('tried', ''))}{f': {learned}' if learned else ''}", seq, what="dead end")

    def _error(self, error: dict[str, Any]) -> SectionLine:
        tool = f"{one_line(error['tool'], 80)}: " if error.get("tool") else ""
        return self.said(f"{tool}{text_of(error['type'])}: {text_of(error['message'])}", error["seq"], what="error")

    def _flag(self, name: str, flag: dict[str, Any]) -> SectionLine:
        return self.said(f"{name}: {text_of(flag['message'])}", flag["seq"], lead=f"{flag['severity']} ")

    def _file(self, path: str, used: dict[str, Any]) -> SectionLine:
        times = f", {used['changes']} times" if used["changes"] > 1 else ""
        return self.said(f"{path} {used['change']}{times}", used["last"], what="file")

    def _pending(self, action: str, pending: dict[str, Any]) -> SectionLine:
        seq, status = pending["seq"], pending["status"]
        if pending["tool"] == "input":
            return self.said(pending.get("prompt", ""), seq, lead="asks a person: ", tail=self._remedy(action, "input"))
        given = self._given(seq)
        asked = text_of(pending["tool"]) + (f" {given}" if given else "")
        key = f", key {one_line(pending['key'], 80)}" if pending.get("key") and self.numbers else ""
        words = f" ({pending['effect']}{key}) {_STATUS.get(status, status)}"
        return self.said(asked, seq, what="call", tail=words + self._remedy(action, status))

    def _given(self, seq: Seq) -> str:
        entry = self.entry(seq)
        value = content_of(self.log, entry, "input") if entry is not None else None
        return "" if value is None else one_line(value, 200)

    def _remedy(self, action: str, status: str) -> str:
        """What to do about a pending call, as an exact command."""
        if not self.numbers:
            return ""
        is_plain = action.isprintable() and action.isascii()
        named = shlex.quote(action) if is_plain else "ACTION"
        command = _REMEDY.get(status, "").format(session=self.handle, action=named)
        return f"; {command}" if command else ""

    def _evicted(self, evicted: Evicted, describe: bool) -> SectionLine:
        key = one_line(evicted.key, 80)
        if evicted.what == "compaction":
            shown = f"`wakelog expand {self.handle}@e{evicted.handle}` shows it again"
            return SectionLine(f"- e{evicted.first}..e{evicted.last}: summarised in e{evicted.handle}; {shown}")
        words = [f"{evicted.tokens:,} tokens"] if evicted.tokens else []
        if describe and (entry := self.entry(evicted.handle)) is not None:
            words = [_what(entry), *words] if entry.record.body else ["gone: pruned"]
        return SectionLine(f"- {key}: {', '.join(words) or 'no longer shown'}; restore({_json(evicted.key)})", 0)

    def entry(self, seq: Seq) -> Entry | None:
        """An event, read once."""
        if seq not in self._read:
            try:
                self._read[seq] = self.log.entry(seq)
            except NotFoundError:
                self._read[seq] = None
        return self._read[seq]

    def entries(self, first: Seq, last: Seq) -> list[Entry]:
        """The events of a range, read together."""
        results = list(self.log.entries(after=first - 1, upto=last))
        self._read.update((entry.seq, entry) for entry in results)
        return results


def _what(entry: Entry) -> str:
    tool = entry.body.get("tool")
    if isinstance(tool, str):
        return one_line(tool, 60)
    return "a message" if entry.kind == "message.added" else entry.kind


def _newest(by_seq: dict[str, Any]) -> list[tuple[Seq, Any]]:
    return sorted(((int(seq), value) for seq, value in by_seq.items()), key=lambda p: -p[0])


def _json(value: Value) -> str:
    return text_of([value])[1:-1]


_GRAVE = {"alarm": 0, "error": 1}
_URGENT = {"uncertain": 0, "waiting": 1, "running": 2, "requested": 3}
_STATUS = {
    "uncertain": "may or may not have happened",
    "waiting": "waits for approval",
    "running": "is running",
    "requested": "has not begun",
}
_REMEDY = {
    "uncertain": "find out, then `wakelog reconcile {session} {action} --succeeded | --failed | --never-ran`",
    "waiting": "`wakelog approve {session} {action}` or `wakelog deny {session} {action}`",
    "running": "wait for it; if its process is gone, find out and `wakelog reconcile {session} {action} …`",
    "input": "`wakelog answer {session} {action} TEXT`",
}
_SETS = {"files": "file", "apps": "app", "data_sources": "data source"}
_UNITS: dict[str, tuple[str, Callable[[int], str]]] = {
    "usd_micros": ("money", lambda n: f"${n / 1e6:.2f}" if n >= 10_000 else "less than $0.01"),
    "tokens": ("tokens", lambda n: f"{n:,}"),
    "duration_us": ("time in calls, where it was reported", lambda n: f"{n / 1e6:,.0f} s"),
}
