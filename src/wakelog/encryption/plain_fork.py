"""The only commit of an encrypted store that is not encrypted: a fork that was made without the key.

It contains only what the headers show anyway: the fork point, the name, that the session is open, that it has no
holder, and that an open turn of the parent was interrupted. So it reveals nothing, and can be written without a key.

Anybody who can write to the store can write such a commit. So a commit with any other content counts as damage
(`is_plain_fork`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.codec.records import decode_header
from wakelog.errors import CorruptLogError
from wakelog.model.names import is_name
from wakelog.model.records import Commit, ForkPoint


def fork_delta(turn: int, attempt: int, *, is_open: bool) -> list[dict[str, Any]]:
    """What a fork changes in the state, as far as headers show it. `turn` and `attempt` are those of the turn that is
    open at the fork point. Open calls are abandoned by the first append (log/append.py)."""
    delta: list[dict[str, Any]] = [
        {"op": "add", "path": "/status", "value": "open"},
        {"op": "add", "path": "/lease", "value": {"epoch": 0, "holder": ""}},
    ]
    if is_open:
        interrupted = {"number": turn, "attempt": attempt, "status": "interrupted"}
        delta.append({"op": "add", "path": "/turn", "value": interrupted})
    return delta


def is_plain_fork(commit: Commit, point: ForkPoint | None) -> bool:
    """True if a commit of a session that was forked at `point` is such a fork, without other content."""
    if point is None or commit.first != point.at + 1 or commit.prev != point.hash:
        return False
    if len(commit.records) != 1 or commit.payloads or commit.paths or commit.snapshot or commit.fingerprint:
        return False
    try:
        header = decode_header(commit.records[0].header)
        body = msgspec.json.decode(commit.records[0].body)
    except (CorruptLogError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    if header.kind != "session.forked" or type(body) is not dict:
        return False
    name = body.pop("name", "")
    delta = fork_delta(header.turn, header.attempt, is_open=header.turn > 0)
    expected = {"parent": point.parent, "at": point.at, "hash": point.hash.hex(), "delta": delta}
    return bool(body == expected and (name == "" or (type(name) is str and is_name(name))))
