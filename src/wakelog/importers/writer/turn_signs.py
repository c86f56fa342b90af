"""Whether an agent seems to have stopped, judged by its last reply."""

from __future__ import annotations

from wakelog.importers.steps import ReplyStep


class TurnSigns:
    """What the replies of a turn say about its end. A reply may come in parts, which are looked at together."""

    def __init__(self) -> None:
        self.is_done = False
        """The agent said that it stopped."""
        self.seems_done = False
        """Its last reply requested no call."""
        self._last = ""

    @property
    def are_of_an_end(self) -> bool:
        return self.is_done or self.seems_done

    def look(self, reply: ReplyStep) -> None:
        if reply.content:
            asks = any(block.get("type") == "tool_use" for block in reply.content)
            self.is_done = reply.is_last
            self.seems_done = not asks and (self.seems_done or self._last != reply.id)
            self._last = reply.id

    def clear(self) -> None:
        self.is_done = self.seems_done = False
