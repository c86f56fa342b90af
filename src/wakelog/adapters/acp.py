"""Agent Client Protocol: a recorder between an editor and its agent.

    python -m wakelog.adapters.acp --store agents.db -- my-agent --acp

Start this where the editor would start the agent. Every byte passes unchanged, both ways. Beside that, the messages
(JSON-RPC, one a line) are read: a prompt begins a turn, what the agent says and its tool calls are recorded, and so are
the files and commands that it asks the editor for. A session of the protocol is the session `acp-<id>`. What cannot be
read or stored never holds up the stream: it is told on stderr, once.
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
from wakelog.model.usage import Usage
from wakelog.store import Store, open

NAME = "acp"
_EFFECTS: dict[str, Effect] = {
    **dict.fromkeys(("read", "search", "fs/read_text_file", "terminal/output"), "read"),
    **dict.fromkeys(("edit", "delete", "move", "fs/write_text_file"), "write"),
    "think": "pure",
}
_OUTCOMES: dict[str, st.Outcome] = {"completed": "succeeded", "failed": "failed", "cancelled": "cancelled"}
_OF_CLIENT = frozenset({"session/prompt", "session/cancel", "session/load", "session/set_mode", "session/set_model"})
"""What only a client says; the rest that names a session only an agent does."""
_PIECE = 1 << 16
_decode = msgspec.json.Decoder().decode


class AcpRecorder:
    """Records the messages that pass between a client and an agent."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sessions: dict[str, _AcpSession] = {}
        self._asked: dict[tuple[bool, str], tuple[str, dict[str, Any]]] = {}
        """Requests without an answer, by who sent them: method and parameters."""

    def take(self, line: bytes, *, from_client: bool) -> None:
        """One line of the stream. What is no message of the protocol is passed over."""
        try:
            message = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if isinstance(message, dict):
            self._take(storable(message), from_client)

    def _take(self, message: dict[str, Any], from_client: bool) -> None:
        method, params = message.get("method"), message.get("params")
        if isinstance(method, str):
            params = as_dict(params)
            if "id" in message:
                self._asked[from_client, str(message["id"])] = method, params
            session = params.get("sessionId")
            if isinstance(session, str) and from_client == (method in _OF_CLIENT):
                self._session(session).said(method, params, message)
        elif "id" in message:
            method, params = self._asked.pop((not from_client, str(message["id"])), ("", {}))
            result = message.get("result")
            session = params.get("sessionId") or (result.get("sessionId") if isinstance(result, dict) else None)
            if method and isinstance(session, str):
                self._session(session).answered(method, params, message)

    def name_of(self, session_id: str) -> str:
        """The name of a session of the protocol in the store."""
        return self._session(session_id).writer.name

    def _session(self, id: str) -> _AcpSession:
        if id not in self._sessions:
            self._sessions[id] = _AcpSession(self._store, id)
        return self._sessions[id]

    def close(self) -> None:
        """Stores what is left."""
        for session in self._sessions.values():
            session.close()


class _AcpSession:
    """One session: what is being said in it, and what was asked for."""

    def __init__(self, store: Store, id: str) -> None:
        self.writer = SessionWriter(store, st.TranscriptHead(id, NAME), format=NAME, source="stdio", stat=(0, 0))
        self._clock = store.clock
        self._run = os.urandom(6).hex()
        self._count = 0
        self._words: list[str] = []
        self._thoughts: list[str] = []
        self._calls: dict[str, dict[str, Any]] = {}
        self._replies = 0

    def said(self, method: str, params: dict[str, Any], message: dict[str, Any]) -> None:
        steps: list[st.Step] = []
        if method == "session/prompt":
            steps = [st.PromptStep(_content(params.get("prompt")))]
        elif method == "session/update":
            steps = list(self._update(params.get("update")))
        elif method.startswith(("fs/", "terminal/")) and "id" in message:
            given = {key: value for key, value in params.items() if key != "sessionId"}
            steps = [*self._reply(), st.CallStep(self._rpc(message), method, given, _EFFECTS.get(method, "external"))]
        self._record(steps, message)

    def answered(self, method: str, params: dict[str, Any], message: dict[str, Any]) -> None:
        result, error = message.get("result"), message.get("error")
        told = str(error.get("message", "error")) if isinstance(error, dict) else ""
        steps: list[st.Step] = []
        if method == "session/prompt":
            steps = [*self._reply(result), _ended(result, told)]
        elif method.startswith(("fs/", "terminal/")):
            files = (_written(params),) if method == "fs/write_text_file" and not told else ()
            outcome: st.Outcome = "failed" if told else "succeeded"
            steps = [st.ResultStep(self._rpc(message), result, outcome, told, files=files)]
        self._record(steps, message)
        if method == "session/prompt":
            self.writer.close()

    def _update(self, update: Any) -> list[st.Step]:
        if not isinstance(update, dict):
            return []
        content = update.get("content")
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                self._words.append(_text(content))
            case "agent_thought_chunk":
                self._thoughts.append(_text(content))
            case "tool_call" | "tool_call_update":
                return self._call(update)
        return []

    def _call(self, update: dict[str, Any]) -> list[st.Step]:
        id = str(update.get("toolCallId"))
        steps: list[st.Step] = []
        known = self._calls.get(id)
        if known is None:
            kind, title = str(update.get("kind") or "other"), str(update.get("title") or "")
            given = update.get("rawInput")
            self._calls[id] = known = {"is_open": True}
            asked = given if given is not None else {"title": title, "locations": update.get("locations")}
            steps += [*self._reply(), st.CallStep(id, title or kind, asked, _EFFECTS.get(kind, "external"))]
        outcome = _OUTCOMES.get(str(update.get("status")))
        if outcome is not None and known["is_open"]:
            known["is_open"] = False
            output = update.get("rawOutput")
            output = _content([p.get("content") for p in dicts_in(update.get("content"))]) if output is None else output
            files = tuple(_diff(p) for p in dicts_in(update.get("content")) if p.get("type") == "diff")
            error = str(output)[:2000] if outcome == "failed" else ""
            steps.append(st.ResultStep(id, output, outcome, error, files=files if outcome == "succeeded" else ()))
        return steps

    def _reply(self, result: Any = None) -> list[st.Step]:
        """What the agent has said since its last call."""
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


def _ended(result: Any, error: str) -> st.TurnEndStep:
    if error:
        return st.TurnEndStep("failed", error)
    stop = result.get("stopReason") if isinstance(result, dict) else ""
    return st.TurnEndStep("interrupted" if stop == "cancelled" else "completed")


def _text(content: Any) -> str:
    return content["text"] if isinstance(content, dict) and isinstance(content.get("text"), str) else ""


def _content(blocks: Any) -> Any:
    """Text as text, other content as it is."""
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


def _usage(told: Any) -> Usage:
    used = as_dict(told)
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
    """Runs an agent, passes its stdin and stdout on unchanged, and records what passes. Returns its exit code."""
    source, target = source or sys.stdin.buffer, target or sys.stdout.buffer
    recorder, jobs, tell = AcpRecorder(store), RecordWriter(), _once_told()

    def tap(from_client: bool) -> Callable[[bytes], None]:
        def take(line: bytes) -> None:
            try:
                recorder.take(line, from_client=from_client)
            except Exception as exc:
                tell(f"wakelog: not recorded: {exc}")

        return lambda line: _put(jobs, take, line)

    def close() -> None:
        try:
            recorder.close()
        except Exception as exc:
            tell(f"wakelog: not recorded: {exc}")

    with SignalForwarding() as signals:
        child = signals.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdin is not None
        assert child.stdout is not None
        inward = threading.Thread(target=_pump, args=(source, child.stdin, tap(True)), daemon=True)
        inward.start()
        with child.stdout:
            _pump(child.stdout, target, tap(False))
        code = child.wait()
        inward.join(1.0)  # no longer: it may be waiting for a client that has nothing more to say
    jobs.close(close)
    return code


def _put(jobs: RecordWriter, take: Callable[[bytes], None], line: bytes) -> None:
    jobs.put(lambda: take(line))


def _pump(source: IO[bytes], target: IO[bytes], tap: Callable[[bytes], None]) -> None:
    """Passes bytes on as they come, and gives every whole line to `tap`."""
    rest = b""
    read: Callable[[int], bytes] = getattr(source, "read1", source.read)
    try:
        while piece := read(_PIECE):
            target.write(piece)
            target.flush()
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.strip():
                    tap(line)
        if rest.strip():
            tap(rest)
    except (BrokenPipeError, ValueError):
        return  # the other side has gone
    finally:
        if target is not sys.stdout.buffer:
            with contextlib.suppress(OSError):
                target.close()


def _once_told() -> Callable[[str], None]:
    told: list[str] = []

    def tell(text: str) -> None:
        if not told:
            told.append(text)
            print(text, file=sys.stderr, flush=True)

    return tell


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m wakelog.adapters.acp", description="Record an ACP agent.")
    parser.add_argument("--store", default=None, help="the store, as for wakelog.open")
    parser.add_argument("command", nargs="+", help="the agent and its arguments, after --")
    given = parser.parse_args(arguments)
    with open(given.store) as store:
        return record(given.command, store)


if __name__ == "__main__":
    sys.exit(main())
