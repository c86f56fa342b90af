"""What is told of the webhooks of a store, on every surface: each hook, how it is doing, and what it does not take.

Of an address the host is told, and of a secret where it comes from. The files of a store's hooks are in a folder of the
user who runs the sender, so a server tells of hooks that run beside it, under the same user.
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
    """Messages that the receiver does not take. Each holds up its session."""
    skipped: int
    """Messages that a person gave up."""


def hooks_folder(store: Store, otherwise: str = "") -> Path:
    """Where the hooks of a store are kept; `otherwise` identifies a store that cannot do it itself."""
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
    """Gives up the message that holds up a session: the receiver never gets it, and what follows is sent next."""
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
