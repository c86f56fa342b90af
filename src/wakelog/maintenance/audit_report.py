"""The audit report: evidence about one session, or the sessions of a case, for a person who was not there.

It says what happened, who approved it, which effects depend on unverified input, what was removed by whom and
why, whether the record is intact and which anchors hold, where the record has gaps, and what all this does not prove.
It only reads. Every statement names its event and says how it is known.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import wakelog
from wakelog.atomic_file import atomic_file
from wakelog.errors import CorruptLogError, InvalidInputError, NotAllowedError, NotFoundError
from wakelog.index.results import TurnInfo
from wakelog.log.verify import VerifyReport
from wakelog.maintenance.audit import PAGE, AuditEntry, whole_audit
from wakelog.maintenance.holds import Hold
from wakelog.model.described import described
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Anchor
from wakelog.provenance.taint import Touched
from wakelog.session import Session
from wakelog.store import Store
from wakelog.store.anchors import AnchoredSession, AnchorReport
from wakelog.timeline.call_table import CallRow, readable_calls

if TYPE_CHECKING:
    from wakelog.evidence.anchor_log import AnchorLog

_UNKNOWN_OUTCOMES = ("uncertain", "running", "requested", "waiting")


class AuditCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to audit: the sessions of one incident, and what the reader should know about it."""

    sessions: tuple[str, ...]
    title: str = ""
    question: str = ""
    by: str = ""
    """Who asks."""


class Influence(msgspec.Struct, frozen=True):
    """An effect that depends on unverified input."""

    effect: Seq
    tool: str
    outcome: str
    trust: str
    """The trust of that input."""
    known: str
    """How that is known: recorded, derived, matched or unknown."""
    may: bool
    """Whether it is only known that the input was in the model's window: it may have had influence."""
    source: Seq
    source_name: str
    path: tuple[Seq, ...]


class EvidenceFile(msgspec.Struct, frozen=True):
    """A file that goes with the report."""

    name: str
    sha256: str
    size: int


class SessionAudit(msgspec.Struct, frozen=True):
    """The evidence about one session."""

    session: SessionId
    name: str
    agent: str
    status: str
    goal: str
    about: str
    labels: dict[str, str]
    first_at: int
    last_at: int
    anchor: Anchor
    """The session's head when the report was made."""
    turns: tuple[TurnInfo, ...]
    calls: int
    effects: tuple[CallRow, ...]
    """Calls with effects outside the session, oldest first."""
    influences: tuple[Influence, ...]
    influence_limits: tuple[str, ...]
    """What the search for influence did not cover."""
    record: tuple[AuditEntry, ...]
    """What was done to the record itself."""
    hold: Hold | None
    integrity: VerifyReport
    anchored: AnchoredSession | None
    """What the anchor log says; None if none was given, or the session is not in it."""
    gaps: tuple[str, ...]
    unproven: tuple[str, ...]
    """What this evidence does not prove about this session."""
    unread: tuple[str, ...] = ()
    """Events that cannot be read. Then effects and changes of the record are those that can, and turns and influence
    are known up to the first of them."""
    bundle: EvidenceFile | None = None

    @property
    def ok(self) -> bool:
        return self.integrity.ok and (self.anchored is None or self.anchored.ok)


class AuditReport(msgspec.Struct, frozen=True):
    """The evidence of a case."""

    case: AuditCase
    made_at: int
    made_with: str
    sessions: tuple[SessionAudit, ...]
    anchors: AnchorReport | None
    unproven: tuple[str, ...]
    """What no such report proves."""

    @property
    def ok(self) -> bool:
        return all(session.ok for session in self.sessions) and (self.anchors is None or self.anchors.ok)


NEVER_PROVEN = (
    "That what was recorded is true. The log keeps what its writer sends; names of actors, tools and approvers are "
    "what the writer says.",
    "That everything was recorded. An unnoticed gap leaves no trace.",
    "When things happened. Times are those of the machine that recorded; only the order within a session is fixed.",
    "That one thing caused another. Influence is recorded data flow, or matching text; a model may have used something "
    "without a trace, and may have ignored what was in its window.",
)


def read_case(path: Path) -> AuditCase:
    """Reads a case from a TOML file with `sessions`, and optionally `title`, `question` and `by`."""
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), described(AuditCase))
    except OSError as exc:
        raise NotFoundError(f"{path} cannot be read: {exc.strerror}", kind="file-not-found") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as exc:
        raise InvalidInputError(
            f"{path} is not a case: {exc}", kind="bad-case", hint='it needs: sessions = ["name", …]'
        ) from exc


def audit_report(
    store: Store, case: AuditCase, *, log: AnchorLog | None = None, kept: Sequence[str] = ()
) -> AuditReport:
    """Collects the evidence. `log` is an anchor log to compare the store with, and `kept` are receipts to compare the
    anchor log with."""
    if not case.sessions:
        raise InvalidInputError("a case needs a session", kind="bad-case", hint='sessions = ["name", …]')
    sessions = [store.resume(name, even_damaged=True) for name in dict.fromkeys(case.sessions)]
    anchors = store.anchors.verify(log, [session.id for session in sessions], kept=kept) if log is not None else None
    anchored = {checked.session: checked for checked in anchors.sessions} if anchors is not None else {}
    return AuditReport(
        case=case,
        made_at=store.clock(),
        made_with=f"wakelog {wakelog.__version__}",
        sessions=tuple(_audit(store, session, anchored.get(session.id), log is not None) for session in sessions),
        anchors=anchors,
        unproven=NEVER_PROVEN,
    )


def _audit(store: Store, session: Session[Any], anchored: AnchoredSession | None, has_log: bool) -> SessionAudit:
    audit = whole_audit(store, session)
    record = audit.entries
    info = next(row for row in store.index.sessions(prefix=session.id) if row.id == session.id)
    report = session.verify()
    calls, unread = _read_calls(session)
    influences, limits = _influences(session)
    gaps = [e.what or "something was not recorded" for e in record if e.concern == "gap"]
    gaps += [
        f"e{c.seq} {c.tool}: its outcome is not known ({c.outcome})" for c in calls if c.outcome in _UNKNOWN_OUTCOMES
    ]
    if audit.damaged:
        gaps.append(f"a part cannot be read: {audit.damaged}")
    return SessionAudit(
        session=session.id,
        name=session.name,
        agent=info.agent,
        status=session.head.status,
        goal=info.goal or "",
        about=info.about,
        labels=info.labels,
        first_at=info.first_at,
        last_at=max([info.last_at, *(e.at for e in record)]),  # a damaged session is indexed up to the damage
        anchor=session.anchor(),
        turns=tuple(_turns(store, session)),
        calls=len(calls),
        effects=tuple(c for c in calls if c.effect in ("write", "external")),
        influences=influences,
        influence_limits=limits,
        record=record,
        hold=audit.hold,
        integrity=report,
        anchored=anchored,
        gaps=tuple(gaps),
        unproven=tuple(_unproven(report, record, anchored, has_log)),
        unread=unread,
    )


def _influences(session: Session[Any]) -> tuple[tuple[Influence, ...], tuple[str, ...]]:
    """Lists effects that depend on untrusted or unverified input; none if the session is too damaged to trace."""
    try:
        taint = session.trust.taint(trust="unverified", parts=["effect"], items=0)
    except CorruptLogError as exc:
        return (), (f"influence could not be traced: {exc.message}",)
    return tuple(_influence(session, effect) for effect in taint.effects), taint.limits


def _influence(session: Session[Any], effect: Touched) -> Influence:
    source = effect.path[0].seq if effect.path else effect.seq
    header = session.log.entry(source).header
    return Influence(
        effect=effect.seq,
        tool=effect.name,
        outcome=effect.outcome,
        trust=header.trust,
        known=effect.known,
        may=effect.may,
        source=source,
        source_name=header.source or header.actor,
        path=tuple(hop.seq for hop in effect.path),
    )


def _unproven(
    report: VerifyReport, record: Sequence[AuditEntry], anchored: AnchoredSession | None, has_log: bool
) -> list[str]:
    out = []
    if anchored is None:
        why = "it is not in the log of anchors" if has_log else "no anchors were given"
        out.append(f"That its history was not rewritten or cut off before this report: {why}.")
    elif anchored.held is not None and anchored.head > anchored.held.seq:
        out.append(f"That events after e{anchored.held.seq} are the first ones: they came after the newest anchor.")
    for what, number in report.scope.items():
        if number:
            out.append(f"What {number} {what.replace('_', ' ')} once said: only that they existed, and where.")
    if report.uncovered:
        out.append(f"What {report.uncovered} events said that an ancestor removed after the fork.")
    if any(entry.kind == "records.imported" for entry in record):
        out.append("That the transcript it was imported from is whole: wakelog read it afterwards.")
    return out


def _turns(store: Store, session: Session[Any]) -> Iterator[TurnInfo]:
    after: str | None = ""
    while after is not None:
        page = store.index.turns(session.id, rewound=True, newest_first=False, after=after, limit=PAGE)
        yield from page
        after = page.next or None


def _read_calls(session: Session[Any]) -> tuple[list[CallRow], tuple[str, ...]]:
    """The calls, and the events that cannot be read; then the calls are those around them."""
    try:
        return session.calls.table(), ()
    except CorruptLogError:
        calls, holes = readable_calls(session.log)
        return calls, tuple(hole.place for hole in holes)


def write_bundles(store: Store, report: AuditReport, folder: Path) -> AuditReport:
    """Writes each session as a bundle that can be verified without wakelog, and `anchors.json` to check them against.
    Returns the report with the files' hashes. The folder must be empty; a damaged session gets no bundle."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise NotAllowedError(f"{folder} is not empty", kind="file-exists", hint="name a new folder")
        sessions = tuple(_with_bundle(store, audit, folder) for audit in report.sessions)
        with atomic_file(folder / "anchors.json", mode=0o644) as out:
            out.write(msgspec.json.format(msgspec.json.encode([audit.anchor for audit in sessions])) + b"\n")
    except OSError as exc:
        raise NotAllowedError(f"{folder} cannot be written: {exc.strerror or exc}", kind="not-writable") from exc
    return msgspec.structs.replace(report, sessions=sessions)


def _with_bundle(store: Store, audit: SessionAudit, folder: Path) -> SessionAudit:
    path = folder / f"{audit.session}.wakelog"
    try:
        with atomic_file(path, mode=0o644) as out:
            # With `beyond`: an ancestor's later events explain what it removed after the fork.
            store.resume(audit.session, even_damaged=True).export_bundle(out, beyond=True)
    except CorruptLogError as exc:
        gap = f"it has no bundle, because a damaged session cannot be exported whole: {exc.message}"
        return msgspec.structs.replace(audit, gaps=(*audit.gaps, gap))
    content = path.read_bytes()
    file = EvidenceFile(path.name, hashlib.sha256(content).hexdigest(), len(content))
    return msgspec.structs.replace(audit, bundle=file)
