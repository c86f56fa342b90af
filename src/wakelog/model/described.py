"""Lets msgspec prepare a type under a lock, before several threads use it.

msgspec inspects a struct when it first sees it, and evaluates its annotations, during which another thread may run. If
that thread uses the same half-inspected struct, the process crashes: eight threads that asked for their first state at
the same time crashed in 10 of 30 tries with a short switch interval. So a struct is inspected under one lock first. A
decoder made at module level does not need this, because one thread imports the module.
"""

from __future__ import annotations

import os
import threading
from typing import TypeVar

import msgspec

T = TypeVar("T")

_lock = threading.RLock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    # A fork waits until no struct is being inspected; the child would inherit it half done.
    os.register_at_fork(
        before=lambda: _lock.acquire(), after_in_parent=lambda: _lock.release(), after_in_child=_renew_lock
    )


def described(kind: type[T]) -> type[T]:
    """Returns the type after msgspec has inspected it. Repeated calls take microseconds."""
    with _lock:
        msgspec.msgpack.Decoder(kind)
    return kind
