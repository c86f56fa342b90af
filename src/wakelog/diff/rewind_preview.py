"""Shows in advance what a rewind would do: what is restored, what stays, and what cannot be undone.

A rewind removes nothing and touches nothing outside the log. Files and effects are listed so that no reader believes
they are gone.
"""

from __future__ import annotations

import msgspec

from wakelog.diff.turn_diff import PARTS
from wakelog.errors import InvalidInputError, NotAllowedError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model import machines
from wakelog.model.calls import Call, Calls
from wakelog.model.document import REWOUND_PARTS
from wakelog.model.ids import Seq, SessionId
from wakelog.model.values import Value
from wakelog.state.diff import diff
from wakelog.state.patch import tokens_of
from wakelog.timeline.message_page import read_message_page


class PartChange(msgspec.Struct, frozen=True):
    """One part of the state: how many entries it has now, how many then, and how many keys change."""

    part: str
    now: int
    then: int
    changed: int


class Beyond(msgspec.Struct, frozen=True):
    """A call with an effect outside the log, made after the point."""

    seq: Seq
    turn: int
    tool: str
    effect: str
    """write or external."""
    outcome: str
    action: str


class FileBeyond(msgspec.Struct, frozen=True):
    """A file changed after the point, with the totals of added and removed lines."""

    path: str
    change: str
    added: int
    removed: int
    turn: int


class RewindPreview(msgspec.Struct, frozen=True):
    """All a person needs to know before saying yes."""

    session: SessionId
    head: Seq
    turn: int
    to: Seq
    to_turn: int
    keys_now: int
    keys_then: int
    parts: tuple[PartChange, ...]
    messages_now: int
    messages_then: int
    files: tuple[FileBeyond, ...]
    effects: tuple[Beyond, ...]
    stays: tuple[str, ...]
    holder: str
    """The current writer of the session; empty if there is none."""


def preview_rewind(log: Log, to: Seq) -> RewindPreview:
    """What `rewind(to)` would do now. Raises as the rewind itself would."""
    head = log.head()
    if to < 1:
        raise InvalidInputError(
            "before the first event there is no state to go back to",
            kind="bad-point",
            hint="e1 is the session as opened",
        )
    if not machines.allowed_in(head.status, "history.rewound"):
        legal = machines.legal_in(head.status)
        raise NotAllowedError(
            f"{head} is {head.status}: it cannot be rewound; allowed now: {', '.join(legal)}",
            kind=f"session-{head.status}",
            hint=f"first wakelog reopen {head}, or leave it as it is and go on in a fork: wakelog fork {head}@e{to}",
            legal=legal,
        )
    now, then = log.state(), log.state(to)
    files, effects = _changes_outside(log, to)
    return RewindPreview(
        session=log.id,
        head=head.seq,
        turn=now["turn"]["number"],
        to=to,
        to_turn=then["turn"]["number"],
        keys_now=sum(_count_keys(p, now[p]) for p in REWOUND_PARTS),
        keys_then=sum(_count_keys(p, then[p]) for p in REWOUND_PARTS),
        parts=tuple(_changed_parts(now, then)),
        messages_now=_count_messages(log, None),
        messages_then=_count_messages(log, to),
        files=files,
        effects=effects,
        stays=tuple(_what_stays(now)),
        holder=log.living_holder(),
    )


def effects_between(
    log: Log, after: Seq, upto: Seq | None = None, *, with_file_changes: bool = False
) -> tuple[Beyond, ...]:
    """The calls with effects that began in a range. Calls that only changed a recorded file are left out unless
    `with_file_changes`."""
    return _changes_outside(log, after, upto, with_file_changes)[1]


def _changed_parts(now: dict[str, Value], then: dict[str, Value]) -> list[PartChange]:
    out = []
    for part in REWOUND_PARTS:
        touched = {tuple(tokens_of(op["path"])[:2]) for op in diff(now[part], then[part], "")}
        if touched:
            counts = _count_keys(part, now[part]), _count_keys(part, then[part])
            out.append(PartChange(PARTS[part], *counts, len(touched)))
    return out


def _count_keys(part: str, value: Value) -> int:
    """How many entries a part has: the keys of a map; for anything else 1 if it is there."""
    if part == "working_set":
        return sum(map(len, value.values()))
    if type(value) is dict and part != "last_error":
        return len(value)
    return 0 if value is None else 1


def _count_messages(log: Log, at: Seq | None) -> int:
    """How many messages `session.messages` gives: also prompts and answers that only a turn or a model call holds."""
    return len(read_message_page(log, at, compacted=False))


def _changes_outside(
    log: Log, after: Seq, upto: Seq | None = None, with_file_changes: bool = False
) -> tuple[tuple[FileBeyond, ...], tuple[Beyond, ...]]:
    """The files changed and the calls with effects in a range."""
    files: dict[str, FileBeyond] = {}
    calls = Calls(Call)
    by_file: set[str] = set()
    for entry in log.entries(after=after, upto=upto):
        calls.take(entry.seq, entry.kind, entry.header, entry.body)
        if entry.kind == "file.changed":
            _add_file(files, entry)
            if not with_file_changes:
                by_file.add(str(entry.body.get("action", "")))
    effects = (_effect_of(call) for call in calls.by_request.values())
    # A write call whose file change was recorded is listed as that file.
    return tuple(files.values()), tuple(
        e for e in effects if e is not None and not (e.effect == "write" and e.action in by_file)
    )


def _effect_of(call: Call) -> Beyond | None:
    """The call if it had, or may have had, an effect outside the log."""
    if call.effect not in ("write", "external") or not call.tries or call.outcome == "never_ran":
        return None
    outcome = call.outcome.replace("_", " ") or "began"
    return Beyond(call.request, call.turn, call.tool, call.effect, outcome, call.action)


def _add_file(files: dict[str, FileBeyond], entry: Entry) -> None:
    body = entry.body
    path = str(body.get("path", "(erased)"))
    old = files.get(path)
    added, removed = body.get("added", 0), body.get("removed", 0)
    files[path] = FileBeyond(
        path,
        old.change if old else str(body.get("change", "modified")),
        added + (old.added if old else 0),
        removed + (old.removed if old else 0),
        old.turn if old else entry.header.turn,
    )


def _what_stays(now: dict[str, Value]) -> list[str]:
    """The parts that a rewind leaves as they are, if there is something in them."""
    out = []
    spent = now["budget"]["spent"]
    if spent.get("usd_micros") or spent.get("tokens"):
        out.append("budget spent")
    for part in ("dead_ends", "flags", "checkpoints", "pending_actions", "subagents", "trust"):
        if now[part]:
            out.append(f"{PARTS[part]} ({len(now[part])})")
    return out
