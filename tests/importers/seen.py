"""What a person sees of an imported session: words, calls, changed files and cost, however they came to be recorded.

A transcript that is imported while it grows gives other events than one that is imported whole: a call is requested
first and answered later, an answer of the model comes in parts. What is seen must be the same.
"""

from typing import Any

import msgspec

from wakelog.session import Session

_KINDS = {"action.succeeded": "succeeded", "action.timed_out": "timed_out", "action.abandoned": "interrupted"}


class SeenCall(msgspec.Struct):
    tool: str
    input: Any
    outcome: str = "pending"
    output: Any = None


class Seen:
    def __init__(self, session: Session[Any]) -> None:
        self.words: list[tuple[str, Any]] = []
        """Who said what: a person's prompts, messages with their names, and each block of the model's answers."""
        self.calls: dict[str, SeenCall] = {}
        self.files: list[tuple[str, str, int, int]] = []
        self.turns: list[str] = []
        self.cost = {"tokens_in": 0, "tokens_out": 0, "usd_micros": 0}
        for entry in session.log.entries():
            self._take(session, entry)

    def _take(self, session: Session[Any], entry: Any) -> None:
        body = entry.body
        for name, amount in (body.get("cost") or {}).items():
            if name in self.cost:
                self.cost[name] += amount
        match entry.kind:
            case "turn.started":
                self.words.append(("prompt", session.log.value(entry, body.get("input"))))
            case "turn.ended":
                self.turns.append(body.get("outcome", "completed"))
            case "message.added":
                name = body.get("name") or body["role"]
                self.words.append((name, session.log.value(entry, body["content"])))
            case "history.compacted":
                self.words.append(("summary", session.log.value(entry, body["summary"])))
            case "file.changed":
                counts = body.get("added", 0), body.get("removed", 0)
                self.files.append((body["path"], body.get("change", "modified"), *counts))
            case "action.recorded" if body.get("effect") == "model":
                answer = session.log.value(entry, body["output"])
                self.words += [("model", block) for block in answer["content"]]
            case "action.recorded" | "action.requested":
                given = session.log.value(entry, body.get("input"))
                call = self.calls[body["action"]] = SeenCall(body["tool"], given)
                if entry.kind == "action.recorded":
                    call.outcome = body.get("outcome", "succeeded")
                    call.output = session.log.value(entry, body.get("output"))
            case "action.failed":
                kind = body["error"]["type"]
                self.calls[body["action"]].outcome = "failed" if kind == "error" else kind
                self.calls[body["action"]].output = session.log.value(entry, body.get("output"))
            case kind if kind in _KINDS:
                self.calls[body["action"]].outcome = _KINDS[kind]
                self.calls[body["action"]].output = session.log.value(entry, body.get("output"))

    def prompts(self) -> list[Any]:
        return [words for who, words in self.words if who == "prompt"]

    def said(self) -> list[str]:
        """The texts of the model's answers."""
        return [b["text"] for who, b in self.words if who == "model" and b.get("type") == "text"]

    def named(self, name: str) -> list[Any]:
        return [words for who, words in self.words if who == name]

    def comparable(self) -> dict[str, Any]:
        """All of it, with calls in the order of their ids: they are answered in another order when they wait. What a
        call that ran out of time had printed is only kept when it is recorded at once."""
        calls = {
            id: (c.tool, c.input, c.outcome, None if c.outcome == "timed_out" else c.output)
            for id, c in sorted(self.calls.items())
        }
        return {"words": self.words, "calls": calls, "files": self.files, "cost": self.cost, "turns": self.turns}
