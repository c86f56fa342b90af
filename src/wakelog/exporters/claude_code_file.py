"""Writes a transcript that Claude Code can resume: one JSON object per line, each naming the one before it.

What was imported from Claude Code is restored record by record, with the original ids: the import kept the fields that
events do not have. Everything else gets new records: one for each prompt, each block of an answer and each result. The
conversation's id is new, made from the session and its head. So Claude Code treats the file as another conversation,
and the same session always gives the same file.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from typing import Any

from wakelog.context.conversation import valid_name
from wakelog.context.items import Item
from wakelog.context.provider_formats import shape_items
from wakelog.context.window import read_window
from wakelog.exporters.claude_blocks import ENDS, Block, CallBlocks
from wakelog.exporters.openai_chat import plain_item
from wakelog.importers.writer.imported_records import COMMON, LOG_OWN, rests_of
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.model.json_fields import as_dict
from wakelog.session import Session
from wakelog.timeline.messages import content_of

FORMAT = "claude-code"
VERSION = "2.0.0"
SYNTHETIC = "<synthetic>"
"""Claude Code's model name for answers that no model gave."""
NO_USAGE = {"input_tokens": 0, "output_tokens": 0}
_STICKY = ("cwd", "version", "gitBranch", "userType", "entrypoint", "slug")
_HOME = uuid.UUID("6f1d2f5e-6d0c-4b51-9d5f-3f0e6a0b7a11")


def session_id(session: Session[Any], at: Seq | None = None) -> str:
    """The id of the conversation in the file. Claude Code expects it as the file's name."""
    return str(uuid.uuid5(_HOME, f"{session.id}@{at or session.head.seq}"))


def claude_code_file(session: Session[Any], at: Seq | None = None) -> Iterator[dict[str, Any]]:
    """The records of the file, one per line."""
    return _Transcript(session, at).records()


class _Transcript:
    def __init__(self, session: Session[Any], at: Seq | None) -> None:
        self._session = session
        self._at = at or session.head.seq
        self._id = session_id(session, at)
        self._blocks = CallBlocks(session, session.log.entries(upto=self._at))
        labels = session.log.part("labels")
        self._fields: dict[str, Any] = {
            "cwd": labels.get("project") or "/",
            "version": labels.get("agent_version") or VERSION,
            "gitBranch": labels.get("branch") or "",
            "userType": "external",
        }
        self._model = str(labels.get("model") or "unknown")
        self._last: str | None = None
        self._time = 0
        self._waiting: list[dict[str, Any]] = []
        """Imported records of one answer, whose content is in a later event."""

    def records(self) -> Iterator[dict[str, Any]]:
        log = self._session.log
        view = log.view(self._at)
        marks = [e for e in log.entries(upto=self._at) if e.kind == "records.imported" and e.body["format"] == FORMAT]
        cut = marks[-1].seq if marks else 0
        is_whole = not marks or _is_in(view, cut - 1)
        commit: list[Entry] = []
        for entry in log.entries(upto=cut, payloads=True) if cut else ():
            if commit and entry.commit_id != commit[0].commit_id:
                commit = []
            if entry.kind == "records.imported" and entry.body.get("format") == FORMAT:
                events = [e for e in commit if e.kind not in LOG_OWN]
                # Branches that the user left in Claude Code stay; what was rewound in wakelog since is left out.
                yield from self._imported(events, entry, None if is_whole else view)
                commit = []
            else:
                commit.append(entry)
        yield from self._new(cut)

    # Imported records

    def _imported(
        self, events: list[Entry], mark: Entry, view: list[tuple[Seq, Seq]] | None
    ) -> Iterator[dict[str, Any]]:
        place = 0
        rests = rests_of(content_of(self._session.log, mark, "rest"))
        for id, count, rest in zip(mark.body["ids"], mark.body["counts"], rests, strict=False):
            own, place = events[place : place + count], place + count
            self._time = max([self._time, *(e.happened_at for e in own)])
            if not isinstance(rest, dict) or (view is not None and own and not _is_in(view, own[-1].seq)):
                continue  # a broken line, or a rewound one
            if COMMON not in rest:
                yield self._kept(rest)
                continue
            rest = {**rest.pop(COMMON), **rest}
            self._update_fields(rest)
            record = {
                **self._front(id, rest["type"]),
                **{k: v for k, v in rest.items() if k not in ("message", "type")},
            }
            self._last = id
            yield from self._restore(self._in_conversation(record), rest, own)

    def _kept(self, rest: dict[str, Any]) -> dict[str, Any]:
        """A record that the import kept completely."""
        self._update_fields(rest)
        if isinstance(rest.get("uuid"), str):
            self._last = rest["uuid"]
        return self._in_conversation(rest)

    def _update_fields(self, rest: dict[str, Any]) -> None:
        self._fields |= {key: rest[key] for key in _STICKY if key in rest}

    def _in_conversation(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record as part of this conversation, also if it was one of a sub-agent."""
        out = {k: v for k, v in record.items() if k != "agentId"}
        if "sessionId" in out:
            out["sessionId"] = self._id
        if "isSidechain" in out:
            out["isSidechain"] = False
        return out

    def _restore(self, record: dict[str, Any], rest: dict[str, Any], own: list[Entry]) -> Iterator[dict[str, Any]]:
        message = as_dict(rest.get("message"))
        if record["type"] == "user":
            yield self._user(record, message, own)
            return
        record["message"] = message
        self._waiting.append(record)
        replies = [e for e in own if e.kind in ENDS and self._blocks.is_model(e)]
        errors = [e for e in own if e.kind == "message.added"]
        if replies or errors or own:
            yield from self._answer(replies, errors)

    def _answer(self, replies: list[Entry], errors: list[Entry]) -> Iterator[dict[str, Any]]:
        """The records of one answer, one block each; the last record has the remaining blocks."""
        blocks = [block for reply in replies for block in self._blocks.reply_blocks(reply)]
        for error in errors:
            content = self._blocks.content(error, "content")
            blocks += [{"type": "text", "text": content}] if isinstance(content, str) else content
        first = replies[0].body if replies else {}
        params = first.get("params")
        model = params.get("model") if isinstance(params, dict) else None if replies else SYNTHETIC
        fields = {
            "id": str(first.get("action") or uuid.uuid5(_HOME, self._waiting[0]["uuid"])).partition("/")[0],
            "type": "message",
            "role": "assistant",
            **({"model": model} if model else {}),
        }
        waiting, self._waiting = self._waiting, []
        for number, record in enumerate(waiting):
            mine = blocks[number : number + 1] if record is not waiting[-1] else blocks[number:]
            yield record | {"message": {**fields, "content": mine, **record["message"]}}

    def _user(self, record: dict[str, Any], kept: dict[str, Any], own: list[Entry]) -> dict[str, Any]:
        results = [b for e in own if e.kind in ENDS and not self._blocks.is_model(e) if (b := self._blocks.result(e))]
        if isinstance(record.get("toolUseResult"), dict) and record["toolUseResult"].get("interrupted") is True:
            results = [{k: v for k, v in block.items() if k != "is_error"} for block in results]
        words: Any = None
        for entry in own:
            field = {"message.added": "content", "turn.started": "input", "history.compacted": "summary"}
            if entry.kind in field:
                words = self._blocks.content(entry, field[entry.kind])
        if results and words:
            results += [{"type": "text", "text": words}] if isinstance(words, str) else words
        if "toolUseResult" in record and len(results) == 1 and results[0].get("type") == "tool_result":
            record["toolUseResult"] = self._blocks.details(results[0], record["toolUseResult"])
        content = kept.get("content", results or (words if words is not None else ""))
        return record | {"message": {"role": "user", **kept, "content": content}}

    # New records

    def _new(self, cut: Seq) -> Iterator[dict[str, Any]]:
        """Records for everything after the last import: the conversation in Anthropic's shape, one block per record."""
        items = [plain_item(i) for i in read_window(self._session.log, self._at, evicted=()).items if i.seq > cut]
        if not items:
            return
        times = {e.seq: e.happened_at for e in self._session.log.entries(after=items[0].seq - 1, upto=self._at)}
        self._time = max(self._time, times[items[0].seq])
        calls = [item for item in items if item.kind == "call"]
        texts = [item for item in items if item.kind != "call"]
        actions: dict[str, Item | None] = {}
        number = 0
        for message in shape_items(items, "", "anthropic").messages:
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for block in blocks:
                if block["type"] == "tool_use":
                    actions[block["id"]] = item = _take_call(calls, block)
                elif block["type"] == "tool_result":
                    item = actions.get(block["tool_use_id"])
                else:
                    item = _take_text(texts, block)
                if item is not None:
                    seq = item.last if block["type"] == "tool_result" else item.seq
                    self._time = max(self._time, times.get(seq, 0))
                number += 1
                id = str(uuid.uuid5(_HOME, f"{self._session.id}/{self._at}/{number}"))
                more = self._record(message["role"], block, is_last=block is blocks[-1], answer=id, actions=actions)
                yield {**self._front(id, message["role"]), **more}
                self._last = id

    def _record(
        self, role: str, block: Block, *, is_last: bool, answer: str, actions: dict[str, Item | None]
    ) -> dict[str, Any]:
        if role == "assistant":
            stop = ("tool_use" if block["type"] == "tool_use" else "end_turn") if is_last else None
            message = {"id": f"msg_{answer}", "type": "message", "role": role, "model": self._model}
            return {"message": {**message, "content": [block], "stop_reason": stop, "usage": NO_USAGE}}
        if block["type"] == "tool_result":
            call = actions.get(block["tool_use_id"])
            details = self._blocks.details(block, None, call.action if call else "")
            return {"message": {"role": role, "content": [block]}, "toolUseResult": details}
        content = block["text"] if block["type"] == "text" else [block]
        return {"message": {"role": role, "content": content}}

    def _front(self, id: str, kind: str) -> dict[str, Any]:
        when = datetime.datetime.fromtimestamp(self._time / 1e6, datetime.UTC).isoformat(timespec="milliseconds")
        return {
            "parentUuid": self._last,
            "isSidechain": False,
            **self._fields,
            "sessionId": self._id,
            "type": kind,
            "uuid": id,
            "timestamp": when.replace("+00:00", "Z"),
        }


def _take_call(calls: list[Item], block: Block) -> Item | None:
    """The first call that matches a block. It is removed from the list."""
    for item in calls:
        data = item.input if isinstance(item.input, dict) else {} if item.input is None else {"input": item.input}
        if valid_name(item.name) == block["name"] and data == block["input"]:
            calls.remove(item)
            return item
    return None


def _take_text(texts: list[Item], block: Block) -> Item | None:
    """The first message that is a block, or a part of one: messages in a row become one. It is removed from the list,
    with those before it."""
    text = block.get("text", "")
    for place, item in enumerate(texts):
        if text and item.text and (item.text in text or text in item.text):
            del texts[: place + 1]
            return item
    return None


def _is_in(view: list[tuple[Seq, Seq]], seq: Seq) -> bool:
    return any(first <= seq <= last for first, last in view)
