"""Scrubbing: reads every stored byte and checks it, session by session, for as long as there is time.

A session is verified as `verify` does: chain, bodies, payloads, derived data, the head. Then the engine is asked for
problems that no session shows: orphaned rows and blobs, names that lead nowhere. The progress is stored as a mark, so a
nightly job of ten minutes continues where the last one stopped, on any machine. A problem that appears only once,
because somebody was writing, is not reported.

A repair changes only what can be rebuilt or belongs to nothing: snapshots, the index, orphans. Every scrub also
finishes erasures that had to leave bytes in files.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import msgspec

from wakelog.engine import Shards, StoreFinding, require
from wakelog.errors import (
    CorruptLogError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
    WakelogError,
)
from wakelog.log.damage import every_id
from wakelog.log.reader import sound_head
from wakelog.log.verify import Fault, is_of_cache, verify_session
from wakelog.maintenance.shards import require_shards
from wakelog.model.described import described
from wakelog.model.ids import SessionId
from wakelog.model.records import Head
from wakelog.store import Store
from wakelog.store.index_place import has_index, index_path

_BACKUP = "wakelog store scrub --repair repairs it if that is safe; else restore it from a backup"
POSITION, LAST = "scrub", "scrubbed"
"""The marks of the current pass and of the last complete one."""
SAVE_S = 5.0
"""How often the progress is saved."""

Progress = Callable[[int], None]


class Pass(msgspec.Struct, frozen=True):
    """One pass through the whole store, in one or more runs. Times are in microseconds."""

    began: int
    ended: int | None = None
    after: str = ""
    """The last session that was checked."""
    sessions: int = 0
    events: int = 0
    damage: int = 0
    """How many damages were found and not repaired."""


class Scrubbed(msgspec.Struct, frozen=True):
    """What one run did, and the state of its pass."""

    sessions: int
    events: int
    findings: tuple[StoreFinding, ...]
    repaired: int
    of_pass: Pass
    is_resumed: bool
    keeps_mark: bool
    copies: int = 0
    """How many replicas of shards were compared."""
    unread: int = 0
    """How many replicas could not be read, so that nothing is known of them."""

    @property
    def is_whole(self) -> bool:
        return self.of_pass.ended is not None

    @property
    def damage(self) -> int:
        return sum(f.is_damage for f in self.findings)


def last_pass(store: Store) -> Pass | None:
    """Returns the newest complete pass, if there is one."""
    return _read(store, LAST)


def open_pass(store: Store) -> Pass | None:
    """Returns the unfinished pass, if there is one."""
    return _read(store, POSITION)


def scrub(
    store: Store,
    *,
    for_s: float | None = None,
    rate: float | None = None,
    repair: bool = False,
    anew: bool = False,
    all_replicas: bool = False,
    progress: Progress | None = None,
    on_finding: Callable[[StoreFinding], None] | None = None,
) -> Scrubbed:
    """Checks the store from where the last run stopped; with `for_s`, for that many seconds. `rate` limits the events
    read per second. `on_finding` is called with each finding. With `all_replicas`, the replicas of all servers are
    compared at the end."""
    shards = require_shards(store) if all_replicas else None
    return _Scrub(store, repair, progress, on_finding, shards).run(for_s, rate, anew)


class _Scrub:
    def __init__(
        self,
        store: Store,
        repair: bool,
        progress: Progress | None,
        on_finding: Callable[[StoreFinding], None] | None,
        shards: Shards | None,
    ) -> None:
        self.store, self.repair, self.shards = store, repair, shards
        self.copies = self.unread = 0
        self.progress, self.on_finding = progress, on_finding
        self.findings: list[StoreFinding] = []
        self.sessions = self.events = self.repaired = 0
        self.keeps_mark = store.engine.abilities.marks is not None
        self._saved_at = time.monotonic()

    def run(self, for_s: float | None, rate: float | None, anew: bool) -> Scrubbed:
        started = time.monotonic()
        known = None if anew else open_pass(self.store)
        self.at = known or Pass(began=self.store.clock())
        self._save(self.at, must=for_s is not None)
        self._tidy_lookup(known is None)
        for session, _ in every_id(self.store.engine, self.at.after):
            self._check_session(session)
            if for_s is not None and time.monotonic() - started >= for_s:
                return self._end(known is not None)
            if rate:
                time.sleep(max(0.0, started + self.events / rate - time.monotonic()))
        self._check_rest()
        self.at = msgspec.structs.replace(self.at, ended=self.store.clock())
        return self._end(known is not None)

    def _tidy_lookup(self, is_new: bool) -> None:
        """Repairs damage in the lookup of sessions first. Otherwise every session would report it."""
        inspection = self.store.engine.abilities.inspection
        if self.repair and is_new and inspection is not None:
            with contextlib.suppress(CorruptLogError):  # reported when its session is checked
                self.repaired += inspection.tidy()

    def _check_session(self, session: SessionId) -> None:
        try:
            head = sound_head(self.store.engine, session)
        except WakelogError as exc:
            if not isinstance(exc, NotFoundError):
                self._report(StoreFinding(exc.message, session, getattr(exc, "seq", 0), fix=_BACKUP))
                self._count_session(session, 0, 1)
            return
        faults = _faults(self.store, head)
        if faults:  # somebody may have been writing: real damage is found twice
            again = _faults(self.store, head)
            faults = [fault for fault in faults if fault in again]
        if faults and self.repair and any(map(is_of_cache, faults)):
            self.store.engine.drop_snapshots(head.session)
            left = _faults(self.store, head)
            self.repaired += sum(fault not in left for fault in faults)
            faults = left
        for fault in faults:
            self._report(_finding(head, fault))
        self._count_session(session, head.seq - (head.fork.at if head.fork else 0), len(faults))

    def _count_session(self, session: SessionId, own: int, damage: int) -> None:
        self.sessions, self.events = self.sessions + 1, self.events + own
        at = self.at
        self.at = msgspec.structs.replace(
            at, after=session, sessions=at.sessions + 1, events=at.events + own, damage=at.damage + damage
        )
        if self.progress is not None:
            self.progress(own)
        if time.monotonic() - self._saved_at > SAVE_S:
            self._save(self.at)

    def _check_rest(self) -> None:
        """Checks what belongs to no session. This comes last, because it cannot be split over runs."""
        inspection = self.store.engine.abilities.inspection
        self._rewrite()
        findings = _index_findings(self.store, self.repair)
        if inspection is not None:
            findings += inspection.inspect()
        if self.shards is not None:
            compared = self.shards.compare_replicas()
            findings += compared.findings
            self.copies, self.unread = compared.copies, compared.unread
        if self.repair and inspection is not None and any(f.can_tidy for f in findings):
            inspection.tidy()
            left = [*_index_findings(self.store, False), *inspection.inspect()]
            self.repaired += sum(f not in left for f in findings)
            findings = left
        for finding in findings:
            self._report(finding)
        damage = sum(f.is_damage for f in findings)
        self.at = msgspec.structs.replace(self.at, damage=self.at.damage + damage)

    def _rewrite(self) -> None:
        """Finishes erasures that had to leave old bytes in files."""
        rewrite = self.store.engine.abilities.rewrite
        if rewrite is None:
            return
        try:
            self.repaired += rewrite()
        except UnsupportedError:  # the server does not offer it
            return
        except UnavailableError as exc:
            if exc.kind != "scrub-pending":
                raise
            self._report(
                StoreFinding(
                    exc.message, is_damage=False, fix="wakelog store scrub, when no other process uses the store"
                )
            )

    def _report(self, finding: StoreFinding) -> None:
        self.findings.append(finding)
        if self.on_finding is not None:
            self.on_finding(finding)

    def _end(self, is_resumed: bool) -> Scrubbed:
        self._save(self.at)
        return Scrubbed(
            self.sessions,
            self.events,
            tuple(self.findings),
            self.repaired,
            self.at,
            is_resumed,
            self.keeps_mark,
            self.copies,
            self.unread,
        )

    def _save(self, at: Pass, *, must: bool = False) -> None:
        """Saves the progress. If that is not possible, a run that `must` end early is refused."""
        self._saved_at = time.monotonic()
        try:
            marks = require(
                self.store.engine.abilities.marks,
                UnsupportedError(
                    "this store cannot keep the progress of a scrub",
                    kind="no-marks",
                    hint="leave out --for, or scrub where the store is",
                ),
            )
            if not self.keeps_mark:
                return
            marks.set_mark(POSITION, "" if at.ended is not None else msgspec.json.encode(at).decode())
            if at.ended is not None:
                marks.set_mark(LAST, msgspec.json.encode(at).decode())
        except (UnsupportedError, NotAllowedError):  # its place is missing, or it may not be written
            if must:
                raise
            self.keeps_mark = False


def _read(store: Store, name: str) -> Pass | None:
    marks = store.engine.abilities.marks
    value = marks.mark(name) if marks is not None else None
    try:
        return msgspec.json.decode(value, type=described(Pass)) if value else None
    except msgspec.DecodeError:
        return None


def _faults(store: Store, head: Head) -> list[Fault]:
    """Verifies one session. The shared part of a fork is checked with its parent, unless that is deleted."""
    engine = store.engine
    try:
        own = head.fork is not None and engine.head(head.fork.parent).status != "deleted"
        report = verify_session(engine, head.session, own=own)
    except WakelogError as exc:
        if isinstance(exc, NotFoundError) and _is_gone(store, head.session):
            return []
        return [Fault(getattr(exc, "seq", 0), exc.message)]
    faults = [*report.integrity, *report.completeness]
    return [] if faults and _is_gone(store, head.session) else faults


def _is_gone(store: Store, session: SessionId) -> bool:
    """Whether the session was deleted meanwhile."""
    try:
        return store.engine.head(session).status == "deleted"
    except WakelogError:
        return False


def _finding(head: Head, fault: Fault) -> StoreFinding:
    if is_of_cache(fault):
        fix, can_tidy = "wakelog store scrub --repair drops it", True
    elif not fault.seq:
        fix, can_tidy = _BACKUP, False
    else:
        fix, can_tidy = f"take it from a backup; wakelog verify {head} tells more", False
    return StoreFinding(fault.what, head.session, fault.seq, fix=fix, can_tidy=can_tidy)


def _index_findings(store: Store, repair: bool) -> list[StoreFinding]:
    """Checks the index, if there is one, and compares it with the log. It can be rebuilt."""
    from wakelog.index.comparison import differences
    from wakelog.maintenance.byte_sizes import index_fault

    fix = "wakelog store scrub --repair rebuilds it"
    problem = index_fault(index_path(store.engine))
    if problem:
        findings = [StoreFinding(f"the index is damaged: {problem}", is_damage=False, fix=fix, can_tidy=True)]
    elif not has_index(store.engine):
        return []
    else:
        findings = [
            StoreFinding(f"the index does not say what the log says ({what})", session, fix=fix, can_tidy=True)
            for session, what in differences(store.index, store.engine)
        ]
    if findings and repair:
        store.index.rebuild()
    return findings
