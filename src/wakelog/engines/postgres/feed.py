"""The store-wide feed without a sequence: by the time a commit was stored, looking back a little.

A commit gets its time when it is inserted and is seen when its transaction ends, so one can appear behind another that
is newer. A reader therefore looks back `SLACK_US` behind the newest it has seen, and the cursor carries what it has
seen there: nothing is missed, and nothing is told for ever."""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.engine import Change
from wakelog.errors import InvalidInputError
from wakelog.model.ids import SessionId

SLACK_US = 10_000_000
"""Longer than an append may take. One that takes longer is found when its session changes again."""

Seen = dict[str, tuple[int, int]]
"""Session → the last event seen, and when it was stored."""


def _read(cursor: str) -> tuple[int, Seen]:
    if not cursor:
        return 0, {}
    try:
        return msgspec.json.decode(cursor, type=tuple[int, Seen])
    except msgspec.DecodeError as exc:
        raise InvalidInputError(f"{cursor[:40]!r} is not a cursor of this store", kind="bad-cursor") from exc


def since(cursor: str, limit: int) -> tuple[int, int]:
    """From when on to look, and at how many rows: what was seen already may come first."""
    newest, seen = _read(cursor)
    return newest - SLACK_US, limit + 50 * len(seen) + 50


def page_of(rows: list[Any], cursor: str, limit: int) -> list[Change]:
    """The changes that the cursor has not seen, each with the cursor that goes on after it."""
    newest, seen = _read(cursor)
    out: list[Change] = []
    for row in rows:
        session, last, at = row["session"], row["last"], row["stored_at"]
        if last <= seen.get(session, (0, 0))[0]:
            continue
        if len(out) == limit:
            break
        newest = max(newest, at)
        seen[session] = (last, at)
        seen = {s: mark for s, mark in seen.items() if mark[1] > newest - SLACK_US}
        out.append(Change(SessionId(session), last, msgspec.json.encode((newest, seen)).decode()))
    return out
