"""Retention: which sessions should be removed, shown before anything is.

`plan` only reads. For every session that a rule applies to, it says what would be done and why, or why not. `apply`
carries out a plan, session by session, and skips sessions that changed since. The default policy keeps everything for
ever.

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
from wakelog.engines.objects import Objects
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
    """What is to be done with one session, and why; `skip` says why it is left alone."""

    session: SessionId
    name: str
    action: Action | Literal["skip"]
    reason: str
    bytes: int
    seq: Seq
    """The head that this was decided on."""
    at: int


class Applied(msgspec.Struct, frozen=True):
    """What became of one line of a plan. Without `done`, `problem` says why."""

    planned: Planned
    done: bool
    problem: str = ""


def plan(
    store: Store,
    policy: RetentionPolicy,
    now: int,
    archived: Mapping[SessionId, tuple[Seq, str]] | None = None,
) -> list[Planned]:
    """What the policy asks for at `now`, oldest first. Changes nothing. With `archived`, the heads that an archive has
    (`parquet_runs.archived_heads`), a session stays until its archived head is the present one."""
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
    kept = {h.session for h in sorted(heads, key=lambda h: h.at, reverse=True)[: policy.keep_last]}
    out: list[Planned] = []
    for head in heads:
        size = sizes.get(head.session, 0)
        why = _reason(policy, head, now, total)
        if not why or _is_done(store.engine, policy, head):
            continue
        obstacle = _obstacle(store, policy, head, head.session in kept, out, now)
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
    """Does what a plan says, one session at a time; each is told as it is done. What changed since is left alone. With
    `archive_to`, a session is put there first, as a bundle; what cannot be archived stays. With `keep_totals`, deleted
    sessions leave what they came to, in numbers."""
    objects = Objects(archive_to) if archive_to else None
    for each in planned:
        if each.action == "skip":
            continue
        try:
            log = Log(store.engine, each.session, clock=store.clock)
            if log.head().seq != each.seq:
                yield Applied(each, False, "it was written to since this was planned")
                continue
            if objects is not None:
                archive_session(log, objects)
            _do(store, log, each, keep_totals)
            yield Applied(each, True)
        except WakelogError as exc:
            yield Applied(each, False, exc.message)


def _do(store: Store, log: Log, each: Planned, keep_totals: bool) -> None:
    from wakelog.session import Session

    session: Session[object] = Session(log, name=each.name)
    why = f"retention: {each.reason}"
    if each.action == "archive":
        if session.status != "closed":
            session.life.end("", why=why)
        session.life.archive(why=why)
    elif each.action == "delete":
        store.delete(session, why=why, keep_totals=keep_totals)
    else:
        prune(log, each.seq, why=why)
        scrub_index(store)


def _reason(policy: RetentionPolicy, head: Head, now: int, total: int) -> str:
    if policy.keep_us is not None and now - head.at > policy.keep_us:
        return f"untouched for {show_age(now - head.at)}"
    if policy.max_bytes is not None and total > policy.max_bytes:
        return f"the sessions take {show_size(total)}, more than {show_size(policy.max_bytes)}"
    return ""


def _is_done(engine: Engine, policy: RetentionPolicy, head: Head) -> bool:
    """Whether nothing is left to do: archived already, or pruned up to its end."""
    if policy.action == "archive":
        return head.status == "archived"
    if policy.action == "prune":
        return any("range.pruned" in commit.kinds for commit in engine.read(head.session, after=head.seq - 1))
    return False


def _obstacle(
    store: Store, policy: RetentionPolicy, head: Head, is_kept: bool, planned: list[Planned], now: int
) -> str:
    """Why a session that a rule applies to is left alone; empty when it is not."""
    if is_kept:
        return f"one of the newest {policy.keep_last}"
    is_left = _is_left(store, head, now)
    if head.status not in policy.statuses and not (is_left and "closed" in policy.statuses):
        return f"it is {head.status}"
    if policy.action == "archive":
        return (
            ""
            if head.status == "closed" or is_left
            else f"it is {head.status}, and only closed sessions can be archived"
        )
    try:
        refuse_if_held(store.engine, head.session)
        if holder := Log(store.engine, head.session, clock=store.clock).living_holder():
            return f"it is being written by {holder}"
    except WakelogError as exc:
        return exc.message
    going = {p.session for p in planned if p.action == "delete"}
    for fork in store.engine.children(head.session):
        is_in_the_way = policy.action == "delete" or (fork.fork is not None and fork.fork.at < head.seq)
        if fork.session not in going and is_in_the_way:
            return f"its fork {fork} reads through it"
    return ""


def _is_left(store: Store, head: Head, now: int) -> bool:
    """Whether a session that nobody ended was made from a transcript or by hooks, and had nothing new for long. Its
    agent may have died, or its file may be gone, so that no import closes it."""
    if head.status not in ("open", "active") or now - head.at <= store.idle_us:
        return False
    log = Log(store.engine, head.session, clock=store.clock)
    return ORIGIN in log.part("labels") and not log.living_holder()


def _oldest_first(heads: list[Head]) -> list[Head]:
    """By the last event; but a session comes after all its forks, since it cannot go before they do."""
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
