"""What a rewind would do, told before it is done: what returns, what stays, and what cannot be taken back.

Nothing is removed by a rewind, and nothing outside the log is touched by one: files and effects are listed so that
nobody believes they are gone.
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


class PartChange(msgspec.Struct, frozen=True):
    """One part of the state: how many entries it has now, how many then, and how many keys change."""

    part: str
    now: int
    then: int
    changed: int


class Beyond(msgspec.Struct, frozen=True):
    """A call with an effect on the world, made after the point."""

    seq: Seq
    turn: int
    tool: str
    effect: str
    """write or external."""
    outcome: str
    action: str


class FileBeyond(msgspec.Struct, frozen=True):
    """A file changed after the point; lines added and removed, summed up."""

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
    """Who is writing the session at this moment; empty when nobody is."""


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
            hint=f"wakelog reopen {head}, or wakelog fork",
            legal=legal,
        )
    now, then = log.state(), log.state(to)
    files, effects = _beyond(log, to)
    return RewindPreview(
        session=log.id,
        head=head.seq,
        turn=now["turn"]["number"],
        to=to,
        to_turn=then["turn"]["number"],
        keys_now=sum(_keys(p, now[p]) for p in REWOUND_PARTS),
        keys_then=sum(_keys(p, then[p]) for p in REWOUND_PARTS),
        parts=tuple(_parts(now, then)),
        messages_now=_messages(log, None),
        messages_then=_messages(log, to),
        files=files,
        effects=effects,
        stays=tuple(_stays(now)),
        holder=log.living_holder(),
    )


def effects_between(
    log: Log, after: Seq, upto: Seq | None = None, *, with_file_changes: bool = False
) -> tuple[Beyond, ...]:
    """The calls with effects that began in a range and, unless asked for, were not only a file's change."""
    return _beyond(log, after, upto, with_file_changes)[1]


def _parts(now: dict[str, Value], then: dict[str, Value]) -> list[PartChange]:
    out = []
    for part in REWOUND_PARTS:
        touched = {tuple(tokens_of(op["path"])[:2]) for op in diff(now[part], then[part], "")}
        if touched:
            out.append(PartChange(PARTS[part], _keys(part, now[part]), _keys(part, then[part]), len(touched)))
    return out


def _keys(part: str, value: Value) -> int:
    """How many entries a part has: of a map its keys, of anything else one if it is there."""
    if part == "working_set":
        return sum(map(len, value.values()))
    if type(value) is dict and part != "last_error":
        return len(value)
    return 0 if value is None else 1


def _messages(log: Log, at: Seq | None) -> int:
    return sum(
        1
        for first, last in log.view(at)
        for entry in log.entries(after=first - 1, upto=last)
        if entry.kind == "message.added"
    )


def _beyond(
    log: Log, after: Seq, upto: Seq | None = None, with_file_changes: bool = False
) -> tuple[tuple[FileBeyond, ...], tuple[Beyond, ...]]:
    files: dict[str, FileBeyond] = {}
    calls = Calls(Call)
    by_file: set[str] = set()
    for entry in log.entries(after=after, upto=upto):
        calls.take(entry.seq, entry.kind, entry.header, entry.body)
        if entry.kind == "file.changed":
            _note_file(files, entry)
            if not with_file_changes:
                by_file.add(str(entry.body.get("action", "")))
    told = (_beyond_of(call) for call in calls.by_request.values())
    # A call that wrote a file and says so is told by the file.
    ran = tuple(c for c in told if c is not None and not (c.effect == "write" and c.action in by_file))
    return tuple(files.values()), ran


def _beyond_of(call: Call) -> Beyond | None:
    """A call that had, or may have had, an effect on the world."""
    if call.effect not in ("write", "external") or not call.tries or call.outcome == "never_ran":
        return None
    outcome = call.outcome.replace("_", " ") or "began"
    return Beyond(call.request, call.turn, call.tool, call.effect, outcome, call.action)


def _note_file(files: dict[str, FileBeyond], entry: Entry) -> None:
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


def _stays(now: dict[str, Value]) -> list[str]:
    """What a rewind leaves as it is, named only where there is something."""
    out = []
    spent = now["budget"]["spent"]
    if spent.get("usd_micros") or spent.get("tokens"):
        out.append("budget spent")
    for part in ("dead_ends", "flags", "checkpoints", "pending_actions", "subagents", "trust"):
        if now[part]:
            out.append(f"{PARTS[part]} ({len(now[part])})")
    return out
