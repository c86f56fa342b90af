"""Turns in a few words, for tests of the rules."""

from __future__ import annotations

from typing import Any

from wakelog.insight.blocks import Block, Did, Finding, SpokenText, TurnBlocks


class Scene:
    """Builds a turn, one text or call at a time; each gets its own event."""

    def __init__(self, turn: int = 1) -> None:
        self.turn = turn
        self.blocks: list[Block] = []

    def user(self, text: str, *, queued: bool = False) -> Scene:
        return self._add(SpokenText(self._next, 0, "user", text, queued))

    def says(self, text: str) -> Scene:
        return self._add(SpokenText(self._next, 0, "agent", text))

    def thinks(self, text: str) -> Scene:
        return self._add(SpokenText(self._next, 0, "thinking", text))

    def edits(self, path: str = "app.py", *, fails: bool = False, output: str = "ok") -> Scene:
        return self.calls("Edit", {"file_path": path}, effect="write", fails=fails, output=output)

    def runs(self, command: str, output: str = "", *, fails: bool = False, batch: int = 0) -> Scene:
        return self.calls("Bash", {"command": command}, fails=fails, output=output, batch=batch)

    def calls(
        self,
        tool: str,
        given: Any = None,
        *,
        effect: str = "external",
        fails: bool = False,
        output: str = "",
        batch: int = 0,
    ) -> Scene:
        outcome = "failed" if fails else "succeeded"
        return self._add(Did(self._next, tool, effect, given, outcome, output, (), batch or self._next))

    @property
    def _next(self) -> int:
        return self.turn * 1000 + len(self.blocks)

    def _add(self, block: Block) -> Scene:
        self.blocks.append(block)
        return self

    def done(self) -> TurnBlocks:
        return TurnBlocks(self.turn, tuple(self.blocks))

    def quote(self, finding: Finding) -> str:
        """The words that a finding points at: of a text, or of the result of a call."""
        span = finding.span
        texts = {b.seq: b.text if isinstance(b, SpokenText) else b.output for b in self.blocks}
        return texts.get(span.seq, "")[span.start : span.end]

    def reason(self, finding: Finding) -> str:
        span = finding.reason
        texts = {b.seq: b.text for b in self.blocks if isinstance(b, SpokenText)}
        return texts.get(span.seq, "")[span.start : span.end] if span else ""
