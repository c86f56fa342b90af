"""What the surfaces show about the webhooks of a store: each hook, its status, and the messages it refused.

Of an address only the host is shown, and of a secret only its source. A store's hooks are in a folder of the user who
runs the sender, so a server shows the hooks that run on its machine under the same user.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec

from wakelog.config.folders import store_folder
from wakelog.store import Store
from wakelog.webhooks.hooks_file import Webhook, find_hook, read_hooks
from wakelog.webhooks.positions import Positions, RefusedMessage


class HookState(msgspec.Struct, frozen=True):
    """One webhook. Times are in microseconds."""

    name: str
    host: str
    secret_from: str
    on: tuple[str, ...]
    severity: str
    content: bool
    sent: int
    last_ok: int | None
    failing_since: int | None
    problem: str | None
    refused: tuple[RefusedMessage, ...]
    """Messages that the receiver refuses. Each blocks its session."""
    skipped: int
    """How many messages a person has skipped."""


def hooks_folder(store: Store, otherwise: str = "") -> Path:
    """The folder with the hooks of a store. `otherwise` identifies a store that has no path and no id."""
    able = store.engine.abilities
    return store_folder("webhooks", str(able.path.resolve()) if able.path is not None else able.identity or otherwise)


def open_positions(folder: Path, *, writes: bool = False) -> Positions:
    return Positions(folder / "positions.db", writes=writes)


def hook_states(folder: Path, file: Path | None = None) -> list[HookState]:
    """All webhooks, in the order of their file."""
    hooks = read_hooks(file or folder / "webhooks.toml")
    if not hooks:
        return []
    with closing(open_positions(folder)) as positions:
        return [_state(hook, positions) for hook in hooks]


def skip_message(store: Store, folder: Path, name: str, session: str, file: Path | None = None) -> RefusedMessage:
    """Skips the message that blocks a session: the receiver never gets it, and the next one is sent."""
    find_hook(read_hooks(file or folder / "webhooks.toml"), name)
    with closing(open_positions(folder)) as positions:
        return positions.skip(name, store.find(session), store.clock())


def _state(hook: Webhook, positions: Positions) -> HookState:
    status = positions.status(hook.name)
    return HookState(
        name=hook.name,
        host=hook.host,
        secret_from=hook.secret.partition(":")[0] if ":" in hook.secret else "file",
        on=hook.on,
        severity=hook.severity,
        content=hook.content,
        sent=status.sent,
        last_ok=status.last_ok or None,
        failing_since=status.failing_since or None,
        problem=status.problem or None,
        refused=positions.refused(hook.name),
        skipped=len(positions.skipped(hook.name)),
    )
