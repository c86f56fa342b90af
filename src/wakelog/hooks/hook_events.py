"""Turns hook records into events of one session.

If the agent writes a transcript, that is the fuller record, and hooks only add what it lacks: what somebody was asked
and answered, what a rule denied, which instructions were loaded, what a shell command did to the files it names, and
how the session ended. Without a transcript, prompts, calls and results are made from hooks too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from wakelog.codec.canonical import hash_value
from wakelog.hooks.shell_changes import ShellCalls
from wakelog.hooks.spool_files import SpooledRecord
from wakelog.hooks.subagents import SubagentEvents
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import storable
from wakelog.importers.writer.call_events import UNVERIFIED
from wakelog.model import events as ev
from wakelog.model.json_fields import text_in
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.values import summarise

HELD_US = 6 * 3600 * 1_000_000
"""How long the start of a call waits for its end."""
SETTLE_US = 3 * 1_000_000
"""How long an agent may take after a turn to write its last message into the transcript."""
QUESTION = "permission-"
_COMMON = frozenset({"session_id", "transcript_path", "cwd", "hook_event_name", "permission_mode", "timestamp"})
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PROMPTS = frozenset({"UserPromptSubmit", "BeforeAgent"})
_ENDINGS = frozenset({"Stop", "AfterAgent", "StopFailure", "SessionEnd"})
_ENDS = _PROMPTS | _ENDINGS
"""After one of these, open questions have no answer any more."""
_GOES_ON = ("compact", "clear")
"""Sources of a start at which the program was running already."""


class HookedSession:
    """Makes the events of one session, record by record. Starts with what is open in the log."""

    def __init__(
        self,
        agent: str,
        *,
        has_transcript: bool,
        turn: dict[str, Any] | None = None,
        pending: dict[str, Any] | None = None,
        labels: dict[str, str] | None = None,
        status: str = "open",
        newest_turn_us: int = 0,
        subagents: SubagentEvents | None = None,
    ) -> None:
        """Ends of turns from before `newest_turn_us` are those of earlier turns, which the transcript has ended.
        `subagents` are given if there is a transcript."""
        self.drafts: list[EventDraft] = []
        self._agent = agent
        self._has_transcript = has_transcript
        self._is_open = (turn or {}).get("status") == "open"
        self._pending: dict[str, dict[str, Any]] = dict(pending or {})
        self._labels = dict(labels or {})
        self._is_closed = status in ("closed", "archived")
        self._held: dict[str, SpooledRecord] = {}
        self._shell_calls = ShellCalls()
        self.written_files: set[str] = set()
        """Calls whose file changes are in the log."""
        self._stopped: SpooledRecord | None = None
        """The record that says the turn is over, if the transcript does not say so yet, or never does."""
        self._newest_turn_us = newest_turn_us
        self._subagents = subagents
        self._at = 0

    def settle(self, now_us: int) -> list[SpooledRecord]:
        """Call after the last record. Returns the records to pass again next time: a running call waits for its end,
        and the end of a turn for the last message in the transcript."""
        left = []
        for record in [*self._held.values(), *self._shell_calls.running.values()]:
            if now_us - record.at_us < HELD_US:
                left.append(msgspec.structs.replace(record, is_held=True))
            elif record.event == "BeforeTool":
                self._record_cut_off(record)
        if self._stopped is not None and self._is_open:
            if now_us - self._stopped.at_us < SETTLE_US:
                left.append(self._stopped)
            else:
                self._at = self._stopped.at_us
                self._end_turn("completed")
        return left

    def take(self, record: SpooledRecord) -> None:
        """Takes the next record, in order of time."""
        self._at = record.at_us
        data = record.data
        event = record.event
        if self._subagents is not None:
            self._put_of_subagents(self._subagents.started())
        if event in _ENDS and text_in(data, "agent_id"):
            event = "SubagentPrompt" if event in _PROMPTS else "SubagentEnd"  # its own transcript has the turn
        if event in _ENDS:
            self._cut_off(None if event == "SessionEnd" else "")
        elif is_restart(record):
            self.take_restart()
            if self._subagents is not None:
                self._put_of_subagents(self._subagents.left(self._at))
        make = _MAKERS.get(event)
        if event in _ENDINGS and record.at_us < self._newest_turn_us:
            if event == "SessionEnd":
                self._keep_unknown(event, data)  # the agent went on with the session
        elif make is not None:
            make(self, data, record)
        elif event in _CALLS:
            if not self._has_transcript:
                _CALLS[event](self, data, record)
            elif event in ("BeforeTool", "PreToolUse"):
                self._held[_held_key(data)] = record
            else:
                self._answer_question(data, "allow")
                self._held.pop(_held_key(data), None)
        elif not self._has_transcript or event not in _IN_TRANSCRIPT:
            self._keep_unknown(event, data)
        if record.is_cut and not self._has_transcript:
            said = f"{event or 'what the agent said'} had more than {record.size_bytes:,} bytes: the rest is not here"
            self._put(ev.GapNoted(missed=said, source=self._agent), actor="runtime")

    def take_restart(self) -> None:
        """The agent has started again. If calls are running, it was killed, and no hook reported that."""
        self._drop_held(None)

    def _put(self, event: ev.Event, *, actor: str = "agent", trust: Any = "trusted", source: str = "") -> None:
        if self._is_closed:
            # The agent continues a session that it had ended.
            self._is_closed = False
            reopened = ev.SessionReopened(occurred_at=self._at)
            self.drafts.append(EventDraft(reopened, actor="runtime"))
        event = msgspec.structs.replace(event, occurred_at=self._at)
        self.drafts.append(EventDraft(event, actor=actor, trust=trust, source=source))

    def _keep_unknown(self, event: str, data: dict[str, Any]) -> None:
        """Keeps a record without an event kind of its own, unchanged."""
        kind = "x.hook." + re.sub(r"[^a-z0-9]+", "_", _CAPITAL.sub("_", event or "unknown").lower()).strip("_")
        about = {k: storable(v) for k, v in data.items() if k not in _COMMON}
        self._put(ev.Foreign(foreign_kind=kind, data=about), actor="runtime", source=self._agent)

    # The session

    def _start(self, data: dict[str, Any], record: SpooledRecord) -> None:
        labels = {"model": text_in(data, "model"), "project": text_in(data, "cwd")}
        self._label({k: v for k, v in labels.items() if not (self._has_transcript and k in self._labels)})

    def _label(self, labels: dict[str, str]) -> None:
        new = {k: v for k, v in labels.items() if v and self._labels.get(k) != v}
        if new:
            self._labels |= new
            self._put(ev.LabelsSet(labels={**new}), actor="runtime")

    def _git_seen(self, data: dict[str, Any], record: SpooledRecord) -> None:
        """Where the agent works now. The label `commit` stays the one that the session started with. A transcript with
        the branch in every line has reported it already, perhaps a later one."""
        is_branch_told = self._has_transcript and self._agent in _WITH_BRANCH
        kept = ("commit", "branch") if is_branch_told else ("commit",)
        names = [n for n in ("repo", "branch", "commit") if n not in kept or n not in self._labels]
        self._label({name: text_in(data, name) for name in names})

    def _finish(self, data: dict[str, Any], record: SpooledRecord) -> None:
        if self._is_closed:
            return
        reason = text_in(data, "reason")
        why = f"{self._agent} ended" + (f": {reason}" if reason else "")
        if self._stopped is not None:
            self._end_turn("completed")
        self._end_turn("interrupted", why=why)
        if self._subagents is not None:
            self._put_of_subagents(self._subagents.left(self._at))
        self._close(why)

    def _close(self, why: str) -> None:
        self._put(ev.SessionClosed(why=why), actor="runtime")
        self._is_closed = True

    def end(self, outcome: str, why: str, at_us: int, left: Iterable[ev.Event]) -> None:
        """Ends a sub-agent's session, whose own hooks report no end. `left` are the returns of its own sub-agents."""
        self._at = at_us
        self._end_turn(outcome, why=why if outcome != "completed" else "")
        for event in left:
            self._put(event, actor="runtime")
        self._close(why)

    # Sub-agents

    def _subagent_stop(self, data: dict[str, Any], record: SpooledRecord) -> None:
        if id := text_in(data, "agent_id"):
            self._cut_off(id)
        if self._subagents is not None:
            self._put_of_subagents(self._subagents.stopped(text_in(data, "agent_id")))
        elif not self._has_transcript:
            self._keep_unknown("SubagentStop", data)

    def _put_of_subagents(self, events: Iterable[ev.Event]) -> None:
        """Puts events that leave a closed session closed."""
        was_closed = self._is_closed
        for event in events:
            self._put(event, actor="runtime")
        if was_closed and not self._is_closed:
            self._close("its sub-agent is known to have started or ended")

    # Turns

    def _prompt(self, data: dict[str, Any], record: SpooledRecord) -> None:
        if self._has_transcript:
            self._stopped = None
            return
        self._end_turn("interrupted", why="a new prompt came before the turn ended")
        id = text_in(data, "prompt_id") or text_in(data, "turn_id")
        words = storable(data.get("prompt"))
        self._put(ev.TurnStarted(input=words, id=id), actor="user")
        if words is not None:
            self._put(ev.MessageAdded(role="user", content=words), actor="user")
        self._is_open = True

    def _stop(self, data: dict[str, Any], record: SpooledRecord) -> None:
        if self._has_transcript:
            self._stopped = record
            return
        said = text_in(data, "last_assistant_message") or text_in(data, "prompt_response")
        if said:
            self._put(ev.MessageAdded(role="assistant", content=said))
        self._end_turn("completed")

    def _stop_failure(self, data: dict[str, Any], record: SpooledRecord) -> None:
        error = ev.Failure(text_in(data, "error") or "unknown", text_in(data, "error_details")[:2000])
        self._end_turn("failed", error=error)

    def _end_turn(self, outcome: Any, *, why: str = "", error: ev.Failure | None = None) -> None:
        """Ends the turn if one is open. Calls without a result have an unknown outcome."""
        for action, pending in [*self._pending.items()]:
            if pending.get("status") in ("requested", "running") and pending.get("tool") != "input":
                reason = "the turn ended before an answer came"
                if pending.get("effect") in ("read", "pure"):
                    self._put(ev.ActionFailed(action=action, error=ev.Failure("interrupted", reason)), actor="runtime")
                else:
                    self._put(ev.ActionUncertain(action=action, why=reason), actor="runtime")
                del self._pending[action]
        if self._is_open:
            self._put(ev.TurnEnded(outcome=outcome, error=error, why=why), actor="runtime")
            self._is_open = False

    def _codex_notify(self, data: dict[str, Any], record: SpooledRecord) -> None:
        """Codex's `notify` reports a whole turn at its end. It only counts without hooks and transcript, which have
        more."""
        if self._labels.get("capture") != "notify":
            return
        prompts = data.get("input-messages")
        words = "\n".join(map(str, prompts)) if isinstance(prompts, list) else ""
        self._prompt({"prompt": words, "turn_id": text_in(data, "turn-id")}, record)
        self._stop({"last_assistant_message": text_in(data, "last-assistant-message")}, record)

    # Calls

    def _ask(self, data: dict[str, Any], record: SpooledRecord) -> None:
        tool, given = text_in(data, "tool_name") or "unknown", storable(data.get("tool_input"))
        action = text_in(data, "tool_use_id") or f"hook-{record.key}"
        if action in self._pending:
            return  # two settings files have the same hook
        effect, input_hash = effect_of(tool, given), hash_value(given)
        self._put(ev.ActionRequested(action=action, tool=tool, effect=effect, input=given, input_hash=input_hash))
        self._pending[action] = {"tool": tool, "status": "requested", "effect": effect, "input_hash": input_hash}

    def _answer(self, data: dict[str, Any], record: SpooledRecord) -> None:
        self._answer_question(data, "allow")
        output = storable(data.get("tool_response"))
        error = _error_of(data, output)
        cost = ev.Cost(duration_us=_duration_us(data))
        action = self._find_pending(data)
        if action is None:
            self._record(data, record, output, error, cost)
            return
        pending = self._pending.pop(action)
        event: ev.Event
        if data.get("is_interrupt") is True:
            event = ev.ActionUncertain(action=action, error=error, why="somebody stopped it")
        elif error is not None:
            event = ev.ActionFailed(action=action, error=error, output=output, cost=cost)
        else:
            summary = summarise(output)
            event = ev.ActionSucceeded(action=action, output=output, output_summary=summary, cost=cost)
        self._put_tool_event(event, str(pending.get("effect")), str(pending.get("tool", "")))

    def _find_pending(self, data: dict[str, Any]) -> str | None:
        """The pending call of a result: by id, or for agents without ids by tool and input."""
        if id := text_in(data, "tool_use_id"):
            return id if id in self._pending else None
        wanted = (text_in(data, "tool_name"), hash_value(storable(data.get("tool_input"))))
        return next((a for a, p in self._pending.items() if (p.get("tool"), p.get("input_hash")) == wanted), None)

    def _record(
        self, data: dict[str, Any], record: SpooledRecord, output: Value, error: ev.Failure | None, cost: ev.Cost
    ) -> None:
        """Records a call whose start no hook reported."""
        tool, given = text_in(data, "tool_name") or "unknown", storable(data.get("tool_input"))
        effect = effect_of(tool, given)
        event = ev.ActionRecorded(
            action=text_in(data, "tool_use_id") or f"hook-{record.key}",
            tool=tool,
            effect=effect,
            outcome="failed" if error else "succeeded",
            input=given,
            input_hash=hash_value(given),
            output=output,
            output_summary=summarise(output),
            error=error,
            cost=cost,
        )
        self._put_tool_event(event, effect, tool)

    def _put_tool_event(self, event: ev.Event, effect: str, tool: str) -> None:
        """Content that a tool fetched from outside is not trusted."""
        is_outside = effect in UNVERIFIED
        trust = "unverified" if is_outside else "trusted"
        self._put(event, actor="tool", trust=trust, source=tool if is_outside else "")

    # People

    def _question(self, data: dict[str, Any], record: SpooledRecord) -> None:
        # Whether the call runs is up to the answer, so it does not count as running any more.
        same = [key for key, held in self._held.items() if call_key(held.data) == call_key(data)]
        self._held.pop(same[-1] if same else "", None)
        tool = text_in(data, "tool_name") or "a tool"
        given = storable(data.get("tool_input"))
        request = f"{_question_about(data)}{record.key[:8]}"
        self._put(
            ev.InputRequested(request=request, prompt=f"Allow {tool}: {summarise(given)}", options=("allow", "deny")),
            actor="runtime",
        )
        self._pending[request] = {"tool": "input", "status": "waiting"}

    def _denied(self, data: dict[str, Any], record: SpooledRecord) -> None:
        self._answer_question(data, "deny")
        reason = text_in(data, "reason")
        action = self._find_pending(data)
        if action is not None and not self._has_transcript:
            del self._pending[action]
            self._put(ev.ActionDenied(action=action, by="rule", why=reason), actor="runtime")
        else:
            self._keep_unknown("PermissionDenied", data)

    def _answer_question(self, data: dict[str, Any], answer: str) -> None:
        """A call that ran was allowed; one that was denied was not."""
        self._close_questions(re.escape(_question_about(data)), answer)

    def _close_questions(self, pattern: str, answer: str, why: str = "", by: str = "user") -> None:
        for request in [each for each in self._pending if re.match(pattern, each)]:
            del self._pending[request]
            self._put(ev.InputAnswered(request=request, answer=answer, by=by, why=why), actor=by or "runtime")

    def _cut_off(self, agent: str | None) -> None:
        """The turn of an agent is over: the main one (empty), a sub-agent by its id, or all of them (None)."""
        questions = QUESTION if agent is None else _questions_of(agent)
        # Without a terminal nobody is asked, and the program denies it.
        self._close_questions(questions, "deny", "the call did not run", by="")
        self._drop_held(agent)

    def _drop_held(self, agent: str | None) -> None:
        """A call that was running when the program ended. Gemini's transcript does not have it, so only its hook
        reports it."""

        def is_dropped(record: SpooledRecord) -> bool:
            return agent is None or text_in(record.data, "agent_id") == agent

        dropped = [record for record in self._held.values() if is_dropped(record)]
        self._held = {key: record for key, record in self._held.items() if not is_dropped(record)}
        self._shell_calls.drop(is_dropped)
        for record in dropped if agent is None else ():
            if record.event == "BeforeTool":
                self._record_cut_off(record)

    def _record_cut_off(self, record: SpooledRecord) -> None:
        now, self._at = self._at, record.at_us
        self._ask(record.data, record)
        action = f"hook-{record.key}"
        if self._pending.pop(action, None) is not None:
            why = "the agent ended while it ran"
            self._put(ev.ActionUncertain(action=action, why=why), actor="runtime")
        self._at = now

    # Files and other things

    def _instructions(self, data: dict[str, Any], record: SpooledRecord) -> None:
        path, why = text_in(data, "file_path"), text_in(data, "load_reason")
        self._put(ev.ResourceTouched(resource=path or "unknown", category="file", why=why), actor="runtime")

    def _config(self, data: dict[str, Any], record: SpooledRecord) -> None:
        path = text_in(data, "file_path") or text_in(data, "source") or "settings"
        event = ev.ResourceTouched(resource=path, category="file", mode="write", why="settings of the agent changed")
        self._put(event, actor="runtime")

    def _files_seen(self, data: dict[str, Any], record: SpooledRecord) -> None:
        ended = self._shell_calls.take(record)
        if ended is not None and ended.name not in self.written_files:
            for event in ended.changes:
                self._put(event, actor="tool")


def _questions_of(agent: str) -> str:
    """A pattern for the questions of an agent, the main one if empty."""
    return re.escape(f"{QUESTION}{agent}-") if agent else f"{QUESTION}[0-9a-f]{{12}}-[0-9a-f]{{8}}$"


def _question_about(data: dict[str, Any]) -> str:
    """How the name of a question about a call begins."""
    agent = text_in(data, "agent_id")
    return f"{QUESTION}{agent}{'-' if agent else ''}{hash_value(storable(data.get('tool_input')))[:12]}-"


def _held_key(data: dict[str, Any]) -> str:
    return f"call {text_in(data, 'tool_use_id') or call_key(data)}"


def call_key(data: dict[str, Any]) -> str:
    """Identifies what is called, for records without an id."""
    return f"{text_in(data, 'tool_name')} {hash_value(storable(data.get('tool_input')))}"


def is_restart(record: SpooledRecord) -> bool:
    """Whether a program of the agent has started, which may have been killed before."""
    return record.event == "SessionStart" and text_in(record.data, "source") not in _GOES_ON


def calls_that_ran(records: Iterable[SpooledRecord]) -> set[str]:
    """The calls that an agent started without asking anybody. Of those that it asked about, hooks do not tell."""
    started: dict[str, str] = {}
    for record in records:
        if record.event == "PreToolUse":
            started[text_in(record.data, "tool_use_id")] = call_key(record.data)
        elif record.event == "PermissionRequest":
            asked = next((id for id in reversed(started) if started[id] == call_key(record.data)), "")
            started.pop(asked, None)
    return set(started)


def _error_of(data: dict[str, Any], output: Value) -> ev.Failure | None:
    """The failure in a hook's input: Claude Code has a separate event for it, Gemini a field of the result."""
    error: Any = data.get("error")
    if error is None and isinstance(output, dict):
        error = output.get("error")
    if not error:
        return None
    if isinstance(error, dict):
        return ev.Failure(str(error.get("type") or "error"), str(error.get("message") or error)[:2000])
    return ev.Failure("error", str(error)[:2000])


def _duration_us(data: dict[str, Any]) -> int:
    ms = data.get("duration_ms")
    return int(ms * 1000) if isinstance(ms, int | float) and 0 <= ms < 1e12 else 0


Maker = Callable[[HookedSession, dict[str, Any], SpooledRecord], None]
_MAKERS: dict[str, Maker] = {
    "SessionStart": HookedSession._start,
    "SessionEnd": HookedSession._finish,
    "SubagentStop": HookedSession._subagent_stop,
    "UserPromptSubmit": HookedSession._prompt,
    "BeforeAgent": HookedSession._prompt,
    "Stop": HookedSession._stop,
    "AfterAgent": HookedSession._stop,
    "StopFailure": HookedSession._stop_failure,
    "agent-turn-complete": HookedSession._codex_notify,
    "PermissionRequest": HookedSession._question,
    "PermissionDenied": HookedSession._denied,
    "InstructionsLoaded": HookedSession._instructions,
    "ConfigChange": HookedSession._config,
    "git.seen": HookedSession._git_seen,
    "files.before": HookedSession._files_seen,
    "files.after": HookedSession._files_seen,
}
_CALLS: dict[str, Maker] = {
    "PreToolUse": HookedSession._ask,
    "BeforeTool": HookedSession._ask,
    "PostToolUse": HookedSession._answer,
    "PostToolUseFailure": HookedSession._answer,
    "AfterTool": HookedSession._answer,
}
_WITH_BRANCH = ("claude-code",)
_IN_TRANSCRIPT = frozenset(
    {"PreCompact", "PostCompact", "SubagentStart", "SubagentPrompt", "SubagentEnd", "PreCompress"}
)
"""Events that transcripts have too."""
_ASIDE = frozenset({"git.seen", "files.before", "files.after"})
"""What our own hook adds to an event."""
KNOWN_EVENTS = frozenset({*_MAKERS, *_CALLS, *_IN_TRANSCRIPT, "Notification"}) - _ASIDE
"""Events that show that an agent works. A session is not made from others alone."""
