"""The retention policy in the settings: what to keep."""

from __future__ import annotations

from typing import Literal

import msgspec

from wakelog.config.amounts import show_age, show_size

Action = Literal["archive", "prune", "delete"]
ENDED = ("closed", "archived")


class RetentionPolicy(msgspec.Struct, frozen=True):
    """What to keep. The default keeps everything."""

    keep_us: int | None = None
    """Sessions without an event for longer than this may be removed; None means no limit."""
    max_bytes: int | None = None
    """If the sessions take more than this, the oldest are removed until they fit; None means no limit."""
    statuses: tuple[str, ...] = ENDED
    keep_last: int = 0
    """This many of the newest sessions are never touched."""
    action: Action = "prune"

    @property
    def keeps_everything(self) -> bool:
        return self.keep_us is None and self.max_bytes is None

    def __str__(self) -> str:
        if self.keeps_everything:
            return "everything is kept"
        rules = []
        if self.keep_us is not None:
            rules.append(f"untouched for {show_age(self.keep_us)}")
        if self.max_bytes is not None:
            rules.append(f"beyond {show_size(self.max_bytes)} (oldest first)")
        kept = f", but the newest {self.keep_last} stay" if self.keep_last else ""
        return f"{self.action} {' or '.join(self.statuses)} sessions {' or '.join(rules)}{kept}"
