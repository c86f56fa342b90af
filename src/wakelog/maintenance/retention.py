"""Retention: plans which sessions to remove, and carries out the plan.

`plan` only reads. For every session that a rule applies to, it says what would be done and why, or why not. `apply`
carries out a plan, session by session, and skips sessions that changed since. The default policy keeps everything.

There are three ways to treat an expired session. *Archive* marks it and removes nothing. *Prune* removes the content
and keeps headers, chain and last state, so that it can still be verified. *Delete* leaves a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from wakelog.config.amounts import show_age, show_size
from wakelog.config.retention_policy import Action, RetentionPolicy
from wakelog.engine import Engine
from wakelog.engines.object_storage import Objects
from wakelog.errors import InvalidInputError, WakelogError
from wakelog.log import Log
from wakelog.log.deleted_origins import ORIGIN
from wakelog.log.removal import prune, refuse_if_held
from wakelog.maintenance.archive import archive_session
from wakelog.maintenance.byte_sizes import session_bytes
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Head
from wakelog.store import Store
from wakelog.store.erasure import scrub_index


class Planned(msgspec.Struct, frozen=True):
    """What to do with one session, and why. For `skip`, the reason says why not."""

    session: SessionId
    name: str
    action: Action | Literal["skip"]
    reason: str
    bytes: int
    seq: Seq
    """The session's head when the plan was made."""
    at: int


class Applied(msgspec.Struct, frozen=True):
    """The result of one line of a plan. If it was not `done`, `problem` says why."""

    planned: Planned
    done: bool
    problem: str = ""


def plan(
    store: Store,
    policy: RetentionPolicy,
    now: int,
    archived: Mapping[SessionId, tuple[Seq, str]] | None = None,
) -> list[Planned]:
    """Plans what the policy asks for at `now`, oldest first. Changes nothing. With `archived`, the heads in an archive
    (`parquet_runs.archived_heads`), a session stays until its current head is archived."""
    if policy.max_bytes is not None and policy.action == "archive":
        raise InvalidInputError(
            "archiving frees no space, so it cannot keep a store below a size",
            kind="bad-policy",
            hint="choose prune or delete",
        )
    if policy.keeps_everything:
        return []
    sizes = session_bytes(store.engine)
    heads = _oldest_first(list(store.sessions()))
    total = sum(sizes.values())
    session_ids = {h.session for h in sorted(heads, key=lambda h: h.at, reverse=True)[: policy.keep_last]}
    out: list[Planned] = []
    for head in heads:
        size = sizes.get(head.session, 0)
        why = _reason(policy, head, now, total)
        if not why or _is_done(store.engine, policy, head):
            continue
        obstacle = _obstacle(store, policy, head, head.session in session_ids, out, now)
        if not obstacle and archived is not None and archived.get(head.session) != (head.seq, head.hash.hex()):
            obstacle = "the archive does not have all of it yet"
        action: Action | Literal["skip"] = "skip" if obstacle else policy.action
        out.append(Planned(head.session, head.name, action, obstacle or why, size, head.seq, head.at))
        if action != "skip":
            total -= size
    return [*(p for p in out if p.action != "skip"), *(p for p in out if p.action == "skip")]


def apply(
    store: Store, planned: Iterable[Planned], *, archive_to: str | None = None, keep_totals: bool = False
) -> Iterator[Applied]:
    """Carries out a plan and yields the result of each session. Sessions that changed since are skipped. With
    `archive_to`, each session is first archived there as a bundle; if that fails, it stays. With `keep_totals`, the
    tombstones of deleted sessions keep their totals."""
    objects = Objects(archive_to) if archive_to else None
    for line in planned:
        if line.action == "skip":
            continue
        try:
            log = Log(store.engine, line.session, clock=store.clock)
            if log.head().seq != line.seq:
                yield Applied(line, False, "it was written to since this was planned")
                continue
            if objects is not None:
                archive_session(log, objects)
            _carry_out(store, log, line, keep_totals)
            yield Applied(line, True)
        except WakelogError as exc:
            yield Applied(line, False, exc.message)


def _carry_out(store: Store, log: Log, line: Planned, keep_totals: bool) -> None:
    from wakelog.session import Session

    session: Session[object] = Session(log, name=line.name)
    why = f"retention: {line.reason}"
    if line.action == "archive":
        if session.status != "closed":
            session.life.end("", why=why)
        session.life.archive(why=why)
    elif line.action == "delete":
        store.delete(session, why=why, keep_totals=keep_totals)
    else:
        prune(log, line.seq, why=why)
        scrub_index(store)


def _reason(policy: RetentionPolicy, head: Head, now: int, total: int) -> str:
    if policy.keep_us is not None and now - head.at > policy.keep_us:
        return f"untouched for {show_age(now - head.at)}"
    if policy.max_bytes is not None and total > policy.max_bytes:
        return f"the sessions take {show_size(total)}, more than {show_size(policy.max_bytes)}"
    return ""


def _is_done(engine: Engine, policy: RetentionPolicy, head: Head) -> bool:
    """Whether nothing is left to do: it is archived already, or pruned up to its end."""
    if policy.action == "archive":
        return head.status == "archived"
    if policy.action == "prune":
        return any("range.pruned" in commit.kinds for commit in engine.read(head.session, after=head.seq - 1))
    return False


def _obstacle(
    store: Store, policy: RetentionPolicy, head: Head, is_kept: bool, planned: list[Planned], now: int
) -> str:
    """Returns why a session must stay although a rule applies to it; empty if it need not."""
    if is_kept:
        return f"one of the newest {policy.keep_last}"
    is_left = _is_left(store, head, now)
    if head.status not in policy.statuses and not (is_left and "closed" in policy.statuses):
        return f"it is {head.status}"
    if policy.action == "archive":
        can_archive = head.status == "closed" or is_left
        return "" if can_archive else f"it is {head.status}, and only closed sessions can be archived"
    try:
        refuse_if_held(store.engine, head.session)
        if holder := Log(store.engine, head.session, clock=store.clock).living_holder():
            return f"it is being written by {holder}"
    except WakelogError as exc:
        return exc.message
    deleted = {p.session for p in planned if p.action == "delete"}
    for fork in store.engine.children(head.session):
        needs_it = policy.action == "delete" or (fork.fork is not None and fork.fork.at < head.seq)
        if fork.session not in deleted and needs_it:
            return f"its fork {fork} reads through it"
    return ""


def _is_left(store: Store, head: Head, now: int) -> bool:
    """Whether a session from a transcript or from hooks was never ended and has been quiet for long. No import will
    close it if its agent died or its file is gone. A session that a framework writes itself goes on whenever its user
    comes back."""
    if head.status not in ("open", "active") or now - head.at <= store.idle_us:
        return False
    log = Log(store.engine, head.session, clock=store.clock)
    labels = log.part("labels")
    return ORIGIN in labels and "framework" not in labels and not log.living_holder()


def _oldest_first(heads: list[Head]) -> list[Head]:
    """Sorts by the last event, but each session after all its forks, because they must be removed first."""
    by_id = {h.session: h for h in heads}
    newest = {h.session: h.at for h in heads}
    depth = dict.fromkeys(newest, 0)
    for head in heads:
        above = head
        while above.fork is not None and above.fork.parent in by_id:
            above = by_id[above.fork.parent]
            newest[above.session] = max(newest[above.session], head.at)
            depth[head.session] += 1
    return sorted(heads, key=lambda h: (newest[h.session], -depth[h.session], h.session))
