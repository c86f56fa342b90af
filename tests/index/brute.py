"""What an index should answer, worked out from a log the slow way.

Everything is read through `Log`: entries, state and view. Nothing here knows how the index is made.
"""

from __future__ import annotations

import json
from typing import Any

from wakelog.log import Log
from wakelog.log.reader import Entry, fold_at
from wakelog.state.fold import Fold
from wakelog.state.patch import copy

TRUST = ["trusted", "unverified", "untrusted"]
Row = tuple[Any, ...]


class History:
    """One session's whole history, read once, with what was pending and spent after each event."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.entries = list(log.entries())
        first = log.segments[-1].first
        self.own = [e for e in self.entries if e.seq >= first]
        self._ranges = log.view()
        self._pending: dict[int, dict[str, Any]] = {0: {}}
        self._spent: dict[int, dict[str, int]] = {0: {}}
        fold = Fold()
        for entry in self.entries:
            if not entry.record.body:
                continue
            if entry.seq > 1 and entry.seq - 1 not in self._spent:
                fold = fold_at(log.engine, log.segments, entry.seq - 1).fold
                self._note(entry.seq - 1, fold)
            fold.apply(copy(entry.delta))
            self._note(entry.seq, fold)

    def _note(self, seq: int, fold: Fold) -> None:
        self._pending[seq] = copy(fold.doc["pending_actions"])
        self._spent[seq] = dict(fold.doc["budget"]["spent"])

    @property
    def in_view(self) -> list[Entry]:
        return [e for e in self.entries if self.sees(e.seq)]

    def sees(self, seq: int) -> bool:
        return any(first <= seq <= last for first, last in self._ranges)

    def since_turns(self, count: int) -> list[Entry]:
        """What is in view, from where the `count` newest turns in view began."""
        turned = [e for e in self.in_view if turn_of(e)]
        numbers = sorted({e.header.turn for e in turned})
        if len(numbers) < count:
            return self.in_view
        seen = {turn_of(e) for e in turned if e.header.turn == numbers[-count]}
        start = min(e.seq for e in self.entries if turn_of(e) in seen)
        return [e for e in self.in_view if e.seq >= start]

    def tool(self, entry: Entry) -> tuple[str, str]:
        """Tool and effect of an action event: its own, or those it was requested with."""
        body = entry.body
        if "tool" in body:
            return body["tool"], body.get("effect", "external") if is_call(entry) else ""
        if not entry.kind.startswith("action.") or not entry.record.body:
            return "", ""
        pending = self._pending[entry.seq - 1].get(body["action"])
        return (pending["tool"], pending["effect"]) if pending else ("", "")

    def cost(self, entry: Entry) -> tuple[int, int]:
        if not entry.record.body:
            return 0, 0
        before, after = self._spent[entry.seq - 1], self._spent[entry.seq]
        tokens, usd = (after.get(unit, 0) - before.get(unit, 0) for unit in ("tokens", "usd_micros"))
        return tokens, usd

    def session(self) -> dict[str, Any]:
        log, own = self.log, self.own
        state, head = log.state(), log.head()
        before = log.state(head.fork.at)["budget"]["spent"] if head.fork else {}
        first = self.entries[0]
        closed = [e for e in own if e.kind == "session.closed" and e.record.body]
        ended = state["turn"]["status"]
        outcome = "" if ended == "open" else ended
        if head.status in ("closed", "archived"):
            usual = "completed" if closed and closed[-1].is_intact else ""
            outcome = closed[-1].body.get("outcome", usual) if closed else ""
        spent = state["budget"]["spent"]
        error = state["last_error"] or {}
        return {
            "id": log.id,
            "root": log.id.partition(".")[0],
            "parent": head.fork.parent if head.fork else None,
            "forked_at": head.fork.at if head.fork else None,
            "status": head.status,
            "outcome": outcome,
            "goal": state["goal"] if isinstance(state["goal"], str) else None,
            "agent": first.body.get("agent", ""),
            "spawner": first.body.get("spawner", ""),
            "labels": {key: text(value) for key, value in state["labels"].items()},
            "turn": state["turn"]["number"],
            "turns": len({e.header.turn for e in own if turn_of(e)}),
            "events": len(own),
            "first_us": min(map(happened, own)),
            "last_us": max(map(happened, own)),
            "tokens": spent.get("tokens", 0) - before.get("tokens", 0),
            "usd_micros": spent.get("usd_micros", 0) - before.get("usd_micros", 0),
            "pending": len(state["pending_actions"]),
            "flags": len(state["flags"]),
            "has_error": bool(text(error.get("type")) or text(error.get("message"))),
            "head": head.seq,
            "damaged": "",
        }

    def events(self) -> list[Row]:
        return [
            (
                *(e.seq, e.header.turn, e.header.attempt, e.kind, e.header.at, happened(e), e.header.actor),
                *(self.tool(e)[0], e.body.get("action", ""), e.header.cause, e.header.trust, e.header.source),
                *(e.commit_id, *self.cost(e), "" if e.is_intact else "erased" if e.record.body else "pruned"),
                self.sees(e.seq),
            )
            for e in self.own
        ]

    def turns(self, entries: list[Entry]) -> list[dict[str, Any]]:
        """The roll-up of each attempt, over the given entries."""
        attempts: dict[tuple[int, int], list[Entry]] = {}
        for entry in entries:
            if key := turn_of(entry):
                attempts.setdefault(key, []).append(entry)
        return [self._turn(key, attempts[key]) for key in sorted(attempts)]

    def _turn(self, key: tuple[int, int], entries: list[Entry]) -> dict[str, Any]:
        changed = [e for e in entries if e.kind == "file.changed" and "path" in e.body]
        called = [(e, self.tool(e)[1] == "model") for e in entries if e.record.body]
        costs = [self.cost(e) for e in entries]
        ended = [e for e in entries if e.kind == "turn.ended"]
        return {
            "turn": key[0],
            "attempt": key[1],
            "first": entries[0].seq,
            "last": entries[-1].seq,
            "outcome": outcome_of(ended[-1]) if ended else "open",
            "events": len(entries),
            "tool_calls": sum(is_call(e) and not is_model for e, is_model in called),
            "tool_errors": sum(is_failure(e) and not is_model for e, is_model in called),
            "model_calls": sum(is_call(e) and is_model for e, is_model in called),
            "files": len({e.body["path"] for e in changed}),
            "added": sum(e.body.get("added", 0) for e in changed),
            "removed": sum(e.body.get("removed", 0) for e in changed),
            "tokens": sum(tokens for tokens, _ in costs),
            "usd_micros": sum(usd for _, usd in costs),
            "trust": max((e.header.trust for e in entries), key=TRUST.index),
            "in_view": any(self.sees(e.seq) for e in entries),
        }

    def errors(self, entries: list[Entry]) -> list[Row]:
        out = []
        for e in entries:
            failed = is_failure(e)
            if ("error" in e.body and (failed or e.kind == "turn.ended")) or (e.is_intact and failed):
                default = "timeout" if outcome_of(e) == "timed_out" else "error"
                error = e.body.get("error") or {"type": default}
                out.append((e.seq, self.tool(e)[0], error["type"], error.get("message", "")))
        return out

    def messages(self, entries: list[Entry]) -> list[Row]:
        found = [e for e in entries if e.kind == "message.added" and "content" in e.body]
        return [(e.seq, e.body["role"], plain(self.log.value(e, e.body["content"]))) for e in found]

    def tools(self, entries: list[Entry]) -> dict[str, list[int]]:
        out: dict[str, list[int]] = {}
        for e in entries:
            tool, _ = self.tool(e)
            if tool and (is_call(e) or is_failure(e)):
                used = out.setdefault(tool, [0, 0, 0])
                used[0] += is_call(e)
                used[1] += is_failure(e)
                used[2] = e.seq if is_call(e) else used[2]
        return out


def files(entries: list[Entry]) -> list[Row]:
    return [
        (e.seq, e.body["path"], e.body.get("change", "modified"), e.body.get("added", 0), e.body.get("removed", 0))
        for e in entries
        if e.kind == "file.changed" and "path" in e.body
    ]


def decisions(entries: list[Entry]) -> list[Row]:
    return [
        (e.seq, e.header.turn, e.body["choice"], e.body.get("because", ""), tuple(e.body.get("alternatives", ())))
        for e in entries
        if e.kind == "decision.made" and "choice" in e.body
    ]


def facts(entries: list[Entry]) -> list[Row]:
    return [
        (e.seq, e.body["key"], e.body.get("value"), int(e.kind == "fact.retracted"))
        for e in entries
        if e.kind in ("fact.recorded", "fact.retracted") and "key" in e.body
    ]


def turn_of(entry: Entry) -> tuple[int, int] | None:
    """The attempt an event counts for. A fork's first event counts for none: the turn it names is its parent's."""
    header = entry.header
    return (header.turn, header.attempt) if header.turn and entry.kind != "session.forked" else None


def is_call(entry: Entry) -> bool:
    return entry.kind in ("action.requested", "action.recorded")


def is_failure(entry: Entry) -> bool:
    is_recorded = entry.kind == "action.recorded"
    return entry.kind in ("action.failed", "action.timed_out") or (is_recorded and outcome_of(entry) != "succeeded")


def outcome_of(entry: Entry) -> str:
    if not entry.record.body:
        return ""
    usual = {"action.recorded": "succeeded", "action.timed_out": "timed_out", "turn.ended": "completed"}
    return str(entry.body.get("outcome", usual.get(entry.kind, "")))


def happened(entry: Entry) -> int:
    return entry.body.get("occurred_at", 0) or entry.header.at


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def plain(value: Any) -> str:
    """The words of a value, for the shapes that the player makes."""
    if isinstance(value, str) or value is None:
        return value or ""
    if isinstance(value, list):
        return "\n".join(filter(None, map(plain, value)))
    if isinstance(value, dict):
        if value.get("type") == "text":
            return str(value["text"])
        if value.get("type") == "image":
            return "(an image that cannot be shown)"
        return "\n".join(
            f"{key}:\n{plain(item)}" if isinstance(item, dict | list) else f"{key}: {plain(item)}"
            for key, item in value.items()
        )
    return json.dumps(value)
