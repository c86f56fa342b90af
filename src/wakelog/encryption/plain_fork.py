"""The one commit of an encrypted store that is not encrypted: a fork that was made without the key.

It says what anybody sees who has the store: where the fork leaves its parent, its name, that the session is open, that
nobody holds it, and that an open turn of the parent was interrupted. All of that is in headers. So it tells nothing,
and it can be written without a key.

Whoever can write to the store can write such a commit. It must not become a way to put content there: a commit that
says anything else is damage (`is_plain_fork`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.codec.records import decode_header
from wakelog.errors import CorruptLogError
from wakelog.model.names import is_name
from wakelog.model.records import Commit, ForkPoint


def fork_delta(turn: int, attempt: int, *, is_open: bool) -> list[dict[str, Any]]:
    """What a fork does to the state, as far as headers tell: `turn` and `attempt` are those of a turn that is open at
    the fork point. Calls that are open there are given up with the first append (log/append.py)."""
    delta: list[dict[str, Any]] = [
        {"op": "add", "path": "/status", "value": "open"},
        {"op": "add", "path": "/lease", "value": {"epoch": 0, "holder": ""}},
    ]
    if is_open:
        left = {"number": turn, "attempt": attempt, "status": "interrupted"}
        delta.append({"op": "add", "path": "/turn", "value": left})
    return delta


def is_plain_fork(commit: Commit, point: ForkPoint | None) -> bool:
    """Whether a commit of a session that was forked at `point` is such a fork, and says nothing else."""
    if point is None or commit.first != point.at + 1 or commit.prev != point.hash:
        return False
    if len(commit.records) != 1 or commit.payloads or commit.paths or commit.snapshot or commit.fingerprint:
        return False
    try:
        header = decode_header(commit.records[0].header)
        said = msgspec.json.decode(commit.records[0].body)
    except (CorruptLogError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    if header.kind != "session.forked" or type(said) is not dict:
        return False
    name = said.pop("name", "")
    delta = fork_delta(header.turn, header.attempt, is_open=header.turn > 0)
    place = {"parent": point.parent, "at": point.at, "hash": point.hash.hex(), "delta": delta}
    return bool(said == place and (name == "" or (type(name) is str and is_name(name))))
