"""Agent Client Protocol: a recorder between an editor and its agent.

    python -m wakelog.adapters.acp --store agents.db -- my-agent --acp

Let the editor start this command instead of the agent. Every byte passes unchanged, both ways. The messages (JSON-RPC,
one per line) are also recorded: a prompt starts a turn, the agent's replies and tool calls follow, and so do the files
and commands that it requests from the editor. A session of the protocol is the session `acp-<id>`. A message that
cannot be read or stored never delays the stream: the first one is reported on stderr.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import IO, Any

import msgspec

from wakelog.child_process import SignalForwarding
from wakelog.importers import steps as st
from wakelog.importers.common.file_changes import file_change
from wakelog.importers.source.files import storable
from wakelog.importers.writer.session_writer import SessionWriter
from wakelog.instruments.writer_thread import RecordWriter
from wakelog.model.events import Effect, FileChanged
from wakelog.model.json_fields import as_dict, count_in, dicts_in
from wakelog.model.parts import text_of
from wakelog.model.usage import Usage
from wakelog.store import Store, open

NAME = "acp"
_EFFECTS: dict[str, Effect] = {
    **dict.fromkeys(("read", "search", "fs/read_text_file", "terminal/output"), "read"),
    **dict.fromkeys(("edit", "delete", "move", "fs/write_text_file"), "write"),
    "think": "pure",
}
_OUTCOMES: dict[str, st.Outcome] = {"completed": "succeeded", "failed": "failed", "cancelled": "cancelled"}
_CLIENT_METHODS = frozenset(
    f"session/{name}"
    for name in (
        *("prompt", "cancel", "load", "resume", "fork", "close", "delete"),
        *("set_mode", "set_model", "set_config_option"),
    )
)
"""Methods with a session that only clients call. Only agents call the others."""
_CHUNK = 1 << 16
_decode = msgspec.json.Decoder().decode


class AcpRecorder:
    """Records the messages that pass between a client and an agent."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sessions: dict[str, _AcpSession] = {}
        self._requests: dict[tuple[bool, str], tuple[str, dict[str, Any]]] = {}
        """Requests without an answer, by sender and id: method and parameters."""

    def take(self, line: bytes, *, from_client: bool) -> None:
        """Records one line of the stream. Lines that are not messages of the protocol are skipped."""
        try:
            message = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if isinstance(message, dict):
            self._record(storable(message), from_client)

    def _record(self, message: dict[str, Any], from_client: bool) -> None:
        method, params = message.get("method"), message.get("params")
        if isinstance(method, str):
            params = as_dict(params)
            if "id" in message:
                self._requests[from_client, str(message["id"])] = method, params
            session = params.get("sessionId")
            if isinstance(session, str) and from_client == (method in _CLIENT_METHODS):
                self._session(session).record_request(method, params, message)
        elif "id" in message:
            method, params = self._requests.pop((not from_client, str(message["id"])), ("", {}))
            result = message.get("result")
            session = params.get("sessionId") or (result.get("sessionId") if isinstance(result, dict) else None)
            if method and isinstance(session, str):
                self._session(session).record_answer(method, params, message)

    def name_of(self, session_id: str) -> str:
        """The name in the store of a session of the protocol."""
        return self._session(session_id).writer.name

    def _session(self, id: str) -> _AcpSession:
        if id not in self._sessions:
            self._sessions[id] = _AcpSession(self._store, id)
        return self._sessions[id]

    def close(self) -> None:
        """Stores everything that is not stored yet."""
        for session in self._sessions.values():
            session.close()


class _AcpSession:
    """One session: the reply that is being received, and the calls so far."""

    def __init__(self, store: Store, id: str) -> None:
        self.writer = SessionWriter(store, st.TranscriptHead(id, NAME), format=NAME, source="stdio", stat=(0, 0))
        self._clock = store.clock
        self._run = os.urandom(6).hex()
        self._count = 0
        self._words: list[str] = []
        self._thoughts: list[str] = []
        self._calls: dict[str, bool] = {}
        """Calls by id, and whether they are open."""
        self._denied: set[str] = set()
        self._replies = 0
        self._is_replay = self._is_known = False
        """An agent that loads a session sends its history again. It is recorded only if the session is new here."""
        self._prompt: list[Any] = []
        """The prompt that is being received, in such a history."""
        self._has_prompt = False
        self._state: dict[str, Any] = {}

    def record_request(self, method: str, params: dict[str, Any], message: dict[str, Any]) -> None:
        steps: list[st.Step] = []
        if method == "session/prompt":
            steps = [st.PromptStep(_content(params.get("prompt")))]
        elif method == "session/load":
            self._is_replay, self._is_known = True, self.writer.session is not None
        elif method == "session/update":
            steps = self._update(params.get("update"))
        elif method.startswith(("fs/", "terminal/")) and "id" in message:
            given = {key: value for key, value in params.items() if key != "sessionId"}
            steps = [*self._reply(), st.CallStep(self._rpc(message), method, given, _EFFECTS.get(method, "external"))]
        self._record(steps, message)

    def record_answer(self, method: str, params: dict[str, Any], message: dict[str, Any]) -> None:
        result, error = message.get("result"), message.get("error")
        failure = str(error.get("message", "error")) if isinstance(error, dict) else ""
        steps: list[st.Step] = []
        if method == "session/prompt":
            steps = [*self._reply(result), _turn_end(result, failure)]
        elif method == "session/load":
            steps, self._is_replay = self._replayed_turn(), False
        elif method == "session/request_permission":
            self._take_permission(params, result)
        elif method == "session/set_mode" and not failure:
            steps = self._set("mode", params.get("modeId"))
        elif method.startswith(("fs/", "terminal/")):
            files = (_written(params),) if method == "fs/write_text_file" and not failure else ()
            outcome: st.Outcome = "failed" if failure else "succeeded"
            steps = [st.ResultStep(self._rpc(message), result, outcome, failure, files=files)]
        self._record(steps, message)
        if method == "session/prompt":
            self.writer.close()

    def _update(self, update: Any) -> list[st.Step]:
        if not isinstance(update, dict) or (self._is_replay and self._is_known):
            return []
        content, kind = update.get("content"), update.get("sessionUpdate")
        if kind == "user_message_chunk":
            if not self._is_replay:  # else it repeats the prompt
                return []
            ended = [] if self._prompt else self._replayed_turn()
            self._prompt.append(content)
            return ended
        return [*self._replayed_prompt(), *self._agent_update(str(kind), update)]

    def _agent_update(self, kind: str, update: dict[str, Any]) -> list[st.Step]:
        match kind:
            case "agent_message_chunk":
                self._words.append(_text(update.get("content")))
            case "agent_thought_chunk":
                self._thoughts.append(_text(update.get("content")))
            case "tool_call" | "tool_call_update":
                return self._call(update)
            case "plan":
                return self._set("plan", update.get("entries"))
            case "current_mode_update":
                return self._set("mode", update.get("currentModeId"))
        return []

    def _set(self, name: str, value: Any) -> list[st.Step]:
        """The agent's plan and mode are the session's data."""
        if value is None or self._state.get(name) == value:
            return []
        self._state[name] = value
        return [st.StateDeltaStep([{"op": "add", "path": f"/{name}", "value": value}])]

    def _replayed_prompt(self) -> list[st.Step]:
        prompt, self._prompt = self._prompt, []
        self._has_prompt = self._has_prompt or bool(prompt)
        return [st.PromptStep(_content(prompt))] if prompt else []

    def _replayed_turn(self) -> list[st.Step]:
        """The end of a turn in a history that is sent again."""
        steps = [*self._replayed_prompt(), *self._reply()]
        if self._has_prompt:
            steps.append(st.TurnEndStep())
        self._has_prompt = False
        return steps

    def _take_permission(self, params: dict[str, Any], result: Any) -> None:
        chosen = as_dict(as_dict(result).get("outcome")).get("optionId")
        kinds = {option.get("optionId"): str(option.get("kind")) for option in dicts_in(params.get("options"))}
        call = str(as_dict(params.get("toolCall")).get("toolCallId"))
        if kinds.get(chosen, "").startswith("reject"):
            self._denied.add(call)

    def _call(self, update: dict[str, Any]) -> list[st.Step]:
        id = str(update.get("toolCallId"))
        steps: list[st.Step] = []
        if id not in self._calls:
            kind, title = str(update.get("kind") or "other"), str(update.get("title") or "")
            input = update.get("rawInput")
            if input is None:
                input = {"title": title, "locations": update.get("locations")}
            self._calls[id] = True
            tool = title or kind if kind == "other" else kind  # titles name what a call is about: `Read a.py`
            steps += [*self._reply(), st.CallStep(id, tool, input, _EFFECTS.get(kind, "external"))]
        outcome = _OUTCOMES.get(str(update.get("status")))
        if outcome == "failed" and id in self._denied:
            outcome = "denied"
        if outcome is not None and self._calls[id]:
            self._calls[id] = False
            output = update.get("rawOutput")
            output = _content([p.get("content") for p in dicts_in(update.get("content"))]) if output is None else output
            files = tuple(_diff(p) for p in dicts_in(update.get("content")) if p.get("type") == "diff")
            error = text_of(output)[:2000] if outcome == "failed" and output is not None else ""
            steps.append(st.ResultStep(id, output, outcome, error, files=files if outcome == "succeeded" else ()))
        return steps

    def _reply(self, result: Any = None) -> list[st.Step]:
        """What the agent said since its last call."""
        words, thoughts = "".join(self._words), "".join(self._thoughts)
        self._words, self._thoughts = [], []
        blocks = [{"type": "thinking", "thinking": thoughts}] if thoughts else []
        blocks += [{"type": "text", "text": words}] if words else []
        usage = _usage(result.get("usage")) if isinstance(result, dict) else Usage()
        if not blocks and not usage.is_known:
            return []
        self._replies += 1
        return [st.ReplyStep(f"{self._run}-{self._replies}", blocks, usage=usage, is_last=result is not None)]

    def _rpc(self, message: dict[str, Any]) -> str:
        return f"{self._run}-rpc-{message['id']}"

    def _record(self, steps: Sequence[st.Step], message: dict[str, Any]) -> None:
        self._count += 1
        record = st.SourceRecord(f"{self._run}/{self._count}", tuple(steps), self._clock(), rest=message)
        self.writer.take(record, 0)

    def close(self) -> None:
        self._record(self._reply(), {"closed": True})
        self.writer.close()


def _turn_end(result: Any, error: str) -> st.TurnEndStep:
    if error:
        return st.TurnEndStep("failed", error)
    stop = result.get("stopReason") if isinstance(result, dict) else ""
    return st.TurnEndStep("interrupted" if stop == "cancelled" else "completed")


def _text(content: Any) -> str:
    return content["text"] if isinstance(content, dict) and isinstance(content.get("text"), str) else ""


def _content(blocks: Any) -> Any:
    """Text blocks as one text, other content as it is."""
    listed = dicts_in(blocks)
    if listed and all(block.get("type") == "text" for block in listed):
        return "\n".join(_text(block) for block in listed)
    return listed or None


def _diff(part: dict[str, Any]) -> FileChanged:
    before, after = part.get("oldText"), part.get("newText")
    return file_change(
        str(part.get("path")),
        before=before if isinstance(before, str) else None,
        after=after if isinstance(after, str) else None,
        change="modified" if isinstance(before, str) else "created",
    )


def _written(params: dict[str, Any]) -> FileChanged:
    content = params.get("content")
    return file_change(str(params.get("path")), before=None, after=content if isinstance(content, str) else None)


def _usage(value: Any) -> Usage:
    used = as_dict(value)
    return Usage(
        input=count_in(used, "inputTokens"),
        output=count_in(used, "outputTokens"),
        cache_read=count_in(used, "cachedReadTokens"),
        cache_write=count_in(used, "cachedWriteTokens"),
        reasoning=count_in(used, "thoughtTokens"),
    )


def record(
    command: Sequence[str], store: Store, *, source: IO[bytes] | None = None, target: IO[bytes] | None = None
) -> int:
    """Runs an agent, forwards its stdin and stdout unchanged, and records the messages. Returns its exit code."""
    source, target = source or sys.stdin.buffer, target or sys.stdout.buffer
    recorder, jobs = AcpRecorder(store), RecordWriter()
    has_warned = False

    def attempt(work: Callable[[], None]) -> None:
        nonlocal has_warned
        try:
            work()
        except Exception as exc:
            if not has_warned:
                has_warned = True
                print(f"wakelog: not recorded: {exc}", file=sys.stderr, flush=True)

    def tap(from_client: bool) -> Callable[[bytes], object]:
        return lambda line: jobs.put(lambda: attempt(lambda: recorder.take(line, from_client=from_client)))

    with SignalForwarding() as signals:
        child = signals.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdin is not None
        assert child.stdout is not None
        inward = threading.Thread(target=pump, args=(source, child.stdin, tap(True)), daemon=True)
        inward.start()
        with child.stdout:
            pump(child.stdout, target, tap(False))
        code = child.wait()
        inward.join(1.0)  # no longer: it may wait for a client that sends nothing more
    jobs.close(lambda: attempt(recorder.close))
    return code


def pump(source: IO[bytes], target: IO[bytes], tap: Callable[[bytes], object]) -> None:
    """Forwards bytes as they arrive, and passes every complete line to `tap`: before the other side has it, so that no
    answer is recorded before its request."""
    rest = b""
    read: Callable[[int], bytes] = getattr(source, "read1", source.read)
    try:
        while chunk := read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.strip():
                    tap(line)
            target.write(chunk)
            target.flush()
        if rest.strip():
            tap(rest)
    except (BrokenPipeError, ValueError):
        return  # the other side is gone
    finally:
        if target is not sys.stdout.buffer:
            with contextlib.suppress(OSError):
                target.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m wakelog.adapters.acp", description="Record an ACP agent.")
    parser.add_argument("--store", default=None, help="the store: a path or URL, as for wakelog.open")
    parser.add_argument("command", nargs="+", help="the agent and its arguments, after --")
    options = parser.parse_args(arguments)
    with open(options.store) as store:
        return record(options.command, store)


if __name__ == "__main__":
    sys.exit(main())
