"""`store.anchors`: signs heads, keeps them elsewhere, and compares a store with them.

Each anchored session is checked at every anchored event. If the event has another hash, history was **replaced**. If
the session ends before the event, it was **cut off**. If the session does not exist, it is **missing**. If two or more
sessions fail, and no anchor holds that is as new as the oldest failed one, the whole store was **rolled back**, for
example to an old backup. A single session that lost its end is reported as cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from wakelog.errors import CorruptLogError, NotFoundError, WakelogError
from wakelog.evidence.anchor_log import AnchorLog, AnchorRound
from wakelog.evidence.head_notes import AnchorReceipt, SignedHead, open_proof, sign_head
from wakelog.evidence.signed_note import PrivateKey, PublicKey
from wakelog.files.git_commits import anchor_notes, keep_anchor_note
from wakelog.log import Log
from wakelog.log.reader import sound_head
from wakelog.model.ids import SessionId
from wakelog.model.records import Anchor

if TYPE_CHECKING:
    from wakelog.session import Session
    from wakelog.store import Store

Verdict = Literal["holds", "cut-off", "replaced", "missing", "deleted", "unreadable"]
FINE: frozenset[str] = frozenset({"holds", "deleted"})


class DatedAnchor(msgspec.Struct, frozen=True):
    """A head, and when it was anchored (microseconds)."""

    seq: int
    hash: str
    at: int
    round: int


class AnchoredSession(msgspec.Struct, frozen=True):
    """What the anchors of a session say about it."""

    session: SessionId
    name: str
    verdict: Verdict
    anchors: int
    """How many anchors it has."""
    since: DatedAnchor | None
    """The oldest anchor that holds."""
    held: DatedAnchor | None
    """The newest anchor that holds: up to this event nothing was changed."""
    failed: DatedAnchor | None
    """The oldest anchor that does not hold."""
    head: int
    """The session's last event now; 0 if it does not exist."""
    told: str

    @property
    def ok(self) -> bool:
        return self.verdict in FINE


class RolledBack(msgspec.Struct, frozen=True):
    """The store went back to a state between two rounds."""

    after: int
    """When the newest round that holds was signed; 0 if none does."""
    before: int
    sessions: int
    went_on: bool
    """Whether something was written after that."""


class AnchorReport(msgspec.Struct, frozen=True):
    """What a log of anchors says about a store."""

    place: str
    rounds: int
    newest_at: int
    sessions: tuple[AnchoredSession, ...]
    rolled_back: RolledBack | None
    log_fault: str
    """Why a part of the anchor log is invalid; empty if all of it is valid."""
    kept: tuple[AnchorReceipt, ...]
    """Receipts kept elsewhere that agree with the log."""
    kept_faults: tuple[str, ...]
    """Why other receipts do not agree."""

    @property
    def ok(self) -> bool:
        return bool(self.rounds) and not self.log_fault and not self.kept_faults and all(s.ok for s in self.sessions)


class StoreAnchors:
    """Signs heads and keeps them elsewhere: sign, add, follow, verify, open, keep_in_git, kept_in_git."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def sign(self, session: Session[Any], key: PrivateKey) -> str:
        """Signs the head of a session and returns it as a text that needs no anchor log. `open` reads it."""
        return sign_head(key, session.anchor(), self._store.clock())

    def open(self, signed: str, keys: Sequence[PublicKey]) -> SignedHead:
        """Reads and checks what `sign` or `AnchorLog.proof` wrote. Pass its anchor to `Session.verify`."""
        return open_proof(signed, keys)

    def log(self, place: str, keys: Sequence[PublicKey], *, create: bool = False) -> AnchorLog:
        """Opens an anchor log: a folder, or `s3://bucket/prefix`. Only signatures of these keys count."""
        return AnchorLog(place, keys, create=create)

    def add(self, log: AnchorLog, key: PrivateKey, sessions: Sequence[SessionId] = ()) -> AnchorRound | None:
        """Anchors the heads of all sessions, or of some, that are new since the last round; returns None if none is.
        Raises CorruptLogError, and signs nothing, if a session has less than what was anchored."""
        engine = self._store.engine
        heads = [engine.head(s) for s in sessions] if sessions else list(self._store.sessions())
        newest = {s: anchors[-1][1] for s, anchors in log.anchors.items()}
        for head in heads:
            known = newest.get(head.session)
            if known and (head.seq < known.seq or (head.seq == known.seq and head.hash.hex() != known.hash)):
                raise CorruptLogError(
                    f"{head.name or head.session} was anchored at e{known.seq}, which this store does not have",
                    kind="anchor-not-held",
                    hint=f"wakelog verify --all --against {log.place}",
                    seq=known.seq,
                    session=head.session,
                )
        return log.add((Anchor(h.session, h.seq, h.hash.hex(), h.at) for h in heads), key, self._store.clock())

    def follow(
        self, log: AnchorLog, key: PrivateKey, every_s: float, wait: Callable[[float], object]
    ) -> Iterator[AnchorRound | WakelogError]:
        """Anchors repeatedly until `wait(every_s)` returns true. Errors are yielded, and the next round tries again."""
        while True:
            try:
                log.refresh()
                if (done := self.add(log, key)) is not None:
                    yield done
            except WakelogError as exc:
                yield exc
            if wait(every_s):
                return

    def verify(self, log: AnchorLog, sessions: Sequence[SessionId] = (), *, kept: Sequence[str] = ()) -> AnchorReport:
        """Compares the store with an anchor log: all anchored sessions, or some. `kept` are receipts kept elsewhere,
        which must agree with the log. Events between anchors are checked by `Session.verify`."""
        anchors = log.anchors
        every = {session: self._check(session, results) for session, results in anchors.items()}
        session_ids = sessions or list(every)
        agreed, faults = [], []
        for note in kept:
            try:
                agreed.append(log.check_kept(note))
            except WakelogError as exc:
                faults.append(exc.message)
        return AnchorReport(
            place=log.place,
            rounds=len(log.rounds),
            newest_at=log.rounds[-1].at if log.rounds else 0,
            sessions=tuple(every[s] for s in session_ids if s in every),
            rolled_back=_rolled_back(log, list(every.values())),
            log_fault=log.fault,
            kept=tuple(agreed),
            kept_faults=tuple(faults),
        )

    def keep_in_git(self, note: str, folder: str = ".") -> str:
        """Adds a receipt to the git notes of HEAD, in refs/notes/wakelog-anchors, and returns the commit. Push that ref
        to share it."""
        return keep_anchor_note(folder, note)

    def kept_in_git(self, folder: str = ".") -> list[str]:
        """Returns the receipts in the git notes of a repository."""
        return anchor_notes(folder)

    def _check(self, session: SessionId, anchors: list[tuple[AnchorRound, Anchor]]) -> AnchoredSession:
        name, end, count = "", 0, len(anchors)
        held: list[DatedAnchor] = []
        failed: list[DatedAnchor] = []
        verdict: Verdict = "holds"
        told = ""
        try:
            head = sound_head(self._store.engine, session)
            name, end = head.name, head.seq
            if head.status == "deleted":
                verdict, anchors = "deleted", []
            log = Log(self._store.engine, session, even_damaged=True, even_deleted=True)
            for number, anchor in anchors:
                dated = DatedAnchor(anchor.seq, anchor.hash, number.at, number.number)
                if anchor.seq > end:
                    failed.append(dated)
                    verdict = verdict if verdict == "replaced" else "cut-off"
                elif log.entry(anchor.seq).hash.hex() != anchor.hash:
                    failed.append(dated)
                    verdict = "replaced"
                else:
                    held.append(dated)
        except NotFoundError:
            verdict = "missing"
        except CorruptLogError as exc:
            verdict, told = "unreadable", exc.message
        if verdict in ("missing", "unreadable") and not failed:
            failed = [DatedAnchor(a.seq, a.hash, r.at, r.number) for r, a in anchors[len(held) :]]
        return AnchoredSession(
            session=session,
            name=name,
            verdict=verdict,
            anchors=count,
            since=held[0] if held else None,
            held=held[-1] if held else None,
            failed=failed[0] if failed else None,
            head=end,
            told=told or _describe(verdict, held, failed, end),
        )


def _describe(verdict: str, anchors: list[DatedAnchor], failed: list[DatedAnchor], end: int) -> str:
    if verdict == "holds":
        later = end - anchors[-1].seq
        return "nothing came after it" if not later else f"{later} event{'s' * (later != 1)} came after it"
    if verdict == "deleted":
        return "it was deleted, and only its tombstone is left"
    if verdict == "missing":
        return f"it had {failed[-1].seq} events, and is not in this store"
    if verdict == "cut-off":
        return f"it ends at e{end}, and had e{failed[-1].seq}: the newest events were cut off"
    after = f"after e{anchors[-1].seq}" if anchors else "from the first event or later"
    return f"e{failed[0].seq} is not the event that was anchored: history was replaced {after}"


def _rolled_back(log: AnchorLog, sessions: list[AnchoredSession]) -> RolledBack | None:
    failed = [s for s in sessions if s.failed is not None and s.verdict in ("cut-off", "replaced", "missing")]
    if len(failed) < 2:
        return None
    first = min(s.failed.round for s in failed if s.failed)
    last_held = max((s.held.round for s in sessions if s.held), default=0)
    # Before the first round there is nothing that the store could have gone back to.
    if last_held >= first or not last_held:
        return None
    return RolledBack(
        after=log.rounds[last_held - 1].at,
        before=log.rounds[first - 1].at,
        sessions=len(failed),
        went_on=any(s.verdict == "replaced" for s in failed),
    )
